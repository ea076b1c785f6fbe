import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';
import { prefixed } from '../api/ids';
import { archiveStore, deleteStore, storeChanged, updateStore, useStore } from '../api/stores';
import type { Store } from '../api/types';
import { counted } from '../lib/format';
import { useMay } from '../session';
import { Confirm } from '../ui/Confirm';
import { CopyBlock } from '../ui/CopyBlock';
import { Field } from '../ui/Field';
import { Failure, Loading } from '../ui/states';
import { StoreHead } from '../ui/StoreHead';
import { Time } from '../ui/Time';

export default function StoreSettings() {
  const { storeId = '' } = useParams();
  const store = useStore(storeId);
  return (
    <div className="page">
      {store.isPending && <Loading what="the store" />}
      {store.isError && <Failure error={store.error} />}
      {store.data !== undefined && <Settings key={storeId} store={store.data} />}
    </div>
  );
}

function Settings({ store }: { store: Store }) {
  const may = useMay();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState(store.name);
  const [description, setDescription] = useState(store.description ?? '');
  const [asking, setAsking] = useState<'archive' | 'delete' | null>(null);
  const [state, setState] = useState<{ error?: unknown; saved?: boolean; busy?: boolean }>({});
  const id = store.memory_store_id;
  const curated = store.origin === 'curated';
  const editable = curated && store.status === 'active' && may('store', 'update');
  const save = async () => {
    setState({ busy: true });
    try {
      await updateStore(id, { name, description });
      storeChanged(queries, id);
      setState({ saved: true });
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      <title>{`Settings of ${store.name} · Stele`}</title>
      <StoreHead store={store} />
      <form className="form" onSubmit={(e) => { e.preventDefault(); if (editable && state.busy !== true) void save(); }}>
        <Field label="Name" hint="Its directory keeps its name when the store is renamed.">
          {(field, described) => <input id={field} aria-describedby={described} value={name} onChange={(e) => setName(e.target.value)} maxLength={255} disabled={!editable} required />}
        </Field>
        <Field label="Description" hint="Every agent that has the store sees this: say when to look here.">
          {(field, described) => <textarea id={field} aria-describedby={described} rows={4} value={description} onChange={(e) => setDescription(e.target.value)} disabled={!editable} />}
        </Field>
        {state.error !== undefined && <Failure error={state.error} />}
        {editable && <div className="row"><button className="primary" disabled={state.busy === true || (name === store.name && description === (store.description ?? ''))}>Save</button><span role="status" className="soft">{state.saved === true ? 'Saved.' : ''}</span></div>}
      </form>
      <section className="panel">
        <h2>Ids and dates</h2>
        <dl className="facts">
          <dt>Recursion</dt><dd><code>{id}</code></dd>
          <dt>Anthropic</dt><dd><code>{prefixed('memstore', id)}</code></dd>
          <dt>Made</dt><dd><Time at={store.created_at} /></dd>
          <dt>Last change</dt><dd><Time at={store.updated_at} /></dd>
          {store.archived_at !== undefined && <><dt>Archived</dt><dd><Time at={store.archived_at} /></dd></>}
        </dl>
        <h3 style={{ marginTop: '.8rem' }}>Mount it on this machine</h3>
        <CopyBlock label="Command that mounts the store" text={`STELE_URL=${window.location.origin} stele mount --store ${id} ./${store.slug}`} />
      </section>
      {curated && (may('store', 'archive') || may('store', 'delete')) && (
        <section className="panel">
          <h2>Archive or delete</h2>
          <div className="row">
            {store.status === 'active' && may('store', 'archive') && <button onClick={() => setAsking('archive')}>Archive this store</button>}
            {may('store', 'delete') && <button className="danger" onClick={() => setAsking('delete')}>Delete this store</button>}
          </div>
        </section>
      )}
      {!curated && <p className="soft">This is learned memory: Stele writes it, and nobody edits, archives or deletes it by hand.</p>}
      {asking === 'archive' && (
        <Confirm title="Archive this store?" action="Archive for good" onClose={() => setAsking(null)} onConfirm={async () => { await archiveStore(id); storeChanged(queries, id); }}>
          <p>It stays readable, takes no more changes, and cannot be attached to new sessions. <b>There is no way back.</b></p>
        </Confirm>
      )}
      {asking === 'delete' && (
        <Confirm
          title="Delete this store?"
          action="Delete everything in it"
          typed={store.slug}
          onClose={() => setAsking(null)}
          onConfirm={async () => {
            await deleteStore(id);
            await navigate('/stores');
            await queries.invalidateQueries({ queryKey: ['stores'] });
          }}
        >
          <p>{counted(store.memory_count, 'memory', 'memories')} and the whole history go with it, for every agent. <b>This cannot be undone.</b></p>
        </Confirm>
      )}
    </>
  );
}
