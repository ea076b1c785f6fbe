/**
 * Texts that can deceive a reader's eye: what steers, hides or imitates is made visible. The text itself is never
 * changed, only how a name is shown. `cases/` CL-06.
 */

export interface Piece {
  text: string;
  /** What is said of the piece, where it is not what it seems. */
  note?: string;
}

const NAMES: Record<string, string> = {
  '\u001b': 'escape',
  '\u00a0': 'no-break space',
  '\u00ad': 'soft hyphen',
  '\u200b': 'zero width space',
  '\u200c': 'zero width non-joiner',
  '\u200d': 'zero width joiner',
  '\u200e': 'left-to-right mark',
  '\u200f': 'right-to-left mark',
  '\u202a': 'left-to-right embedding',
  '\u202b': 'right-to-left embedding',
  '\u202c': 'end of direction',
  '\u202d': 'left-to-right override',
  '\u202e': 'right-to-left override',
  '\u2066': 'left-to-right isolate',
  '\u2067': 'right-to-left isolate',
  '\u2068': 'isolate',
  '\u2069': 'end of isolate',
  '\ufeff': 'byte order mark',
};

/** Controls but for tab and line feed, marks of direction, invisible ones. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/u;

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function named(character: string): string {
  const code = codePoint(character);
  const name = NAMES[character];
  return name === undefined ? code : `${code} ${name}`;
}

/** Cuts a text into what is plain and what needs a mark. Blanks stay as they are inside a `pre`. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let plain = '';
  for (const character of text) {
    if (character !== '\n' && character !== '\t' && HIDDEN.test(character)) {
      if (plain !== '') found.push({ text: plain });
      plain = '';
      found.push({ text: codePoint(character), note: named(character) });
    } else {
      plain += character;
    }
  }
  if (plain !== '') found.push({ text: plain });
  return found;
}

/** A path or name in which blanks at the ends or side by side, and letters of other alphabets, can be told from plain ones. */
export function namePieces(name: string): Piece[] {
  return pieces(name).flatMap((piece) => {
    if (piece.note !== undefined) return [piece];
    const parts = piece.text.split(/([^\p{ASCII}]+|^ +| +$|(?<=\/) +| +(?=\/)| {2,})/u).filter((part) => part !== '');
    return parts.map((part): Piece => {
      if (/^ +$/.test(part)) return { text: '␣'.repeat(part.length), note: 'blank' };
      if (/^\p{ASCII}/u.test(part)) return { text: part };
      return { text: part, note: `${scripts(part)}: ${[...part].slice(0, 12).map(codePoint).join(' ')}` };
    });
  });
}

/** Whether letters of different alphabets stand in one part of a path, as in a name that imitates another. */
export function mixesScripts(name: string): boolean {
  const has = (script: string) => new RegExp(`\\p{Script=${script}}`, 'u');
  return name.split(/[/._\- ]/).some((word) => {
    const found = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee'].filter((script) => has(script).test(word));
    return found.length > 1;
  });
}

function scripts(text: string): string {
  const known = ['Latin', 'Cyrillic', 'Greek', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Arabic', 'Hebrew', 'Armenian'];
  const found = known.filter((script) => new RegExp(`\\p{Script=${script}}`, 'u').test(text));
  return found.length === 0 ? 'not ASCII' : `${found.join(' and ')} letters`;
}
