/**
 * How a shard keeps what it knows by heart of rows that another one owns (`barrier.ts` is the other side):
 * it reads them when it is told that they have changed, one read at a time, and says which versions it
 * knows. Rows decide; messages are only hints to read.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';

export type ToldRowsDeps = Pick<Kernel, 'clock' | 'schedule'>;

export interface ToldRowsOptions<Word> {
  /** @param words what has changed @returns what takes over what was read */
  readonly read: (words: ReadonlySet<Word>) => Promise<() => void>;
  /** Logs that the rows could not be read, and are tried again. */
  readonly failed: (error: unknown) => void;
  /** Tells the owner, who waits for it, that what was told with this version is known. */
  readonly settled: (version: number) => void;
}

/** How soon rows that could not be read are asked for again. */
const AGAIN_MS = 1_000;

export class ToldRows<Word> {
  readonly #deps: ToldRowsDeps;
  readonly #options: ToldRowsOptions<Word>;
  /** What the next read is for: words, and the versions that came with them. */
  #words = new Set<Word>();
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

  constructor(deps: ToldRowsDeps, options: ToldRowsOptions<Word>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Resolves when what these words stand for is known; rejects when the rows cannot be read. */
  async start(words: readonly Word[]): Promise<void> {
    // What changes meanwhile is read behind it.
    this.#reading = new Set();
    const take = await this.#options.read(new Set(words));
    take();
    this.#reading = undefined;
    this.#begin();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#again);
  }

  /** The rows have changed: the owner waits for this version. */
  told(version: number, words: readonly Word[]): void {
    if (this.#reading?.has(version)) return;
    if (version === this.#settled || words.length === 0) {
      this.#settle(version);
      return;
    }
    this.#versions.add(version);
    this.reread(words);
  }

  /** Resolves when what these words stand for was read anew, however often that fails first. */
  readAnew(words: readonly Word[]): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.reread(words);
    });
  }

  /** They may have changed, and nobody waits. */
  reread(words: readonly Word[]): void {
    for (const word of words) this.#words.add(word);
    this.#begin();
  }

  #begin(): void {
    if (this.#reading !== undefined || this.#isStopped || this.#words.size === 0) return;
    const [words, versions] = [this.#words, this.#versions];
    this.#words = new Set();
    this.#versions = new Set();
    this.#reading = versions;
    this.#served = [...this.#served, ...this.#waiting];
    this.#waiting = [];
    const { schedule, clock } = this.#deps;
    this.#options.read(words).then(
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
          () => schedule(() => this.#retry(words, versions)),
          AGAIN_MS,
        );
      },
    );
  }

  #retry(words: ReadonlySet<Word>, versions: ReadonlySet<number>): void {
    this.#reading = undefined;
    for (const version of versions) this.#versions.add(version);
    this.reread([...words]);
  }

  #settle(version: number): void {
    this.#settled = version;
    this.#options.settled(version);
  }
}
