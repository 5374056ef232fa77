/** What is read of one instance, and how often: by the stream of changes, and slowly while it is open. */

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

/** Not every step is a change that is streamed: how an open instance stands is read again after this time, too. */
const LOOK_MS = 750;
/** And all that is drawn of it, whether anything differs or not. */
const OPEN_MS = 5_000;
const SELDOM_MS = 30_000;
/** Tries of one page of the timeline. */
const TRIES = 500;

/** One instance, as the parts of its page see it. */
export interface Run {
  readonly instance: TaskInstance;
  readonly explanation: InstanceExplanation | undefined;
  readonly sequence: SequenceDefinition | undefined;
  /** How the two are read: why there is none. */
  readonly queries: {
    readonly explanation: UseQueryResult<InstanceExplanation>;
    readonly sequence: UseQueryResult<SequenceDefinition>;
  };
  /** Its name and version, which may be known before it. */
  readonly named: SequenceSummary | undefined;
  /** Of the sequence; blocks that were injected are in the drawings only. */
  readonly outline: Outline | undefined;
  readonly isOpen: boolean;
  /** Asks for the action: some are done at once, others ask first. */
  readonly ask: (action: ActionName, block?: string) => void;
  /** The address of the page with this block selected. */
  readonly hrefOfBlock: (path: string, pass?: string) => string;
}

/** What the address asks of the block that is shown, which another one does not share. */
export const NOTHING_ASKED_OF_BLOCK = {
  pass: undefined,
  ended: undefined,
  tries: undefined,
  outputs: undefined,
};

/** The path by which a block is selected. */
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
    // One that was removed stays so.
    refetchInterval: ({ state }) =>
      isFinal(state.error) ? false : lookOf(state.data, state.error),
  });
}

/** As a list has it that it was opened from: the page begins with that, and need not wait to know its sequence. */
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

/** Whatever else is shown of the instance is read again as soon as it stands otherwise. */
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
 * Tries without what they were given and gave, the newest first, page by page. All pages are read again, since tries of
 * any may have ended meanwhile: the more there are, the more seldom.
 */
export function useTries({ instance }: Run) {
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
        { order: 'newest', include_payloads: false, limit: TRIES, cursor: pageParam },
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
  readonly tries: ReturnType<typeof useTries>;
}

/** What the drawings are made of, or which read is awaited for them: one that failed before others. */
export function useDrawn(
  run: Run,
):
  | { readonly drawn: Drawn; readonly awaited?: undefined }
  | { readonly drawn?: undefined; readonly awaited: UseQueryResult<unknown> } {
  const { sequence, explanation, instance } = run;
  const treeQuery = useTree(run);
  const { data: tree } = treeQuery;
  const tries = useTries(run);
  const attempts = useMemo(
    () => tries.data?.pages.flatMap(({ items }) => items).reverse(),
    [tries.data],
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
  return { drawn: { definition: sequence, outline, facts, tries } };
}

/** An engine that does not answer is asked more seldom. */
function lookOf(instance: TaskInstance | undefined, error: unknown): number | false {
  return error === null && paceOf(instance) ? LOOK_MS : paceOf(instance);
}

function paceOf(instance: TaskInstance | undefined): number | false {
  return instance !== undefined && isOpen(instance.state) ? OPEN_MS : false;
}
