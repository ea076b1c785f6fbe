import { type ReactNode, useState } from 'react';
import { Dialog } from './Dialog';
import { Field } from './Field';
import { Failure } from './states';

interface Props {
  title: string;
  /** What happens, and what cannot be undone. */
  children: ReactNode;
  /** What must be typed; nothing where a click will do. */
  typed?: string;
  action: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something is done that cannot be taken back. */
export function Confirm({ title, children, typed, action, onConfirm, onClose }: Props) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const sure = typed === undefined || text === typed;
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (sure && !busy) void confirm();
        }}
      >
        <div>{children}</div>
        {typed !== undefined && (
          <Field label={<>Type <code>{typed}</code> to go on</>}>
            {(id) => <input id={id} value={text} onChange={(e) => setText(e.target.value)} autoComplete="off" spellCheck={false} autoFocus />}
          </Field>
        )}
        {error !== null && <Failure error={error} />}
        <div className="row end">
          <button type="button" onClick={onClose}>Cancel</button>
          <button className="danger sure" disabled={!sure || busy}>{action}</button>
        </div>
      </form>
    </Dialog>
  );
}
