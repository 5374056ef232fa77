/**
 * Commit units of shards and their outcomes, posted once per turn. They are packed for that: an array takes a
 * third of the time of an object with its member names, an outcome a seventh.
 */

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

export type PackedUnit = readonly [
  seq: UnitEnvelope['seq'],
  actor: UnitEnvelope['actor'],
  incarnation: UnitEnvelope['incarnation'],
  gate: UnitEnvelope['gate'],
  mutations: UnitEnvelope['mutations'],
  counts: UnitEnvelope['counts'],
];

/** Almost all outcomes are committed: these are sent as their number only. */
export type PackedAck = number | Ack;

export function packedUnit(unit: UnitEnvelope): PackedUnit {
  const { seq, actor, incarnation, gate, mutations, counts } = unit;
  return [seq, actor, incarnation, gate, mutations, counts];
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
