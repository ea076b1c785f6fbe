import { type ReactNode, useId } from 'react';

interface Props {
  label: ReactNode;
  hint?: ReactNode;
  bad?: string | undefined;
  children: (id: string, described: string | undefined) => ReactNode;
}

/** A labelled control with its hint and what is wrong with it. */
export function Field({ label, hint, bad, children }: Props) {
  const id = useId();
  const described = hint !== undefined || bad !== undefined ? `${id}-more` : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id, described)}
      {described !== undefined && (
        <div id={described}>
          {bad !== undefined && <div className="bad">{bad}</div>}
          {hint !== undefined && <div className="hint">{hint}</div>}
        </div>
      )}
    </div>
  );
}
