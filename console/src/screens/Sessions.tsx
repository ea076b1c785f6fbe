import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useSearchParams } from 'react-router';
import { type ApiError, call, query } from '../api/client';
import type { Agent, Session } from '../api/types';
import { SessionTable } from '../ui/SessionTable';
import { Empty, Failure, Loading } from '../ui/states';

interface Page {
  sessions: Session[] | null;
  next_page_token?: string;
}

export function useAgentNames(): (id: string) => string | undefined {
  const agents = useQuery<Agent[], ApiError>({
    queryKey: ['agents'], queryFn: async () => (await call<{ agents: Agent[] }>('/managed-agents/v1/agents')).agents, staleTime: 30_000,
  });
  return (id) => agents.data?.find((agent) => agent.agent_id === id)?.name;
}

const STATUSES = ['active', 'completed', 'failed', 'cancelled'];

export default function Sessions() {
  const [search, setSearch] = useSearchParams();
  const status = search.get('status') ?? '';
  const names = useAgentNames();
  const sessions = useInfiniteQuery<Page, ApiError, { pages: Page[] }, unknown[], string>({
    queryKey: ['sessions', status],
    queryFn: ({ pageParam }) => call(`/managed-agents/v1/sessions${query({ status, limit: 50, page_token: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: (page) => (page.next_page_token === undefined || page.next_page_token === '' ? undefined : page.next_page_token),
    refetchInterval: 5_000,
  });
  const all = sessions.data?.pages.flatMap((page) => page.sessions ?? []) ?? [];
  return (
    <div className="page">
      <title>Sessions · Stele</title>
      <div className="head">
        <h1>Sessions</h1>
        <div className="actions">
          <select aria-label="Status" value={status} onChange={(e) => setSearch(e.target.value === '' ? {} : { status: e.target.value })}>
            <option value="">Any status</option>
            {STATUSES.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </div>
      </div>
      {sessions.isPending && <Loading what="sessions" />}
      {sessions.isError && <Failure error={sessions.error} retry={() => void sessions.refetch()} />}
      {sessions.isSuccess && all.length === 0 && (
        <Empty title={status === '' ? 'No sessions yet' : `No ${status} sessions`}>
          <p>A session is one run of an agent. They are started over the API or by automations, or imported from Claude Code and Codex.</p>
          <p><Link className="button" to="/start">Connect an agent</Link></p>
        </Empty>
      )}
      {all.length > 0 && <SessionTable sessions={all} agents={names} />}
      {sessions.hasNextPage && <div><button onClick={() => void sessions.fetchNextPage()} disabled={sessions.isFetchingNextPage}>Older sessions</button></div>}
    </div>
  );
}
