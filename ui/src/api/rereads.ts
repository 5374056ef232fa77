/**
 * Repeats the reads of the page that are stale. However many changes arrive, each query is read at most once per pace;
 * a read in flight is not cancelled, and a failed one is delayed.
 */

import type { Query, QueryClient, QueryState } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { Changes } from './changes.ts';
import { isFinal } from './engine-error.ts';

/** Options of a query, in its `meta`. */
export interface LiveMeta extends Record<string, unknown> {
  /** Read again after changes of this instance only, or of any (`'all'`). */
  readonly live?: 'all' | string;
  /** Least time between two reads, in milliseconds. Queries that cost the engine more use a longer one. */
  readonly paceMs?: number;
}

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: LiveMeta;
  }
}

/** Delay between a change and the check for stale queries. */
const LOOK_MS = 250;
const PACE_MS = 1000;
/** For queries of one instance: what the user watches is at most a second old. */
const PACE_OF_ONE_MS = 500;
/** A list, and what counts its rows. */
const FEW_LISTS = 2;
/** Of more lists on one page, one is read at a time, so that a busy tenant costs about one read a second. */
const TURN_MS = 1600;
/** Without a stream of changes. */
const PACE_WITHOUT_NEWS_MS = 5000;
const REST_AFTER_FAILURE_MS = 10_000;

/** The part of a query that decides when to read it again. */
export interface Read {
  readonly meta?: LiveMeta | undefined;
  readonly state: Pick<
    QueryState<unknown, unknown>,
    'status' | 'fetchStatus' | 'dataUpdatedAt' | 'errorUpdatedAt' | 'error'
  >;
}

const answeredAt = ({ state }: Read) => Math.max(state.dataUpdatedAt, state.errorUpdatedAt);

/**
 * Decides when to repeat a read.
 *
 * @param isBehind whether the data may have changed since
 * @param now in Unix milliseconds
 */
export function whenToRead(read: Read, isBehind: boolean, now: number): 'now' | 'later' | 'never' {
  const { meta, state } = read;
  const hasFailed = state.status === 'error';
  if (hasFailed ? isFinal(state.error) : !isBehind) return 'never';
  if (state.fetchStatus !== 'idle') return 'later';
  const restMs = hasFailed ? restOf(state.error) : paceOf(meta);
  return now - answeredAt(read) >= restMs ? 'now' : 'later';
}

const isList = ({ meta }: Read) => meta?.live === 'all';

/**
 * Of the lists that are due, the one that was answered first.
 *
 * @param lastAt when a list was read last, in Unix milliseconds
 * @returns undefined: it is too early for the next one
 */
export function listInTurn<R extends Read>(
  due: readonly R[],
  lastAt: number,
  now: number,
): R | undefined {
  if (now - lastAt < TURN_MS) return undefined;
  return due.filter(isList).toSorted((a, b) => answeredAt(a) - answeredAt(b))[0];
}

function paceOf({ live, paceMs }: LiveMeta = {}): number {
  return paceMs ?? (live === 'all' ? PACE_MS : PACE_OF_ONE_MS);
}

function restOf(error: unknown): number {
  const askedFor = error instanceof EngineError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(askedFor, REST_AFTER_FAILURE_MS);
}

export class Rereads {
  readonly #queries: QueryClient;
  readonly #changes = new Changes();
  /** Data is as old as the start of its request. */
  readonly #begunAt = new WeakMap<Query, number>();
  readonly #unsubscribe: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hasNews = false;
  #listReadAt = Number.NEGATIVE_INFINITY;

  constructor(queries: QueryClient) {
    this.#queries = queries;
    this.#unsubscribe = queries.getQueryCache().subscribe((event) => {
      if (event.type !== 'updated') return;
      if (event.action.type === 'fetch') this.#begunAt.set(event.query, Date.now());
      if (event.action.type === 'error') this.#planNext();
    });
    document.addEventListener('visibilitychange', this.#planNext);
    this.#planNext();
  }

  /** Whether changes are received. If not, everything is read again every few seconds. */
  setNews(hasNews: boolean): void {
    if (this.#hasNews === hasNews) return;
    this.#hasNews = hasNews;
    this.#stop();
    this.#planNext();
  }

  note(instanceId: string): void {
    this.#changes.note(instanceId, Date.now());
    if (!this.#hasNews) this.#stop();
    this.#plan(LOOK_MS);
  }

  /** Changes may have been missed: reads everything again, including what failed for good. */
  readAll(): void {
    void this.#queries.invalidateQueries();
  }

  /** Repeats the reads that failed and may succeed now. */
  readUnanswered(): void {
    void this.#queries.invalidateQueries(
      { predicate: ({ state }) => state.status === 'error' && !isFinal(state.error) },
      { cancelRefetch: false },
    );
  }

  close(): void {
    this.#unsubscribe();
    document.removeEventListener('visibilitychange', this.#planNext);
    this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly #planNext = (): void => this.#plan(this.#hasNews ? LOOK_MS : PACE_WITHOUT_NEWS_MS);

  #plan(delayMs: number): void {
    this.#timer ??= setTimeout(() => this.#refresh(), delayMs);
  }

  #refresh(): void {
    this.#timer = undefined;
    // A hidden page reads when it becomes visible.
    if (document.hidden) return;
    const now = Date.now();
    const due = new Set<Query>();
    let isMoreToCome = false;
    const queries = this.#queries.getQueryCache().findAll({ type: 'active' });
    for (const query of queries) {
      const when = whenToRead(query, this.#isBehind(query, now), now);
      if (when === 'now') due.add(query);
      if (when !== 'never') isMoreToCome = true;
    }
    if (this.#hasNews && queries.filter(isList).length > FEW_LISTS) this.#takeTurns(due, now);
    void this.#queries.invalidateQueries(
      { predicate: (query) => due.has(query) },
      { cancelRefetch: false },
    );
    if (isMoreToCome) this.#plan(LOOK_MS);
    else if (!this.#hasNews) this.#planNext();
  }

  /** Leaves one of the lists. */
  #takeTurns(due: Set<Query>, now: number): void {
    const next = listInTurn([...due], this.#listReadAt, now);
    if (next !== undefined) this.#listReadAt = now;
    for (const query of due) if (isList(query) && query !== next) due.delete(query);
  }

  #isBehind(query: Query, now: number): boolean {
    const scope = query.meta?.live;
    const readAt = this.#begunAt.get(query) ?? answeredAt(query);
    if (this.#changes.isBehind(scope, readAt)) return true;
    // Half of it, since what was read last time was read a little later than its turn.
    return !this.#hasNews && scope !== undefined && now - readAt > PACE_WITHOUT_NEWS_MS / 2;
  }
}
