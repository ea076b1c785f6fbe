import { useQueries, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { createStore, fetchVersions, useStores } from '../api/stores';
import type { Store, Version } from '../api/types';
import { bytes, count } from '../lib/format';
import { useMay, useWhoami } from '../session';
import { Author } from '../ui/Author';
import { Dialog } from '../ui/Dialog';
import { Field } from '../ui/Field';
import { Meter } from '../ui/Meter';
import { Name } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

/** Stores whose last writer is looked up with the list; of the others it is on their own page. */
const LAST_WRITERS = 40;

export function Stores() {
  const [archived, setArchived] = useState(false);
  const [making, setMaking] = useState(false);
  const stores = useStores(archived);
  const may = useMay();
  return (
    <div className="page">
      <title>Stores · Stele</title>
      <div className="head">
        <h1>Stores</h1>
        <div className="actions">
          <label className="check"><input type="checkbox" checked={archived} onChange={(e) => setArchived(e.target.checked)} /> Archived too</label>
          {may('store', 'create') && <button className="primary" onClick={() => setMaking(true)}>New store</button>}
        </div>
      </div>
      {stores.isPending && <Loading what="stores" />}
      {stores.isError && <Failure error={stores.error} retry={() => void stores.refetch()} />}
      {stores.data?.length === 0 && (
        <Empty title="No stores yet">
          <p>A store is a small versioned file tree that outlives sessions: conventions, decisions, what an agent should know next time.</p>
          <p className="row" style={{ justifyContent: 'center' }}>
            {may('store', 'create') && <button className="primary" onClick={() => setMaking(true)}>Make the first one</button>}
            <Link className="button" to="/start">Connect an agent</Link>
          </p>
        </Empty>
      )}
      {stores.data !== undefined && stores.data.length > 0 && <Table stores={stores.data} />}
      {making && <NewStore onClose={() => setMaking(false)} />}
    </div>
  );
}

function Table({ stores }: { stores: Store[] }) {
  const { max_memories_per_store: cap } = useWhoami();
  const latest = useQueries({
    queries: stores.slice(0, LAST_WRITERS).map((store) => ({
      queryKey: ['versions', store.memory_store_id, 'latest', store.updated_at],
      queryFn: async (): Promise<Version | null> => (await fetchVersions(store.memory_store_id, null, undefined, 1)).memory_versions[0] ?? null,
      staleTime: 60_000,
    })),
  });
  return (
    <div className="wide">
      <table>
        <thead>
          <tr><th>Name</th><th className="num">Memories</th><th className="hide-narrow">Of the cap</th><th className="num hide-narrow">Size</th><th>Last written</th><th className="hide-narrow">By</th></tr>
        </thead>
        <tbody>
          {stores.map((store, i) => {
            const version = latest[i]?.data;
            return (
              <tr key={store.memory_store_id}>
                <td className="break">
                  <Link to={`/stores/${store.memory_store_id}`}><Name text={store.name} /></Link>{' '}
                  {store.origin === 'reflection' && <span className="badge good">learned</span>} {store.status === 'archived' && <span className="badge">archived</span>}
                  {store.description !== undefined && <div className="soft small break"><Name text={short(store.description)} /></div>}
                </td>
                <td className="num">{count(store.memory_count)}</td>
                <td className="hide-narrow nowrap"><Meter value={store.memory_count} cap={cap} /></td>
                <td className="num hide-narrow">{bytes(store.total_bytes)}</td>
                <td><Time at={version?.created_at ?? store.updated_at} /></td>
                <td className="hide-narrow break">{version === null || version === undefined ? <span className="soft">nobody yet</span> : <Author version={version} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function short(text: string): string {
  return text.length > 140 ? `${text.slice(0, 139)}…` : text;
}

function NewStore({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const store = await createStore({ name, description });
      await queries.invalidateQueries({ queryKey: ['stores'] });
      await navigate(`/stores/${store.memory_store_id}`);
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New store" onClose={onClose}>
      <form className="form" onSubmit={(e) => { e.preventDefault(); if (!busy) void make(); }}>
        <Field label="Name">{(id) => <input id={id} value={name} onChange={(e) => setName(e.target.value)} maxLength={255} required autoFocus />}</Field>
        <Field label="Description" hint="Every agent that has the store sees this: say when to look here, not just what is in it.">
          {(id, described) => <textarea id={id} aria-describedby={described} rows={3} value={description} onChange={(e) => setDescription(e.target.value)} />}
        </Field>
        {error !== null && <Failure error={error} />}
        <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button className="primary" disabled={busy}>Make the store</button></div>
      </form>
    </Dialog>
  );
}
