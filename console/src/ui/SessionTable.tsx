import { Link } from 'react-router';
import type { Session } from '../api/types';
import { shortId } from '../lib/format';
import { Name } from './Name';
import { Time } from './Time';

export function SessionStatus({ session }: { session: Pick<Session, 'status' | 'execution_state'> }) {
  const tone = session.status === 'failed' ? 'badge bad' : session.status === 'active' ? 'badge good' : 'badge';
  const running = session.status === 'active' ? `, ${session.execution_state}` : '';
  return <span className={tone}>{session.status}{running}</span>;
}

/** What a session is about, where somebody said so. */
export function sessionTitle(session: Session): string {
  const title = session.metadata?.['title'] ?? session.metadata?.['stele.title'];
  return typeof title === 'string' && title !== '' ? title : `Session ${shortId(session.session_id)}`;
}

export function SessionTable({ sessions, agents }: { sessions: Session[]; agents: ((id: string) => string | undefined) | undefined }) {
  return (
    <div className="wide">
      <table>
        <thead><tr><th>Session</th>{agents !== undefined && <th>Agent</th>}<th>Status</th><th>Last activity</th><th className="hide-narrow">Begun</th><th className="hide-narrow">Model</th></tr></thead>
        <tbody>
          {sessions.map((session) => (
            <tr key={session.session_id}>
              <td className="break"><Link to={`/sessions/${session.session_id}`}><Name text={sessionTitle(session)} /></Link></td>
              {agents !== undefined && <td className="break"><Link to={`/memory/${session.agent_id}`}><Name text={agents(session.agent_id) ?? shortId(session.agent_id)} /></Link></td>}
              <td><SessionStatus session={session} /></td>
              <td><Time at={session.last_activity_at} /></td>
              <td className="hide-narrow"><Time at={session.created_at} /></td>
              <td className="hide-narrow"><code>{session.effective_model}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
