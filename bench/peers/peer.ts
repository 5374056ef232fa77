/**
 * The same work for every engine: jobs are created and completed for a while, and those that were completed meanwhile
 * are counted. Creating waits when too many jobs are open, so that no engine is measured with a backlog.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { Samples } from '../client/samples.js';

export type WorkName = 'created' | 'bulk' | 'rounds' | 'batches' | 'idle';

export interface Work {
  readonly name: WorkName;
  /** Connections that create one by one, and workers. */
  readonly at: number;
  readonly seconds: number;
}

export interface Where {
  /** Where packages of other engines are installed. */
  readonly folder: string;
  /** Of a new database; '' for engines that need none. */
  readonly databaseUrl: string;
  /** Of Redis, or of our server. */
  readonly port: number;
}

/** A job is created when the promise is kept, and done when `onDone` is called: both durable. */
export interface Peer {
  create(): Promise<unknown>;
  createMany(count: number): Promise<unknown>;
  /** Creates one, and waits until it is done. */
  createAndWait(): Promise<unknown>;
  /** Workers begin; they end with `close`. */
  work(onDone: (jobs: number) => void): Promise<void>;
  close(): Promise<void>;
}

/** Figures by column: `jobs/s`, of work `idle` `p50 ms`. */
export type Outcome = Readonly<Record<string, number>>;

export const BULK = 500;
export const BATCH = 50;
const BULK_CONNECTIONS = 4;
/** Jobs that may be open: enough for batches of every worker. */
const OPEN_MAX = 4_000;
const WARM_UP_SHARE = 0.3;
const IDLE_PAUSE_MS = 5;

export function measure(peer: Peer, work: Work): Promise<Outcome> {
  switch (work.name) {
    case 'created':
    case 'rounds':
      return flow(peer, work, work.at, 1, () => peer.create());
    case 'batches':
      return flow(peer, work, BULK_CONNECTIONS, BATCH, () => peer.createMany(BATCH));
    case 'bulk':
      return bulk(peer, work);
    case 'idle':
      return idle(peer, work);
  }
}

async function flow(
  peer: Peer,
  { seconds }: Work,
  creators: number,
  each: number,
  create: () => Promise<unknown>,
): Promise<Outcome> {
  const clock = new Window(seconds);
  let created = 0;
  let done = 0;
  let wake: (() => void)[] = [];
  await peer.work((jobs) => {
    done += jobs;
    clock.count(jobs);
    const waiting = wake;
    wake = [];
    for (const resume of waiting) resume();
  });
  const run = async () => {
    while (!clock.isOver) {
      if (created - done >= OPEN_MAX) {
        await Promise.race([new Promise<void>((resolve) => wake.push(resolve)), pause(100)]);
        continue;
      }
      created += each;
      await create();
    }
  };
  await Promise.all(Array.from({ length: creators }, run));
  return clock.outcome();
}

async function bulk(peer: Peer, { seconds }: Work): Promise<Outcome> {
  const clock = new Window(seconds);
  const run = async () => {
    while (!clock.isOver) {
      await peer.createMany(BULK);
      clock.count(BULK);
    }
  };
  await Promise.all(Array.from({ length: BULK_CONNECTIONS }, run));
  return clock.outcome();
}

async function idle(peer: Peer, { seconds }: Work): Promise<Outcome> {
  await peer.work(() => undefined);
  const clock = new Window(seconds);
  const samples = new Samples();
  while (!clock.isOver) {
    const startedAt = performance.now();
    await peer.createAndWait();
    if (clock.isCounting) samples.add(performance.now() - startedAt);
    // Idle is what comes between jobs, too.
    await pause(IDLE_PAUSE_MS);
  }
  return { 'p50 ms': samples.summary().p50 };
}

/** Counts what happens within the measured time, which begins behind the warm-up. */
class Window {
  readonly #from: number;
  readonly #to: number;
  #count = 0;

  constructor(seconds: number) {
    this.#from = performance.now() + seconds * WARM_UP_SHARE * 1_000;
    this.#to = this.#from + seconds * 1_000;
  }

  get isOver(): boolean {
    return performance.now() >= this.#to;
  }

  get isCounting(): boolean {
    const now = performance.now();
    return now >= this.#from && now < this.#to;
  }

  count(jobs: number): void {
    if (this.isCounting) this.#count += jobs;
  }

  outcome(): Outcome {
    return { 'jobs/s': (this.#count * 1_000) / (this.#to - this.#from) };
  }
}
