import * as Tabs from '@radix-ui/react-tabs';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { type ApiError, call, query } from '../api/client';
import type { Agent, AgentMemory as Summary, Session } from '../api/types';
import { count, counted } from '../lib/format';
import { useMay } from '../session';
import { Field } from '../ui/Field';
import { LearningState } from '../ui/LearningState';
import { Name } from '../ui/Name';
import { SessionTable } from '../ui/SessionTable';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

interface Learned {
  memory_id: string;
  path: string;
  summary: string;
  updated_at: string;
}

interface Topic {
  topic: string;
  count?: number;
}

interface Reflection {
  reflection_id: string;
  status: string;
  triggered_by: string;
  created_at: string;
  driver_session_id?: string;
  added?: number;
  updated?: number;
  merged?: number;
  retired?: number;
}

const agents = '/managed-agents/v1/agents';

export default function AgentMemory() {
  const { agentId = '' } = useParams();
  const [search, setSearch] = useSearchParams();
  const summary = useQuery<Summary, ApiError>({ queryKey: ['agent_memory', agentId], queryFn: () => call(`${agents}/${encodeURIComponent(agentId)}/memory`) });
  const agent = useQuery<Agent, ApiError>({ queryKey: ['agent', agentId], queryFn: () => call(`${agents}/${encodeURIComponent(agentId)}`) });
  if (summary.isPending) return <div className="page"><Loading what="the agent" /></div>;
  if (summary.isError) return <div className="page"><Failure error={summary.error} retry={() => void summary.refetch()} /></div>;
  return (
    <div className="page">
      <title>{`Memory of ${summary.data.agent_name} · Stele`}</title>
      <div>
        <div className="crumbs"><Link to="/memory">Memory</Link> ›</div>
        <h1><Name text={summary.data.agent_name} /></h1>
        <div className="row small soft">
          <LearningState memory={summary.data} />
          <span>{counted(summary.data.memory_count, 'memory', 'memories')}</span>
          <span>model <code>{summary.data.effective_model}</code></span>
          {summary.data.last_updated_at !== undefined && <span>last updated <Time at={summary.data.last_updated_at} /></span>}
        </div>
      </div>
      <Tabs.Root value={search.get('tab') ?? 'memories'} onValueChange={(tab) => setSearch({ tab }, { replace: true })}>
        <Tabs.List className="tabs" aria-label="Agent">
          <Tabs.Trigger value="memories">Memories</Tabs.Trigger>
          <Tabs.Trigger value="activity">Activity</Tabs.Trigger>
          <Tabs.Trigger value="sessions">Sessions</Tabs.Trigger>
          <Tabs.Trigger value="about">About</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="memories" className="tab-body"><Memories agentId={agentId} summary={summary.data} /></Tabs.Content>
        <Tabs.Content value="activity" className="tab-body"><Activity agentId={agentId} /></Tabs.Content>
        <Tabs.Content value="sessions" className="tab-body"><AgentSessions agentId={agentId} /></Tabs.Content>
        <Tabs.Content value="about" className="tab-body">
          {agent.data !== undefined && <About agent={agent.data} summary={summary.data} />}
          {agent.isError && <Failure error={agent.error} />}
        </Tabs.Content>
      </Tabs.Root>
    </div>
  );
}

