/**
 * A shard's replica of rows that another shard owns (`publisher.ts`). When it is notified of a change, it reads the
 * rows, one read at a time, and acknowledges the version. Rows decide; messages are only hints to read.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';

export type ReplicaDeps = Pick<Kernel, 'clock' | 'schedule'>;

export interface ReplicaOptions<Change> {
  /** Resolves to a function that applies the rows. */
  readonly read: (changes: ReadonlySet<Change>) => Promise<() => void>;
  /** Called when the rows could not be read; the read is retried. */
  readonly failed: (error: unknown) => void;
  /** Acknowledges that the changes sent with this version are applied. */
  readonly settled: (version: number) => void;
}

const RETRY_MS = 1_000;
/** Of the first read, on which the start of the engine waits. */
const START_TRIES = 3;

class Reading<Change> {
  readonly changes = new Set<Change>();
  readonly versions = new Set<number>();
  readonly waiting: (() => void)[] = [];
}

export class Replica<Change> {
  readonly #deps: ReplicaDeps;
  readonly #options: ReplicaOptions<Change>;
  #next = new Reading<Change>();
  /** The read in progress, or the failed one until its retry. */
  #current: Reading<Change> | undefined;
  #settled: number | undefined;
  #again: TimerHandle | undefined;
  #isStopped = false;

  constructor(deps: ReplicaDeps, options: ReplicaOptions<Change>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Rejects when the rows cannot be read, also after some time. */
  async start(changes: readonly Change[]): Promise<void> {
    // Changes during a read are read after it.
    this.#current = new Reading();
    const take = await this.#firstRead(new Set(changes));
    take();
    this.#current = undefined;
    this.#begin();
  }

  async #firstRead(changes: ReadonlySet<Change>): Promise<() => void> {
    const { read, failed } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        return await read(changes);
      } catch (error) {
        if (tries === START_TRIES || this.#isStopped) throw error;
        failed(error);
        await new Promise<void>((resolve) => {
          this.#again = this.#deps.clock.setTimeout(resolve, RETRY_MS);
        });
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#again);
  }

  /** The owner waits until this version is acknowledged. */
  changed(version: number, changes: readonly Change[]): void {
    if (this.#current?.versions.has(version)) return;
    if (version === this.#settled || changes.length === 0) this.#settle(version);
    else {
      this.#next.versions.add(version);
      this.reread(changes);
    }
  }

  /** Resolves when the changes are applied, however often the read fails first. */
  readAnew(changes: readonly Change[]): Promise<void> {
    return new Promise((resolve) => {
      this.#next.waiting.push(resolve);
      this.reread(changes);
    });
  }

  /** The rows may have changed; no one waits. */
  reread(changes: Iterable<Change>): void {
    for (const change of changes) this.#next.changes.add(change);
    this.#begin();
  }

  #begin(): void {
    if (this.#current !== undefined || this.#isStopped || this.#next.changes.size === 0) return;
    const reading = this.#next;
    this.#next = new Reading();
    this.#current = reading;
    const { schedule, clock } = this.#deps;
    this.#options.read(reading.changes).then(
      (take) =>
        schedule(() => {
          take();
          this.#current = undefined;
          for (const version of reading.versions) this.#settle(version);
          for (const then of reading.waiting) then();
          this.#begin();
        }),
      (error: unknown) => {
        this.#options.failed(error);
        this.#again = clock.setTimeout(() => schedule(() => this.#retry(reading)), RETRY_MS);
      },
    );
  }

  #retry({ changes, versions, waiting }: Reading<Change>): void {
    this.#current = undefined;
    for (const version of versions) this.#next.versions.add(version);
    this.#next.waiting.unshift(...waiting);
    this.reread(changes);
  }

  #settle(version: number): void {
    this.#settled = version;
    this.#options.settled(version);
  }
}
