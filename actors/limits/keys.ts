/** The concurrency keys of one shard. The first request for a slot creates the actor of a key. */

import type { Kernel } from '../runtime/kernel.js';
import { KeyActors, type KeyActorsDeps } from '../runtime/key-actors.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import type { Slot, SlotAnswer, SlotAsked, Slots } from '../runtime/slots.js';
import type { SlotOutcome } from '../runtime/turn.js';
import {
  ConcurrencyKey,
  FIRST_REQUEST,
  type Holder,
  type KeyRows,
  READ_AGAIN_MS,
} from './concurrency-key.js';
import type { LimitLoads } from './loads.js';

type KeysDeps = KeyActorsDeps & Pick<Kernel<LimitLoads>, 'loader' | 'now' | 'shards'>;

interface PendingSlot extends Holder {
  /** Undefined while the unit of the creation is in flight. */
  outcome: SlotOutcome | undefined;
  /** Creations that a full key answers when the unit is settled. */
  readonly waiting: (() => void)[];
}

/** By key and instance. */
type Pending = Map<string, Map<string, PendingSlot>>;

const NONE_PENDING: ReadonlyMap<string, PendingSlot> = new Map();

export class Keys extends KeyActors<ConcurrencyKey, KeyRows> implements Room, Slots {
  /** Slots taken by creations, until the key has counted the outcome. Rows read meanwhile may lack them. */
  readonly #pending: Pending;
  readonly #deps: Pick<KeysDeps, 'schedule'>;

  readonly messages = {
    'permit.wanted': (request) =>
      this.tell(request.key, 'wanted', (key, turn) => key.wanted(turn, request)),
    'permit.left': ({ key: id, instance, number }) =>
      this.tell(id, 'left', (key, turn) => key.left(turn, instance, number)),
  } satisfies Messages;

  readonly effects = {
    'slot.settled': ({ key, instance, outcome }) => this.#settled(key, instance, outcome),
  } satisfies Effects;

  constructor(deps: KeysDeps) {
    const { loader, now, shards } = deps;
    const pending: Pending = new Map();
    super(
      {
        noun: 'concurrency key',
        prefix: 'permits',
        residentMax: 10_000,
        everyMs: READ_AGAIN_MS,
        read: async (id) => {
          // Holders first, so that a slot granted in between appears with the next read.
          const holders = await loader.permitHolders(id);
          return { holders, waiters: await loader.permitWaiters(id) };
        },
        restore: (id, rows) => {
          const ofKey = pending.get(id) ?? NONE_PENDING;
          const key = new ConcurrencyKey(id, { shards, now }, rows, ofKey);
          // Rows that are read from now on have these slots, or never will.
          for (const [instance, { outcome }] of ofKey) {
            if (outcome === undefined) continue;
            forget(pending, id, instance);
            key.reread();
          }
          return key;
        },
        page: loader.permitKeys,
        withWork: loader.permitKeysWithWork,
      },
      deps,
    );
    this.#pending = pending;
    this.#deps = deps;
  }

  /** Messages to the restarted shard may be lost. */
  peerBack(): void {
    this.reloadAll();
    this.start();
  }

  take(asked: SlotAsked, then: (answer: SlotAnswer) => void): void {
    const { schedule } = this.#deps;
    let isAnswered = false;
    const decide = (key: ConcurrencyKey) => {
      // Another message of the turn was a defect: the creation is under way.
      if (isAnswered) return;
      const taken = key.take(asked);
      if (taken === 'outdated') {
        schedule(() => {
          this.reload(asked.key);
          tell();
        });
        return;
      }
      const holder =
        typeof taken === 'object' ? this.#unsettled(asked.key, taken.holder) : undefined;
      // The creation of the holder may still fail, and the slot is free then.
      if (holder !== undefined) {
        holder.waiting.push(tell);
        return;
      }
      isAnswered = true;
      if (taken === 'known') then({ kind: 'known' });
      else if (taken !== 'free') then({ kind: 'full', ...taken });
      else this.#give(asked, key, then);
    };
    const tell = () => this.tell(asked.key, 'take', decide, asked.request);
    tell();
  }

  #give(asked: SlotAsked, key: ConcurrencyKey, then: (answer: SlotAnswer) => void): void {
    const { key: id, instance, createdAt } = asked;
    const ofKey = this.#pending.get(id) ?? new Map<string, PendingSlot>();
    ofKey.set(instance, {
      instance,
      number: FIRST_REQUEST,
      createdAt,
      hasPermit: false,
      outcome: undefined,
      waiting: [],
    });
    this.#pending.set(id, ofKey);
    const slot: Slot = {
      record: ({ effects }) =>
        void effects.push({ kind: 'slot.settled', key: id, instance, outcome: 'taken' }),
      unused: () => {
        const waiting = this.#unsettled(id, instance)?.waiting ?? [];
        forget(this.#pending, id, instance);
        key.untake(instance);
        for (const again of waiting) this.#deps.schedule(again);
      },
    };
    try {
      then({ kind: 'free', slot });
    } catch (error) {
      slot.unused();
      throw error;
    }
  }

  /** The slot of a creation whose unit is in flight. */
  #unsettled(id: string, instance: string): PendingSlot | undefined {
    const slot = this.#pending.get(id)?.get(instance);
    return slot?.outcome === undefined ? slot : undefined;
  }

  #settled(id: string, instance: string, outcome: SlotOutcome): void {
    const slot = this.#pending.get(id)?.get(instance);
    if (slot === undefined) return;
    slot.outcome = outcome;
    this.tell(id, 'settled', (key) => {
      if (!forget(this.#pending, id, instance) || outcome === 'taken') return;
      // If the outcome is unknown, the rows show whether the creation was committed.
      if (outcome === 'unknown') key.reread();
      else key.untake(instance);
    });
    for (const again of slot.waiting) this.#deps.schedule(again);
  }
}

function forget(pending: Pending, id: string, instance: string): boolean {
  const ofKey = pending.get(id);
  if (ofKey?.delete(instance) !== true) return false;
  if (ofKey.size === 0) pending.delete(id);
  return true;
}
