import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { type ApiError, call, query, send } from '../api/client';
import { useStores } from '../api/stores';
import type { Automation as Shape, AutomationRun } from '../api/types';
import { exact, shortId } from '../lib/format';
import { useMay } from '../session';
import { Name, RawText } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';
import { useAgentNames } from './Sessions';

interface TriggerStatus {
  triggerId: string;
  paused: boolean;
  nextRunAt: string | null;
  lastRunAt: string | null;
  upcomingRuns: string[];
  skippedOverlap: number;
  missedCatchupWindow: number;
}

export default function Automation() {
  const { automationId = '' } = useParams();
  const base = `/managed-agents/v1/automations/${encodeURIComponent(automationId)}`;
  const may = useMay();
  const names = useAgentNames();
  const stores = useStores(true);
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const automation = useQuery<{ shape: Shape; etag: string }, ApiError>({
    queryKey: ['automation', automationId],
    queryFn: async () => {
      const response = await send(base);
      return { shape: (await response.json()) as Shape, etag: response.headers.get('etag') ?? '' };
    },
  });
  const status = useQuery<{ triggers: TriggerStatus[] }, ApiError>({ queryKey: ['automation', automationId, 'status'], queryFn: () => call(`${base}/status`), refetchInterval: 15_000 });
  const runs = useQuery<{ items: AutomationRun[] }, ApiError>({ queryKey: ['automation', automationId, 'runs'], queryFn: () => call(`/managed-agents/v1/automation-runs${query({ automationId, limit: 25 })}`), refetchInterval: 15_000 });
  const note = useQuery<{ text?: string | null }, ApiError>({ queryKey: ['automation', automationId, 'note'], queryFn: () => call(`/stele/v1/automations/${encodeURIComponent(automationId)}/memory_note`) });
  if (automation.isPending) return <div className="page"><Loading what="the automation" /></div>;
  if (automation.isError) return <div className="page"><Failure error={automation.error} /></div>;
  const { shape, etag } = automation.data;
  const act = async (request: () => Promise<unknown>) => {
    setError(null);
    try {
      await request();
    } catch (failed) {
      setError(failed);
    }
    await queries.invalidateQueries({ queryKey: ['automation', automationId] });
    await queries.invalidateQueries({ queryKey: ['automations'] });
  };
  const attached = shape.runDefaults.memoryStores ?? [];
  const triggers = status.data?.triggers ?? [];
  return (
    <div className="page">
      <title>{`${shape.displayName} · Stele`}</title>
      <div className="head">
        <div>
          <div className="crumbs"><Link to="/automations">Automations</Link> ›</div>
          <h1><Name text={shape.displayName} /></h1>
          <div className="row small soft">
            <span className={shape.status === 'active' ? 'badge good' : 'badge'}>{shape.status}</span>
            <span>agent <Link to={`/memory/${shape.agentId}`}><Name text={names(shape.agentId) ?? shortId(shape.agentId)} /></Link></span>
            <span>changed <Time at={shape.updatedAt} /></span>
          </div>
        </div>
        {may('automation', 'update') && (
          <div className="actions">
            <button onClick={() => void act(() => call(`${base}/${shape.status === 'active' ? 'pause' : 'resume'}`, { method: 'POST', body: {}, headers: { 'if-match': etag } }))}>
              {shape.status === 'active' ? 'Pause' : 'Resume'}
            </button>
            <button className="primary" onClick={() => void act(() => call(`${base}/runs`, { method: 'POST', body: {}, headers: { 'idempotency-key': crypto.randomUUID() } }))}>Run now</button>
          </div>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      <section className="panel">
        <h2>What it says first</h2>
        <pre className="raw" tabIndex={0} aria-label="Prompt"><RawText text={shape.initialPrompt.text ?? ''} /></pre>
      </section>
      <section className="panel">
        <h2>Memory that its sessions get</h2>
        {attached.length === 0 ? <p className="soft">No curated store; the agent’s learned memory, where there is one, is always attached.</p> : (
          <table>
            <thead><tr><th>Store</th><th>Access</th><th>Instructions</th></tr></thead>
            <tbody>
              {attached.map((one) => (
                <tr key={one.memoryStoreId}>
                  <td className="break"><Link to={`/stores/${one.memoryStoreId}`}><Name text={stores.data?.find((store) => store.memory_store_id === one.memoryStoreId)?.name ?? shortId(one.memoryStoreId)} /></Link></td>
                  <td>{one.access === 'read_only' ? 'reads' : 'reads and writes'}</td>
                  <td className="break"><Name text={one.instructions ?? ''} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <h3 style={{ marginTop: '.8rem' }}>The exact note that the agent gets</h3>
        {note.isError && <Failure error={note.error} />}
        {note.data !== undefined && (
          note.data.text == null ? <p className="soft">The agent gets its learned store with its first session; from then on the note can be shown to the letter.</p>
          : note.data.text === '' ? <p className="soft">None: no store is attached.</p>
          : <pre className="raw" tabIndex={0} aria-label="Note"><RawText text={note.data.text} /></pre>
        )}
      </section>
      <section className="panel">
        <h2>When it runs</h2>
        {shape.triggers.length === 0 && <p className="soft">Only when somebody runs it.</p>}
        {shape.triggers.map((trigger) => {
          const state = triggers.find((one) => one.triggerId === trigger.triggerId);
          return (
            <dl className="facts" key={trigger.triggerId}>
              <dt>Schedule</dt><dd><code>{trigger.schedule?.cron ?? trigger.type}</code> {trigger.schedule?.timezone} {!trigger.enabled && <span className="badge">switched off</span>}</dd>
              {state !== undefined && !state.paused && <><dt>Next</dt><dd>{state.upcomingRuns.length === 0 ? 'never' : state.upcomingRuns.map(exact).join('; ')}</dd></>}
              {state !== undefined && state.lastRunAt !== null && <><dt>Last</dt><dd><Time at={state.lastRunAt} /></dd></>}
              {state !== undefined && state.skippedOverlap + state.missedCatchupWindow > 0 && <><dt>Left out</dt><dd>{state.skippedOverlap} because the last session was still going on, {state.missedCatchupWindow} because no server ran</dd></>}
            </dl>
          );
        })}
      </section>
      <section>
        <h2>Runs</h2>
        {runs.isError && <Failure error={runs.error} />}
        {runs.data?.items.length === 0 && <Empty title="It has not run yet" />}
        {runs.data !== undefined && runs.data.items.length > 0 && (
          <div className="wide">
            <table>
              <thead><tr><th>When</th><th>Why</th><th>Result</th></tr></thead>
              <tbody>
                {runs.data.items.map((run) => (
                  <tr key={run.automationRunId}>
                    <td><Time at={run.createdAt} /></td>
                    <td>{run.triggerType === 'manual' ? 'by hand' : 'schedule'}</td>
                    <td className="break">{run.sessionId !== undefined ? <Link to={`/sessions/${run.sessionId}`}>session {shortId(run.sessionId)}</Link> : <span className="badge bad">{run.error?.message ?? run.status}</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}
