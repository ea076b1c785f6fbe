/** Stores, memories and versions: queries and changes. */
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { follow } from '../lib/stream';
import { type ApiError, at, call, query, send } from './client';
import { prefixed, uuidOf } from './ids';
import type { Change, Entry, Memory, SearchPage, Store, Version, VersionPage } from './types';

const API = '/managed-agents/v1/memory_stores';

export const anthropicStore = (storeId: string) => at`/v1/memory_stores/${prefixed('memstore', storeId)}`;

export function useStores(includeArchived = false) {
  return useQuery<Store[], ApiError>({
    queryKey: ['stores', includeArchived],
    queryFn: async () => (await call<{ memory_stores: Store[] }>(API + query({ include_archived: includeArchived || undefined }))).memory_stores,
  });
}

export function useStore(storeId: string) {
  return useQuery<Store, ApiError>({ queryKey: ['store', storeId], queryFn: () => call<Store>(API + at`/${storeId}`) });
}

export interface MemoryEntry {
  path: string;
  summary: string;
  byte_size: number;
}

export interface Tree {
  entries: MemoryEntry[];
  /** The state of the store that the list shows: the feed goes on from here. */
  sequence: number;
}

/** Every memory of a store by path, without contents. */
export function useTree(storeId: string) {
  return useQuery<Tree, ApiError>({
    queryKey: ['tree', storeId],
    queryFn: async ({ signal }) => {
      const response = await send(API + at`/${storeId}/memories?depth=0`, { signal });
      const { entries } = (await response.json()) as { entries: Entry[] };
      return {
        entries: entries.filter((entry) => entry.type === 'memory').map(({ path, summary, byte_size }) => ({ path, summary, byte_size })),
        sequence: Number(response.headers.get('stele-sequence')),
      };
    },
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
}

export function useMemory(storeId: string, path: string | null) {
  return useQuery<Memory, ApiError>({
    queryKey: ['memory', storeId, path],
    queryFn: ({ signal }) => fetchMemory(storeId, path ?? '', signal),
    enabled: path !== null,
  });
}

export function fetchMemory(storeId: string, path: string, signal?: AbortSignal): Promise<Memory> {
  return call<Memory>(API + at`/${storeId}/memory` + query({ path }), signal === undefined ? {} : { signal });
}

export function createStore(body: { name: string; description: string; agent_id?: string }): Promise<Store> {
  return call<Store>(API, { method: 'POST', body });
}

export function updateStore(storeId: string, body: { name: string; description: string }): Promise<Store> {
  return call<Store>(API + at`/${storeId}`, { method: 'POST', body });
}

export function archiveStore(storeId: string): Promise<void> {
  return call(API + at`/${storeId}/archive`, { method: 'POST', body: {} });
}

export function deleteStore(storeId: string): Promise<void> {
  return call(API + at`/${storeId}`, { method: 'DELETE' });
}

export interface Text {
  path: string;
  summary: string;
  content: string;
}

export function createMemory(storeId: string, text: Text): Promise<Memory> {
  return call<Memory>(API + at`/${storeId}/memories`, { method: 'POST', body: text });
}

/** Writes a memory if its text is still the one with this hash. */
export function updateMemory(storeId: string, memoryId: string, text: Partial<Text>, base: string): Promise<Memory> {
  return call<Memory>(API + at`/${storeId}/memories/${memoryId}`, { method: 'POST', body: { ...text, content_sha256: base } });
}

export function deleteMemory(storeId: string, memoryId: string): Promise<void> {
  return call(API + at`/${storeId}/memories/${memoryId}`, { method: 'DELETE' });
}

export function fetchVersions(storeId: string, memoryId: string | null, cursor?: string, limit = 50): Promise<VersionPage> {
  return call<VersionPage>(API + at`/${storeId}/memory_versions` + query({ memory_id: memoryId, cursor, limit }));
}

export function fetchVersion(storeId: string, versionId: string): Promise<Version> {
  return call<Version>(API + at`/${storeId}/memory_versions/${versionId}`);
}

export function useVersion(storeId: string, versionId: string | null) {
  return useQuery<Version, ApiError>({
    queryKey: ['version', storeId, versionId],
    queryFn: () => fetchVersion(storeId, versionId ?? ''),
    enabled: versionId !== null,
  });
}

export function restoreVersion(storeId: string, versionId: string): Promise<Memory> {
  return call<Memory>(API + at`/${storeId}/memory_versions/${versionId}/restore`, { method: 'POST', body: {} });
}

export function redactVersion(storeId: string, versionId: string): Promise<void> {
  return call(API + at`/${storeId}/memory_versions/${versionId}/redact`, { method: 'POST', body: {} });
}

export function useSearch(storeId: string, words: string) {
  return useQuery<SearchPage, ApiError>({
    queryKey: ['search', storeId, words],
    queryFn: ({ signal }) => call<SearchPage>(anthropicStore(storeId) + '/memories/search' + query({ query: words, limit: 50 }), { signal }),
    enabled: words.trim() !== '',
    placeholderData: (before) => before,
  });
}

/** All that a change of a store may show in. */
export function storeChanged(queries: QueryClient, storeId: string): void {
  for (const key of ['store', 'memory', 'versions', 'search']) void queries.invalidateQueries({ queryKey: [key, storeId] });
  void queries.invalidateQueries({ queryKey: ['stores'] });
}

/** More changes at once than this, and the list is read again instead. */
const PATCHED = 20;

/** Brings the list to what the changes made of it; reads the summaries of what was written. */
async function patched(storeId: string, entries: MemoryEntry[], changes: Change[]): Promise<MemoryEntry[]> {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const written = new Set<string>();
  for (const change of changes) {
    if (change.previous_path !== null) byPath.delete(change.previous_path);
    if (change.operation === 'deleted' && change.path !== null) byPath.delete(change.path);
    if ((change.operation === 'created' || change.operation === 'modified') && change.memory_id !== null) {
      written.add(uuidOf(change.memory_id));
    }
  }
  if (written.size > 0) {
    const body = { memory_ids: [...written] };
    const { contents } = await call<{ contents: { path: string; summary: string; content_size_bytes: number }[] }>(
      at`/stele/v1/memory_stores/${storeId}/contents`, { method: 'POST', body },
    );
    for (const { path, summary, content_size_bytes } of contents) byPath.set(path, { path, summary, byte_size: content_size_bytes });
  }
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

export interface Live {
  live: boolean;
  /** The store was deleted under the reader's eyes. */
  deleted: boolean;
  /** What came last, for who looks. */
  latest: Change | null;
}

/** Follows a store from the state that the tree shows. */
export function useFeed(storeId: string, from: number | undefined): Live {
  const queries = useQueryClient();
  const [state, setState] = useState<Live>({ live: false, deleted: false, latest: null });
  const pending = useRef<Change[]>([]);
  const known = from !== undefined;
  const start = useRef(from);
  if (start.current === undefined) start.current = from;
  useEffect(() => {
    if (!known) return;
    const end = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const apply = async () => {
      timer = undefined;
      const changes = pending.current.splice(0);
      const tree = queries.getQueryData<Tree>(['tree', storeId]);
      const fresh = changes.filter((change) => change.sequence > (tree?.sequence ?? 0));
      const last = fresh.at(-1);
      if (tree === undefined || last === undefined) return;
      if (fresh.length > PATCHED) {
        await queries.invalidateQueries({ queryKey: ['tree', storeId] });
      } else {
        try {
          const entries = await patched(storeId, tree.entries, fresh);
          queries.setQueryData<Tree>(['tree', storeId], { entries, sequence: last.sequence });
        } catch {
          await queries.invalidateQueries({ queryKey: ['tree', storeId] });
        }
      }
      setState((before) => ({ ...before, latest: last }));
      storeChanged(queries, storeId);
    };
    const again = () => {
      start.current = undefined;
      void queries.invalidateQueries({ queryKey: ['tree', storeId] });
      storeChanged(queries, storeId);
    };
    void follow(
      {
        address: (last) => {
          const after = last === '' ? start.current ?? queries.getQueryData<Tree>(['tree', storeId])?.sequence ?? 0 : Number(last.split(':').pop());
          return anthropicStore(storeId) + '/changes' + query({ after });
        },
        onMessage: ({ event, data }) => {
          if (event === 'change') {
            const change = JSON.parse(data) as Change;
            pending.current.push(change);
            if (change.operation === 'store_deleted') setState((before) => ({ ...before, deleted: true }));
            timer ??= setTimeout(() => void apply(), 150);
          } else if (event === 'store') {
            void queries.invalidateQueries({ queryKey: ['store', storeId] });
          }
        },
        onState: (live) => setState((before) => (before.live === live ? before : { ...before, live })),
        onExpired: again,
      },
      end.signal,
    );
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [storeId, known, queries]);
  return state;
}
