/** What of a changed context is written, and that what is read again is what was in memory. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type DataColumns,
  dataLength,
  dataOf,
  dataText,
  patchText,
} from '../../actors/instance/context-data.js';
import type { LiveInstance } from '../../actors/instance/live-instance.js';
import { liveInstance } from '../../actors/instance/live-instance.js';
import { newRecord } from '../../actors/instance/record.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { planOf, work } from '../helpers/player.js';
import { check } from '../helpers/properties.js';
import { MUTATION_KINDS } from '../helpers/store.js';
import { created, told } from '../helpers/turns.js';
import { readRow } from '../helpers/unit-rows.js';

/** The columns of one row, written as units write them. */
class Row {
  data: string;
  data_patch: string | null = null;
  stored: JsonObject;

  constructor(data: JsonObject) {
    this.data = JSON.stringify(data);
    this.stored = data;
  }

  write(data: JsonObject): 'patch' | 'whole' {
    const patch = patchText(this.stored, data);
    this.data_patch = patch ?? null;
    if (patch !== undefined) return 'patch';
    this.data = JSON.stringify(data);
    this.stored = data;
    return 'whole';
  }

  /** As `pg` returns them. */
  get columns(): DataColumns {
    return { data: this.data, data_patch: this.data_patch } as unknown as DataColumns;
  }
}

const KEYS = ['a', 'b', '1', '__proto__', 'constructor', 'é'];

const value: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.constantFrom(null, 0, '', true),
  fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<JsonValue>,
);
const step = fc.tuple(fc.constantFrom('set', 'remove', 'load'), fc.constantFrom(...KEYS), value);

test('data whose members are in another order is written whole', () => {
  const row = new Row({ b: 1, n: 2 });
  for (const data of [
    { n: 2, b: 1 },
    { z: 0, n: 2, b: 1 },
    { n: 2, b: 1, z: 0, a: 1 },
  ]) {
    row.write(data);
    assert.equal(JSON.stringify(dataOf(row.columns).data), JSON.stringify(data));
  }
});

const without = (data: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(data).filter(([key]) => key !== name));

test('a row says what was in memory, in the same order, whatever was set and removed', (t) => {
  const first = fc.dictionary(fc.constantFrom(...KEYS), value, { noNullPrototype: true });
  check(t, 1_000, fc.tuple(first, fc.array(step, { maxLength: 12 })), ([given, steps]) => {
    let data = JSON.parse(JSON.stringify(given)) as JsonObject;
    const row = new Row(data);
    for (const [does, key, to] of steps) {
      if (does === 'load') ({ stored: row.stored, data } = dataOf(row.columns));
      else {
        data = does === 'set' ? { ...data, [key]: to } : without(data, key);
        row.write(data);
      }
      assert.equal(dataText(row.columns), JSON.stringify(data));
      assert.equal(JSON.stringify(dataOf(row.columns).data), JSON.stringify(data));
      assert.equal(dataLength(row.columns), row.data.length + (row.data_patch ?? '').length);
    }
  });
});

test('the overlay of a step lies over a patch, and a text without either is not written anew', () => {
  const row = { data: '{"a": 1.0, "b":2}', data_patch: null } as unknown as DataColumns;
  assert.equal(dataText(row), '{"a": 1.0, "b":2}');
  assert.equal(dataText(row, '{"c":3}'), '{"a":1,"b":2,"c":3}');
  const patched = { ...row, data_patch: '{"b":5,"c":4}' };
  assert.equal(dataText(patched, '{"c":3}'), '{"a":1,"b":5,"c":3}');
});

describe('the whole data is written', () => {
  const kept = { kept: 'x'.repeat(100) };

  test('when a member is gone, or none is what it was', () => {
    assert.equal(new Row({ ...kept, a: 1 }).write(kept), 'whole');
    assert.equal(new Row({ a: 1 }).write({ a: 2 }), 'whole');
    assert.equal(new Row({}).write({ a: 2 }), 'whole');
    assert.equal(new Row({ ...kept, a: 1 }).write({ ...kept, a: 2 }), 'patch');
  });

  test('when the patch has outgrown it, and then the next patch begins anew', () => {
    const row = new Row(kept);
    let data: JsonObject = kept;
    const written = Array.from({ length: 10 }, (_, n) => {
      data = { ...data, [`output ${n}`]: 'y'.repeat(600) };
      return row.write(data);
    });
    assert.deepEqual(written.slice(0, 4), ['patch', 'patch', 'patch', 'whole']);
    assert.equal(written.lastIndexOf('whole'), 8);
    assert.deepEqual(JSON.parse(dataText(row.columns)), data);
  });

  test('not when it is large itself', () => {
    const large = { large: 'x'.repeat(50_000) };
    assert.equal(new Row(large).write({ ...large, more: 'y'.repeat(40_000) }), 'patch');
  });
});

const ENV = instanceEnv();
const CALL = { request: 1, tenant: '', target: '', traceparent: undefined };

/** The members of context.data that the turn writes. */
function written({ mutations }: Turn): JsonObject {
  const rows: JsonObject = {};
  for (const kind of ['instance.update', 'instance.patch', 'instance.change']) {
    const at = mutations.indexOf(MUTATION_KINDS.indexOf(kind));
    if (at < 0) continue;
    const { data, data_patch = 'none' } = readRow(kind, String(mutations[at + 2]));
    rows[kind] = data === undefined ? data_patch : [data, data_patch];
  }
  return rows;
}

function completed(actor: LiveInstance, output: JsonObject): Turn {
  const task = [...actor.tasks.values()].at(-1)!;
  const place = { handler: 'work', poll: 1, task: task.id, instance: actor.record.id } as const;
  told(actor, { kind: 'claim', ...place, worker: 'w', queueShard: 0 });
  const body = { worker_id: 'w', claim_epoch: 1, output };
  return told(actor, { kind: 'task.complete', ...CALL, task: task.id, body } as never);
}

test('a completion writes the members that differ from the creation, and a change by a caller all', () => {
  const body = { context: { data: { order: { id: 7 }, seen: false } } };
  const record = newRecord(newInstance(ENV.ids.next(1), body), ENV.now(), undefined);
  const actor = liveInstance(record, planOf([work('a'), work('b'), work('c')]), ENV);
  created(actor);
  assert.deepEqual(written(completed(actor, { seen: true })), { 'instance.patch': { seen: true } });
  told(actor, { kind: 'wake', recovered: false });
  assert.deepEqual(written(completed(actor, { paid: 5 })), {
    'instance.patch': { seen: true, paid: 5 },
  });
  const given = { context: { data: { other: 1 } } };
  const changed = told(actor, { kind: 'patchContext', ...CALL, body: given } as never);
  assert.deepEqual(written(changed), { 'instance.change': [{ other: 1 }, null] });
  told(actor, { kind: 'wake', recovered: false });
  assert.deepEqual(written(completed(actor, { paid: 6 })), { 'instance.patch': { paid: 6 } });
});
