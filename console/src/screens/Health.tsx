import { useQuery } from '@tanstack/react-query';
import { type ApiError, call, send } from '../api/client';
import type { Backup } from '../api/types';
import { count } from '../lib/format';
import { parseMetrics, type Sample, total } from '../lib/metrics';
import { useMay } from '../session';
import { Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

export default function Health() {
  const may = useMay();
  const ready = useQuery<{ ready: boolean; epoch: string; took: number }, ApiError>({
    queryKey: ['ready'], refetchInterval: 5_000, retry: false,
    queryFn: async () => {
      const began = performance.now();
      const response = await send('/readyz');
      return { ready: response.ok, epoch: response.headers.get('stele-epoch') ?? '', took: performance.now() - began };
    },
  });
  const metrics = useQuery<Sample[], ApiError>({ queryKey: ['metrics'], queryFn: async () => parseMetrics(await (await send('/metrics')).text()), refetchInterval: 3_000 });
  const backups = useQuery<{ backups: Backup[] }, ApiError>({ queryKey: ['backups'], queryFn: () => call('/stele/v1/backups'), enabled: may('backup', 'read') });
  const samples = metrics.data ?? [];
  const version = samples.find((sample) => sample.name === 'stele_build_info')?.labels.version;
  const mean = (name: string) => {
    const times = total(samples, `${name}_count`);
    return times === 0 ? undefined : total(samples, `${name}_sum`) / times;
  };
  const commit = mean('stele_write_commit_duration_seconds');
  const batch = mean('stele_write_batch_commands');
  const refusals = samples.filter((sample) => sample.name === 'stele_refusals_total' && sample.value > 0).sort((a, b) => b.value - a.value);
  const newest = backups.data?.backups[0];
  return (
    <div className="page">
      <title>Health · Stele</title>
      <h1>Health</h1>
      {ready.isPending && <Loading what="the server’s state" />}
      {ready.isError ? <Failure error={ready.error} /> : ready.data !== undefined && (
        <div className="notice" role="status"><b>Ready.</b> The storage answered in {ready.data.took.toFixed(0)} ms, the way to this browser included.</div>
      )}
      {metrics.isError && (metrics.error.status === 404 ? <p className="soft">The server was started with <code>metrics = "off"</code>, so that it tells no figures.</p> : <Failure error={metrics.error} />)}
      {metrics.data !== undefined && (
        <div className="tiles">
          <div className="tile"><b>{version ?? '?'}</b>version</div>
          <div className="tile"><b>{count(total(samples, 'stele_stores'))}</b>stores, all workspaces</div>
          <div className="tile"><b>{commit === undefined ? '–' : `${(commit * 1000).toFixed(1)} ms`}</b>mean time of a commit</div>
          <div className="tile"><b>{batch === undefined ? '–' : batch.toFixed(1)}</b>writes committed together</div>
          <div className="tile"><b>{count(total(samples, 'stele_write_queue_commands'))}</b>writes waiting</div>
          <div className="tile"><b>{count(total(samples, 'stele_sqlite_wal_pages'))}</b>pages in the write-ahead log</div>
          <div className="tile"><b>{count(total(samples, 'stele_redactions_total'))}</b>redactions</div>
          <div className="tile"><b>{count(total(samples, 'stele_refusals_total'))}</b>refused requests</div>
        </div>
      )}
      {refusals.length > 0 && (
        <section>
          <h2>Refused requests</h2>
          <div className="wide"><table><thead><tr><th>Error</th><th className="num">Times</th></tr></thead><tbody>{refusals.map((one) => <tr key={one.labels.code}><td><code>{one.labels.code}</code></td><td className="num">{count(one.value)}</td></tr>)}</tbody></table></div>
        </section>
      )}
      {metrics.data !== undefined && <Routes samples={samples} />}
      {may('backup', 'read') && (
        <section className="panel">
          <h2>Backups</h2>
          {backups.isError && <Failure error={backups.error} />}
          {backups.data !== undefined && (newest === undefined ? <p className="soft" style={{ margin: 0 }}>None that Stele knows of. <code>stele backup create</code> makes one while the server runs.</p> : <p style={{ margin: 0 }}>{count(backups.data.backups.length)}; the newest <Time at={newest.made_at} />.</p>)}
        </section>
      )}
      <section className="panel">
        <h2>For programs</h2>
        <p style={{ margin: 0 }}><a href="/metrics">/metrics</a> has the same figures for Prometheus, <a href="/readyz">/readyz</a> and <a href="/healthz">/healthz</a> are for probes, <a href="/docs">/docs</a> is the reference. The life of this database is <code className="break">{ready.data?.epoch}</code>.</p>
      </section>
    </div>
  );
}

function Routes({ samples }: { samples: Sample[] }) {
  const name = 'stele_http_request_duration_seconds';
  const routes = new Map<string, { times: number; seconds: number }>();
  for (const sample of samples) {
    if (sample.name !== `${name}_count` && sample.name !== `${name}_sum`) continue;
    const key = `${sample.labels.method ?? ''} ${sample.labels.route ?? ''}`;
    const row = routes.get(key) ?? { times: 0, seconds: 0 };
    if (sample.name.endsWith('_count')) row.times += sample.value;
    else row.seconds += sample.value;
    routes.set(key, row);
  }
  const busiest = [...routes].filter(([, row]) => row.times > 0).sort(([, a], [, b]) => b.times - a.times).slice(0, 15);
  return (
    <section>
      <h2>Busiest routes</h2>
      <div className="wide">
        <table>
          <thead><tr><th>Route</th><th className="num">Requests</th><th className="num">Mean</th></tr></thead>
          <tbody>{busiest.map(([route, row]) => <tr key={route}><td className="break"><code>{route}</code></td><td className="num">{count(row.times)}</td><td className="num">{((row.seconds / row.times) * 1000).toFixed(1)} ms</td></tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}
