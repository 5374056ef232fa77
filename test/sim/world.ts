/**
 * The simulated machine: one virtual clock and one list of what happens when. Everything that would
 * take time on a real machine is an event with a latency that the seed draws, so the seed decides
 * what goes first; an event runs to its end before the next one. Two runs of a seed are the same run.
 */

import TinyQueue from 'tinyqueue';
import type { Clock, TimerHandle } from '../../src/base/clock.js';
import { createRandom, type Random } from '../chaos/random.js';

/** Random numbers are drawn from streams, so that one consumer's draws do not shift another's. */
export const STREAMS = { latency: 1, faults: 2, endpoints: 3, clients: 100, threads: 200 } as const;

/** Where the clock of every run begins: a Monday, so that business days are near. */
export const START_MS = Date.parse('2031-03-03T09:00:00.000Z');

/** One thread of one process. Its events are lost when it dies, and wait while it is busy. */
export class Thread {
  readonly name: string;
  isAlive = true;
  busyUntil = 0;
  #whenDead: (() => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  whenDead(then: () => void): void {
    this.#whenDead.push(then);
  }

  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const then of this.#whenDead.splice(0)) then();
  }
}

interface Event {
  at: number;
  /** Breaks ties, and keeps the order of what was sent over one port. */
  readonly order: number;
  readonly run: () => void;
  readonly thread: Thread | undefined;
  isCancelled: boolean;
}

/** A run that takes more events than this goes round in circles. */
const EVENTS_MAX = 200_000;

export interface WorldOptions {
  readonly trace?: Trace;
  /** Nothing takes time but what waits for a time. */
  readonly isInstant?: boolean;
}

/** Why the events ended. */
export type Ending = 'over' | 'idle' | 'endless';

export class World {
  readonly seed: number;
  readonly trace: Trace;
  /** Milliseconds, with fractions: latencies are shorter than one. */
  now: number = START_MS;
  readonly #random: Random;
  readonly #isInstant: boolean;
  readonly #events = new TinyQueue<Event>([], (a, b) => a.at - b.at || a.order - b.order);
  #order = 0;
  #streams: number = STREAMS.threads;
  eventCount = 0;

  constructor(seed: number, { trace = new Trace(), isInstant = false }: WorldOptions = {}) {
    this.seed = seed;
    this.trace = trace;
    this.#isInstant = isInstant;
    this.#random = createRandom(seed, STREAMS.latency);
  }

  /** A generator of its own for one more part of the run. */
  newRandom(): Random {
    this.#streams += 1;
    return createRandom(this.seed, this.#streams);
  }

  /** Something between the two, both in milliseconds; short times are more likely. */
  latency(min: number, max: number): number {
    if (this.#isInstant) return 0;
    const share = this.#random.next();
    return min + (max - min) * share * share;
  }

  at(time: number, run: () => void, thread?: Thread): TimerHandle {
    this.#order += 1;
    const event = { at: time, order: this.#order, run, thread, isCancelled: false };
    this.#events.push(event);
    return event;
  }

  /** After a short latency. */
  soon(run: () => void, thread?: Thread): void {
    this.at(this.now + this.latency(0.005, 0.2), run, thread);
  }

  sleep(ms: number, thread?: Thread): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, resolve, thread));
  }

  clockOf(thread: Thread): Clock {
    return {
      now: () => Math.floor(this.now),
      monotonic: () => this.now - START_MS,
      setTimeout: (fn, ms) => this.at(this.now + Math.max(0, ms), fn, thread),
      clearTimeout: (handle) => {
        if (handle !== undefined) (handle as Event).isCancelled = true;
      },
    };
  }

  note(text: string): void {
    this.trace.note(this.now, text);
  }

  /** Runs events in their order until `isOver`. Rejects with what an event throws. */
  run(isOver: () => boolean): Promise<Ending> {
    return new Promise((resolve, reject) => {
      const next = () => {
        try {
          const ending = isOver() ? 'over' : this.#runNext();
          // All promises that the event has settled are through before the next event begins.
          if (ending === undefined) setImmediate(next);
          else resolve(ending);
        } catch (error) {
          reject(error);
        }
      };
      next();
    });
  }

  #runNext(): Ending | undefined {
    for (;;) {
      const event = this.#events.pop();
      if (event === undefined) return 'idle';
      const { thread } = event;
      if (event.isCancelled || thread?.isAlive === false) continue;
      if (thread !== undefined && thread.busyUntil > event.at) {
        event.at = thread.busyUntil;
        this.#events.push(event);
        continue;
      }
      this.now = Math.max(this.now, event.at);
      this.eventCount += 1;
      if (this.eventCount > EVENTS_MAX) return 'endless';
      event.run();
      return undefined;
    }
  }
}

/** What happened, as a hash that tells two runs apart, and as lines when somebody wants to read. */
export class Trace {
  readonly lines: string[] | undefined;
  #hash = 0x811c9dc5;

  /** @param isKept whether the lines are kept */
  constructor(isKept = false) {
    this.lines = isKept ? [] : undefined;
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  note(at: number, text: string): void {
    let hash = this.#hash ^ Math.floor(at * 1_000);
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
    this.#hash = hash;
    this.lines?.push(`${((at - START_MS) / 1_000).toFixed(6).padStart(12)}  ${text}`);
  }
}
