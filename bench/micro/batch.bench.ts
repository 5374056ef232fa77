/** What the writer's thread does per commit unit beside waiting for Postgres. */

import { wholeLine } from '../../actors/instance/record.js';
import { WRITER_LIMITS } from '../../actors/writer/writer.js';
import type { UnitGate } from '../../src/core/unit.js';
import { Batch, type BatchUnit, bodyCommands, gateCommands, readUnit } from '../../src/db/batch.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { KINDS, MUTATION_KINDS } from '../../test/helpers/store.js';
import { benchIds, orderRecord } from '../base/fixtures.js';
import type { MicroCase } from './case.js';

const UNITS = 200;

const ids = benchIds();

/** Creations that complete at once: the instance's row and the row of its output. */
function envelopes(gate: UnitGate): UnitEnvelope[] {
  const instance = MUTATION_KINDS.indexOf('instance.insert');
  const output = MUTATION_KINDS.indexOf('output.insert');
  return Array.from({ length: UNITS }, (_, index) => {
    const id = ids.next(index);
    const row = wholeLine(orderRecord(id));
    const outputId = ids.next(index);
    const outputRow = JSON.stringify({ id: outputId, instance_id: id, block_id: 'only' });
    const mutations = [output, outputId, outputRow, instance, id, row];
    return { seq: index, actor: id, incarnation: 0, gate, mutations };
  });
}

function fill(units: readonly UnitEnvelope[]): readonly BatchUnit[] {
  const batch = new Batch(WRITER_LIMITS, new Set());
  for (const unit of units) batch.tryAdd(readUnit(KINDS, unit, undefined));
  return batch.units;
}

const PLAIN = envelopes('none');
const GATED = envelopes('exists');

export const batchCases: readonly MicroCase[] = [
  {
    name: `batch: ${UNITS} units, ${2 * UNITS} rows, to statements`,
    run: () => bodyCommands(KINDS, fill(PLAIN)),
  },
  {
    name: `batch: ${UNITS} gated units to statements`,
    run: () => {
      const units = fill(GATED);
      const born = new Set(units.map(({ gateKeys }) => gateKeys[0]!));
      return [gateCommands(KINDS, units), bodyCommands(KINDS, units, born)];
    },
  },
];
