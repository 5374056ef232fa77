/** The sequences that there are, by id: lists name theirs by ids only. */

import { type QueryClient, useQuery } from '@tanstack/react-query';
import type { Page, SequenceListed } from 'durable-workflow-engine-client';
import { useEngine } from './engine.tsx';

export type SequenceSummary = Pick<
  SequenceListed,
  'id' | 'namespace' | 'name' | 'version' | 'deprecated' | 'hold'
>;

const ALL = ['sequences.list', 'all'];

/** More than anybody chooses from; others are asked for one by one. */
const READ_MAX = 500;
const STALE_MS = 30_000;

/** Undefined until they are there, and for who may not read them. */
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

/** As a page before has read it: for pages that ask for the sequence itself, and can say its name at once. */
export function summaryIn(queries: QueryClient, id: string): SequenceSummary | undefined {
  return queries.getQueryData<Page<SequenceListed>>(ALL)?.items.find((one) => one.id === id);
}

/** The names that there are; undefined until they are there, and for who may not read them. */
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

/** Undefined until it is known, or for one that is gone. */
export function useSequence(id: string): SequenceSummary | undefined {
  const { client } = useEngine();
  const all = useSequences();
  const known = all?.find((sequence) => sequence.id === id);
  const { data } = useQuery({
    queryKey: ['sequences.get', id],
    queryFn: ({ signal }) => client.sequences.get(id, { signal }),
    enabled: all !== undefined && known === undefined,
    // Nothing of what is shown of it changes.
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return known ?? data;
}
