/** The concurrency keys of one shard. A key comes to life with the first instance that wants a slot of it. */

import type { Kernel } from '../runtime/kernel.js';
import { KeyActors, type KeyActorsDeps } from '../runtime/key-actors.js';
import type { Messages, Room } from '../runtime/room.js';
import { ConcurrencyKey, type KeyRows, WAITERS_MAX, type Wish } from './key.js';
import type { LimitLoads } from './loads.js';

export type KeysDeps = KeyActorsDeps & Pick<Kernel<LimitLoads>, 'loader' | 'shards'>;

export class Keys implements Room {
  readonly #actors: KeyActors<ConcurrencyKey, KeyRows>;

  readonly messages = {
    'permit.wanted': ({ key, instance, tenant, number, max, createdAt }) =>
      this.wanted(key, { instance, tenant, number, max, createdAt }),
    'permit.left': ({ key, instance, number }) => this.left(key, instance, number),
  } satisfies Messages;

  constructor(deps: KeysDeps) {
    const { loader, shards } = deps;
    this.#actors = new KeyActors<ConcurrencyKey, KeyRows>(
      {
        noun: 'concurrency key',
        prefix: 'permits',
        residentMax: 10_000,
        everyMs: 5_000,
        read: async (id) => {
          // In this order: who is granted a slot in between is among the holders of the next reading.
          const holders = await loader.permitHolders(id);
          return { holders, waiters: await loader.permitWaiters(id, WAITERS_MAX) };
        },
        restore: (id, rows) => new ConcurrencyKey(id, shards, rows),
        page: (after, limit) => loader.permitKeys(after, limit),
      },
      deps,
    );
  }

  /** Whether the key may be let go. */
  isPassive(id: string): boolean {
    return this.#actors.isPassive(id);
  }

  wanted(id: string, wish: Wish): void {
    this.#actors.tell(id, 'wanted', (key, turn) => key.wanted(turn, wish));
  }

  left(id: string, instance: string, number: number): void {
    this.#actors.tell(id, 'left', (key, turn) => key.left(turn, instance, number));
  }

  start(): void {
    this.#actors.start();
  }

  stop(): void {
    this.#actors.stop();
  }

  tenantBack(): void {
    this.#actors.rescan();
  }

  tenantSuspended(): void {
    this.#actors.dropSuspended();
  }

  /** Words of a shard that died may be lost. */
  peerBack(): void {
    this.#actors.start();
  }

  endTurn(): void {
    this.#actors.endTurn();
  }
}
