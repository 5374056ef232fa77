/**
 * Moves the time of a server that a test has started with `--manual-clock`. The test asks over the channel between the
 * two processes, which only the parent of the server has; no request can move the time.
 *
 * 1. The next time at which anything is due is read from the rows, since every deadline has one.
 * 2. All clocks are set to it, and then the server is awaited until no row of a due deadline is left.
 * 3. When nothing more is due until the target, the clocks are set to the target.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { OpenPolls } from '../../actors/queue/core/statistics.js';
import type { ShardClient } from '../../actors/shard/client.js';
import { OPEN_WORK, TRIES } from '../../actors/shard/due-times.js';
import type { Supervisor } from '../../actors/shard/supervisor.js';
import type { ManualClock } from '../base/manual-clock.js';
import { realClock } from '../base/real-clock.js';
import { isoTime, type UnixMs } from '../base/time.js';
import { createPool } from '../db/pool.js';

export interface ManualTimeDeps {
  readonly clock: ManualClock;
  readonly connectionString: string;
  readonly supervisor: Pick<Supervisor, 'isIdle' | 'setClock'>;
  readonly client: Pick<ShardClient, 'ask' | 'shards'>;
  /** When the silence of a worker is noticed at the latest. */
  readonly claimMs: number;
}

/** What the test sends, and what it gets. */
export interface TimeOrder {
  readonly order: number;
  readonly advanceMs: number;
}
export type TimeAnswer =
  | { readonly order: number; readonly now: UnixMs }
  | { readonly order: number; readonly error: string };

/** In real time: for everything that is due at one time. */
const DUE_PATIENCE_MS = 20_000;
/** In real time: for each claim of a worker, and for each task that a worker is about to get. A test may hold one forever. */
const TASK_PATIENCE_MS = 1_000;
const LOOK_MS = 5;
/** Looks in a row that must find nothing: a hint or a poll may be on its way. */
const CALM_LOOKS = 3;

/** After so many times that something was due, it is checked whether a step or a task is only tried again and again. */
const TIMES_PER_CHECK = 250;
/** Fewer say little about the time to come. A long try of a worker endpoint has dozens of heartbeats. */
const TRIES_PER_CHECK = 10;
/** While no time passes: a loop that is meant to end has fewer, and their number is reached within seconds. */
const TRIES_AT_ONCE_MAX = 250;
const LOOKS_PER_CHECK = 25;
/** Some minutes of real time. With the default backoff a step is tried 1,440 times a day. */
const TRIES_MAX = 10_000;

interface Due {
  readonly what: string;
  /** The first deadline that has passed. */
  readonly first: string | null;
  /** The first that has not. */
  readonly next: string | null;
}

interface OpenTask {
  readonly id: string;
  readonly handler_name: string;
  /** Number of claims so far. */
  readonly claim_epoch: number;
  readonly is_claimed: boolean;
}

interface OpenWork {
  readonly due: readonly Due[];
  readonly tasks: readonly OpenTask[];
}

interface Tried {
  /** The step or the task. */
  readonly what: string;
  readonly times: number;
}
/** By step or task. */
type Tries = ReadonlyMap<string, Tried>;
const NONE: Tries = new Map();

