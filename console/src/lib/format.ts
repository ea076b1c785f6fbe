/** Numbers, times and texts as people read them. */

const COUNT = new Intl.NumberFormat('en');

export function count(value: number): string {
  return COUNT.format(value);
}

/** `1 memory`, `2 memories`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 1_000_000) return `${(value / 1000).toFixed(1)} kB`;
  return `${(value / 1_000_000).toFixed(1)} MB`;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });

/** How long ago: `3 min. ago`. */
export function ago(at: string, now = Date.now()): string {
  const seconds = (Date.parse(at) - now) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return RELATIVE.format(Math.round(seconds / length), unit);
  }
  return Math.abs(seconds) < 10 ? 'just now' : RELATIVE.format(Math.round(seconds), 'second');
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function exact(at: string): string {
  return EXACT.format(new Date(at));
}

export function shortId(id: string): string {
  return id.slice(-8);
}
