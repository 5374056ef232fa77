/** The sequences that there are, by id: lists name theirs by ids only. */

import { useQuery } from '@tanstack/react-query';
import type { SequenceListed } from 'durable-workflow-engine-client';
import { useEngine } from './engine.tsx';

export type SequenceSummary = Pick<
  SequenceListed,
  'id' | 'namespace' | 'name' | 'version' | 'deprecated'
>;

/** More than anybody chooses from; others are asked for one by one. */
const READ_MAX = 500;
const STALE_MS = 30_000;

/** Undefined until they are there, and for who may not read them. */
export function useSequences(): readonly SequenceSummary[] | undefined {
  const { client, allowed } = useEngine();
  const { data } = useQuery({
    queryKey: ['sequences.list', 'all'],
    queryFn: async ({ signal }) =>
      client.sequences.list({ include_definition: false, limit: READ_MAX }, { signal }),
    staleTime: STALE_MS,
    enabled: allowed.readSequences,
    select: ({ items }) => items as readonly SequenceSummary[],
  });
  return data;
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
