/** Rows as lines: when a row is one, and that it says what the object would. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runtimeText } from '../../actors/instance/core/runtime-text.js';
import { AUDIT, OUTPUT } from '../../actors/instance/output-tables.js';
import { newRecord, wholeLine } from '../../actors/instance/record.js';
import { INSTANCE, TIMER } from '../../actors/instance/tables.js';
import type { JsonObject } from '../../src/base/json.js';
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

test('the runtime of a started instance is stored without what follows from its row', () => {
  const body = { sequence_id: ID, tenant_id: 'acme', namespace: 'default' };
  const record = newRecord({ id: ID, body }, Date.parse(AT), undefined);
  const storedAs = (runtime: JsonObject) => {
    record.snapshot.runtime = runtime;
    return JSON.stringify(readRow('instance.insert', wholeLine(record)).runtime);
  };
  const readBack = (runtime: string) => JSON.parse(runtimeText(ID, { runtime, created_at: AT }));
  const later = isoTime(Date.parse(AT) + 1);
  // A name that looks like a time of the start, and like a stored one.
  for (const current_step of ['pack', `started_at":"${AT}", started_at":0`]) {
    for (const [started, since] of [
      [AT, AT],
      [AT, later],
      [later, later],
      // An imported one may have any text.
      ['', 'a "time"\u001f\n'],
    ] as const) {
      const usual = {
        ...{ instance_id: ID, started_at: started, current_step, attempt: 0 },
        ...{ current_step_started_at: since, total_steps_executed: 3 },
      };
      const code = (time: string) => (time === AT ? 0 : time);
      const stored = storedAs(usual);
      assert.equal(stored, JSON.stringify([code(started), current_step, code(since), 3]));
      assert.deepEqual(readBack(stored), usual);

      // What engines up to migration 0057 have stored.
      const { instance_id: _, ...members } = usual;
      const times = { started_at: code(started), current_step_started_at: code(since) };
      assert.deepEqual(readBack(JSON.stringify({ ...members, ...times })), usual);
    }
  }
});

test('any other runtime is stored as it is', () => {
  const body = { sequence_id: ID, tenant_id: 'acme', namespace: 'default' };
  const record = newRecord({ id: ID, body }, Date.parse(AT), undefined);
  const started = { instance_id: ID, started_at: AT };
  const usual = {
    ...{ ...started, current_step: 'a', attempt: 0 },
    ...{ current_step_started_at: AT, total_steps_executed: 1 },
  };
  const others: JsonObject[] = [
    {},
    { dry_run: true },
    started,
    { ...usual, attempt: 1 },
    { ...usual, dry_run: true },
    { ...usual, cancelling: { since: AT } },
    { ...usual, instance_id: ID.replace('a', 'b') },
    { ...usual, total_steps_executed: null },
  ];
  for (const runtime of others) {
    record.snapshot.runtime = runtime;
    const { runtime: stored } = readRow('instance.insert', wholeLine(record));
    assert.deepEqual(stored, runtime);
    const text = runtimeText(ID, { runtime: JSON.stringify(stored), created_at: AT });
    assert.deepEqual(JSON.parse(text), runtime);
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
