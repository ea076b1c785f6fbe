import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { Link, useParams } from 'react-router';
import { type ApiError, call, query } from '../api/client';
import { prefixed } from '../api/ids';
import type { AttachedStore, Session as Shape, SessionEvent } from '../api/types';
import { counted, exact, shortId } from '../lib/format';
import { follow } from '../lib/stream';
import { Name, RawText } from '../ui/Name';
import { SessionStatus, sessionTitle } from '../ui/SessionTable';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

interface Page {
  events: SessionEvent[] | null;
  next_page_token: string;
}

/** Events of one request. */
const PAGE = 500;

export default function Session() {
  const { sessionId = '' } = useParams();
  const base = `/managed-agents/v1/sessions/${encodeURIComponent(sessionId)}`;
  const session = useQuery<Shape, ApiError>({ queryKey: ['session', sessionId], queryFn: () => call(base), refetchInterval: (q) => (q.state.data?.status === 'active' ? 4_000 : false) });
  if (session.isPending) return <div className="page"><Loading what="the session" /></div>;
  if (session.isError) return <div className="page"><Failure error={session.error} retry={() => void session.refetch()} /></div>;
  const of = session.data;
  const stores = of.config.memory_stores ?? [];
  return (
    <div className="page">
      <title>{`${sessionTitle(of)} · Stele`}</title>
      <div>
        <div className="crumbs"><Link to="/sessions">Sessions</Link> ›</div>
        <h1><Name text={sessionTitle(of)} /></h1>
        <div className="row small soft">
          <SessionStatus session={of} />
          <span>agent <Link to={`/memory/${of.agent_id}`}><Name text={of.agent_snapshot?.name ?? shortId(of.agent_id)} /></Link></span>
          <span>model <code>{of.effective_model}</code></span>
          <span>begun <Time at={of.created_at} /></span>
          <span>last activity <Time at={of.last_activity_at} /></span>
        </div>
      </div>
      {of.failure !== undefined && <div className="notice bad"><b>It failed:</b> <RawText text={of.failure.message} /> <span className="soft">({of.failure.code})</span></div>}
      <Attached sessionId={sessionId} stores={stores} />
      <Transcript key={sessionId} base={base} ended={of.status !== 'active'} />
    </div>
  );
}

function Attached({ sessionId, stores }: { sessionId: string; stores: AttachedStore[] }) {
  const [shown, setShown] = useState(false);
  const note = useQuery<{ text: string }, ApiError>({
    queryKey: ['note', sessionId], queryFn: () => call(`/v1/sessions/${prefixed('sesn', sessionId)}/memory_note`), enabled: shown,
  });
  const text = note.data?.text;
  return (
    <section className="panel">
      <h2>Memory it has</h2>
      {stores.length === 0 ? <p className="soft" style={{ margin: 0 }}>No store is attached: it reads and writes no memory.</p> : (
        <>
          <table>
            <thead><tr><th>Store</th><th>Access</th><th className="hide-narrow">Mounted at</th><th className="hide-narrow">Instructions</th></tr></thead>
            <tbody>
              {stores.map((store) => (
                <tr key={store.memory_store_id}>
                  <td className="break"><Link to={`/stores/${store.memory_store_id}`}><Name text={store.name} /></Link> {store.learned && <span className="badge good">learned</span>}</td>
                  <td className="nowrap">{store.access === 'read_only' ? 'reads' : 'reads and writes'}</td>
                  <td className="hide-narrow"><code>{store.mount_path}</code></td>
                  <td className="hide-narrow break"><Name text={store.instructions ?? ''} /></td>
                </tr>
              ))}
            </tbody>
          </table>
          <details style={{ marginTop: '.6rem' }} onToggle={(e) => setShown(e.currentTarget.open)}>
            <summary>The note in its system prompt</summary>
            {note.isLoading && <Loading what="the note" />}
            {note.isError && <Failure error={note.error} />}
            {text !== undefined && <pre className="raw" tabIndex={0} aria-label="Note"><RawText text={text} /></pre>}
          </details>
        </>
      )}
    </section>
  );
}

