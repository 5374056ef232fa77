/**
 * By which the front thread knows that what it was told of an instance still holds, without asking: a
 * table of counters in memory that all threads of the engine share and that outlives each of them.
 *
 * - Whoever is about to commit a change of an instance raises its counter before the unit leaves the
 *   thread: nobody, by whatever way, can have heard of the change before.
 * - An answer is stamped with the counter as it stood before the answer was made, in the one thread that
 *   raises it for this instance. While the counter stands there, no later change is committed or under way.
 * - Instances share counters: one that is raised for another costs a question to the shard, no more.
 *
 * docs/architecture.md has the argument as a whole.
 */

/** 256 KiB. Of 1,000 instances that are read, one in 66 shares its counter with another of them. */
const COUNTERS = 0x1_0000;

/** The counter behind the others is for what changes instances that nobody names. */
const OF_ALL = COUNTERS;

const VERSIONS = 0x1_0000_0000;

export class Versions {
  readonly memory: SharedArrayBuffer;
  readonly #counters: Uint32Array;

  /** @param memory of the same table in another thread */
  constructor(memory = new SharedArrayBuffer((COUNTERS + 1) * Uint32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#counters = new Uint32Array(memory);
  }

  /** What was told of the instance so far holds no more. */
  raise(instance: string): void {
    Atomics.add(this.#counters, counterOf(instance), 1);
  }

  /** The same of all instances. */
  raiseAll(): void {
    Atomics.add(this.#counters, OF_ALL, 1);
  }

  /** To be taken before the answer is made that it is for. */
  stampOf(instance: string): number {
    return this.#stampAt(counterOf(instance));
  }

  isCurrent(stamp: number): boolean {
    return stamp === this.#stampAt(Math.floor(stamp / VERSIONS));
  }

  /** Its place and its version; as both counters only grow, their sum is the same only if both are. */
  #stampAt(counter: number): number {
    const own = Atomics.load(this.#counters, counter);
    const ofAll = Atomics.load(this.#counters, OF_ALL);
    return counter * VERSIONS + ((own + ofAll) >>> 0);
  }
}

/** Of bits that are random in ids of every kind, and that do not lead to the shard. */
function counterOf(id: string): number {
  return Number.parseInt(id.slice(24, 28), 16);
}
