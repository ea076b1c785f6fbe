import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { type ApiError, call } from '../api/client';
import { deleteMemory, fetchMemory, fetchVersion, fetchVersions, redactVersion, storeChanged, updateMemory, useStore } from '../api/stores';
import type { Backup, Memory, Version } from '../api/types';
import { counted } from '../lib/format';
import { useMay } from '../session';
import { Author } from '../ui/Author';
import { Field } from '../ui/Field';
import { Name } from '../ui/Name';
import { Failure } from '../ui/states';
import { Time } from '../ui/Time';

interface Found {
  /** Versions of the store whose text or summary holds the secret. */
  versions: Version[];
  /** Live memories that hold it now. */
  heads: Memory[];
  looked: number;
}

/** Versions read at a time. */
const AT_ONCE = 6;

async function everyVersion(storeId: string): Promise<Version[]> {
  const all: Version[] = [];
  let cursor: string | undefined;
  do {
    const page = await fetchVersions(storeId, null, cursor, 100);
    all.push(...page.memory_versions);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return all;
}

async function find(storeId: string, secret: string, onProgress: (done: number, of: number) => void): Promise<Found> {
  const holds = (version: { content?: string; summary?: string }) => (version.content ?? '').includes(secret) || (version.summary ?? '').includes(secret);
  const listed = (await everyVersion(storeId)).filter((version) => version.redacted_at === undefined && version.operation !== 'delete');
  const found: Version[] = [];
  for (let i = 0; i < listed.length; i += AT_ONCE) {
    const whole = await Promise.all(listed.slice(i, i + AT_ONCE).map((version) => fetchVersion(storeId, version.memory_version_id)));
    found.push(...whole.filter(holds));
    onProgress(Math.min(i + AT_ONCE, listed.length), listed.length);
  }
  const heads: Memory[] = [];
  for (const id of new Set(found.map((version) => version.memory_id))) {
    // What is deleted has no head to be cleaned.
    const memory = await call<Memory>(`/managed-agents/v1/memory_stores/${storeId}/memories/${id}`).catch(() => null);
    if (memory !== null && holds(memory)) heads.push(memory);
  }
  return { versions: found, heads, looked: listed.length };
}

/** From a leaked secret to a clean head and redacted versions, a step at a time. */
export default function Leak() {
  const { storeId = '' } = useParams();
  const [search] = useSearchParams();
  const store = useStore(storeId);
  const queries = useQueryClient();
  const may = useMay();
  const memoryId = search.get('memory');
  const [secret, setSecret] = useState('');
  const [found, setFound] = useState<Found | null>(null);
  const [progress, setProgress] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState('');
  const [redacted, setRedacted] = useState<number | null>(null);
  const backups = useQuery<{ backups: Backup[] }, ApiError>({ queryKey: ['backups'], queryFn: () => call('/stele/v1/backups'), enabled: redacted !== null && may('backup', 'read') });

  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  const look = () => run(async () => {
    setRedacted(null);
    setFound(await find(storeId, secret, (done, of) => setProgress(`${done} of ${of} versions read`)));
    setProgress('');
  });
  const clean = (memory: Memory, how: 'cut' | 'delete') => run(async () => {
    if (how === 'delete') {
      await deleteMemory(storeId, memory.memory_id);
    } else {
      const fresh = await fetchMemory(storeId, memory.path);
      const cut = (text: string) => text.replaceAll(secret, '[removed]');
      await updateMemory(storeId, memory.memory_id, { content: cut(fresh.content), summary: cut(fresh.summary) }, fresh.content_sha256);
    }
    storeChanged(queries, storeId);
    await queries.invalidateQueries({ queryKey: ['tree', storeId] });
    setFound(await find(storeId, secret, (done, of) => setProgress(`${done} of ${of} versions read`)));
    setProgress('');
  });
  const redact = () => run(async () => {
    const versions = found?.versions ?? [];
    for (const version of versions) await redactVersion(storeId, version.memory_version_id);
    const after = await find(storeId, secret, () => undefined);
    setFound(after);
    setTyped('');
    storeChanged(queries, storeId);
    setRedacted(versions.length);
  });

  const none = found !== null && found.versions.length === 0;
  const headsClean = found !== null && found.heads.length === 0;
  return (
    <div className="page">
      <title>A leaked secret · Stele</title>
      <div>
        <div className="crumbs"><Link to="/stores">Stores</Link> › <Link to={`/stores/${storeId}`}><Name text={store.data?.name ?? 'store'} /></Link> ›</div>
        <h1>A secret got into a memory</h1>
      </div>
      <p>First make the secret worthless where it opens something: change the password, revoke the key. Then remove it from here.</p>
      {error !== null && <Failure error={error} />}
      <ol className="steps">
        <li className={found === null ? '' : 'done'}>
          <h2>Find it</h2>
          <form className="form" onSubmit={(e) => { e.preventDefault(); if (!busy && secret.trim() !== '') void look(); }}>
            <Field label="The secret, or a part that is unmistakable" hint="Compared in this page with every version of the store; it is sent nowhere.">
              {(id, described) => <input id={id} aria-describedby={described} type="text" value={secret} onChange={(e) => { setSecret(e.target.value); setFound(null); setRedacted(null); }} autoComplete="off" spellCheck={false} required />}
            </Field>
            <div className="row"><button className="primary" disabled={busy || secret.trim().length < 4}>Look through all versions</button><span role="status" className="soft small">{progress}</span></div>
          </form>
          {none && redacted === null && <p>No version of this store holds it ({counted(found.looked, 'version')} read).</p>}
          {found !== null && !none && (
            <div className="wide" style={{ marginTop: '.6rem' }}>
              <table>
                <thead><tr><th>Memory</th><th>Written</th><th>By</th><th>Now</th></tr></thead>
                <tbody>
                  {found.versions.map((version) => (
                    <tr key={version.memory_version_id}>
                      <td className="break"><Name text={version.path} /> {version.memory_id === memoryId && <span className="badge">where you came from</span>}</td>
                      <td><Time at={version.created_at} /></td>
                      <td><Author version={version} /></td>
                      <td>{found.heads.some((head) => head.head_version_id === version.memory_version_id) ? <span className="badge bad">current text</span> : <span className="badge">old version</span>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </li>
        <li className={found === null || none ? (redacted === null ? 'later' : 'done') : headsClean ? 'done' : ''}>
          <h2>Clean what is current</h2>
          <p>The current text of a memory cannot be redacted: first it gets a clean one.</p>
          {found?.heads.map((head) => (
            <div className="row" key={head.memory_id} style={{ marginBottom: '.4rem' }}>
              <span className="break"><Name text={head.path} /></span>
              {may('memory', 'update') && head.content.replaceAll(secret, '[removed]') !== '' && <button disabled={busy} onClick={() => void clean(head, 'cut')}>Put “[removed]” in its place</button>}
              <Link className="button" to={`/stores/${storeId}/edit?path=${encodeURIComponent(head.path)}`}>Edit it</Link>
              {may('memory', 'delete') && <button className="danger" disabled={busy} onClick={() => void clean(head, 'delete')}>Delete it</button>}
            </div>
          ))}
          {headsClean && !none && <p>No current text holds it.</p>}
        </li>
        <li className={redacted !== null ? 'done' : headsClean && !none ? '' : 'later'}>
          <h2>Redact the versions that hold it</h2>
          <p>Their text, summary, size and hash go for good; who wrote them and when stay. <b>This cannot be undone.</b></p>
          {headsClean && !none && (
            <form className="row" onSubmit={(e) => { e.preventDefault(); if (typed === 'redact' && !busy) void redact(); }}>
              <Field label={<>Type <code>redact</code> to go on</>}>{(id) => <input id={id} value={typed} onChange={(e) => setTyped(e.target.value)} autoComplete="off" spellCheck={false} />}</Field>
              <button className="danger sure" disabled={typed !== 'redact' || busy} style={{ alignSelf: 'end' }}>Redact {counted(found.versions.length, 'version')}</button>
            </form>
          )}
        </li>
        <li className={redacted === null ? 'later' : none ? 'done' : ''}>
          <h2>Check</h2>
          {redacted === null ? <p>Every version is read once more afterwards.</p> : none ? (
            <div className="notice" role="status"><p><b>{counted(redacted, 'version')} redacted; no version of this store holds the secret any more</b> ({counted(found.looked, 'version')} read again).</p></div>
          ) : (
            <div className="notice warn" role="alert">Somebody wrote it again meanwhile: go through the steps once more.</div>
          )}
          {redacted !== null && (
            <ul>
              <li>Transcripts of sessions that wrote or read it are another record, and may hold the same words: <Link to="/sessions">sessions</Link>.</li>
              {backups.data !== undefined && <li>{backups.data.backups.length === 0 ? 'There are no backups that Stele manages.' : <>{counted(backups.data.backups.length, 'backup')} may still hold it: <code>stele backup scrub</code> rewrites them.</>}</li>}
              <li>Other stores are looked through from their own pages.</li>
            </ul>
          )}
        </li>
      </ol>
    </div>
  );
}
