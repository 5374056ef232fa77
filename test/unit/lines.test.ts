/** Rows as lines: when a row is one, and that it says what the object would. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUDIT, OUTPUT } from '../../actors/instance/output-tables.js';
import { newRecord, runtimeText, wholeLine } from '../../actors/instance/record.js';
import { INSTANCE, TIMER } from '../../actors/instance/tables.js';
import { isoTime } from '../../src/base/time.js';
import { isLine, laidOver, rowOf, rowText } from '../../src/db/lines.js';
import { RowsBuffer } from '../../src/db/writer-session.js';
import { MUTATION_KINDS, MUTATIONS } from '../helpers/store.js';
import { readRow } from '../helpers/unit-rows.js';
import { instanceUpdate } from '../helpers/writer.js';

const ID = '01950000-0000-7000-8000-00000000000a';
const AT = '2031-01-01T00:00:00.000Z';

const audit = (tenant: string, entries: unknown = []) => ({
  ...{ created_at: AT, entries, tenant_id: tenant, seq: 1, instance_id: ID },
});

test('a row with a text that would be taken apart, or an escape that may stand for none, is an object', () => {
  for (const tenant of ['a\u001fb', 'a\nb', '\u0001', '\u0002', '\0', 'smile 😀', '\ud800']) {
    const row = rowText(AUDIT.insert, audit(tenant));
    assert.equal(isLine(row), false, JSON.stringify(tenant));
    assert.deepEqual(readRow('audit.insert', row), audit(tenant));
  }
  // Within JSON all of them are escaped, or harmless.
  assert.equal(isLine(rowText(AUDIT.insert, audit('Zoë', ['a\nb', 'smile 😀', '\u2028']))), true);
  for (const text of ['\0', '\ud800', '\u001f']) {
    assert.equal(isLine(rowText(AUDIT.insert, audit('t', [text]))), false);
  }
});

test('a row of another kind, or with JSON that has line breaks between its tokens, is an object', () => {
  const cells = {
    ...{ id: ID, instance_id: ID, block_id: 'a', iteration: '', attempt: 0, try: 0 },
    ...{ output_ref: null, output_size: 2, created_at: AT, effect: null },
  };
  for (const output of ['{\n}', '{\r"a":1}']) {
    const row = rowOf(OUTPUT.insert, { ...cells, output });
    assert.equal(isLine(row), false);
    assert.deepEqual(readRow('output.insert', row).output, JSON.parse(output));
  }
  assert.equal(isLine(rowOf(OUTPUT.insert, { ...cells, output: '{\t}' })), true);
  assert.equal(rowText(TIMER.clear, { instance_id: ID }), `{"instance_id":"${ID}"}`);
});

test('rows become bytes as they are, however large they are', () => {
  const buffer = new RowsBuffer();
  const bytesOf = (rows: readonly string[], areLines: boolean) =>
    String(buffer.bytesOf({ rows, areLines }));
  const large = 'aäć😀'.repeat(200_000);
  assert.equal(bytesOf(['{}', `{"a":"${large}"}`], false), `[{},{"a":"${large}"}]`);
  assert.equal(bytesOf([large, 'b', large], true), `${large}\nb\n${large}`);
  assert.equal(bytesOf(['c'], true), 'c');
});

test('the line of an instance has what its object has', () => {
  const record = newRecord(
    {
      id: ID,
      body: {
        ...{ sequence_id: ID, tenant_id: 'acme', namespace: 'default', priority: 'high' },
        timeout: 5_000,
        metadata: { a: [1, null, 'ä'] },
        context: { data: { b: { c: 1.5 } }, config: { d: true } },
        concurrency_key: 'k',
        max_concurrency: 3,
        idempotency_key: 'i',
        next_fire_at: AT,
      },
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      route: { releaseId: ID, variant: 'canary', sequenceId: ID } as never,
    },
    Date.parse(AT),
    undefined,
  );
  const line = wholeLine(record);
  const object = wholeLine({ ...record, namespace: 'smile 😀' });
  assert.deepEqual([isLine(line), isLine(object)], [true, false]);
  const row = { ...JSON.parse(object), namespace: record.namespace };
  assert.deepEqual(readRow('instance.insert', line), row);
});

test('of the runtime, its id and times of the start that are those of the creation follow from the row', () => {
  const body = { sequence_id: ID, tenant_id: 'acme', namespace: 'default' };
  const record = newRecord({ id: ID, body }, Date.parse(AT), undefined);
  const later = isoTime(Date.parse(AT) + 1);
  for (const [started, step] of [
    [AT, AT],
    [AT, later],
    [later, later],
  ] as const) {
    // A name that looks like a time of the start, and like a stored one.
    const current_step = `started_at":"${AT}", started_at":0`;
    const members = { current_step, attempt: 0, current_step_started_at: step };
    record.snapshot.runtime = { instance_id: ID, started_at: started, ...members };
    const { runtime } = readRow('instance.insert', wholeLine(record));
    const stored = (time: string) => (time === AT ? 0 : time);
    const times = { started_at: stored(started), current_step_started_at: stored(step) };
    assert.deepEqual(runtime, { ...members, ...times });
    const row = { runtime: JSON.stringify(runtime), created_at: AT };
    assert.deepEqual(JSON.parse(runtimeText(ID, row)), record.snapshot.runtime);
  }
});

test('a row laid over another one keeps the other columns of it, whichever forms the two have', () => {
  const [, , before] = instanceUpdate(1, 'running');
  const [, , after] = instanceUpdate(1, 'waiting', 4);
  const wide = { ...before, end_outputs: null, data_patch: { b: null }, data: { a: [1, 'ä'] } };
  const { change, update } = INSTANCE;
  const forms = (mutation: typeof change | typeof update, row: object) =>
    [rowText(mutation, row), JSON.stringify(row)].map((text) => ({ mutation, row: text }));
  for (const earlier of forms(change, wide)) {
    for (const later of forms(update, after)) {
      const { row: text } = laidOver(earlier, later);
      assert.equal(isLine(text), isLine(earlier.row) && isLine(later.row));
      const row = readRow('instance.change', text);
      // Postgres reads numbers of columns from strings, too.
      for (const column of ['signal_count', 'audit_count']) row[column] = Number(row[column]);
      assert.deepEqual(row, { ...wide, ...after });
    }
  }
});

test('a kind that narrows another one writes its first columns', () => {
  for (const kind of MUTATION_KINDS) {
    const { columns = [], narrows = [] } = MUTATIONS[kind] as typeof INSTANCE.update;
    for (const wide of narrows as (typeof INSTANCE.change)[]) {
      assert.deepEqual(wide.columns.slice(0, columns.length), columns, kind);
    }
  }
});
