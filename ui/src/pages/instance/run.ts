/** Reads one instance and its parts when the engine reports a change of it, and by slow polling without reports. */

import {
  keepPreviousData,
  type QueryClient,
  type UseQueryResult,
  useInfiniteQuery,
  useQueryClient,
} from '@tanstack/react-query';
import type {
  InstanceExplanation,
  Page,
  SequenceDefinition,
  StepBlock,
  TaskInstance,
} from 'durable-workflow-engine-client';
import { useEffect, useMemo } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { isFinal } from '../../api/engine-error.ts';
import { useNote } from '../../api/live.tsx';
import { useRead } from '../../api/read.ts';
import type { SequenceSummary } from '../../api/sequences.ts';
import { useIsWatched } from '../../api/watched.ts';
import { type Definition, type Outline, outlineOf } from '../../flow/outline.ts';
import type { RunFacts } from '../../flow/run-states.ts';
import type { ActionName } from './choices.ts';
import { isOpen } from './choices.ts';
import { iterationOf } from './places.ts';

/** An open instance is polled at this interval while its changes are not reported. */
const OPEN_MS = 5_000;
const SELDOM_MS = 30_000;
/** Attempts per page of the timeline. */
const ATTEMPTS_PER_PAGE = 500;

/** One instance, as the parts of its page use it. */
export interface Run {
  readonly instance: TaskInstance;
  readonly explanation: InstanceExplanation | undefined;
  readonly sequence: SequenceDefinition | undefined;
  /** The two queries, for their errors. */
  readonly queries: {
    readonly explanation: UseQueryResult<InstanceExplanation>;
    readonly sequence: UseQueryResult<SequenceDefinition>;
  };
  /** Name and version of the sequence, which may be known before the sequence. */
  readonly named: SequenceSummary | undefined;
  /** Outline of the sequence; injected blocks are in the diagrams only. */
  readonly outline: Outline | undefined;
  readonly isOpen: boolean;
  /** Interval of polling; false where that is superfluous. */
  readonly pollMs: number | false;
  /** Starts the action: some run at once, others open a dialog. */
  readonly ask: (action: ActionName, block?: string) => void;
  /** The address of the page with this block selected. */
  readonly hrefOfBlock: (path: string, iteration?: string) => string;
}

/** Parameters of the address that belong to the selected block. */
export const NOTHING_ASKED_OF_BLOCK = {
  pass: undefined,
  ended: undefined,
  tries: undefined,
  outputs: undefined,
};

/** The path that selects a block. */
export function pathIn({ outline }: Run, blockId: string): string {
  return outline?.pathOf.get(blockId) ?? blockId;
}

/** The counters of a block in loops that is at this path of the instance; '' outside of loops, as in a saga. */
export function iterationAt(run: Run, blockId: string, path: string | null | undefined): string {
  const block = run.outline?.byPath.get(pathIn(run, blockId));
  return block?.repeats.length === 0 ? '' : iterationOf(path ?? '');
}

/** The definition of a step of the sequence. */
export function stepIn({ outline }: Run, blockId: string | null): StepBlock | undefined {
  const source = outline?.byPath.get(outline.pathOf.get(blockId ?? '') ?? '')?.source;
  return source?.type === 'step' ? source : undefined;
}

/** @param isFollowed whether the engine reports its changes */
export function useInstance(id: string, isFollowed: boolean) {
  const queries = useQueryClient();
  return useRead('instances.get', [id], {
    placeholderData: () => rowOf(queries, id),
    live: id,
    // A deleted instance stays deleted.
    refetchInterval: ({ state }) =>
      isFinal(state.error) ? false : pollMsOf(state.data, isFollowed),
  });
}

