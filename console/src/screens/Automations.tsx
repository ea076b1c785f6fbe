import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { type ApiError, call } from '../api/client';
import type { AutomationRow } from '../api/types';
import { count, shortId } from '../lib/format';
import { Name } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';
import { useAgentNames } from './Sessions';

export default function Automations() {
  const names = useAgentNames();
  const automations = useQuery<{ items: AutomationRow[]; total: number }, ApiError>({
    queryKey: ['automations'], queryFn: () => call('/managed-agents/v1/automations?limit=100'), refetchInterval: 15_000,
  });
  return (
    <div className="page">
      <title>Automations · Stele</title>
      <div>
        <h1>Automations</h1>
        <p className="soft" style={{ margin: 0 }}>Start sessions on a schedule or on demand, with curated stores attached.</p>
      </div>
      {automations.isPending && <Loading what="automations" />}
      {automations.isError && <Failure error={automations.error} retry={() => void automations.refetch()} />}
      {automations.data?.items.length === 0 && <Empty title="No automations yet"><p>They are made over the API: <a href="/docs">the reference</a> and docs/API.md show how.</p></Empty>}
      {automations.data !== undefined && automations.data.items.length > 0 && (
        <div className="wide">
          <table>
            <thead><tr><th>Name</th><th>Agent</th><th>Status</th><th className="num">Triggers</th><th>Last run</th></tr></thead>
            <tbody>
              {automations.data.items.map((row) => (
                <tr key={row.automationId}>
                  <td className="break"><Link to={`/automations/${row.automationId}`}><Name text={row.displayName} /></Link></td>
                  <td className="break"><Link to={`/memory/${row.agentId}`}><Name text={names(row.agentId) ?? shortId(row.agentId)} /></Link></td>
                  <td><span className={row.status === 'active' ? 'badge good' : 'badge'}>{row.status}</span></td>
                  <td className="num">{count(row.enabledTriggerCount)} of {count(row.triggerCount)}</td>
                  <td>{row.latestRun === null ? <span className="soft">never</span> : <><Time at={row.latestRun.createdAt} /> {row.latestRun.status === 'failed' && <span className="badge bad">failed</span>}</>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {automations.data.total > automations.data.items.length && <p className="soft small">The newest {automations.data.items.length} of {count(automations.data.total)}.</p>}
        </div>
      )}
    </div>
  );
}
