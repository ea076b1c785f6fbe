import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link, useNavigate, useParams, useSearchParams } from 'react-router';
import { ApiError } from '../api/client';
import { createMemory, fetchMemory, storeChanged, updateMemory, useMemory, useStore } from '../api/stores';
import type { Memory } from '../api/types';
import { type Draft, forgetDraft, keepDraft, readDraft } from '../lib/drafts';
import { bytes, count } from '../lib/format';
import { type Choice, merge, resolved } from '../lib/merge';
import { useWhoami } from '../session';
import { Field } from '../ui/Field';
import { Name, RawText } from '../ui/Name';
import { Failure, Loading } from '../ui/states';
import { Time } from '../ui/Time';

/** Makes a memory, or changes one. */
export default function MemoryEditor() {
  const { storeId = '' } = useParams();
  const [search] = useSearchParams();
  const path = search.get('path');
  const store = useStore(storeId);
  const memory = useMemory(storeId, path);
  const key = `${storeId}${path ?? ''}`;
  return (
    <div className="page">
      <title>{path === null ? 'New memory · Stele' : `Edit ${path} · Stele`}</title>
      <div>
        <div className="crumbs"><Link to="/stores">Stores</Link> › <Link to={`/stores/${storeId}`}><Name text={store.data?.name ?? 'store'} /></Link> ›</div>
        <h1>{path === null ? 'New memory' : <>Edit <Name text={path} /></>}</h1>
      </div>
      {path === null ? (
        <Editor key={key} storeId={storeId} draftKey={key} memory={null} />
      ) : memory.data !== undefined ? (
        <Editor key={key} storeId={storeId} draftKey={key} memory={memory.data} />
      ) : memory.isError ? (
        <Failure error={memory.error} />
      ) : (
        <Loading what="the memory" />
      )}
    </div>
  );
}

function begun(memory: Memory | null): Draft {
  if (memory === null) return { path: '', summary: '', content: '', base: '', baseContent: '' };
  return { path: memory.path, summary: memory.summary, content: memory.content, base: memory.content_sha256, baseContent: memory.content };
}

function Editor({ storeId, draftKey, memory }: { storeId: string; draftKey: string; memory: Memory | null }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const limits = useWhoami();
  const [kept] = useState(() => readDraft(draftKey));
  const [draft, setDraft] = useState<Draft>(kept ?? begun(memory));
  const [conflict, setConflict] = useState<Memory | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [restored, setRestored] = useState(kept !== undefined);
  const size = new TextEncoder().encode(draft.content).length;
  const dirty = draft.content !== draft.baseContent || draft.path !== (memory?.path ?? '') || draft.summary !== (memory?.summary ?? '');

  useEffect(() => {
    if (dirty) keepDraft(draftKey, draft);
    else forgetDraft(draftKey);
  }, [draft, draftKey, dirty]);

  const change = (values: Partial<Draft>) => setDraft((before) => ({ ...before, ...values }));
  const save = async (text: Draft) => {
    setBusy(true);
    setError(null);
    try {
      const fields = { path: text.path, summary: text.summary, content: text.content };
      const saved = memory === null ? await createMemory(storeId, fields) : await updateMemory(storeId, memory.memory_id, fields, text.base);
      forgetDraft(draftKey);
      await queries.invalidateQueries({ queryKey: ['tree', storeId] });
      storeChanged(queries, storeId);
      queries.setQueryData(['memory', storeId, saved.path], saved);
      await navigate(`/stores/${storeId}?path=${encodeURIComponent(saved.path)}`);
    } catch (failed) {
      if (failed instanceof ApiError && failed.code === 'content_sha256_mismatch' && memory !== null) {
        try {
          setConflict(await fetchMemory(storeId, memory.path));
        } catch {
          setError(new Error('Somebody moved or deleted this memory while you wrote. Your text is still here: copy it, or save it as a new memory.'));
        }
      } else {
        setError(failed);
      }
      setBusy(false);
    }
  };

  if (conflict !== null) {
    return (
      <MergeView
        mine={draft}
        theirs={conflict}
        onBack={() => setConflict(null)}
        onMerged={(content) => {
          setConflict(null);
          setBusy(false);
          setDraft({ ...draft, content, base: conflict.content_sha256, baseContent: conflict.content });
        }}
      />
    );
  }
  const field = error instanceof ApiError && typeof error.details.field === 'string' ? error.details.field : '';
  const bad = (name: string) => (field === name && error instanceof Error ? error.message : undefined);
  return (
    <form className="form" style={{ maxWidth: 'none' }} onSubmit={(e) => { e.preventDefault(); if (!busy) void save(draft); }}>
      {restored && (
        <div className="notice" role="status">
          <p>This is your unsaved draft from before{memory !== null && kept?.base !== memory.content_sha256 ? '; the memory has changed since, and saving will offer a merge' : ''}.</p>
          <button type="button" onClick={() => { setDraft(begun(memory)); setRestored(false); }}>Throw the draft away</button>
        </div>
      )}
      <Field label="Path" bad={bad('path')} hint="Where agents find it: /topic/name.md. Changing it renames the memory; history follows.">
        {(id, described) => <input id={id} aria-describedby={described} className="mono" value={draft.path} onChange={(e) => change({ path: e.target.value })} placeholder="/releases/versioning.md" required spellCheck={false} autoFocus={memory === null} />}
      </Field>
      <Field label="Summary" bad={bad('summary')} hint={`One line that says what the memory tells: ${count([...draft.summary].length)} of ${count(limits.max_summary_chars)} characters.`}>
        {(id, described) => <input id={id} aria-describedby={described} value={draft.summary} onChange={(e) => change({ summary: e.target.value })} required />}
      </Field>
      <Field label="Text" bad={bad('content')} hint={`${bytes(size)} of ${bytes(limits.max_content_bytes)}. Markdown is rendered; agents get the text as it is.`}>
        {(id, described) => <textarea id={id} aria-describedby={described} className="code" value={draft.content} onChange={(e) => change({ content: e.target.value })} rows={20} required spellCheck={false} />}
      </Field>
      {size > limits.max_content_bytes && <div className="notice warn">The text is {bytes(size - limits.max_content_bytes)} too long: split it into several memories.</div>}
      {error !== null && bad(field) === undefined && <Failure error={error} />}
      {error !== null && field !== '' && !['path', 'summary', 'content'].includes(field) && <Failure error={error} />}
      <div className="row">
        <button className="primary" disabled={busy || !dirty}>Save</button>
        <Link className="button" to={memory === null ? `/stores/${storeId}` : `/stores/${storeId}?path=${encodeURIComponent(memory.path)}`}>Cancel</Link>
        {dirty && <span className="soft small">Unsaved: kept in this tab, also when you leave this page.</span>}
      </div>
    </form>
  );
}

