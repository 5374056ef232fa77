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

export class Replica<Change> {
  readonly #deps: ReplicaDeps;
  readonly #options: ReplicaOptions<Change>;
  /** The next read: changes, and the versions that came with them. */
  #changes = new Set<Change>();
  #versions = new Set<number>();
  /** The versions of the current read; undefined: there is none. */
  #reading: ReadonlySet<number> | undefined;
  /** The last acknowledged version. */
  #settled: number | undefined;
  #again: TimerHandle | undefined;
  /** Callers that wait for the next read, and for the current one. */
  #waiting: (() => void)[] = [];
  #served: readonly (() => void)[] = [];
  #isStopped = false;

  constructor(deps: ReplicaDeps, options: ReplicaOptions<Change>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Resolves when these changes are applied; rejects when the rows cannot be read. */
  async start(changes: readonly Change[]): Promise<void> {
    // Changes during a read are read after it.
    this.#reading = new Set();
    const take = await this.#options.read(new Set(changes));
    take();
    this.#reading = undefined;
    this.#begin();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#again);
  }

  /** The rows have changed: the owner waits for this version. */
  changed(version: number, changes: readonly Change[]): void {
    if (this.#reading?.has(version)) return;
    if (version === this.#settled || changes.length === 0) {
      this.#settle(version);
      return;
    }
    this.#versions.add(version);
    this.reread(changes);
  }

  /** Resolves when these changes are applied, however often the read fails first. */
  readAnew(changes: readonly Change[]): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.reread(changes);
    });
  }

  /** They may have changed, and no one waits. */
  reread(changes: readonly Change[]): void {
    for (const change of changes) this.#changes.add(change);
    this.#begin();
  }

  #begin(): void {
    if (this.#reading !== undefined || this.#isStopped || this.#changes.size === 0) return;
    const [changes, versions] = [this.#changes, this.#versions];
    this.#changes = new Set();
    this.#versions = new Set();
    this.#reading = versions;
    this.#served = [...this.#served, ...this.#waiting];
    this.#waiting = [];
    const { schedule, clock } = this.#deps;
    this.#options.read(changes).then(
      (take) =>
        schedule(() => {
          take();
          this.#reading = undefined;
          for (const version of versions) this.#settle(version);
          for (const then of this.#served) then();
          this.#served = [];
          this.#begin();
        }),
      (error: unknown) => {
        this.#options.failed(error);
        this.#again = clock.setTimeout(
          () => schedule(() => this.#retry(changes, versions)),
          AGAIN_MS,
        );
      },
    );
  }

  #retry(changes: ReadonlySet<Change>, versions: ReadonlySet<number>): void {
    this.#reading = undefined;
    for (const version of versions) this.#versions.add(version);
    this.reread([...changes]);
  }

  #settle(version: number): void {
    this.#settled = version;
    this.#options.settled(version);
  }
}
