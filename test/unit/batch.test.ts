/** How units become statements: joining, order, limits, gates. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnitEnvelope } from '../../actors/runtime/protocol.js';
import type { UnitGate } from '../../src/core/unit.js';
import {
  Batch,
  type BatchUnit,
  bodyCommands,
  committedAck,
  gateCommands,
  type RowsCommand,
  readUnit,
} from '../../src/db/batch.js';
import { MUTATION_KINDS, type MutationKind } from '../../src/db/mutations.js';
import { RowsBuffer } from '../../src/db/rows-buffer.js';
import {
  GATED_LINE_STATEMENTS,
  GATED_STATEMENTS,
  LINE_STATEMENTS,
  STATEMENTS,
} from '../../src/db/statements.js';

const A = '01950000-0000-7000-8000-00000000000a';
const B = '01950000-0000-7000-8000-00000000000b';

const FROM = { actor: 'actor', incarnation: 0 };
let seq = 0;

/** @param puts each a kind, a key and a row */
function unit(puts: readonly string[], gate: UnitGate = 'none'): BatchUnit {
  const mutations = puts.flatMap((put) => {
    const [kind, key = '', ...row] = put.split(' ');
    return [MUTATION_KINDS.indexOf(kind as MutationKind), key, row.join(' ')];
  });
  seq += 1;
  return readUnit({ ...FROM, seq, gate, mutations });
}

function batchOf(units: readonly BatchUnit[], limits = { rowsMax: 10, bytesMax: 100 }) {
  const batch = new Batch(limits);
  return { batch, added: units.map((one) => batch.tryAdd(one)) };
}

/** The kinds of mutations by the names of their statements. */
const KINDS = new Map(
  Object.entries({
    '': STATEMENTS,
    'lines of ': LINE_STATEMENTS,
    'gate of ': GATED_STATEMENTS,
    'lines of the gate of ': GATED_LINE_STATEMENTS,
  }).flatMap(([what, all]) =>
    Object.entries(all).map(([kind, { name }]) => [name, `${what}${kind}`] as const),
  ),
);

const BUFFER = new RowsBuffer();

/** Each statement as a kind and its rows, as they are sent. */
const named = (commands: readonly RowsCommand[]) =>
  commands.map((command) => `${KINDS.get(command.statement.name)} ${BUFFER.bytesOf(command)}`);

test('a note is deleted behind those that come in its place, by its own id', () => {
  const units = [unit([`kinNote.clear n1 {"id":1}`]), unit([`kinNote.set ${A}:${B} {"id":2}`])];
  assert.deepEqual(named(bodyCommands(units)), [
    'kinNote.set [{"id":2}]',
    'kinNote.clear [{"id":1}]',
  ]);
});

test('the rows of one kind are one statement, in the order of the units', () => {
  const units = [
    unit(['output.insert o1 {"id":1}']),
    unit([`instance.insert ${A} {"id":"a"}`, 'output.insert o2 {"id":2}']),
  ];
  assert.deepEqual(named(bodyCommands(units)), [
    'instance.insert [{"id":"a"}]',
    'output.insert [{"id":1},{"id":2}]',
  ]);
});

test('statements run in the order of the kinds, whatever the order in the units', () => {
  const units = [
    unit(MUTATION_KINDS.toReversed().map((kind) => `${kind} ${kind} {"k":"${kind}"}`)),
  ];
  // The two kinds of a group replace each other, so one of each group is left, the last one put.
  const names = bodyCommands(units).map(({ statement }) => statement.name);
  const order = MUTATION_KINDS.map((kind) => STATEMENTS[kind].name);
  assert.deepEqual(
    names,
    order.filter((name) => names.includes(name)),
  );
  assert.equal(names.length, MUTATION_KINDS.length);
});

test('of several snapshots of one row only the last is written', () => {
  const units = [
    unit([`instance.update ${A} {"v":1}`]),
    unit([`instance.update ${B} {"v":2}`]),
    unit([`instance.update ${A} {"v":3}`]),
  ];
  assert.deepEqual(named(bodyCommands(units)), ['instance.update [{"v":3},{"v":2}]']);
});

test('a narrow row is laid over the wide one before it, and replaced by the one behind it', () => {
  const units = [
    unit([`instance.change ${A} {"v":1,"data":1}`, `instance.update ${B} {"v":1}`]),
    unit([`instance.update ${A} {"v":2}`]),
    unit([`instance.update ${A} {"v":3}`, `instance.change ${B} {"v":4,"data":4}`]),
  ];
  assert.deepEqual(named(bodyCommands(units)), [
    'instance.change [{"v":1,"data":1,"v":3},{"v":4,"data":4}]',
  ]);
});

test('setting and clearing the same row replace each other', () => {
  const units = [
    unit([`timer.set ${A} {"set":"a"}`, `timer.clear ${B} {"clear":"b"}`]),
    unit([`timer.clear ${A} {"clear":"a"}`, `timer.set ${B} {"set":"b"}`]),
  ];
  assert.deepEqual(named(bodyCommands(units)), [
    'timer.clear [{"clear":"a"}]',
    'timer.set [{"set":"b"}]',
  ]);
});