/** Not every step is an entry of the change feed: the instance has a stream of its own, which ends with it. */
export function useFollowed(
  id: string,
  isRunning: boolean,
  onFollowed: (isFollowed: boolean) => void,
): void {
  const { client } = useEngine();
  const isWatched = useIsWatched();
  const note = useNote();
  useEffect(() => {
    if (!isRunning || !isWatched) return undefined;
    const ending = new AbortController();
    const { signal } = ending;
    async function follow() {
      const options = { includeOutputs: false, signal, onConnection: onFollowed };
      for await (const _ of client.instances.follow(id, options)) note(id);
    }
    follow()
      // Polling goes on, and reports what cannot be read.
      .catch(() => undefined)
      .finally(() => !signal.aborted && onFollowed(false));
    return () => {
      ending.abort();
      onFollowed(false);
    };
  }, [client, id, isRunning, isWatched, note, onFollowed]);
}

/** The instance from a list that was read before: the page starts with it, and need not wait for the sequence id. */
function rowOf(queries: QueryClient, id: string): TaskInstance | undefined {
  const lists = queries.getQueriesData<Page<TaskInstance>>({ queryKey: ['instances.list'] });
  return lists.flatMap(([, page]) => page?.items ?? []).find((row) => row.id === id);
}

export function useExplanation(instance: TaskInstance | undefined) {
  const id = instance?.id ?? '';
  return useRead('instances.explain', [id], {
    enabled: instance !== undefined,
    live: id,
    // It also depends on other things, such as the workers there are.
    refetchInterval: pollMsOf(instance, false),
  });
}

export function useTree({ instance, pollMs }: Run) {
  const { id } = instance;
  return useRead('instances.tree', [id, {}], { live: id, refetchInterval: pollMs });
}

/**
 * Attempts without input and output, newest first, page by page. All pages are reread, since attempts on any of them
 * may have ended; the more pages, the less often.
 */
export function useAttempts({ instance, pollMs }: Run) {
  const { client } = useEngine();
  const queries = useQueryClient();
  const { id } = instance;
  const queryKey = ['instances.attempts', id];
  const pages = queries.getQueryData<{ pages: unknown[] }>(queryKey)?.pages.length ?? 1;
  const paceMs = Math.min(pages * OPEN_MS, SELDOM_MS);
  return useInfiniteQuery({
    queryKey,
    queryFn: async ({ signal, pageParam }) =>
      client.instances.attempts(
        id,
        { order: 'newest', include_payloads: false, limit: ATTEMPTS_PER_PAGE, cursor: pageParam },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    placeholderData: keepPreviousData,
    meta: { live: id, ...(pages > 1 && { paceMs }) },
    refetchInterval: pollMs && paceMs,
  });
}

export interface Drawn {
  readonly definition: Definition;
  readonly outline: Outline;
  readonly facts: RunFacts;
  readonly attemptsQuery: ReturnType<typeof useAttempts>;
}

/** The data of the diagrams, or the query they wait for, preferring one that failed. */
export function useDrawn(
  run: Run,
):
  | { readonly drawn: Drawn; readonly awaited?: undefined }
  | { readonly drawn?: undefined; readonly awaited: UseQueryResult<unknown> } {
  const { sequence, explanation, instance } = run;
  const treeQuery = useTree(run);
  const { data: tree } = treeQuery;
  const attemptsQuery = useAttempts(run);
  const attempts = useMemo(
    () => attemptsQuery.data?.pages.flatMap(({ items }) => items).reverse(),
    [attemptsQuery.data],
  );
  const outline = useMemo(
    () => (sequence && tree ? outlineOf(sequence, tree) : undefined),
    [sequence, tree],
  );
  const facts = useMemo<RunFacts | undefined>(
    () =>
      tree && {
        tree,
        failure: instance.failure,
        ...(explanation && { waits: explanation.waiting_for }),
        ...(attempts && { attempts }),
      },
    [tree, explanation, instance.failure, attempts],
  );
  if (sequence === undefined || outline === undefined || facts === undefined) {
    const isOfSequence =
      sequence === undefined && (tree !== undefined || run.queries.sequence.error);
    return { awaited: isOfSequence ? run.queries.sequence : treeQuery };
  }
  return { drawn: { definition: sequence, outline, facts, attemptsQuery } };
}

export function pollMsOf(instance: TaskInstance | undefined, isFollowed: boolean): number | false {
  return instance !== undefined && isOpen(instance.state) && !isFollowed ? OPEN_MS : false;
}
