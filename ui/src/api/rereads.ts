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

  constructor(queries: QueryClient) {
    this.#queries = queries;
    this.#unsubscribe = queries.getQueryCache().subscribe((event) => {
      if (event.type !== 'updated') return;
      if (event.action.type === 'fetch') this.#begunAt.set(event.query, Date.now());
      if (event.action.type === 'error') this.#plan();
    });
    document.addEventListener('visibilitychange', this.#plan);
    this.#plan();
  }

  /** Whether changes are received. If not, everything is read again every few seconds. */
  setNews(hasNews: boolean): void {
    if (this.#hasNews === hasNews) return;
    this.#hasNews = hasNews;
    this.#stop();
    this.#plan();
  }

  note(instanceId: string): void {
    this.#changes.note(instanceId, Date.now());
    this.#plan();
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
    document.removeEventListener('visibilitychange', this.#plan);
    this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly #plan = (): void => {
    this.#timer ??= setTimeout(
      () => this.#refresh(),
      this.#hasNews ? LOOK_MS : PACE_WITHOUT_NEWS_MS,
    );
  };

  #refresh(): void {
    this.#timer = undefined;
    // A hidden page reads when it becomes visible.
    if (document.hidden) return;
    const now = Date.now();
    const due = new Set<Query>();
    let isMoreToCome = !this.#hasNews;
    for (const query of this.#queries.getQueryCache().findAll({ type: 'active' })) {
      const when = whenToRead(query, this.#isBehind(query), now);
      if (when === 'now') due.add(query);
      if (when !== 'never') isMoreToCome = true;
    }
    void this.#queries.invalidateQueries(
      { predicate: (query) => due.has(query) },
      { cancelRefetch: false },
    );
    if (isMoreToCome) this.#plan();
  }

  #isBehind(query: Query): boolean {
    const scope = query.meta?.live;
    if (!this.#hasNews) return scope !== undefined;
    return this.#changes.isBehind(scope, this.#begunAt.get(query) ?? answeredAt(query));
  }
}
