import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link } from 'react-router';
import { type ApiError, query, send } from '../api/client';
import { anthropicStore, useStores } from '../api/stores';
import type { Change, Store } from '../api/types';
import { bytes, count } from '../lib/format';
import { parseMetrics, type Sample, total } from '../lib/metrics';
import { useWhoami } from '../session';
import { Meter } from '../ui/Meter';
import { Name } from '../ui/Name';
import { Plot } from '../ui/Plot';
import { Empty, Failure, Loading } from '../ui/states';

/** Changes that are looked at for the plot, newest. */
const LOOKED = 5_000;
const DAY = 86_400;

export default function Usage() {
  const stores = useStores(true);
  const [chosen, setChosen] = useState('');
  const { max_memories_per_store: cap } = useWhoami();
  const sorted = [...(stores.data ?? [])].sort((a, b) => b.memory_count - a.memory_count);
  const store = sorted.find((one) => one.memory_store_id === chosen) ?? sorted[0];
  return (
    <div className="page">
      <title>Usage · Stele</title>
      <h1>Usage</h1>
      {stores.isPending && <Loading what="figures" />}
      {stores.isError && <Failure error={stores.error} />}
      {stores.data !== undefined && (
        <div className="tiles">
          <div className="tile"><b>{count(stores.data.length)}</b>stores</div>
          <div className="tile"><b>{count(stores.data.reduce((sum, one) => sum + one.memory_count, 0))}</b>memories</div>
          <div className="tile"><b>{bytes(stores.data.reduce((sum, one) => sum + one.total_bytes, 0))}</b>of current texts</div>
          <div className="tile"><b>{count(stores.data.filter((one) => one.memory_count > cap * 0.9).length)}</b>stores near their cap</div>
        </div>
      )}
      {store !== undefined && (
        <section className="panel">
          <div className="head">
            <h2 style={{ margin: 0 }}>Changes over time</h2>
            <div className="actions">
              <select aria-label="Store" style={{ width: 'auto', maxWidth: '20rem' }} value={store.memory_store_id} onChange={(e) => setChosen(e.target.value)}>
                {sorted.map((one) => <option key={one.memory_store_id} value={one.memory_store_id}>{one.name}</option>)}
              </select>
            </div>
          </div>
          <Changes key={store.memory_store_id} store={store} />
        </section>
      )}
      <Requests />
      {sorted.length > 0 && (
        <section>
          <h2>The largest stores</h2>
          <div className="wide">
            <table>
              <thead><tr><th>Store</th><th className="num">Memories</th><th>Of the cap</th><th className="num">Size</th></tr></thead>
              <tbody>
                {sorted.slice(0, 10).map((one) => (
                  <tr key={one.memory_store_id}>
                    <td className="break"><Link to={`/stores/${one.memory_store_id}`}><Name text={one.name} /></Link></td>
                    <td className="num">{count(one.memory_count)}</td>
                    <td className="nowrap"><Meter value={one.memory_count} cap={cap} /></td>
                    <td className="num">{bytes(one.total_bytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </div>
  );
}

interface Timeline {
  changes: Change[];
  last: number;
}

/** The newest changes of a store from its feed; retention may have removed older ones. */
async function timeline(store: Store, signal: AbortSignal): Promise<Timeline> {
  const probe = await send(anthropicStore(store.memory_store_id), { signal });
  const last = Number(probe.headers.get('stele-sequence'));
  const changes: Change[] = [];
  let after = Math.max(0, last - LOOKED);
  // Only what is below the floor is refused: begin later until it is told.
  for (let tries = 0; after < last && tries < 40; tries++) {
    try {
      const page = await send(anthropicStore(store.memory_store_id) + '/changes' + query({ after, limit: 1000 }), { signal });
      const { data, last_sequence } = (await page.json()) as { data: Change[]; last_sequence: number };
      changes.push(...data);
      if (data.length === 0 || last_sequence <= after) break;
      after = last_sequence;
    } catch (error) {
      if ((error as ApiError).status !== 410) throw error;
      after = Math.ceil((after + last) / 2);
    }
  }
  return { changes, last };
}

function Changes({ store }: { store: Store }) {
  const found = useQuery<Timeline, ApiError>({ queryKey: ['timeline', store.memory_store_id, store.updated_at], queryFn: ({ signal }) => timeline(store, signal) });
  const plotted = useMemo(() => {
    const times = (found.data?.changes ?? []).map((change) => Date.parse(change.created_at) / 1000);
    const [first, end] = [times[0], times.at(-1)];
    if (first === undefined || end === undefined) return undefined;
    const step = end - first > 3 * DAY ? DAY : end - first > 6 * 3600 ? 3600 : 60;
    // A little room on both sides: one bar alone would have no scale.
    const begin = (Math.floor(first / step) - 5) * step;
    const bins = Array.from({ length: Math.min(400, Math.floor((end - begin) / step) + 6) }, (_, i) => begin + i * step);
    const values = bins.map(() => 0);
    for (const time of times) {
      const bin = Math.floor((time - begin) / step);
      values[bin] = (values[bin] ?? 0) + 1;
    }
    return { data: [bins, values] as [number[], number[]], per: step === DAY ? 'day' : step === 3600 ? 'hour' : 'minute' };
  }, [found.data]);
  if (found.isPending) return <Loading what="changes" />;
  if (found.isError) return <Failure error={found.error} />;
  if (plotted === undefined) return <Empty title="No changes yet" />;
  const kinds = new Map<string, number>();
  for (const change of found.data.changes) kinds.set(change.operation, (kinds.get(change.operation) ?? 0) + 1);
  return (
    <>
      <Plot label={`Changes of ${store.name} a ${plotted.per}`} data={plotted.data} series={[`changes a ${plotted.per}`]} bars />
      <p className="small soft" style={{ margin: 0 }}>
        {count(found.data.changes.length)} of {count(found.data.last)} changes ever: {[...kinds].map(([kind, n]) => `${count(n)} ${kind.replace('_', ' ')}`).join(', ')}.
      </p>
    </>
  );
}

const EVERY = 3_000;
const KEPT = 200;

function requests(samples: Sample[], kind: 'read' | 'write'): number {
  return total(samples, 'stele_http_request_duration_seconds_count', (labels) => (labels.method === 'GET') === (kind === 'read') && !/^\/(metrics|healthz|readyz)/.test(labels.route ?? ''));
}

interface Moment {
  at: number;
  reads: number;
  writes: number;
  searches: number;
}

/** The counts as of now, with those that were read before. */
function useMoments() {
  const queryKey = ['moments'];
  return useQuery<Moment[], ApiError>({
    queryKey,
    refetchInterval: EVERY,
    queryFn: async ({ client }) => {
      const samples = parseMetrics(await (await send('/metrics')).text());
      const searches = total(samples, 'stele_http_request_duration_seconds_count', (labels) => (labels.route ?? '').endsWith('/search'));
      const now = { at: Date.now() / 1000, reads: requests(samples, 'read'), writes: requests(samples, 'write'), searches };
      return [...(client.getQueryData<Moment[]>(queryKey) ?? []), now].slice(-KEPT);
    },
  });
}

function Requests() {
  const moments = useMoments();
  const seen = moments.data;
  const data = useMemo((): [number[], number[], number[]] => {
    const times: number[] = [], reads: number[] = [], writes: number[] = [];
    for (let i = 1; i < (seen?.length ?? 0); i++) {
      const [a, b] = [seen?.[i - 1], seen?.[i]];
      if (a === undefined || b === undefined || b.at <= a.at) continue;
      times.push(b.at);
      reads.push(Math.max(0, b.reads - a.reads) / (b.at - a.at));
      writes.push(Math.max(0, b.writes - a.writes) / (b.at - a.at));
    }
    return [times, reads, writes];
  }, [seen]);
  const last = seen?.at(-1);
  return (
    <section className="panel">
      <h2>Requests, live</h2>
      {moments.isError && (moments.error.status === 404 ? <p className="soft">The server was started with <code>metrics = "off"</code>.</p> : <Failure error={moments.error} />)}
      {seen !== undefined && (
        <>
          <Plot label="Requests a second since this page was opened" data={data} series={['reads a second', 'writes a second']} />
          {last !== undefined && <p className="small soft" style={{ margin: 0 }}>Since this server process started: {count(last.reads)} reads, {count(last.writes)} writes, {count(last.searches)} searches. This page itself reads every three seconds.</p>}
        </>
      )}
    </section>
  );
}
