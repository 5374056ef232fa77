/** Commit units of shards and their outcomes: arrays of flat objects, posted once per turn. */

import type { UnitGate } from '../core/unit.js';
import type { UnitCounts } from '../metrics/ledger.js';

/** Prefix of actors that make one unit of many instances, which has its own lane. */
export const BATCH_ACTOR = 'batch:';

/** One commit unit. */
export interface UnitEnvelope {
  /** Counts the units of one shard incarnation upwards. */
  readonly seq: number;
  /** When a unit is refused, so are all later ones of the same incarnation of its actor. */
  readonly actor: string;
  readonly incarnation: number;
  readonly gate: UnitGate;
  /** Flat: place of the kind (`store.ts`), key, row, … */
  readonly mutations: readonly (string | number)[];
  /** Counted if the unit is committed and its gate inserts its row. */
  readonly counts?: UnitCounts | undefined;
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