function Transcript({ base, ended }: { base: string; ended: boolean }) {
  const [events, setEvents] = useState<SessionEvent[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [live, setLive] = useState(false);
  const [more, setMore] = useState('');
  const [wanted, setWanted] = useState(1);

  // Pages from the beginning; when there are no more, the stream goes on from the last one.
  useEffect(() => {
    const end = new AbortController();
    const seen = new Set<string>();
    const add = (fresh: SessionEvent[]) => {
      const unseen = fresh.filter((event) => !seen.has(event.event_id));
      unseen.forEach((event) => seen.add(event.event_id));
      setEvents((before) => [...(before ?? []), ...unseen]);
    };
    const read = async () => {
      setEvents(null);
      let after = '';
      for (let page = 0; page < wanted; page++) {
        const got: Page = await call(`${base}/events${query({ limit: PAGE, after_event_id: after })}`, { signal: end.signal });
        add(got.events ?? []);
        after = got.next_page_token === '' ? (got.events?.at(-1)?.event_id ?? after) : got.next_page_token;
        setMore(got.next_page_token);
        if (got.next_page_token === '') {
          if (!ended) {
            await follow(
              {
                address: (last) => `${base}/events/stream${query({ after_event_id: last === '' ? after : last })}`,
                onMessage: ({ data }) => {
                  const event = JSON.parse(data === '' ? '{}' : data) as Partial<SessionEvent>;
                  if (event.event_id !== undefined) add([event as SessionEvent]);
                },
                onState: setLive,
                onExpired: () => undefined,
              },
              end.signal,
            );
          }
          return;
        }
      }
    };
    read().catch((failed: unknown) => {
      if (!end.signal.aborted) setError(failed);
    });
    return () => end.abort();
  }, [base, ended, wanted]);

  const results = useMemo(() => new Map((events ?? []).filter((event) => event.event_type === 'tool_result').map((event) => [event.tool_use_id, event])), [events]);
  if (error !== null) return <Failure error={error} />;
  if (events === null) return <Loading what="the transcript" />;
  const invoked = new Set(events.filter((event) => event.event_type === 'tool_invocation').map((event) => event.tool_use_id));
  return (
    <section aria-label="Transcript">
      <div className="row" style={{ marginBottom: '.6rem' }}>
        <h2 style={{ margin: 0 }}>Transcript</h2>
        <span className="soft small">{counted(events.length, 'event')}</span>
        {!ended && <span className={live ? 'live on' : 'live'} role="status">{live ? 'live' : 'connecting'}</span>}
      </div>
      {events.length === 0 && <Empty title="Nothing said yet" />}
      {events.map((event) => {
        if (event.event_type === 'tool_result' && invoked.has(event.tool_use_id)) return null;
        return <Event key={event.event_id} event={event} result={event.event_type === 'tool_invocation' ? results.get(event.tool_use_id) : undefined} />;
      })}
      {more !== '' && <button onClick={() => setWanted(wanted + 1)}>Go on reading</button>}
    </section>
  );
}

/** The texts of content blocks; what is no text is named. */
function blockTexts(blocks: unknown): string[] {
  if (typeof blocks === 'string') return [blocks];
  if (!Array.isArray(blocks)) return [];
  return blocks.map((block: unknown) => {
    const of = (typeof block === 'object' && block !== null ? block : {}) as Record<string, unknown>;
    if (typeof of.text === 'string') return of.text;
    if (typeof of.thinking === 'string') return of.thinking;
    return `[${typeof of.type === 'string' ? of.type : 'block'}]`;
  });
}

/** Longer texts are folded. */
const FOLDED = 1_500;

function Text({ text }: { text: string }) {
  const [open, setOpen] = useState(text.length <= FOLDED);
  return (
    <>
      <pre className="text"><RawText text={open ? text : `${text.slice(0, FOLDED)} …`} /></pre>
      {!open && <button className="plain" onClick={() => setOpen(true)}>All {counted(text.length, 'character')}</button>}
    </>
  );
}

const SPEAKERS: Record<string, string> = { user: 'User', assistant: 'Agent', system: 'System', tool: 'Tool' };

function Event({ event, result }: { event: SessionEvent; result: SessionEvent | undefined }) {
  const blocks = event.content.blocks;
  if (event.event_type === 'session_status') {
    return <div className="event status">{blockTexts(blocks).join(' ')} · <Time at={event.created_at} /></div>;
  }
  const head = (
    <header>
      <b>{SPEAKERS[event.role ?? ''] ?? event.event_type}</b>
      <time dateTime={event.created_at}>{exact(event.created_at)}</time>
    </header>
  );
  if (event.event_type === 'tool_invocation') {
    const input = blocks[0]?.input ?? {};
    const output = result?.content.blocks[0];
    return (
      <div className="event assistant">
        {head}
        <details>
          <summary>
            <code><Name text={event.tool_name ?? 'tool'} /></code> {result === undefined ? <span className="badge">no result</span> : output?.is_error === true ? <span className="badge bad">failed</span> : <span className="badge">done</span>}{' '}
            <span className="soft small break">{JSON.stringify(input).slice(0, 120)}</span>
          </summary>
          <h3>Input</h3>
          <Text text={JSON.stringify(input, null, 2)} />
          {output !== undefined && <><h3>Result</h3>{blockTexts(output.content).map((text, i) => <Text key={i} text={text} />)}</>}
        </details>
      </div>
    );
  }
  const texts = event.event_type === 'tool_result' ? blockTexts(blocks[0]?.content) : blockTexts(blocks);
  return <div className={`event ${event.role ?? ''}`}>{head}{texts.map((text, i) => <Text key={i} text={text} />)}</div>;
}
