/** Three-way merges by line: what both changed differently is a conflict that a person decides. */
import { diff3Merge } from 'node-diff3';

export type Part = { kind: 'same'; text: string } | { kind: 'conflict'; mine: string; base: string; theirs: string };

/** Lines with their ends, so that putting them together gives the text back. */
export function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

export function merge(mine: string, base: string, theirs: string): Part[] {
  const regions = diff3Merge(lines(mine), lines(base), lines(theirs), { excludeFalseConflicts: true });
  return regions.map((region): Part =>
    region.conflict === undefined
      ? { kind: 'same', text: (region.ok ?? []).join('') }
      : { kind: 'conflict', mine: region.conflict.a.join(''), base: region.conflict.o.join(''), theirs: region.conflict.b.join('') },
  );
}

export type Choice = 'mine' | 'theirs' | 'both';

function ended(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

/** The text that choices make of a merge; `undefined` while one is open. */
export function resolved(parts: Part[], choices: (Choice | undefined)[]): string | undefined {
  let text = '';
  let conflict = 0;
  for (const part of parts) {
    if (part.kind === 'same') {
      text += part.text;
      continue;
    }
    const choice = choices[conflict++];
    if (choice === undefined) return undefined;
    text += choice === 'mine' ? part.mine : choice === 'theirs' ? part.theirs : ended(part.mine) + part.theirs;
  }
  return text;
}
