/** Who is signed in, and what they may do: the server's own table, so that no rule stands here twice. */
import { type QueryClient, useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useCallback, useContext } from 'react';
import { type ApiError, call, send } from './api/client';
import type { PermissionTable, User, Whoami } from './api/types';
import { forgetDrafts } from './lib/drafts';

const SESSION = '/stele/v1/console/session';

export function useWhoamiQuery() {
  return useQuery<Whoami, ApiError>({ queryKey: ['whoami'], queryFn: () => call<Whoami>(SESSION), staleTime: 60_000 });
}

export function signIn(key: string): Promise<Whoami> {
  return call<Whoami>(SESSION, { method: 'POST', body: { key } });
}

export async function signOut(queries: QueryClient): Promise<void> {
  await send(SESSION, { method: 'DELETE' });
  forgetDrafts();
  queries.clear();
  window.location.assign('/');
}

const Context = createContext<Whoami | null>(null);

export function SessionProvider({ whoami, children }: { whoami: Whoami; children: ReactNode }) {
  return <Context.Provider value={whoami}>{children}</Context.Provider>;
}

export function useWhoami(): Whoami {
  const whoami = useContext(Context);
  if (whoami === null) throw new Error('only what is inside the SessionProvider asks');
  return whoami;
}

export function usePermissionTable() {
  return useQuery<PermissionTable, ApiError>({
    queryKey: ['permissions'],
    queryFn: () => call<PermissionTable>('/stele/v1/permissions'),
    staleTime: Infinity,
  });
}

/** Whether a grant opens what needs `needs`. */
export function opens(needs: string, grant: { role?: string | null; permissions: string[]; first_workspace: boolean }): boolean {
  if (needs === 'admin') return grant.role === 'admin';
  if (needs === 'installation_admin') return grant.role === 'admin' && grant.first_workspace;
  return grant.permissions.includes(needs);
}

/** `may('memory', 'update')`: whether whoever is signed in may do that. Until the table is there nothing is offered. */
export function useMay(): (resource: string, action: string) => boolean {
  const whoami = useWhoami();
  const table = usePermissionTable().data;
  return useCallback(
    (resource, action) => {
      const row = table?.actions.find((row) => row.resource === resource && row.action === action);
      return row !== undefined && opens(row.needs, whoami);
    },
    [table, whoami],
  );
}

/** The names of people by their ids. */
export function usePeople(): (id: string | undefined) => string | undefined {
  const people = useQuery<{ users: User[] }, ApiError>({ queryKey: ['users'], queryFn: () => call('/stele/v1/users'), staleTime: 60_000 });
  return (id) => people.data?.users.find((user) => user.user_id === id)?.name;
}
