/**
 * What a shard keeps of rows that another one owns (`publisher.ts` is the other side). It reads them when it is
 * told that they have changed, one read at a time, and says which versions it has. Rows decide: messages are only
 * hints to read.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';

export type ReplicaDeps = Pick<Kernel, 'clock' | 'schedule'>;

export interface ReplicaOptions<Change> {
  /** @param changes what has changed @returns what takes over what was read */
  readonly read: (changes: ReadonlySet<Change>) => Promise<() => void>;
  /** Logs that the rows could not be read, and are tried again. */
  readonly failed: (error: unknown) => void;
  /** Tells the owner, who waits for it, that what was told with this version is known. */
  readonly settled: (version: number) => void;
}

/** How soon rows that could not be read are asked for again. */
const AGAIN_MS = 1_000;

export class Replica<Change> {
  readonly #deps: ReplicaDeps;
  readonly #options: ReplicaOptions<Change>;
  /** What the next read is for: changes, and the versions that came with them. */
  #changes = new Set<Change>();
  #versions = new Set<number>();
  /** The versions that the read under way is for; undefined: there is none. */
  #reading: ReadonlySet<number> | undefined;
  /** The version that was settled last. */
  #settled: number | undefined;
  #again: TimerHandle | undefined;
  /** Who waits for the next read, and who for the one under way. */
  #waiting: (() => void)[] = [];
  #served: readonly (() => void)[] = [];
  #isStopped = false;

  constructor(deps: ReplicaDeps, options: ReplicaOptions<Change>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Resolves when what these changes stand for is known; rejects when the rows cannot be read. */
  async start(changes: readonly Change[]): Promise<void> {
    // What changes meanwhile is read behind it.
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

  /** Resolves when what these changes stand for was read anew, however often that fails first. */
  readAnew(changes: readonly Change[]): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.reread(changes);
    });
  }

  /** They may have changed, and nobody waits. */
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
