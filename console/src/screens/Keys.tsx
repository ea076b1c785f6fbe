import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type ApiError, call } from '../api/client';
import type { ApiKey, PermissionTable } from '../api/types';
import { opens, signOut, useMay, usePermissionTable, useWhoami } from '../session';
import { Confirm } from '../ui/Confirm';
import { CopyBlock } from '../ui/CopyBlock';
import { Dialog } from '../ui/Dialog';
import { Field } from '../ui/Field';
import { Name } from '../ui/Name';
import { Empty, Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

export default function Keys() {
  const may = useMay();
  const me = useWhoami();
  const queries = useQueryClient();
  const keys = useQuery<{ api_keys: ApiKey[] }, ApiError>({ queryKey: ['keys'], queryFn: () => call('/stele/v1/api_keys') });
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  return (
    <div className="page">
      <title>Keys · Stele</title>
      <div className="head">
        <h1>Keys</h1>
        <div className="actions">{may('api_key', 'create') && <button className="primary" onClick={() => setMaking(true)}>New key</button>}</div>
      </div>
      {keys.isPending && <Loading what="keys" />}
      {keys.isError && (keys.error.status === 403 ? <Empty title="Keys are for admins"><p>The key that you signed in with does not manage keys.</p></Empty> : <Failure error={keys.error} retry={() => void keys.refetch()} />)}
      {keys.data !== undefined && (
        <div className="wide">
          <table>
            <thead><tr><th>Name</th><th>May</th><th className="hide-narrow">Person</th><th>Made</th><th>Expires</th><th>Actions</th></tr></thead>
            <tbody>
              {keys.data.api_keys.map((key) => (
                <tr key={key.api_key_id}>
                  <td className="break"><Name text={key.name} /> {key.api_key_id === me.api_key_id && <span className="badge good">yours</span>}</td>
                  <td>{key.role ?? key.permissions.join(', ')}</td>
                  <td className="hide-narrow break"><Name text={key.user ?? ''} /></td>
                  <td><Time at={key.created_at} /></td>
                  <td>{key.expires_at == null ? <span className="soft">never</span> : <Time at={key.expires_at} />}</td>
                  <td><button className="plain" onClick={() => setRevoking(key)} aria-label={`Revoke ${key.name}`}>Revoke</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {making && <NewKey onClose={() => setMaking(false)} />}
      {revoking !== null && (
        <Confirm
          title="Revoke this key?"
          action="Revoke for good"
          onClose={() => setRevoking(null)}
          onConfirm={async () => {
            await call(`/stele/v1/api_keys/${revoking.api_key_id}`, { method: 'DELETE' });
            if (revoking.api_key_id === me.api_key_id) await signOut(queries);
            else await queries.invalidateQueries({ queryKey: ['keys'] });
          }}
        >
          <p className="break">Whatever uses <b><Name text={revoking.name} /></b> stops working within five seconds, and whoever signed in with it is signed out. {revoking.api_key_id === me.api_key_id && <b>It is the key that you are signed in with.</b>}</p>
        </Confirm>
      )}
    </div>
  );
}

const ROLES: Record<string, string> = {
  reader: 'Reads everything in the workspace',
  contributor: 'Reads, makes and changes; deletes and redacts nothing',
  developer: 'Reads, makes, changes, deletes, redacts',
  admin: 'All of it, and keys',
};
const ALL = ['read', 'create', 'update', 'delete'];

function NewKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const me = useWhoami();
  const table = usePermissionTable();
  const [name, setName] = useState('');
  const [person, setPerson] = useState('');
  const [role, setRole] = useState('developer');
  const [permissions, setPermissions] = useState<string[]>(['read']);
  const [days, setDays] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<ApiKey | null>(null);
  const make = async () => {
    setError(null);
    const expires = days === '' ? {} : { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() };
    try {
      const grant = role === 'own' ? { permissions } : { role };
      setMade(await call<ApiKey>('/stele/v1/api_keys', { method: 'POST', body: { name, ...grant, ...expires, ...(person.trim() === '' ? {} : { user: person.trim() }) } }));
      await queries.invalidateQueries({ queryKey: ['keys'] });
      await queries.invalidateQueries({ queryKey: ['users'] });
    } catch (failed) {
      setError(failed);
    }
  };
  if (made !== null) {
    return (
      <Dialog title="The key, shown once" onClose={onClose}>
        <p>Put it where its user finds it, now: Stele keeps only its hash and cannot show it again.</p>
        <CopyBlock label="The key" text={made.key ?? ''} />
        <div className="row end"><button className="primary" onClick={onClose}>I have it</button></div>
      </Dialog>
    );
  }
  const granted = role === 'own' ? permissions : table.data?.roles.find((one) => one.role === role)?.permissions ?? [];
  return (
    <Dialog title="New key" onClose={onClose}>
      <form className="form" onSubmit={(e) => { e.preventDefault(); void make(); }}>
        <Field label="Name" hint="What it is for, so that it can be told apart later.">{(id, described) => <input id={id} aria-describedby={described} value={name} onChange={(e) => setName(e.target.value)} maxLength={255} required autoFocus />}</Field>
        <fieldset>
          <legend>It may</legend>
          {Object.entries(ROLES).map(([one, about]) => (
            <label className="check" key={one}><input type="radio" name="role" checked={role === one} onChange={() => setRole(one)} /> <span><b>{one}</b> <span className="soft small">{about}</span></span></label>
          ))}
          <label className="check"><input type="radio" name="role" checked={role === 'own'} onChange={() => setRole('own')} /> <b>just these:</b></label>
          {role === 'own' && (
            <div className="row">
              {ALL.map((one) => (
                <label className="check" key={one}><input type="checkbox" checked={permissions.includes(one)} onChange={(e) => setPermissions(e.target.checked ? [...permissions, one] : permissions.filter((p) => p !== one))} /> {one}</label>
              ))}
            </div>
          )}
        </fieldset>
        {table.data !== undefined && <Preview table={table.data} grant={{ role: role === 'own' ? null : role, permissions: granted, first_workspace: me.first_workspace }} />}
        <Field label="Person (optional)" hint="What is written with it at this console is that person’s in history.">{(id, described) => <input id={id} aria-describedby={described} value={person} onChange={(e) => setPerson(e.target.value)} maxLength={255} autoComplete="off" />}</Field>
        <Field label="Expires">
          {(id) => <select id={id} value={days} onChange={(e) => setDays(e.target.value)}><option value="">never</option><option value="1">in a day</option><option value="7">in a week</option><option value="30">in 30 days</option><option value="90">in 90 days</option><option value="365">in a year</option></select>}
        </Field>
        {error !== null && <Failure error={error} />}
        <div className="row end"><button type="button" onClick={onClose}>Cancel</button><button className="primary" disabled={role === 'own' && permissions.length === 0}>Make the key</button></div>
      </form>
    </Dialog>
  );
}

/** What the key will open and what not, by the server's own table, before it is made. */
function Preview({ table, grant }: { table: PermissionTable; grant: { role: string | null; permissions: string[]; first_workspace: boolean } }) {
  const resources = [...new Set(table.actions.map((row) => row.resource))];
  return (
    <details>
      <summary>What it may do, exactly</summary>
      <table>
        <thead><tr><th>On</th><th>It may</th><th>It may not</th></tr></thead>
        <tbody>
          {resources.map((resource) => {
            const rows = table.actions.filter((row) => row.resource === resource && row.needs !== 'worker');
            const [yes, no] = [rows.filter((row) => opens(row.needs, grant)), rows.filter((row) => !opens(row.needs, grant))];
            const spell = (list: typeof rows) => list.map((row) => row.action).join(', ');
            return <tr key={resource}><td>{resource.replaceAll('_', ' ')}</td><td>{spell(yes)}</td><td className="soft">{spell(no)}</td></tr>;
          })}
        </tbody>
      </table>
    </details>
  );
}
