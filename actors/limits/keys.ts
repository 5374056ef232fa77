/** The concurrency keys of one shard. The first request for a slot creates the actor of a key. */

import { routeOf, shardOf } from '../../src/base/ids.js';
import type { Kernel } from '../runtime/kernel.js';
import { KeyActors, type KeyActorsDeps } from '../runtime/key-actors.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import type { LimitLoads, PermitHolderRow, PermitWaiterRow } from './loads.js';
import { PERMIT } from './tables.js';

type KeysDeps = KeyActorsDeps & Pick<Kernel<LimitLoads>, 'loader' | 'shards'>;

export class Keys extends KeyActors<ConcurrencyKey, KeyRows> implements Room {
  readonly messages = {
    'permit.wanted': (request) =>
      this.tell(request.key, 'wanted', (key, turn) => key.wanted(turn, request)),
    'permit.left': ({ key: id, instance, number }) =>
      this.tell(id, 'left', (key, turn) => key.left(turn, instance, number)),
  } satisfies Messages;

  constructor(deps: KeysDeps) {
    const { loader, shards } = deps;
    super(
      {
        noun: 'concurrency key',
        prefix: 'permits',
        residentMax: 10_000,
        everyMs: 5_000,
        read: async (id) => {
          // Holders first, so that a slot granted in between appears with the next read.
          const holders = await loader.permitHolders(id);
          return { holders, waiters: await loader.permitWaiters(id, WAITERS_MAX) };
        },
        restore: (id, rows) => new ConcurrencyKey(id, shards, rows),
        page: (after, limit) => loader.permitKeys(after, limit),
      },
      deps,
    );
  }

  /** Messages to the restarted shard may be lost. */
  peerBack(): void {
    this.start();
  }
}

/** Each instance has a `max` of its own, and numbers its requests. */
type SlotRequest = Extract<PeerMessage, { kind: 'permit.wanted' }>;

interface KeyRows {
  readonly holders: readonly PermitHolderRow[];
  readonly waiters: readonly PermitWaiterRow[];
}

/** Waiting instances in memory; more are read when these run out. */
const WAITERS_MAX = 1_000;

/**
 * One concurrency key of one tenant: the holders of its slots, and the waiting instances, oldest first. The row of a
 * slot is committed before its instance is notified. The instance releases the slot when it has ended, or is paused
 * without a running attempt. Request numbers reveal late and repeated messages.
 */
class ConcurrencyKey {
  readonly #id: string;
  readonly #shards: number;
  tenant: string | undefined;
  /** The numbers of granted requests, by instance. */
  readonly #holders = new Map<string, number>();
  /** In the order of admission. */
  #waiters: SlotRequest[];
  /** No instance waits beyond `#waiters`. */
  #isComplete: boolean;
  /** A holder with a newer request lost its slot. The next read returns the request. */
  #isOneMissing = false;

  constructor(id: string, shards: number, { holders, waiters }: KeyRows) {
    this.#id = id;
    this.#shards = shards;
    // Rows of a removed instance have no tenant.
    this.tenant =
      [...holders, ...waiters].find((row) => row.tenant_id !== null)?.tenant_id ?? undefined;
    this.#waiters = waiters.map((row) => ({
      kind: 'permit.wanted',
      key: id,
      instance: row.instance_id,
      tenant: row.tenant_id ?? '',
      number: row.number,
      max: row.max_concurrency,
      createdAt: Date.parse(row.created_at),
    }));
    this.#isComplete = waiters.length < WAITERS_MAX;
  }

  /** Repeats messages that may be lost. */
  settle(turn: Turn, { holders }: KeyRows): void {
    for (const { instance_id: instance, number, wanted, is_awaited } of holders) {
      this.#holders.set(instance, number);
      // The instance has released the slot, but its message was lost.
      if (wanted !== number) {
        this.#free(turn, instance);
        this.#isOneMissing ||= wanted !== null;
      }
      // The instance may not have received its slot.
      else if (is_awaited) this.#sendGranted(turn, instance, number);
    }
  }

  get isIdle(): boolean {
    return this.#holders.size === 0 && this.#waiters.length === 0;
  }

  /** Admits in order: a younger instance with a higher limit does not overtake. */
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

  wanted(turn: Turn, request: SlotRequest): void {
    this.tenant ??= request.tenant;
    const held = this.#holders.get(request.instance);
    if (held !== undefined) {
      if (held === request.number) this.#sendGranted(turn, request.instance, held);
      if (held >= request.number) return;
      this.#free(turn, request.instance);
    }
    const known = this.#waiters.findIndex(({ instance }) => instance === request.instance);
    if (known >= 0) {
      if ((this.#waiters[known] as SlotRequest).number < request.number)
        this.#waiters[known] = request;
      return;
    }
    const place = this.#placeOf(request);
    if (place === this.#waiters.length && !this.#isComplete) return;
    this.#waiters.splice(place, 0, request);
    if (this.#waiters.length > 2 * WAITERS_MAX) {
      this.#waiters.length = WAITERS_MAX;
      this.#isComplete = false;
    }
  }

  /** The instance withdraws the request or releases the slot. */
  left(turn: Turn, instance: string, number: number): void {
    if (this.#holders.get(instance) === number) {
      this.#free(turn, instance);
      return;
    }
    const known = this.#waiters.findIndex((request) => request.instance === instance);
    if (known >= 0 && (this.#waiters[known] as SlotRequest).number <= number) {
      this.#waiters.splice(known, 1);
    }
  }

  /** Searches from the end: a new instance is mostly the youngest. */
  #placeOf(request: SlotRequest): number {
    let place = this.#waiters.length;
    while (place > 0 && isOlder(request, this.#waiters[place - 1] as SlotRequest)) place -= 1;
    return place;
  }

  #free(turn: Turn, instance: string): void {
    this.#holders.delete(instance);
    turn.put(PERMIT.clear, instance, { instance_id: instance });
  }

  #grant(turn: Turn, { instance, number }: SlotRequest): void {
    this.#holders.set(instance, number);
    turn.put(PERMIT.set, instance, { instance_id: instance, key_id: this.#id, number });
    this.#sendGranted(turn, instance, number);
  }

  #sendGranted(turn: Turn, instance: string, number: number): void {
    const message = { kind: 'permit.granted', instance, number } as const;
    turn.effects.push({ kind: 'peer', shard: shardOf(routeOf(instance), this.#shards), message });
  }
}

function isOlder(a: SlotRequest, b: SlotRequest): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.instance < b.instance);
}