test('a batch ends before the unit that would exceed its rows or its bytes', () => {
  const three = unit([1, 2, 3].map((n) => `audit.insert ${n} {}`));
  assert.deepEqual(batchOf([three, three, three, three]).added, [true, true, true, false]);
  const wide = unit([`audit.insert 1 {"x":"${'y'.repeat(42)}"}`]);
  assert.deepEqual(batchOf([wide, wide, wide]).added, [true, true, false]);
});

test('a unit larger than a batch goes alone', () => {
  const small = unit(['audit.insert 1 {}']);
  const large = unit(Array.from({ length: 11 }, (_, n) => `audit.insert ${n} {}`));
  assert.deepEqual(batchOf([small, large]).added, [true, false]);
  assert.deepEqual(batchOf([large, small]).added, [true, false]);
});

test('a barrier goes alone, in its place', () => {
  const plain = unit(['audit.insert 1 {}']);
  const barrier = unit([`output.dropErrors ${A} {}`]);
  assert.deepEqual(batchOf([plain, barrier]).added, [true, false]);
  assert.deepEqual(batchOf([barrier, plain]).added, [true, false]);
});

test('a second gated insert of the same row starts a new batch', () => {
  const gated = () => unit([`instance.insert ${A} {}`], 'exists');
  const other = unit([`instance.insert ${B} {}`], 'exists');
  const births = unit([`instance.insert ${A} {}`], 'batch');
  assert.deepEqual(batchOf([gated(), other, gated()]).added, [true, true, false]);
  assert.deepEqual(batchOf([gated(), births]).added, [true, false]);
});

test('a unit whose gate finds its row writes nothing and says so', () => {
  const found = unit([`instance.insert ${A} {"id":"a"}`, 'audit.insert x {"of":"a"}'], 'exists');
  const inserted = unit([`instance.insert ${B} {"id":"b"}`, 'audit.insert y {"of":"b"}'], 'exists');
  assert.deepEqual(named(gateCommands([found, inserted])), [
    'gate of instance.insert [{"id":"a"},{"id":"b"}]',
  ]);
  const ids = new Set([B]);
  assert.deepEqual(named(bodyCommands([found, inserted], ids)), ['audit.insert [{"of":"b"}]']);
  assert.deepEqual(committedAck(found, ids), { seq: found.seq, outcome: 'exists' });
  assert.deepEqual(committedAck(inserted, ids), { seq: inserted.seq, outcome: 'committed' });
});

test('of births only what belongs to the inserted is written, and the outcome names them', () => {
  const births = unit(
    [
      `instance.insert ${A} {"id":"a"}`,
      `timer.set ${A} {"of":"a"}`,
      `instance.insert ${B} {"id":"b"}`,
      `timer.set ${B} {"of":"b"}`,
      `audit.insert ${B}:1 {"of":"b"}`,
    ],
    'batch',
  );
  const ids = new Set([B]);
  assert.deepEqual(named(bodyCommands([births], ids)), [
    'audit.insert [{"of":"b"}]',
    'timer.set [{"of":"b"}]',
  ]);
  assert.deepEqual(committedAck(births, ids), { seq: births.seq, outcome: 'inserted', ids: [B] });
});

test('only the first insert of a gated unit is its gate', () => {
  const one = unit(
    [`sequence.insert ${A} {"id":"a"}`, `instance.insert ${B} {"id":"b"}`],
    'exists',
  );
  assert.deepEqual(named(gateCommands([one])), ['gate of sequence.insert [{"id":"a"}]']);
  assert.deepEqual(named(bodyCommands([one], new Set([A]))), ['instance.insert [{"id":"b"}]']);
});

test('rows that are lines and rows that are objects are two statements of their kind', () => {
  const units = [
    unit([`audit.insert ${A} a1`, `instance.insert ${A} i1`]),
    unit([`audit.insert ${A} {"id":2}`, `instance.insert ${B} i2`]),
    unit([`audit.insert ${A} a3`]),
  ];
  assert.deepEqual(named(bodyCommands(units)), [
    'lines of instance.insert i1\ni2',
    'audit.insert [{"id":2}]',
    'lines of audit.insert a1\na3',
  ]);
  const gated = [
    unit([`instance.insert ${A} a`], 'exists'),
    unit([`instance.insert ${B} {}`], 'exists'),
  ];
  assert.deepEqual(named(gateCommands(gated)), [
    'gate of instance.insert [{}]',
    'lines of the gate of instance.insert a',
  ]);
});

test('an envelope that no actor may send is a defect', () => {
  const bad: readonly UnitEnvelope[] = [
    { ...FROM, seq: 1, gate: 'none', mutations: [MUTATION_KINDS.length, A, '{}'] },
    {
      ...FROM,
      seq: 1,
      gate: 'exists',
      mutations: [MUTATION_KINDS.indexOf('audit.insert'), A, '{}'],
    },
  ];
  for (const envelope of bad) assert.throws(() => readUnit(envelope));
});
