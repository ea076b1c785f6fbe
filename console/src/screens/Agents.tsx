import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { type ApiError, call } from '../api/client';
import type { AgentMemory } from '../api/types';
import { count } from '../lib/format';
import { LearningState } from '../ui/LearningState';
import { Name } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

/** Every agent with what it has learned. */
export default function Agents() {
  const agents = useQuery<AgentMemory[], ApiError>({
    queryKey: ['agent_memory'],
    queryFn: async () => (await call<{ agents: AgentMemory[] }>('/managed-agents/v1/agent_memory')).agents,
  });
  return (
    <div className="page">
      <title>Memory · Stele</title>
      <div>
        <h1>Memory</h1>
        <p className="soft" style={{ margin: 0 }}>What each agent has learned from its finished sessions. Texts that people curate are in <Link to="/stores">Stores</Link>.</p>
      </div>
      {agents.isPending && <Loading what="agents" />}
      {agents.isError && <Failure error={agents.error} retry={() => void agents.refetch()} />}
      {agents.data?.length === 0 && (
        <Empty title="No agents yet">
          <p>An agent appears here once one is made over the API or a session of Claude Code, Codex or another agent was imported.</p>
          <p><Link className="button" to="/start">Connect an agent</Link></p>
        </Empty>
      )}
      {agents.data !== undefined && agents.data.length > 0 && (
        <div className="wide">
          <table>
            <thead><tr><th>Agent</th><th className="num">Memories</th><th>Learning status</th><th>Last updated</th></tr></thead>
            <tbody>
              {agents.data.map((agent) => (
                <tr key={agent.agent_id}>
                  <td className="break"><Link to={`/memory/${agent.agent_id}`}><Name text={agent.agent_name} /></Link></td>
                  <td className="num">{count(agent.memory_count)}</td>
                  <td><LearningState memory={agent} /></td>
                  <td>{agent.last_updated_at === undefined ? <span className="soft">never</span> : <Time at={agent.last_updated_at} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