/** The other's text and one's own, put together where they do not touch the same lines; the rest is a choice. */
function MergeView({ mine, theirs, onBack, onMerged }: { mine: Draft; theirs: Memory; onBack: () => void; onMerged: (content: string) => void }) {
  const [parts] = useState(() => merge(mine.content, mine.baseContent, theirs.content));
  const conflicts = parts.filter((part) => part.kind === 'conflict').length;
  const [choices, setChoices] = useState<(Choice | undefined)[]>(() => Array.from({ length: conflicts }));
  const text = resolved(parts, choices);
  const place = (part: number) => parts.slice(0, part).filter((before) => before.kind === 'conflict').length;
  return (
    <div className="tab-body" style={{ paddingTop: 0 }}>
      <div className="notice warn" role="alert">
        <p>
          <b>Somebody else changed this memory while you wrote</b> (<Time at={theirs.updated_at} />). Nothing is lost:{' '}
          {conflicts === 0 ? 'your changes and theirs touch different lines and were put together below.' : 'what touches different lines was put together; choose where both of you changed the same lines.'}
        </p>
      </div>
      <section aria-label="Merged text" className="panel">
        {parts.map((part, i) => {
          if (part.kind === 'same') return <pre key={i}><RawText text={part.text} /></pre>;
          const at = place(i);
          return (
            <div className="conflict" key={i}>
              <div className="sides">
                <div><h3>Yours</h3><pre>{part.mine === '' ? <span className="soft">(nothing: you removed it)</span> : <RawText text={part.mine} />}</pre></div>
                <div><h3>Theirs</h3><pre>{part.theirs === '' ? <span className="soft">(nothing: they removed it)</span> : <RawText text={part.theirs} />}</pre></div>
              </div>
              <div className="choice row" role="group" aria-label={`Conflict ${at + 1} of ${conflicts}`}>
                <span className="small">Conflict {at + 1} of {conflicts}:</span>
                {(['mine', 'theirs', 'both'] as const).map((choice) => (
                  <button key={choice} type="button" aria-pressed={choices[at] === choice} className={choices[at] === choice ? 'primary' : ''} onClick={() => setChoices((before) => before.map((old, j) => (j === at ? choice : old)))}>
                    {choice === 'mine' ? 'Take mine' : choice === 'theirs' ? 'Take theirs' : 'Keep both'}
                  </button>
                ))}
              </div>
            </div>
          );
        })}
      </section>
      <div className="row">
        <button className="primary" disabled={text === undefined} onClick={() => { if (text !== undefined) onMerged(text); }}>Go on with this text</button>
        <button onClick={onBack}>Back to my text</button>
        {text === undefined && <span className="soft small">{conflicts - choices.filter((choice) => choice !== undefined).length} left to choose</span>}
      </div>
    </div>
  );
}
