/**
 * Behind it every shard knows what has changed in rows that one owner writes and every shard keeps in
 * memory: a change is told to all of them, and each answers when it has taken it in. So a caller who is
 * answered behind the barrier meets nobody who knows only of before. `told-rows.ts` is the other side.
 *
 * A word may be lost, and a shard may die before its answer: it is told again every second, and its
 * successor at once. What a shard has settled stays so when it dies: its successor reads newer rows.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';
import type { PeerMessage } from './protocol.js';

export type BarrierDeps = Pick<Kernel, 'shards' | 'clock' | 'now' | 'release'>;

interface Waiting<Word> {
  readonly version: number;
  readonly word: Word;
  readonly pass: () => void;
}

/** How soon a shard that has not answered is told again. */
const AGAIN_MS = 1_000;

export class Barrier<Word = void> {
  readonly #deps: BarrierDeps;
  readonly #message: (version: number, words: readonly Word[]) => PeerMessage;
  /** Above those of an earlier life of its owner, which began at its own time. */
  #version = 0;
  /** By shard: up to which version it has settled. */
  readonly #settled: number[];
  #waiting: Waiting<Word>[] = [];
  #again: TimerHandle | undefined;

  /** @param message what a shard is told: the latest version, and the words that it has not settled */
  constructor(
    deps: BarrierDeps,
    message: (version: number, words: readonly Word[]) => PeerMessage,
  ) {
    this.#deps = deps;
    this.#message = message;
    this.#settled = Array.from({ length: deps.shards }, () => 0);
  }

  /**
   * Called when the change is committed; resolves when every shard knows of it.
   *
   * @param word says what has changed
   */
  pass(word: Word): Promise<void> {
    this.#version = Math.max(this.#version + 1, Math.floor(this.#deps.now()));
    const version = this.#version;
    return new Promise((pass) => {
      this.#waiting.push({ version, word, pass });
      this.#settled.forEach((_settled, shard) => {
        this.#tell(shard);
      });
      this.#again ??= this.#tellLater();
    });
  }

  /** A shard knows what was committed when it was told of this version, and of all before. */
  settled(version: number, shard: number): void {
    if (version > (this.#settled[shard] ?? version)) this.#settled[shard] = version;
    const reached = Math.min(...this.#settled);
    const passing = this.#waiting.filter((waiting) => waiting.version <= reached);
    if (passing.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => waiting.version > reached);
    for (const { pass } of passing) pass();
  }

  /** It was replaced, and its predecessor may not have heard. */
  shardBack(shard: number): void {
    if (!this.#hasSettled(shard)) this.#tell(shard);
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#again);
  }

  #hasSettled(shard: number): boolean {
    return this.#settled[shard] === this.#version;
  }

  #tellLater(): TimerHandle {
    return this.#deps.clock.setTimeout(() => {
      const isPassed = this.#settled.every((_settled, shard) => this.#hasSettled(shard));
      this.#again = isPassed ? undefined : this.#tellLater();
      this.#settled.forEach((_settled, shard) => {
        this.shardBack(shard);
      });
    }, AGAIN_MS);
  }

  #tell(shard: number): void {
    const settled = this.#settled[shard] ?? 0;
    const words = this.#waiting.flatMap(({ version, word }) => (version > settled ? [word] : []));
    const message = this.#message(this.#version, words);
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}
