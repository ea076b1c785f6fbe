import { Link } from 'react-router';
import { useQuery } from '@tanstack/react-query';
import { type ApiError, call } from '../api/client';
import type { ApiKey, Version } from '../api/types';
import { shortId } from '../lib/format';
import { useMay, usePeople } from '../session';
import { Name } from './Name';

/** The names of keys, for those who may list them. */
export function useKeyNames(): (id: string | undefined) => string | undefined {
  const may = useMay();
  const keys = useQuery<{ api_keys: ApiKey[] }, ApiError>({
    queryKey: ['keys'], queryFn: () => call('/stele/v1/api_keys'), enabled: may('api_key', 'read'), staleTime: 60_000,
  });
  return (id) => keys.data?.api_keys.find((key) => key.api_key_id === id)?.name;
}

/** Who wrote a version: a person, a key, a session, or Stele itself. */
export function Author({ version }: { version: Pick<Version, 'author_kind' | 'author_principal' | 'author_session_id'> }) {
  const person = usePeople();
  const key = useKeyNames();
  const id = version.author_principal;
  switch (version.author_kind) {
    case 'admin':
      return <Name text={person(id) ?? `person ${shortId(id ?? '')}`} />;
    case 'session':
      return <Link to={`/sessions/${version.author_session_id ?? ''}`}>session {shortId(version.author_session_id ?? '')}</Link>;
    case 'reflection':
      return <>learned by Stele</>;
    case 'api':
      return <>key <Name text={key(id) ?? shortId(id ?? '')} /></>;
  }
}
