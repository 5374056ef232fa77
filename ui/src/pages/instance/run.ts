/** Reads one instance and its parts: on changes from the stream, and by slow polling while it is open. */

import {
  keepPreviousData,
  type QueryClient,
  type UseQueryResult,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import type {
  InstanceExplanation,
  Page,
  SequenceDefinition,
  StepBlock,
  TaskInstance,
} from 'durable-workflow-engine-client';
import { useEffect, useMemo, useRef } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { isFinal } from '../../api/engine-error.ts';
import { useNote } from '../../api/live.tsx';
import type { SequenceSummary } from '../../api/sequences.ts';
import { type Definition, type Outline, outlineOf } from '../../flow/outline.ts';
import type { RunFacts } from '../../flow/run-states.ts';
import type { ActionName } from './choices.ts';
import { isOpen } from './choices.ts';

/** Not every step is a streamed change: an open instance is polled at this interval, too. */
const LOOK_MS = 750;
/** The other parts of an open instance are polled at this interval. */
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

/** The definition of a step of the sequence. */
export function stepIn({ outline }: Run, blockId: string | null): StepBlock | undefined {
  const source = outline?.byPath.get(outline.pathOf.get(blockId ?? '') ?? '')?.source;
  return source?.type === 'step' ? source : undefined;
}

export function useInstance(id: string) {
  const { client } = useEngine();
  const queries = useQueryClient();
  return useQuery({
    queryKey: ['instances.get', id],
    queryFn: ({ signal }) => client.instances.get(id, { signal }),
    placeholderData: () => rowOf(queries, id),
    meta: { live: id },
    // A deleted instance stays deleted.
    refetchInterval: ({ state }) =>
      isFinal(state.error) ? false : lookOf(state.data, state.error),
  });
}

/** The instance from a list that was read before: the page starts with it, and need not wait for the sequence id. */
function rowOf(queries: QueryClient, id: string): TaskInstance | undefined {
  const lists = queries.getQueriesData<Page<TaskInstance>>({ queryKey: ['instances.list'] });
  return lists.flatMap(([, page]) => page?.items ?? []).find((row) => row.id === id);
}

export function useExplanation(instance: TaskInstance | undefined) {
  const { client } = useEngine();
  const id = instance?.id ?? '';
  return useQuery({
    queryKey: ['instances.explain', id],
    queryFn: ({ signal }) => client.instances.explain(id, { signal }),
    enabled: instance !== undefined,
    meta: { live: id },
    refetchInterval: ({ state }) => lookOf(instance, state.error),
  });
}

/** Rereads everything else about the instance when its state changes. */
export function useSteps(
  instance: TaskInstance | undefined,
  explanation: InstanceExplanation | undefined,
): void {
  const note = useNote();
  const { id, state, updated_at } = instance ?? {};
  const waits = explanation?.waiting_for.map((wait) => {
    const { kind, path, since, until, attempt, task_id, worker_id, child_state } = wait;
    return [kind, path, since, until, attempt, task_id, worker_id, child_state];
  });
  const stands = JSON.stringify([state, updated_at, waits]);
  const before = useRef(stands);
  useEffect(() => {
    if (before.current !== stands && id !== undefined) note(id);
    before.current = stands;
  }, [stands, id, note]);
}

export function useTree({ instance }: Run) {
  const { client } = useEngine();
  const { id } = instance;
  return useQuery({
    queryKey: ['instances.tree', id],
    queryFn: ({ signal }) => client.instances.tree(id, {}, { signal }),
    meta: { live: id },
    refetchInterval: paceOf(instance),
  });
}

/**
 * Attempts without input and output, newest first, page by page. All pages are reread, since attempts on any of them
 * may have ended; the more pages, the less often.
 */
export function useAttempts({ instance }: Run) {
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
    refetchInterval: isOpen(instance.state) && paceMs,
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

/** An engine that does not answer is polled less often. */
function lookOf(instance: TaskInstance | undefined, error: unknown): number | false {
  return error === null && paceOf(instance) ? LOOK_MS : paceOf(instance);
}

function paceOf(instance: TaskInstance | undefined): number | false {
  return instance !== undefined && isOpen(instance.state) ? OPEN_MS : false;
}
