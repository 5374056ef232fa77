/**
 * One concurrency key of one tenant: who holds its slots, and who is next, oldest instance first. A
 * slot is taken by a row in `permits` before the instance is told; that it is free again the instance
 * says, when it has ended, or is held back and nobody is at work for it. Each instance numbers its wishes, so that
 * whatever is late or comes twice is recognised.
 */

import { routeOf, shardOf } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Turn } from '../runtime/turn.js';
import type { PermitHolderRow, PermitWaiterRow } from './loads.js';
import { PERMIT } from './tables.js';

export interface Wish {
  readonly instance: string;
  readonly tenant: string;
  readonly number: number;
  /** Each instance is judged by its own limit. */
  readonly max: number;
  /** Of the instance. */
  readonly createdAt: UnixMs;
}

export interface KeyRows {
  readonly holders: readonly PermitHolderRow[];
  readonly waiters: readonly PermitWaiterRow[];
}

/** Instances that wait and are kept in memory; the others are read when these run out. */
export const WAITERS_MAX = 1_000;

export class ConcurrencyKey {
  readonly #id: string;
  readonly #shards: number;
  #tenant: string | undefined;
  /** By instance: the number of the wish that was granted. */
  readonly #holders = new Map<string, number>();
  /** In the order in which they are admitted. */
  #waiters: Wish[];
  /** Nobody waits beyond `#waiters`. */
  #isComplete: boolean;
  /** One that lost its slot wants another: the rows name it when the slot is free. */
  #isOneMissing = false;

  /** @param id from `concurrencyKeyId` */
  constructor(id: string, shards: number, { holders, waiters }: KeyRows) {
    this.#id = id;
    this.#shards = shards;
    // Rows of an instance that was removed name nobody.
    this.#tenant =
      [...holders, ...waiters].find((row) => row.tenant_id !== null)?.tenant_id ?? undefined;
    this.#waiters = waiters.map((row) => ({
      instance: row.instance_id,
      tenant: row.tenant_id ?? '',
      number: row.number,
      max: row.max_concurrency,
      createdAt: Date.parse(row.created_at),
    }));
    this.#isComplete = waiters.length < WAITERS_MAX;
  }

  /** Repeats what was not heard, of those who have a slot by the rows. */
  settle(turn: Turn, { holders }: KeyRows): void {
    for (const { instance_id: instance, number, wanted, is_awaited } of holders) {
      this.#holders.set(instance, number);
      // It left, and that was not heard.
      if (wanted !== number) {
        this.#free(turn, instance);
        this.#isOneMissing ||= wanted !== null;
      }
      // It has its slot, and may not have heard of it.
      else if (is_awaited) this.#tellGranted(turn, instance, number);
    }
  }

  get isIdle(): boolean {
    return this.#holders.size === 0 && this.#waiters.length === 0;
  }

  /** Admits from the front only: nobody is overtaken by a younger one with a higher limit. */
  flush(turn: Turn): 'done' | 'reload' {
    if (this.#isOneMissing) return 'reload';
    for (;;) {
      const next = this.#waiters[0];
      if (next === undefined || this.#holders.size >= next.max) break;
      this.#waiters.shift();
      this.#grant(turn, next);
    }
    return this.#waiters.length === 0 && !this.#isComplete ? 'reload' : 'done';
  }

  get tenant(): string | undefined {
    return this.#tenant;
  }

  wanted(turn: Turn, wish: Wish): void {
    this.#tenant ??= wish.tenant;
    const held = this.#holders.get(wish.instance);
    if (held !== undefined) {
      if (held === wish.number) this.#tellGranted(turn, wish.instance, held);
      if (held >= wish.number) return;
      this.#free(turn, wish.instance);
    }
    const known = this.#waiters.findIndex(({ instance }) => instance === wish.instance);
    if (known >= 0) {
      if ((this.#waiters[known] as Wish).number < wish.number) this.#waiters[known] = wish;
      return;
    }
    const place = this.#placeOf(wish);
    if (place === this.#waiters.length && !this.#isComplete) return;
    this.#waiters.splice(place, 0, wish);
    if (this.#waiters.length > 2 * WAITERS_MAX) {
      this.#waiters.length = WAITERS_MAX;
      this.#isComplete = false;
    }
  }

  /** The instance does not want that slot any more, or gives it back. */
  left(turn: Turn, instance: string, number: number): void {
    if (this.#holders.get(instance) === number) {
      this.#free(turn, instance);
      return;
    }
    const known = this.#waiters.findIndex((wish) => wish.instance === instance);
    if (known >= 0 && (this.#waiters[known] as Wish).number <= number) {
      this.#waiters.splice(known, 1);
    }
  }

  /** Mostly the end: those who come are mostly younger than those who wait. */
  #placeOf(wish: Wish): number {
    let place = this.#waiters.length;
    while (place > 0 && isOlder(wish, this.#waiters[place - 1] as Wish)) place -= 1;
    return place;
  }

  #free(turn: Turn, instance: string): void {
    this.#holders.delete(instance);
    turn.put(PERMIT.clear, instance, { instance_id: instance });
  }

  #grant(turn: Turn, { instance, number }: Wish): void {
    this.#holders.set(instance, number);
    turn.put(PERMIT.set, instance, { instance_id: instance, key_id: this.#id, number });
    this.#tellGranted(turn, instance, number);
  }

  #tellGranted(turn: Turn, instance: string, number: number): void {
    const message = { kind: 'permit.granted', instance, number } as const;
    turn.effects.push({ kind: 'peer', shard: shardOf(routeOf(instance), this.#shards), message });
  }
}

function isOlder(a: Wish, b: Wish): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.instance < b.instance);
}
