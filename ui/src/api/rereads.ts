/**
 * Has the reads of the page made again that are behind. However many changes come, each is made at most once in its
 * pace; one that is under way is left to end, and one that failed rests.
 */

import type { Query, QueryClient, QueryState } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { Changes } from './changes.ts';
import { isFinal } from './engine-error.ts';

/** What a query may say of itself in its `meta`. */
export interface LiveMeta extends Record<string, unknown> {
  /** Read again after changes of this instance only, or of any (`'all'`). */
  readonly live?: 'all' | string;
  /** How long it rests at least between two reads, in milliseconds: longer for what costs the engine more. */
  readonly paceMs?: number;
}

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: LiveMeta;
  }
}

/** How soon after a change it is looked what is behind. */
const LOOK_MS = 250;
const PACE_MS = 1000;
/** Of what shows one instance: what is looked at is a second old at most. */
const PACE_OF_ONE_MS = 500;
/** Without news of changes. */
const PACE_WITHOUT_NEWS_MS = 5000;
const REST_AFTER_FAILURE_MS = 10_000;

/** What is looked at of a query. */
export interface Read {
  readonly meta?: LiveMeta | undefined;
  readonly state: Pick<
    QueryState<unknown, unknown>,
    'status' | 'fetchStatus' | 'dataUpdatedAt' | 'errorUpdatedAt' | 'error'
  >;
}

const answeredAt = ({ state }: Read) => Math.max(state.dataUpdatedAt, state.errorUpdatedAt);

/**
 * When to make a read again.
 *
 * @param isBehind whether what it shows may have changed
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
  /** An answer is as old as its question. */
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

  /** Changes are told from now on, or no longer: then everything is looked at again every few seconds. */
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

  /** Changes may have been missed: whatever is on the screen is read again, also what failed for good. */
  readAll(): void {
    void this.#queries.invalidateQueries();
  }

  /** What could not be read may be answered now. */
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
    // A page that nobody looks at reads when it is looked at again.
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
