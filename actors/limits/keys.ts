/** The concurrency keys of one shard. A key's actor is created by the first instance that requests a slot. */

import type { Kernel } from '../runtime/kernel.js';
import { KeyActors, type KeyActorsDeps } from '../runtime/key-actors.js';
import type { Messages, Room } from '../runtime/room.js';
import { ConcurrencyKey, type KeyRows, type SlotRequest, WAITERS_MAX } from './key.js';
import type { LimitLoads } from './loads.js';

export type KeysDeps = KeyActorsDeps & Pick<Kernel<LimitLoads>, 'loader' | 'shards'>;

export class Keys extends KeyActors<ConcurrencyKey, KeyRows> implements Room {
  readonly messages = {
    'permit.wanted': ({ key, instance, tenant, number, max, createdAt }) =>
      this.wanted(key, { instance, tenant, number, max, createdAt }),
    'permit.left': ({ key, instance, number }) => this.left(key, instance, number),
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
          // In this order: an instance that gets a slot meanwhile is among the holders of the next read.
          const holders = await loader.permitHolders(id);
          return { holders, waiters: await loader.permitWaiters(id, WAITERS_MAX) };
        },
        restore: (id, rows) => new ConcurrencyKey(id, shards, rows),
        page: (after, limit) => loader.permitKeys(after, limit),
      },
      deps,
    );
  }

  wanted(id: string, request: SlotRequest): void {
    this.tell(id, 'wanted', (key, turn) => key.wanted(turn, request));
  }

  left(id: string, instance: string, number: number): void {
    this.tell(id, 'left', (key, turn) => key.left(turn, instance, number));
  }

  /** Messages of a restarted shard may be lost. */
  peerBack(): void {
    this.start();
  }
}
