import type { ReactNode } from 'react';
import { ApiError } from '../api/client';

export function Loading({ what }: { what: string }) {
  return <div className="loading" role="status">Loading {what} …</div>;
}

/** What went wrong, in the server's words, and what to do. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const message = error instanceof Error ? error.message : 'Something went wrong.';
  const request = error instanceof ApiError && typeof error.details.requestId === 'string' ? error.details.requestId : undefined;
  return (
    <div className="notice bad" role="alert">
      <p>{message}</p>
      {request !== undefined && error instanceof ApiError && error.status >= 500 && <p className="small">The server’s log says more under <code>{request}</code>.</p>}
      {retry !== undefined && <button onClick={retry}>Try again</button>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
