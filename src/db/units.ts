/** What shards have committed, and what they are told of it: arrays of flat objects, posted once per turn. */

import type { UnitGate } from '../core/unit.js';
import type { UnitCounts } from '../metrics/ledger.js';

/** Begins the names of actors that make one unit of many instances: such a unit has a lane of its own. */
export const BATCH_ACTOR = 'batch:';

/** One commit unit. */
export interface UnitEnvelope {
  /** Counts the units of one shard incarnation upwards. */
  readonly seq: number;
  /** With its incarnation, who made it: when a unit is refused, all later ones of it are, too. */
  readonly actor: string;
  readonly incarnation: number;
  readonly gate: UnitGate;
  /** Flat: place of the kind (`store.ts`), key, row, … */
  readonly mutations: readonly (string | number)[];
  /** What is counted if it is committed, unless its gate finds that nothing of it happens. */
  readonly counts?: UnitCounts | undefined;
}

export interface UnitPost {
  readonly kind: 'units';
  readonly units: readonly UnitEnvelope[];
}

/** Outcomes, in the order of `seq` per actor. `suffix`: refused only because an earlier one was. */
export type Ack =
  | { readonly seq: number; readonly outcome: 'committed' | 'exists' | 'suffix' }
  | { readonly seq: number; readonly outcome: 'inserted'; readonly ids: readonly string[] }
  | {
      readonly seq: number;
      readonly outcome: 'refused';
      readonly sqlState: string;
      readonly reason: string;
    };
