/**
 * A shard's replica of rows that another shard owns (`publisher.ts`). It reads the rows when it is notified
 * of a change, one read at a time, and acknowledges the version. Rows decide: messages are only hints to
 * read.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';

export type ReplicaDeps = Pick<Kernel, 'clock' | 'schedule'>;

export interface ReplicaOptions<Change> {
  /** @param changes what has changed @returns a function that applies what was read */
  readonly read: (changes: ReadonlySet<Change>) => Promise<() => void>;
  /** Logs that the rows could not be read, and the read is retried. */
  readonly failed: (error: unknown) => void;
  /** Acknowledges that the changes sent with this version are applied. */
  readonly settled: (version: number) => void;
}

/** How soon a failed read is retried. */
const AGAIN_MS = 1_000;

/** One read of the rows. */
class Reading<Change> {
  readonly changes = new Set<Change>();
  /** The versions that came with the changes. */
  readonly versions = new Set<number>();
  /** Callers that wait for it. */
  readonly waiting: (() => void)[] = [];
}

export class Replica<Change> {
  readonly #deps: ReplicaDeps;
  readonly #options: ReplicaOptions<Change>;
  #next = new Reading<Change>();
  /** The read in progress, or the failed one until its retry. */
  #current: Reading<Change> | undefined;
  /** The last acknowledged version. */
  #settled: number | undefined;
  #again: TimerHandle | undefined;
  #isStopped = false;

  constructor(deps: ReplicaDeps, options: ReplicaOptions<Change>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Resolves when these changes are applied; rejects when the rows cannot be read. */
  async start(changes: readonly Change[]): Promise<void> {
    // Changes during a read are read after it.
    this.#current = new Reading();
    const take = await this.#options.read(new Set(changes));
    take();
    this.#current = undefined;
    this.#begin();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#again);
  }

  /** The rows have changed: the owner waits for this version. */
  changed(version: number, changes: readonly Change[]): void {
    if (this.#current?.versions.has(version)) return;
    if (version === this.#settled || changes.length === 0) {
      this.#settle(version);
      return;
    }
    this.#next.versions.add(version);
    this.reread(changes);
  }

  /** Resolves when these changes are applied, however often the read fails first. */
  readAnew(changes: readonly Change[]): Promise<void> {
    return new Promise((resolve) => {
      this.#next.waiting.push(resolve);
      this.reread(changes);
    });
  }

  /** They may have changed, and no one waits. */
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
        this.#again = clock.setTimeout(() => schedule(() => this.#retry(reading)), AGAIN_MS);
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
