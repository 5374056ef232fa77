/**
 * Commit units of shards and their outcomes, packed to be posted once per turn: an array takes a third of
 * the time of an object with member names, an outcome a seventh.
 */

import type { UnitGate } from '../core/unit.js';
import type { UnitCounts } from '../metrics/ledger.js';

/** Prefix of actors that make one unit of many instances, which use a separate lane. */
export const BATCH_ACTOR = 'batch:';

export interface UnitEnvelope {
  /** Increases within an incarnation of the shard. */
  readonly seq: number;
  /** When a unit is refused, later units of the same incarnation of its actor are refused too. */
  readonly actor: string;
  readonly incarnation: number;
  readonly gate: UnitGate;
  /** Flat: index of the kind (`store.ts`), key, row, … */
  readonly mutations: readonly (string | number)[];
  /** Counted if the unit is committed and its gate inserts its row. */
  readonly counts?: UnitCounts | undefined;
}

/** In the order of `seq` per actor. `suffix`: refused because an earlier unit was. */
export type Ack =
  | { readonly seq: number; readonly outcome: 'committed' | 'exists' | 'suffix' }
  | { readonly seq: number; readonly outcome: 'inserted'; readonly ids: readonly string[] }
  | {
      readonly seq: number;
      readonly outcome: 'refused';
      readonly sqlState: string;
      readonly reason: string;
    };

export type PackedUnit = ReturnType<typeof packedUnit>;
/** Most outcomes are `committed`, and sent as their number only. */
export type PackedAck = number | Ack;

export function packedUnit(unit: UnitEnvelope) {
  const { seq, actor, incarnation, gate, mutations, counts } = unit;
  return [seq, actor, incarnation, gate, mutations, counts] as const;
}

export function unpackedUnit(packed: PackedUnit): UnitEnvelope {
  const [seq, actor, incarnation, gate, mutations, counts] = packed;
  return { seq, actor, incarnation, gate, mutations, counts };
}

export function packedAck(ack: Ack): PackedAck {
  return ack.outcome === 'committed' ? ack.seq : ack;
}

export function unpackedAck(packed: PackedAck): Ack {
  return typeof packed === 'number' ? { seq: packed, outcome: 'committed' } : packed;
}
