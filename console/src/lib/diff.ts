/** Differences between two versions, by line and within changed lines by word. */
import { diffArrays, diffWordsWithSpace } from 'diff';
import { lines } from './merge';

export interface Piece {
  text: string;
  changed: boolean;
}

export interface Row {
  kind: 'same' | 'change' | 'skip';
  /** The line on the old side, if there is one. */
  old?: { number: number; pieces: Piece[] };
  new?: { number: number; pieces: Piece[] };
  /** Lines left out. */
  skipped?: number;
}

/** Unchanged lines shown around a change. */
const AROUND = 3;
/** Lines longer than this are compared whole: words of 100 kB would take seconds. */
const WORDS = 20_000;

function whole(text: string, changed: boolean): Piece[] {
  return [{ text: text.replace(/\n$/, ''), changed }];
}

function words(before: string, after: string): [Piece[], Piece[]] {
  if (before.length + after.length > WORDS) return [whole(before, true), whole(after, true)];
  const parts = diffWordsWithSpace(before.replace(/\n$/, ''), after.replace(/\n$/, ''), { timeout: 200 });
  // A comparison that takes too long is none.
  if (parts === undefined) return [whole(before, true), whole(after, true)];
  const side = (skip: 'added' | 'removed') => parts.filter((part) => !part[skip]).map((part) => ({ text: part.value, changed: part.added || part.removed }));
  return [side('added'), side('removed')];
}

function raw(before: string, after: string): Row[] {
  const found: Row[] = [];
  let [oldLine, newLine] = [1, 1];
  const parts = diffArrays(lines(before), lines(after), { timeout: 1_000 });
  const all = parts ?? [
    { value: lines(before), removed: true, added: false, count: 0 },
    { value: lines(after), removed: false, added: true, count: 0 },
  ];
  for (let i = 0; i < all.length; i++) {
    const part = all[i];
    const next = all[i + 1];
    if (part === undefined) continue;
    if (!part.added && !part.removed) {
      for (const line of part.value) found.push({ kind: 'same', old: { number: oldLine++, pieces: whole(line, false) }, new: { number: newLine++, pieces: whole(line, false) } });
      continue;
    }
    const removed = part.removed ? part.value : [];
    const added = part.added ? part.value : part.removed && next?.added === true ? next.value : [];
    if (part.removed && next?.added === true) i++;
    for (let j = 0; j < Math.max(removed.length, added.length); j++) {
      const [was, is] = [removed[j], added[j]];
      const [left, right] = was !== undefined && is !== undefined ? words(was, is) : [whole(was ?? '', true), whole(is ?? '', true)];
      found.push({
        kind: 'change',
        ...(was === undefined ? {} : { old: { number: oldLine++, pieces: left } }),
        ...(is === undefined ? {} : { new: { number: newLine++, pieces: right } }),
      });
    }
  }
  return found;
}

/** Rows with long stretches of unchanged lines left out. */
export function diffRows(before: string, after: string): Row[] {
  const all = raw(before, after);
  const near = all.map(() => false);
  all.forEach((row, i) => {
    if (row.kind === 'change') for (let j = i - AROUND; j <= i + AROUND; j++) if (j >= 0 && j < near.length) near[j] = true;
  });
  const found: Row[] = [];
  let skipped = 0;
  all.forEach((row, i) => {
    if (near[i]) {
      if (skipped > 0) found.push({ kind: 'skip', skipped });
      skipped = 0;
      found.push(row);
    } else skipped++;
  });
  if (skipped > 0 && found.length > 0) found.push({ kind: 'skip', skipped });
  return found;
}
