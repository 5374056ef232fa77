/** Outputs in the row of their completed instance are read as if they had rows of their own. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  OUTPUT_ROWS,
  type PackedOutput,
  packedText,
  unpacked,
} from '../../actors/instance/output-tables.js';
import { REPLAY_SQL } from '../../actors/release/replay-reads.js';
import type { JsonObject } from '../../src/base/json.js';
import { useSession } from '../helpers/database.js';

const { client } = useSession();
const INSTANCE = '01950000-0000-7000-8000-00000000000a';
/** Its time is that of the first output. */
const ID = '01a2292e-8c26-701b-aadd-c5d4feb0c7ff';
const AT = '2026-11-29T21:20:46.118Z';
const FIRST = {
  ...{ id: ID, instance_id: INSTANCE, block_id: 'a "b" é', iteration: '', attempt: 0, try: 0 },
  ...{
    output: '{"n":1,"s":"é"}',
    output_ref: null,
    output_size: 16,
    created_at: AT,
    effect: null,
  },
};
const ROWS = [
  FIRST,
  { ...FIRST, block_id: 'b', iteration: '0.1', attempt: 3, try: 2 },
  { ...FIRST, block_id: 'c', output: 'null', output_size: 4 },
  { ...FIRST, block_id: 'd', created_at: '2026-11-29T21:20:46.119Z' },
];
const WHOLE = ({ instance_id: _, output_ref, effect, output, ...row }: typeof FIRST) =>
  `${JSON.stringify(row).slice(0, -1)},"output":${output}}`;

const COLUMNS = Object.keys(FIRST);
const inOrder = (rows: readonly object[]) =>
  (rows as JsonObject[]).map((row) => COLUMNS.map((column) => [column, row[column] ?? null]));

beforeEach(() => client.query('truncate instances, block_outputs'));

async function store(outputs: readonly string[]): Promise<void> {
  await client.query(
    `insert into instances (id, sequence_id, tenant_id, namespace, state, priority, timezone, metadata, data, config,
       context_audit, runtime, execution, signal_count, audit_count, created_at, updated_at, end_outputs)
     values ($1, $1, 't', 'n', 'completed', 1, 'UTC', '{}', '{}', '{}', '[]', '{}', '{}', 0, 0, now(), now(), $2)`,
    [INSTANCE, `[${outputs.join(',')}]`],
  );
}

async function read(): Promise<JsonObject[]> {
  const time = `to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  const { rows } = await client.query<JsonObject>(
    `select ${COLUMNS.join(', ').replace('created_at', `${time} as created_at`)}
       from ${OUTPUT_ROWS} o order by block_id collate "C"`,
  );
  return rows;
}

const stored = ROWS.map((row) => ({ ...row, output: JSON.parse(row.output) as JsonObject | null }));

for (const [form, textOf] of [
  ['as they are written', packedText],
  ['with all members, as they were written before', WHOLE],
] as const) {
  test(`all columns are read from outputs ${form}`, async () => {
    await store(ROWS.map(textOf));
    assert.deepEqual(inOrder(await read()), inOrder(stored));
    const { rows } = await client.query<{ outputs: JsonObject[] }>(REPLAY_SQL.run, [INSTANCE]);
    const outputs = rows[0]!.outputs.map(({ block_id, iteration, try: number, created_at }) => [
      ...[block_id, iteration, number],
      Date.parse(String(created_at)),
    ]);
    const expected = stored.map((row) => [
      ...[row.block_id, row.iteration, row.try],
      Date.parse(row.created_at),
    ]);
    assert.deepEqual(outputs.sort(), expected.sort());
  });
}

test('an output that gets a row of its own when its instance goes on has the same columns there', () => {
  const rows = ROWS.map((row) => unpacked(INSTANCE, JSON.parse(packedText(row)) as PackedOutput));
  assert.deepEqual(inOrder(rows), inOrder(stored));
});
