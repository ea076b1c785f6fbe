import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '../api/client';
import { signIn } from '../session';
import { Field } from '../ui/Field';
import { Failure } from '../ui/states';

export function SignIn() {
  return (
    <main className="centre">
      <title>Sign in · Stele</title>
      <div className="panel">
        <h1 className="row"><img src="/favicon.svg" alt="" width="28" height="28" /> Stele</h1>
        <SignInForm />
        <p className="small soft">
          The first key is in the file that <code>stele serve</code> names when it starts. Admins make more under Keys, or with{' '}
          <code>stele key create</code>.
        </p>
      </div>
    </main>
  );
}

export function SignInForm({ onSignedIn }: { onSignedIn?: () => void }) {
  const queries = useQueryClient();
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      queries.setQueryData(['whoami'], await signIn(key.trim()));
      setKey('');
      onSignedIn?.();
    } catch (failed) {
      setError(failed instanceof ApiError && failed.status === 401 ? new Error('This key is unknown, revoked or expired.') : failed);
    }
    setBusy(false);
  };
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) void submit();
      }}
    >
      <Field label="API key" hint="It is exchanged for a cookie, and not kept in this browser.">
        {(id, described) => (
          <input id={id} aria-describedby={described} type="password" value={key} onChange={(e) => setKey(e.target.value)} placeholder="rma_…" autoComplete="current-password" spellCheck={false} required autoFocus />
        )}
      </Field>
      {error !== null && <Failure error={error} />}
      <div><button className="primary" disabled={busy}>Sign in</button></div>
    </form>
  );
}
