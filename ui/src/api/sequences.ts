/** The sequences of the tenant by id, since lists refer to them by id only. */

import { type QueryClient, useQuery } from '@tanstack/react-query';
import type { Page, SequenceListed } from 'durable-workflow-engine-client';
import { useEngine } from './engine.tsx';

export type SequenceSummary = Pick<
  SequenceListed,
  'id' | 'namespace' | 'name' | 'version' | 'deprecated' | 'hold'
>;

const ALL = ['sequences.list', 'all'];

/** More than a user would choose from; others are read one by one. */
const READ_MAX = 500;
const STALE_MS = 30_000;

/** Undefined while loading, and for callers who may not read sequences. */
export function useSequences(): readonly SequenceSummary[] | undefined {
  const { client, allowed } = useEngine();
  const { data } = useQuery({
    queryKey: ALL,
    queryFn: async ({ signal }) =>
      client.sequences.list({ include_definition: false, limit: READ_MAX }, { signal }),
    staleTime: STALE_MS,
    enabled: allowed.readSequences,
    select: ({ items }) => items as readonly SequenceSummary[],
  });
  return data;
}

/** The sequence as an earlier page has read it, so that a page can show its name at once. */
export function summaryIn(queries: QueryClient, id: string): SequenceSummary | undefined {
  return queries.getQueryData<Page<SequenceListed>>(ALL)?.items.find((one) => one.id === id);
}

/** The names of all sequences; undefined while loading, and for callers who may not read them. */
export function useSequenceNames(): readonly string[] | undefined {
  const { client, allowed } = useEngine();
  const { data } = useQuery({
    queryKey: ['sequences.list', 'names'],
    queryFn: async ({ signal }) =>
      client.sequences.list(
        { newest_only: true, include_definition: false, limit: READ_MAX },
        { signal },
      ),
    staleTime: STALE_MS,
    enabled: allowed.readSequences,
    select: ({ items }) => [...new Set(items.map(({ name }) => name))],
  });
  return data;
}

/** Undefined while loading, and for a deleted sequence. */
export function useSequence(id: string): SequenceSummary | undefined {
  const { client } = useEngine();
  const all = useSequences();
  const known = all?.find((sequence) => sequence.id === id);
  const { data } = useQuery({
    queryKey: ['sequences.get', id],
    queryFn: ({ signal }) => client.sequences.get(id, { signal }),
    enabled: all !== undefined && known === undefined,
    // The fields shown never change.
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return known ?? data;
}
