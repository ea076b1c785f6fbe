import type { ReactNode } from 'react';
import { Link, NavLink } from 'react-router';
import type { Store } from '../api/types';
import { counted, bytes } from '../lib/format';
import { useWhoami } from '../session';
import { Meter } from './Meter';
import { Name } from './Name';

/** The head of every page about one store, with the way between them. */
export function StoreHead({ store, live, children }: { store: Store; live?: boolean; children?: ReactNode }) {
  const { max_memories_per_store: cap } = useWhoami();
  const base = `/stores/${store.memory_store_id}`;
  return (
    <>
      <div className="head">
        <div>
          <div className="crumbs"><Link to="/stores">Stores</Link> ›</div>
          <h1>
            <Name text={store.name} /> {store.origin === 'reflection' && <span className="badge good">learned</span>}{' '}
            {store.status === 'archived' && <span className="badge">archived, read-only</span>}
          </h1>
          <div className="small soft row">
            <span>{counted(store.memory_count, 'memory', 'memories')}, {bytes(store.total_bytes)}</span>
            <Meter value={store.memory_count} cap={cap} />
            <span>mounted as <code>/mnt/memory/{store.slug}/</code></span>
            {live !== undefined && <span className={live ? 'live on' : 'live'} role="status">{live ? 'live' : 'connecting'}</span>}
          </div>
        </div>
        <div className="actions">{children}</div>
      </div>
      <nav className="tabs" aria-label="Store">
        <NavLink end to={base}>Memories</NavLink>
        <NavLink to={`${base}/history`}>History</NavLink>
        <NavLink to={`${base}/settings`}>Settings</NavLink>
      </nav>
    </>
  );
}
