import { ago, exact } from '../lib/format';

/** When something was: how long ago, exactly on hovering and for programs. */
export function Time({ at }: { at: string }) {
  return <time dateTime={at} title={exact(at)} className="nowrap">{ago(at)}</time>;
}
