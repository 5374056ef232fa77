/** Slots of concurrency keys that creations take before there is an instance. */

import type { UnixMs } from '../../src/base/time.js';
import type { Turn } from './turn.js';

export interface SlotAsked {
  /** The id of the key, which is of this shard. */
  readonly key: string;
  readonly tenant: string;
  /** The id of the new instance. */
  readonly instance: string;
  readonly max: number;
  readonly createdAt: UnixMs;
  /** Answered with an error if the key cannot be loaded. */
  readonly request: number;
}

/** A slot that belongs to nobody else from now on. One of its functions must be called in the same turn. */
export interface Slot {
  /** The unit has the row of the slot and creates the instance; its outcome decides about the slot. */
  record(turn: Turn): void;
  unused(): void;
}

export type SlotAnswer =
  | { readonly kind: 'free'; readonly slot: Slot }
  /** The instance holds a slot or waits for one. */
  | { readonly kind: 'known' }
  /** The newest instance that holds the key. */
  | { readonly kind: 'full'; readonly holder: string };

export interface Slots {
  take(asked: SlotAsked, then: (answer: SlotAnswer) => void): void;
}