function Memories({ agentId, summary }: { agentId: string; summary: Summary }) {
  const [words, setWords] = useState('');
  const [topic, setTopic] = useState('');
  const [sort, setSort] = useState('updated');
  const deferred = useDeferredValue(words);
  const found = useQuery<{ memories: Learned[]; topics: (string | Topic)[]; next_cursor?: string }, ApiError>({
    queryKey: ['agent_memories', agentId, deferred, topic, sort],
    queryFn: () => call(`${agents}/${encodeURIComponent(agentId)}/memories${query({ query: deferred, topic, sort, limit: 100 })}`),
    placeholderData: (before) => before,
  });
  if (found.isPending) return <Loading what="memories" />;
  if (found.isError) return <Failure error={found.error} retry={() => void found.refetch()} />;
  const nothing = found.data.memories.length === 0 && words === '' && topic === '';
  if (nothing) {
    return (
      <Empty title="Nothing learned yet">
        <p>Finished sessions of this agent become memories here once learning has a model to work with.</p>
        {summary.memory_store_id !== undefined && <p><Link to={`/stores/${summary.memory_store_id}`}>The agent’s learned store</Link></p>}
      </Empty>
    );
  }
  return (
    <>
      <div className="row">
        <div className="grow"><input type="search" aria-label="Search memories" placeholder="Search" value={words} onChange={(e) => setWords(e.target.value)} /></div>
        <select aria-label="Topic" value={topic} onChange={(e) => setTopic(e.target.value)} style={{ width: 'auto' }}>
          <option value="">All topics</option>
          {found.data.topics.map((one) => {
            const name = typeof one === 'string' ? one : one.topic;
            return <option key={name} value={name}>{name}{typeof one !== 'string' && one.count !== undefined ? ` (${count(one.count)})` : ''}</option>;
          })}
        </select>
        <select aria-label="Sort" value={sort} onChange={(e) => setSort(e.target.value)} style={{ width: 'auto' }}>
          <option value="updated">Recently updated</option>
          <option value="alphabetical">Alphabetical</option>
        </select>
      </div>
      <div className="wide">
        <table>
          <thead><tr><th>Memory</th><th>Updated</th></tr></thead>
          <tbody>
            {found.data.memories.map((memory) => (
              <tr key={memory.memory_id}>
                <td className="break">
                  <Link to={`/stores/${summary.memory_store_id ?? ''}?path=${encodeURIComponent(memory.path)}`}><Name text={memory.path} /></Link>
                  <div className="small soft"><Name text={memory.summary} /></div>
                </td>
                <td><Time at={memory.updated_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Activity({ agentId }: { agentId: string }) {
  const runs = useQuery<{ reflections: Reflection[] }, ApiError>({
    queryKey: ['activity', agentId],
    queryFn: () => call(`${agents}/${encodeURIComponent(agentId)}/memory/activity`),
  });
  if (runs.isPending) return <Loading what="updates" />;
  if (runs.isError) return <Failure error={runs.error} retry={() => void runs.refetch()} />;
  if (runs.data.reflections.length === 0) return <Empty title="No memory updates yet"><p>Each update of this agent’s memory is listed here with what it read and changed.</p></Empty>;
  return (
    <div className="wide">
      <table>
        <thead><tr><th>When</th><th>Why it ran</th><th>Status</th><th className="num">Added</th><th className="num">Updated</th><th className="num">Merged</th><th className="num">Retired</th></tr></thead>
        <tbody>
          {runs.data.reflections.map((run) => (
            <tr key={run.reflection_id}>
              <td>{run.driver_session_id === undefined ? <Time at={run.created_at} /> : <Link to={`/sessions/${run.driver_session_id}`}><Time at={run.created_at} /></Link>}</td>
              <td>{run.triggered_by}</td>
              <td>{run.status}</td>
              {[run.added, run.updated, run.merged, run.retired].map((value, i) => <td key={i} className="num">{value ?? ''}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AgentSessions({ agentId }: { agentId: string }) {
  const sessions = useQuery<Session[], ApiError>({
    queryKey: ['sessions', 'agent', agentId],
    queryFn: async () => {
      const { sessions } = await call<{ sessions: Session[] | null }>(`/managed-agents/v1/sessions${query({ agent_id: agentId, limit: 50 })}`);
      return (sessions ?? []).filter((session) => session.agent_id === agentId);
    },
  });
  if (sessions.isPending) return <Loading what="sessions" />;
  if (sessions.isError) return <Failure error={sessions.error} />;
  return sessions.data.length === 0 ? <Empty title="No sessions yet" /> : <SessionTable sessions={sessions.data} agents={undefined} />;
}

function About({ agent, summary }: { agent: Agent; summary: Summary }) {
  const may = useMay();
  const queries = useQueryClient();
  const [model, setModel] = useState(summary.memory_model_ref ?? '');
  // Refused by a server without a configured provider: then the id is typed.
  const models = useQuery<{ items: { modelId: string }[] }, ApiError>({ queryKey: ['models'], queryFn: () => call('/managed-agents/v1/models'), retry: false, staleTime: 60_000 });
  const [state, setState] = useState<{ error?: unknown; saved?: boolean }>({});
  const save = async (to: string | null) => {
    try {
      await call(`${agents}/${encodeURIComponent(agent.agent_id)}/learning`, { method: 'PATCH', body: { memory_model_ref: to } });
      await queries.invalidateQueries({ queryKey: ['agent_memory'] });
      if (to === null) setModel('');
      setState({ saved: true });
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      <section className="panel">
        <h2>Memory model</h2>
        <form className="form" onSubmit={(e) => { e.preventDefault(); void save(model.trim() === '' ? null : model.trim()); }}>
          <Field label="Model that learns" hint={<>As <code>provider/model</code>. Empty is “Same as agent”: <code>{agent.model}</code>. It counts from the next update on.</>}>
            {(id, described) => <input id={id} aria-describedby={described} value={model} onChange={(e) => setModel(e.target.value)} placeholder="Same as agent" list="models" disabled={!may('agent', 'update')} spellCheck={false} />}
          </Field>
          <datalist id="models">{models.data?.items.map((one) => <option key={one.modelId} value={one.modelId} />)}</datalist>
          {models.isError && <p className="small soft" style={{ margin: 0 }}>No provider of models is configured, so nothing learns yet.</p>}
          {state.error !== undefined && <Failure error={state.error} />}
          {may('agent', 'update') && (
            <div className="row">
              <button className="primary">Save</button>
              <button type="button" onClick={() => void save(null)}>Same as agent</button>
              <span role="status" className="soft">{state.saved === true ? 'Saved.' : ''}</span>
            </div>
          )}
        </form>
      </section>
      <section className="panel">
        <h2>The agent</h2>
        <dl className="facts">
          <dt>Id</dt><dd><code>{agent.agent_id}</code></dd>
          <dt>Model</dt><dd><code>{agent.model}</code></dd>
          {agent.description !== undefined && <><dt>Description</dt><dd><Name text={agent.description} /></dd></>}
          <dt>Made</dt><dd><Time at={agent.created_at} /></dd>
          <dt>Changed</dt><dd><Time at={agent.updated_at} /></dd>
        </dl>
        {agent.system !== '' && <><h3 style={{ marginTop: '.8rem' }}>System prompt</h3><pre className="raw" tabIndex={0} aria-label="System prompt">{agent.system}</pre></>}
      </section>
    </>
  );
}
