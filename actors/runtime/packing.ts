/**
 * Units and their outcomes on their way between threads: arrays instead of objects, whose names of members
 * would be written, read and looked up for each of them. It takes a third, and of outcomes a seventh.
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

/** Almost all are committed: of these only the number. */
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
