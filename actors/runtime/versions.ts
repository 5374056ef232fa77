/**
 * Lets the front thread validate cached replies about an instance without a message: counters in shared
 * memory that outlive every thread (docs/architecture.md).
 *
 * - Before a unit that changes an instance leaves the thread, its counter is raised, so no one has seen the
 *   change before.
 * - A reply is stamped with the counter, read before the reply is made and in the only thread that raises
 *   it. While the counter is unchanged, no later change is committed or in flight.
 * - Instances share counters: a change of another instance costs one message to the shard.
 */

/** 256 KiB. Of 1,000 instances that are read, one in 66 shares its counter with another. */
const COUNTERS = 0x1_0000;
/** The counter for changes of any instance. */
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

  raise(instance: string): void {
    Atomics.add(this.#counters, counterOf(instance), 1);
  }

  raiseAll(): void {
    Atomics.add(this.#counters, OF_ALL, 1);
  }

  /** Call before the reply is made. */
  stampOf(instance: string): number {
    return this.#stampAt(counterOf(instance));
  }

  isCurrent(stamp: number): boolean {
    return stamp === this.#stampAt(Math.floor(stamp / VERSIONS));
  }

  /** Index and version. Both counters only grow, so their sum is unchanged only if both are. */
  #stampAt(counter: number): number {
    const own = Atomics.load(this.#counters, counter);
    const ofAll = Atomics.load(this.#counters, OF_ALL);
    return counter * VERSIONS + ((own + ofAll) >>> 0);
  }
}

/** Uses bits that are random in ids of every kind and not used for routing. */
function counterOf(id: string): number {
  return Number.parseInt(id.slice(24, 28), 16);
}
