/**
 * Units and outcomes packed for posting between threads: arrays instead of objects, whose member names
 * would be written, read and looked up for each of them. It takes a third of the time, and a seventh for
 * outcomes.
 */

import type { Ack, UnitEnvelope } from '../../src/db/units.js';

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
