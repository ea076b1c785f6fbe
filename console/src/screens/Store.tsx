import * as ToggleGroup from '@radix-ui/react-toggle-group';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useDeferredValue, useState } from 'react';
import { Link, useNavigate, useParams, useSearchParams } from 'react-router';
import { deleteMemory, storeChanged, useFeed, useMemory, useSearch, useStore, useTree } from '../api/stores';
import type { Hit, Memory, Store as StoreShape } from '../api/types';
import { bytes, counted } from '../lib/format';
import { useMay } from '../session';
import { Confirm } from '../ui/Confirm';
import { Name, RawText } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { StoreHead } from '../ui/StoreHead';
import { Time } from '../ui/Time';
import { TreeView } from '../ui/TreeView';

const Markdown = lazy(() => import('../ui/Markdown'));

/** A longer text is shown raw at first: rendering it takes a moment. */
const RENDERED_BYTES = 40_000;

export default function Store() {
  const { storeId = '' } = useParams();
  const [search, setSearch] = useSearchParams();
  const store = useStore(storeId);
  const tree = useTree(storeId);
  const feed = useFeed(storeId, tree.data?.sequence);
  const may = useMay();
  const path = search.get('path');
  const words = search.get('q') ?? '';
  const deferred = useDeferredValue(words);
  const [filter, setFilter] = useState('');

  if (store.isPending) return <div className="page"><Loading what="the store" /></div>;
  if (store.isError) return <div className="page"><Failure error={feed.deleted ? new Error('This store was deleted just now.') : store.error} /></div>;

  const update = (values: Record<string, string | null>) => {
    setSearch((before) => {
      const after = new URLSearchParams(before);
      for (const [name, value] of Object.entries(values)) {
        if (value === null || value === '') after.delete(name);
        else after.set(name, value);
      }
      return after;
    }, { replace: 'q' in values });
  };
  const writable = store.data.status === 'active' && store.data.origin === 'curated';
  return (
    <div className="page full">
      <title>{`${store.data.name} · Stele`}</title>
      <StoreHead store={store.data} live={feed.live}>
        {writable && may('memory', 'create') && <Link className="button primary" to={`/stores/${storeId}/edit`}>New memory</Link>}
      </StoreHead>
      <div className={path === null ? 'split' : 'split reading'}>
        <div className="left">
          <div className="tools">
            <input type="search" aria-label="Search the store" placeholder="Search texts" value={words} onChange={(e) => update({ q: e.target.value })} />
            {words === '' && <input type="search" aria-label="Filter by path" placeholder="Filter paths" value={filter} onChange={(e) => setFilter(e.target.value)} />}
          </div>
          {tree.isPending && <div className="tools"><Loading what="the tree" /></div>}
          {tree.isError && <Failure error={tree.error} retry={() => void tree.refetch()} />}
          {words !== '' ? (
            <Hits storeId={storeId} words={deferred} selected={path} onSelect={(to) => update({ path: to })} />
          ) : (
            tree.data !== undefined && tree.data.entries.length > 0 && (
              <TreeView label={`Memories of ${store.data.name}`} entries={tree.data.entries} selected={path} onSelect={(to) => update({ path: to })} filter={filter} />
            )
          )}
        </div>
        <section className="right" aria-label="Memory">
          {path === null ? (
            <Overview store={store.data} empty={tree.data?.entries.length === 0} writable={writable && may('memory', 'create')} />
          ) : (
            <Reading key={path} storeId={storeId} path={path} writable={writable} onBack={() => update({ path: null })} />
          )}
        </section>
      </div>
    </div>
  );
}

function Overview({ store, empty, writable }: { store: StoreShape; empty: boolean; writable: boolean }) {
  return (
    <>
      {store.description !== undefined && <><h2>What agents are told about it</h2><p className="break"><RawText text={store.description} /></p></>}
      {empty ? (
        <Empty title="Nothing in it yet">
          <p>Agents that have this store attached for reading and writing fill it, or you do.</p>
          {writable && <p><Link className="button primary" to={`/stores/${store.memory_store_id}/edit`}>Write the first memory</Link></p>}
        </Empty>
      ) : (
        <p className="soft">Choose a memory to read it. In the tree, the arrow keys move and open, letters jump to a name, Enter reads.</p>
      )}
    </>
  );
}

/** A snippet with what matched marked; the server counts in Unicode scalar values. */
function Snippet({ hit }: { hit: Hit }) {
  const characters = [...hit.snippet];
  const parts = [];
  let done = 0;
  for (const { start, end } of hit.highlights) {
    parts.push(<RawText key={`t${start}`} text={characters.slice(done, start).join('')} />);
    parts.push(<mark key={start}><RawText text={characters.slice(start, end).join('')} /></mark>);
    done = end;
  }
  parts.push(<RawText key="rest" text={characters.slice(done).join('')} />);
  return <>{parts}</>;
}

/** Why a hit stands where it does, as far as the answer tells. */
function why(hit: Hit, words: string): string {
  const terms = words.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((term) => term.length > 1);
  const within = (text: string) => terms.filter((term) => text.toLowerCase().includes(term.slice(0, Math.max(3, term.length - 2))));
  const places = [
    within(hit.path).length > 0 ? 'path' : '',
    within(hit.summary).length > 0 ? 'summary' : '',
    hit.highlights.length > 0 ? `text (${counted(hit.highlights.length, 'mark')} in the excerpt)` : '',
  ].filter((place) => place !== '');
  return `Score ${hit.score.toFixed(2)}${places.length > 0 ? `: matches in ${places.join(', ')}` : ''}`;
}

