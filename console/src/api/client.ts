/**
 * The one way to the server: its public API, with the cookie that signing in has set. Errors of both dialects become
 * one class, and a session that ended is told to whoever listens, so that nothing typed is lost to a redirect.
 */

/** An answer that is no success, in the words of the server. */
export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 where the server could not be reached. */
    readonly status: number,
    /** The machine-readable code of either dialect. */
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** The header that tells the server that its own page asks; see `stele-http/src/auth.rs`. */
const OWN_PAGE = { 'stele-console': '1' };
const MEMORY_BETA = { 'anthropic-beta': 'agent-memory-2026-07-22', 'anthropic-version': '2023-06-01' };
const MANAGED_BETA = { 'anthropic-beta': 'managed-agents-2026-04-01', 'anthropic-version': '2023-06-01' };

type Listener = () => void;
const signedOut = new Set<Listener>();

/** Calls `listener` whenever the server no longer knows who asks. */
export function onSignedOut(listener: Listener): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

/** Reads the flat envelope, or Anthropic's. */
function errorOf(status: number, body: unknown): ApiError {
  const outer = record(body);
  const inner = record(outer.error);
  const from = outer.type === 'error' ? inner : outer;
  const details = record(from.details);
  const code = text(from.code, text(details.error_code, text(from.type, 'unknown')));
  return new ApiError(status, code, text(from.message, `The server answered ${status}.`), details);
}

function betaOf(path: string): Record<string, string> {
  if (path.startsWith('/v1/memory_stores')) return MEMORY_BETA;
  return path.startsWith('/v1/') ? MANAGED_BETA : {};
}

export interface Request {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request; resolves with the response if it is a success. */
export async function send(path: string, { method = 'GET', body, headers, signal }: Request = {}): Promise<Response> {
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...OWN_PAGE, ...betaOf(path), ...json, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      credentials: 'same-origin',
      cache: 'no-store',
      signal: signal ?? null,
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, 'unreachable', 'The server cannot be reached. What you see may be old; try again in a moment.');
  }
  if (response.ok) return response;
  const error = errorOf(response.status, await response.json().catch(() => null));
  if (error.status === 401 && path !== '/stele/v1/console/session') signedOut.forEach((listener) => listener());
  throw error;
}

/** Sends a request whose answer is JSON. */
export async function call<T>(path: string, request: Request = {}): Promise<T> {
  const response = await send(path, request);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** A path with its parts escaped: `at\`/stores/${id}\``. */
export function at(parts: TemplateStringsArray, ...values: (string | number)[]): string {
  return parts.reduce((path, part, i) => path + part + (i < values.length ? encodeURIComponent(String(values[i])) : ''), '');
}

/** A query without what is not set. */
export function query(values: Record<string, string | number | boolean | undefined | null>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const spelled = search.toString();
  return spelled === '' ? '' : `?${spelled}`;
}
