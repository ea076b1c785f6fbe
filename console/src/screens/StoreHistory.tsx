import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import type { ApiError } from '../api/client';
import { fetchVersions, redactVersion, restoreVersion, storeChanged, useFeed, useStore, useTree, useVersion } from '../api/stores';
import type { Version, VersionPage } from '../api/types';
import { bytes, shortId } from '../lib/format';
import { useMay } from '../session';
import { Author } from '../ui/Author';
import { Confirm } from '../ui/Confirm';
import { DiffView } from '../ui/DiffView';
import { Name, RawText } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { StoreHead } from '../ui/StoreHead';
import { Time } from '../ui/Time';

const VERBS: Record<Version['operation'], string> = {
  create: 'made', update: 'changed', rename: 'moved', delete: 'deleted', retire: 'retired', merge: 'merged',
};

export default function StoreHistory() {
  const { storeId = '' } = useParams();
  const [search, setSearch] = useSearchParams();
  const memoryId = search.get('memory');
  const store = useStore(storeId);
  const tree = useTree(storeId);
  const feed = useFeed(storeId, tree.data?.sequence);
  const versions = useInfiniteQuery<VersionPage, ApiError, { pages: VersionPage[] }, unknown[], string | undefined>({
    queryKey: ['versions', storeId, 'history', memoryId],
    queryFn: ({ pageParam }) => fetchVersions(storeId, memoryId, pageParam),
    initialPageParam: undefined,
    getNextPageParam: (page) => page.next_cursor,
  });
  if (store.isPending) return <div className="page"><Loading what="the store" /></div>;
  if (store.isError) return <div className="page"><Failure error={store.error} /></div>;

  const all = versions.data?.pages.flatMap((page) => page.memory_versions) ?? [];
  const [a, b] = [search.get('a'), search.get('b')];
  const set = (values: Record<string, string | null>) => {
    setSearch((before) => {
      const after = new URLSearchParams(before);
      for (const [name, value] of Object.entries(values)) {
        if (value === null) after.delete(name);
        else after.set(name, value);
      }
      return after;
    });
  };
  return (
    <div className="page">
      <title>{`History of ${store.data.name} · Stele`}</title>
      <StoreHead store={store.data} live={feed.live} />
      {memoryId !== null && (
        <div className="row">
          <h2 style={{ margin: 0 }} className="break">History of <Name text={all[0]?.path ?? `memory ${shortId(memoryId)}`} /></h2>
          <button className="plain" onClick={() => set({ memory: null })}>of the whole store instead</button>
        </div>
      )}
      <p className="soft small" style={{ margin: 0 }}>
        Choose two versions to compare them: <b>from</b> and <b>to</b>. Versions belong to the store and survive renames and deletion.
      </p>
      {(a !== null || b !== null) && <Compare storeId={storeId} from={a} to={b} versions={all} onClose={() => set({ a: null, b: null })} />}
      {versions.isPending && <Loading what="versions" />}
      {versions.isError && <Failure error={versions.error} retry={() => void versions.refetch()} />}
      {versions.isSuccess && all.length === 0 && <Empty title="No versions"><p>Nothing was written here, or it has outlived its retention.</p></Empty>}
      {all.length > 0 && (
        <div className="wide">
          <table>
            <thead><tr><th>From</th><th>To</th><th>Version</th><th>When</th><th className="hide-narrow">By</th><th className="num hide-narrow">Size</th><th>Actions</th></tr></thead>
            <tbody>
              {all.map((version, i) => (
                <VersionRow
                  key={version.memory_version_id}
                  storeId={storeId}
                  version={version}
                  before={all.slice(i + 1).find((other) => other.memory_id === version.memory_id)}
                  archived={store.data.status === 'archived'}
                  learned={store.data.origin === 'reflection'}
                  newer={all.slice(0, i).some((other) => other.memory_id === version.memory_id)}
                  from={a}
                  to={b}
                  onPick={set}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {versions.hasNextPage && <div><button onClick={() => void versions.fetchNextPage()} disabled={versions.isFetchingNextPage}>Older versions</button></div>}
    </div>
  );
}

interface RowProps {
  storeId: string;
  version: Version;
  before: Version | undefined;
  archived: boolean;
  learned: boolean;
  newer: boolean;
  from: string | null;
  to: string | null;
  onPick: (values: Record<string, string | null>) => void;
}

function VersionRow({ storeId, version, before, archived, learned, newer, from, to, onPick }: RowProps) {
  const may = useMay();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<'restore' | 'redact' | null>(null);
  const id = version.memory_version_id;
  const redacted = version.redacted_at !== undefined;
  const whole = !redacted && version.operation !== 'delete';
  const isHead = !newer && version.operation !== 'delete';
  const done = async () => {
    await queries.invalidateQueries({ queryKey: ['versions', storeId] });
    await queries.invalidateQueries({ queryKey: ['version', storeId] });
    await queries.invalidateQueries({ queryKey: ['tree', storeId] });
    storeChanged(queries, storeId);
  };
  const name = `version ${shortId(id)} of ${version.path}`;
  return (
    <tr>
      <td><input type="radio" name="from" aria-label={`From ${name}`} checked={from === id} onChange={() => onPick({ a: id })} /></td>
      <td><input type="radio" name="to" aria-label={`To ${name}`} checked={to === id} onChange={() => onPick({ b: id })} /></td>
      <td className="break">
        <b><Name text={version.path === '' ? '(path redacted)' : version.path} /></b> <span className="soft">{VERBS[version.operation]}</span>{' '}
        {redacted && <span className="badge warn">redacted <Time at={version.redacted_at ?? ''} /></span>} {isHead && <span className="badge good">current</span>}
        {version.operation === 'rename' && before !== undefined && before.path !== version.path && <div className="small soft">from <Name text={before.path} /></div>}
        {version.rationale !== undefined && <div className="small">Why: <RawText text={version.rationale} /></div>}
        {version.evidence_session_ids !== undefined && version.evidence_session_ids.length > 0 && (
          <div className="small">Learned from {version.evidence_session_ids.map((session) => <Link key={session} to={`/sessions/${session}`}>session {shortId(session)} </Link>)}</div>
        )}
      </td>
      <td><Time at={version.created_at} /></td>
      <td className="hide-narrow break"><Author version={version} /></td>
      <td className="num hide-narrow">{version.byte_size === undefined ? '' : bytes(version.byte_size)}</td>
      <td>
        <div className="row" style={{ gap: 0 }}>
          {before !== undefined && <button className="plain" onClick={() => onPick({ a: before.memory_version_id, b: id })} aria-label={`Changes of ${name}`}>Changes</button>}
          {whole && before === undefined && <button className="plain" onClick={() => onPick({ a: null, b: id })} aria-label={`Show ${name}`}>Show</button>}
          {whole && !isHead && !archived && !learned && may('version', 'restore') && <button className="plain" onClick={() => setAsking('restore')} aria-label={`Restore ${name}`}>Restore</button>}
          {!redacted && !isHead && may('version', 'redact') && <button className="plain" onClick={() => setAsking('redact')} aria-label={`Redact ${name}`}>Redact</button>}
        </div>
        {asking === 'restore' && (
          <Confirm title="Bring this version back?" action="Restore" onClose={() => setAsking(null)} onConfirm={async () => { await restoreVersion(storeId, id); await done(); }}>
            <p className="break">Its text becomes the current one at <b><Name text={version.path} /></b>, as a new version. Nothing of the history is lost.</p>
          </Confirm>
        )}
        {asking === 'redact' && (
          <Confirm title="Redact this version?" action="Redact for good" typed="redact" onClose={() => setAsking(null)} onConfirm={async () => { await redactVersion(storeId, id); await done(); }}>
            <p className="break">Text, summary, size and hash of this version of <b><Name text={version.path} /></b> are removed for good. <b>This cannot be undone</b>, and the version cannot be restored any more. Who wrote it and when stay.</p>
            <p>Other versions may hold the same words. To find them all, use <Link to={`/stores/${storeId}/leak?memory=${version.memory_id}`}>the guided path for leaked secrets</Link>.</p>
          </Confirm>
        )}
      </td>
    </tr>
  );
}

function Side({ version, label }: { version: Version | undefined; label: string }) {
  if (version === undefined) return null;
  return (
    <p className="small break" style={{ margin: 0 }}>
      <b>{label}</b> <Name text={version.path} />, {VERBS[version.operation]} <Time at={version.created_at} /> by <Author version={version} />
      {version.summary !== undefined && version.summary !== '' && <span className="soft">: <RawText text={version.summary} /></span>}
    </p>
  );
}

function Compare({ storeId, from, to, versions, onClose }: { storeId: string; from: string | null; to: string | null; versions: Version[]; onClose: () => void }) {
  const [left, right] = [useVersion(storeId, from), useVersion(storeId, to)];
  const single = from === null ? right : to === null ? left : null;
  const gone = [left.data, right.data].some((version) => version?.redacted_at !== undefined);
  const deleted = [left.data, right.data].some((version) => version?.operation === 'delete');
  const known = versions.find((version) => version.memory_version_id === (to ?? from));
  return (
    <section className="panel tab-body" aria-label="Comparison">
      <div className="head">
        <h2 style={{ margin: 0 }}>{single === null ? 'Difference' : 'One version'}</h2>
        <div className="actions"><button onClick={onClose}>Close</button></div>
      </div>
      {(left.isError || right.isError) && <Failure error={left.error ?? right.error} />}
      <Side version={left.data} label="From" />
      <Side version={right.data ?? (single === null ? undefined : known)} label="To" />
      {gone && <div className="notice warn">A redacted version has no text to compare.</div>}
      {deleted && <div className="soft small">A deletion has no text: it is compared as empty.</div>}
      {single === null
        ? left.data !== undefined && right.data !== undefined && !gone && <DiffView before={left.data.content ?? ''} after={right.data.content ?? ''} />
        : single.data !== undefined && !gone && <><pre className="raw" tabIndex={0} aria-label="Text of the version"><RawText text={single.data.content ?? ''} /></pre><p className="soft small">Choose another version to compare it with.</p></>}
      {(left.isLoading || right.isLoading) && <Loading what="the versions" />}
    </section>
  );
}