function Hits({ storeId, words, selected, onSelect }: { storeId: string; words: string; selected: string | null; onSelect: (path: string) => void }) {
  const found = useSearch(storeId, words);
  if (found.isPending) return <div className="tools"><Loading what="hits" /></div>;
  if (found.isError) return <div className="tools"><Failure error={found.error} /></div>;
  return (
    <>
      <div className="tools small soft" role="status">
        {counted(found.data.total_matches, 'match', 'matches')}, best first. An agent that searches for these words sees the same.
      </div>
      <ul className="hits">
        {found.data.data.map((hit) => (
          <li key={hit.memory_id}>
            <Link
              to={`?${new URLSearchParams({ q: words, path: hit.path })}`}
              aria-current={hit.path === selected ? 'true' : undefined}
              onClick={(e) => { e.preventDefault(); onSelect(hit.path); }}
            >
              <div className="break"><b><Name text={hit.path} /></b></div>
              <div className="small break"><Snippet hit={hit} /></div>
              <div className="small soft">{why(hit, words)}</div>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function Reading({ storeId, path, writable, onBack }: { storeId: string; path: string; writable: boolean; onBack: () => void }) {
  const memory = useMemory(storeId, path);
  const back = <button className="only-narrow" onClick={onBack}>‹ All memories</button>;
  if (memory.isPending) return <Loading what="the memory" />;
  if (memory.isError) {
    return memory.error.status === 404 ? (
      <Empty title="No memory is at this path">
        <p className="break"><Name text={path} /> was deleted or moved, perhaps just now. Its history is kept.</p>
        <p className="row" style={{ justifyContent: 'center' }}>{back}<Link className="button" to={`/stores/${storeId}/history`}>The store’s history</Link></p>
      </Empty>
    ) : <Failure error={memory.error} retry={() => void memory.refetch()} />;
  }
  return <Shown storeId={storeId} memory={memory.data} writable={writable} onBack={onBack} />;
}

function Shown({ storeId, memory, writable, onBack }: { storeId: string; memory: Memory; writable: boolean; onBack: () => void }) {
  const may = useMay();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState(memory.byte_size > RENDERED_BYTES ? 'raw' : 'rendered');
  const [deleting, setDeleting] = useState(false);
  const download = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([memory.content], { type: 'text/plain;charset=utf-8' }));
    link.download = (memory.path.split('/').pop() ?? 'memory').replaceAll(/[^\w.-]/g, '_');
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <article className="tab-body" style={{ paddingTop: 0 }}>
      <div className="row"><button className="only-narrow" onClick={onBack}>‹ All memories</button></div>
      <div className="head">
        <h2 className="break" style={{ margin: 0 }}><Name text={memory.path} /></h2>
        <div className="actions">
          <ToggleGroup.Root type="single" className="group" aria-label="How the text is shown" value={form} onValueChange={(to) => { if (to !== '') setForm(to); }}>
            <ToggleGroup.Item value="rendered">Rendered</ToggleGroup.Item>
            <ToggleGroup.Item value="raw">Raw</ToggleGroup.Item>
          </ToggleGroup.Root>
          {writable && may('memory', 'update') && <Link className="button" to={`/stores/${storeId}/edit?path=${encodeURIComponent(memory.path)}`}>Edit</Link>}
          {may('version', 'read') && <Link className="button" to={`/stores/${storeId}/history?memory=${memory.memory_id}`}>History</Link>}
          <button onClick={download}>Download</button>
          {writable && may('memory', 'delete') && <button className="danger" onClick={() => setDeleting(true)}>Delete</button>}
        </div>
      </div>
      {memory.summary !== '' && <p className="soft break" style={{ margin: 0 }}><RawText text={memory.summary} /></p>}
      {form === 'rendered' ? (
        <Suspense fallback={<Loading what="the text" />}><Markdown text={memory.content} storeId={storeId} /></Suspense>
      ) : (
        <pre className="raw" tabIndex={0} aria-label="Text as it is">{memory.content === '' ? <span className="soft">(empty)</span> : <RawText text={memory.content} />}</pre>
      )}
      <p className="small soft">
        {bytes(memory.byte_size)}, changed <Time at={memory.updated_at} />, made <Time at={memory.created_at} />.{' '}
        {writable && may('version', 'redact') && <Link to={`/stores/${storeId}/leak?memory=${memory.memory_id}`}>A secret got in here</Link>}
      </p>
      {deleting && (
        <Confirm
          title="Delete this memory?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await deleteMemory(storeId, memory.memory_id);
            await queries.invalidateQueries({ queryKey: ['tree', storeId] });
            storeChanged(queries, storeId);
            await navigate(`/stores/${storeId}`);
          }}
        >
          <p className="break">Agents no longer find <b><Name text={memory.path} /></b>. Its history stays, and any version can be brought back from there.</p>
        </Confirm>
      )}
    </article>
  );
}
