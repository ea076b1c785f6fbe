import { count } from '../lib/format';

/** How much of a cap is used; a warning before it fails. */
export function Meter({ value, cap }: { value: number; cap: number }) {
  const share = Math.min(1, value / cap);
  return (
    <span title={`${count(value)} of at most ${count(cap)} memories`}>
      <span className={share > 0.9 ? 'meter warn' : 'meter'} aria-hidden="true"><span style={{ width: `${share * 100}%` }} /></span>{' '}
      <span className="small soft">{share > 0 && share < 0.01 ? '< 1' : Math.round(share * 100)} % of {count(cap)}</span>
    </span>
  );
}