export class ManualTime {
  readonly #deps: ManualTimeDeps;
  readonly #pool: ReturnType<typeof createPool>;
  /** In real time, by handler: when a worker has last polled for it or had a task of it. */
  readonly #servedAt = new Map<string, number>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: ManualTimeDeps) {
    this.#deps = deps;
    const { connectionString } = deps;
    this.#pool = createPool({
      connectionString,
      applicationName: 'manual time',
      connectionsMax: 1,
      onError: () => undefined,
    });
  }

  /** Advances one after the other. Resolves when everything due has been done. */
  advance(ms: number): Promise<UnixMs> {
    const advanced = this.#queue.then(() => this.#advance(ms));
    this.#queue = advanced.catch(() => undefined);
    return advanced;
  }

  async stop(): Promise<void> {
    await this.#pool.end();
  }

  async #advance(ms: number): Promise<UnixMs> {
    const { clock } = this.#deps;
    const target = clock.now() + ms;
    const patience = new Map<string, number>();
    await this.#settle(patience);
    let before = await this.#tries();
    let since = clock.now();
    for (let times = 1; clock.now() < target; times += 1) {
      const next = (await this.#openWork()).due.flatMap((due) =>
        due.next === null ? [] : Date.parse(due.next),
      );
      this.#set(Math.min(target, ...next));
      await this.#settle(patience);
      if (times % TIMES_PER_CHECK > 0) continue;
      before = await this.#expectEnd(target, since, before);
      since = clock.now();
    }
    return clock.now();
  }

  #set(at: UnixMs): void {
    const { clock, supervisor } = this.#deps;
    supervisor.setClock(at);
    clock.setOffset(at);
  }

  /** @throws Error that names what is due and does not get done */
  async #settle(patience: Map<string, number>): Promise<void> {
    const until = realClock.monotonic() + DUE_PATIENCE_MS;
    let before: Tries | undefined;
    for (let calm = 0, looks = 1; calm < CALM_LOOKS; calm += 1, looks += 1) {
      const [{ due, tasks }, isIdle] = await Promise.all([
        this.#openWork(),
        this.#deps.supervisor.isIdle(),
        this.#noteWorkers(),
      ]);
      const overdue = due.filter(({ first }) => first !== null);
      const isCalm = overdue.length === 0 && isIdle;
      if (!isCalm || this.#awaitsWorkers(tasks, patience)) calm = -1;
      if (realClock.monotonic() > until) {
        const what = overdue.map((one) => `${one.what}, due at ${one.first}`).join('; ');
        const [most] = mostTried(before ?? NONE, await this.#tries());
        const often = most === undefined ? '' : `; ${most.text}`;
        throw new Error(
          `it is ${this.#time}, and this is not done: ${what || 'work of the server'}${often}`,
        );
      }
      if (looks % LOOKS_PER_CHECK === 0) before = await this.#expectTime(before);
      await pause(LOOK_MS);
    }
  }

  /** @param before of the first check @throws Error if a step or a task is tried on and on while no time passes */
  async #expectTime(before: Tries | undefined): Promise<Tries> {
    const tries = await this.#tries();
    const [most] = before === undefined ? [] : mostTried(before, tries);
    if (most === undefined || most.times <= TRIES_AT_ONCE_MAX) return before ?? tries;
    throw new Error(
      `it is ${this.#time}, and no time passes: ${most.text}. Limit its retry by max_attempts, or let it ` +
        'wait by initial_backoff, or repair its worker',
    );
  }

  /** @throws Error if a step or a task would be tried too often until the target */
  async #expectEnd(target: UnixMs, since: UnixMs, before: Tries): Promise<Tries> {
    const now = this.#deps.clock.now();
    const tries = await this.#tries();
    const [most] = mostTried(before, tries);
    if (most === undefined || most.times < TRIES_PER_CHECK) return tries;
    if ((most.times * (target - now)) / Math.max(1, now - since) <= TRIES_MAX) return tries;
    throw new Error(
      `it is ${this.#time}: ${most.text}, and would be tried more than ${TRIES_MAX} times until ` +
        `${isoTime(target)}. Limit its retry by max_attempts, let it wait longer, or repair its worker`,
    );
  }

  get #time(): string {
    return isoTime(this.#deps.clock.now());
  }

  async #tries(): Promise<Tries> {
    const { rows } = await this.#pool.query<Tried>(TRIES);
    return new Map(rows.map((row) => [row.what, row]));
  }

  async #openWork(): Promise<OpenWork> {
    const { clock, claimMs } = this.#deps;
    const values = [isoTime(clock.now()), claimMs];
    // Named, so that it is planned once: it is asked some times for each time at which something is due.
    const query = { name: 'open_work', text: OPEN_WORK, values };
    const { rows } = await this.#pool.query<{ due: string; tasks: string }>(query);
    const { due, tasks } = rows[0]!;
    return { due: JSON.parse(due), tasks: JSON.parse(tasks) };
  }

  /** Whether a worker has a task, or is about to poll for one that waits, and has not had its time. */
  #awaitsWorkers(tasks: readonly OpenTask[], patience: Map<string, number>): boolean {
    const now = realClock.monotonic();
    const isFresh = (since: number | undefined) =>
      since !== undefined && now - since < TASK_PATIENCE_MS;
    const awaited = tasks.filter(({ id, handler_name: handler, claim_epoch, is_claimed }) => {
      if (is_claimed) this.#servedAt.set(handler, now);
      if (!isFresh(this.#servedAt.get(handler))) return false;
      const key = is_claimed ? `${id} ${claim_epoch}` : id;
      if (!patience.has(key)) patience.set(key, now);
      return isFresh(patience.get(key));
    });
    return awaited.length > 0;
  }

  /** A worker that has reported a result polls again a little later. */
  async #noteWorkers(): Promise<void> {
    const handlers = await this.#polledHandlers();
    for (const handler of handlers) this.#servedAt.set(handler, realClock.monotonic());
  }

  async #polledHandlers(): Promise<ReadonlySet<string>> {
    const { client } = this.#deps;
    const asked = Array.from({ length: client.shards }, async (_, shard) => {
      const { body } = await client.ask(shard, 'queues.openPolls', '', '', undefined);
      return (JSON.parse(body) as OpenPolls[]).map(({ handler }) => handler);
    });
    return new Set((await Promise.all(asked)).flat());
  }
}

/** What has been tried since, first the one with most tries. */
function mostTried(before: Tries, now: Tries) {
  return [...now]
    .map(([key, { what, times }]) => ({
      times: times - (before.get(key)?.times ?? 1),
      text: `${what} has been tried ${times} times`,
    }))
    .filter(({ times }) => times > 0)
    .sort((a, b) => b.times - a.times);
}

/** Carries out the orders of the parent process. */
export function followOrders(time: Pick<ManualTime, 'advance'>): { stop(): void } {
  const onMessage = ({ order, advanceMs }: TimeOrder) => {
    const send = (answer: TimeAnswer) => process.send?.(answer);
    time.advance(advanceMs).then(
      (now) => send({ order, now }),
      (error: unknown) => send({ order, error: (error as Error).message }),
    );
  };
  process.on('message', onMessage);
  return { stop: () => process.off('message', onMessage) };
}
