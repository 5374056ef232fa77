/** The sequences of the tenant by id, since lists refer to them by id only. */

import type { QueryClient } from '@tanstack/react-query';
import type { Page, SequenceListed } from 'durable-workflow-engine-client';
import { useEngine } from './engine.tsx';
import { useRead } from './read.ts';

export type SequenceSummary = Pick<
  SequenceListed,
  'id' | 'namespace' | 'name' | 'version' | 'deprecated' | 'hold'
>;

/** More than a user would choose from; others are read one by one. */
const READ_MAX = 500;
const STALE_MS = 30_000;
const ALL = { include_definition: false, limit: READ_MAX } as const;

/** Undefined while loading, and for callers who may not read sequences. */
export function useSequences(): readonly SequenceSummary[] | undefined {
  const { allowed } = useEngine();
  return useRead('sequences.list', [ALL], {
    staleTime: STALE_MS,
    enabled: allowed.readSequences,
    select: ({ items }): readonly SequenceSummary[] => items,
  }).data;
}

/** The sequence as an earlier page has read it, so that a page can show its name at once. */
export function summaryIn(queries: QueryClient, id: string): SequenceSummary | undefined {
  return queries
    .getQueryData<Page<SequenceListed>>(['sequences.list', ALL])
    ?.items.find((one) => one.id === id);
}

/** The names of all sequences; undefined while loading, and for callers who may not read them. */
export function useSequenceNames(): readonly string[] | undefined {
  const { allowed } = useEngine();
  return useRead('sequences.list', [{ ...ALL, newest_only: true }], {
    staleTime: STALE_MS,
    enabled: allowed.readSequences,
    select: ({ items }) => [...new Set(items.map(({ name }) => name))],
  }).data;
}

/** Undefined while loading, and for a deleted sequence. */
export function useSequence(id: string): SequenceSummary | undefined {
  const all = useSequences();
  const known = all?.find((sequence) => sequence.id === id);
  const { data } = useRead('sequences.get', [id], {
    enabled: all !== undefined && known === undefined,
    // The fields shown never change.
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return known ?? data;
}
