/** How units become statements, and which rows of every table go with a tenant. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { STORE } from '../../actors/shard/store.js';
import { findingTables, rowsOf, tenantTables } from '../../src/cluster/tenant-rows.js';
import { WriterLag } from '../../src/cluster/writer-lag.js';
import type { UnitGate } from '../../src/core/unit.js';
import type { BatchUnit, RowsCommand } from '../../src/db/batch.js';
import { Batch, bodyCommands, committedAck, gateCommands, readUnit } from '../../src/db/batch.js';
import type { Mutation } from '../../src/db/mutation.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { RowsBuffer } from '../../src/db/writer-session.js';
import { check, isWholeRun } from '../helpers/properties.js';
import {
  GATED_LINE_STATEMENTS,
  GATED_STATEMENTS,
  KINDS,
  LINE_STATEMENTS,
  MUTATION_KINDS,
  MUTATIONS,
  STATEMENTS,
  TABLES,
} from '../helpers/store.js';

const A = '01950000-0000-7000-8000-00000000000a';
const B = '01950000-0000-7000-8000-00000000000b';

const FROM = { actor: 'actor', incarnation: 0 };
let seq = 0;

/** @param puts each a kind, a key and a row */
function unit(puts: readonly string[], gate: UnitGate = 'none'): BatchUnit {
  const mutations = puts.flatMap((put) => {
    const [kind, key = '', ...row] = put.split(' ');
    return [MUTATION_KINDS.indexOf(kind as string), key, row.join(' ')];
  });
  seq += 1;
  return readUnit(KINDS, { ...FROM, seq, gate, mutations }, undefined);
}

function batchOf(units: readonly BatchUnit[], limits = { rowsMax: 10, bytesMax: 100 }) {
  const batch = new Batch(limits, new Set());
  return { batch, added: units.map((one) => batch.tryAdd(one)) };
}

/** The kinds of mutations by the names of their statements. */
const SENT = new Map(
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
  commands.map((command) => `${SENT.get(command.statement.name)} ${BUFFER.bytesOf(command)}`);

test('a note is deleted behind those that come in its place, by its own id', () => {
  const units = [
    unit([`familyMessage.clear n1 {"id":1}`]),
    unit([`familyMessage.set ${A}:${B} {"id":2}`]),
  ];
  const sent = named(bodyCommands(KINDS, units));
  assert.deepEqual(sent, ['familyMessage.set [{"id":2}]', 'familyMessage.clear [{"id":1}]']);
});

test('a task that is claimed and ended in one batch is written once', () => {
  const units = [unit([`task.claim ${A} c1`]), unit([`task.end ${A} e1`, `task.claim ${B} c2`])];
  const sent = named(bodyCommands(KINDS, units));
  assert.deepEqual(sent, ['lines of task.claim c2', 'lines of task.end e1']);
});

test('statements run in the order of the kinds, whatever the order in the units', () => {
  const units = [
    unit(MUTATION_KINDS.toReversed().map((kind) => `${kind} ${kind} {"k":"${kind}"}`)),
  ];
  // The two kinds of a group replace each other, so one of each group is left, the last one put.
  const names = bodyCommands(KINDS, units).map(({ statement }) => statement.name);
  const order = MUTATION_KINDS.map((kind) => STATEMENTS[kind]!.name);
  const expected = order.filter((name) => names.includes(name));
  assert.deepEqual(names, expected);
  assert.equal(names.length, MUTATION_KINDS.length);
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

test('rows that are lines and rows that are objects are two statements of their kind', () => {
  const units = [
    unit([`audit.insert ${A} a1`, `instance.insert ${A} i1`]),
    unit([`audit.insert ${A} {"id":2}`, `instance.insert ${B} i2`]),
    unit([`audit.insert ${A} a3`]),
  ];
  assert.deepEqual(named(bodyCommands(KINDS, units)), [
    'lines of instance.insert i1\ni2',
    'audit.insert [{"id":2}]',
    'lines of audit.insert a1\na3',
  ]);
  const gated = [`${A} a`, `${B} {}`].map((row) => unit([`instance.insert ${row}`], 'exists'));
  assert.deepEqual(named(gateCommands(KINDS, gated)), [
    'gate of instance.insert [{}]',
    'lines of the gate of instance.insert a',
  ]);
});

test('an envelope that no actor may send is a defect', () => {
  const audit = MUTATION_KINDS.indexOf('audit.insert');
  const bad: readonly UnitEnvelope[] = [
    { ...FROM, seq: 1, gate: 'none', mutations: [MUTATION_KINDS.length, A, '{}'] },
    { ...FROM, seq: 1, gate: 'exists', mutations: [audit, A, '{}'] },
  ];
  for (const envelope of bad) assert.throws(() => readUnit(KINDS, envelope, undefined));
});

/** A value for each column, which are named after the kinds that write them. */
interface Row {
  readonly key: string;
  readonly columns: Readonly<Partial<Record<string, number>>>;
}

function rowOf(text: string): Row {
  const { key, ...columns } = JSON.parse(text) as { key: string };
  return { key, columns };
}

/** A kind writes the columns of those that narrow it, too. */
function textOf(kind: string, key: string, value: number): string {
  const narrower = MUTATION_KINDS.filter((it) =>
    (MUTATIONS[it]! as Mutation).narrows?.some((wide) => wide.kind === kind),
  );
  const columns = [kind, ...narrower].map((column) => [column, value]);
  return JSON.stringify({ key, ...Object.fromEntries(columns) });
}

/** `table/key` → what the statements left there. */
type Tables = Map<string, string>;

class Conflict extends Error {}

/** The group of a special mutation stands for its table: what it prunes nobody else writes. */
function tableOf(kind: string): string {
  const mutation: Mutation = MUTATIONS[kind]!;
  return mutation.does === 'special' ? mutation.group : mutation.table.name;
}

function isInsert(kind: string): boolean {
  const mutation: Mutation = MUTATIONS[kind]!;
  return mutation.does === 'insert' && mutation.onConflict === 'error';
}

const isUpdate = (kind: string): boolean =>
  MUTATIONS[kind]!.does === 'update' || kind === 'execution.update';

/** One statement of the kind over the rows. @throws Conflict as a unique index would */
function run(tables: Tables, kind: string, rows: readonly Row[]): void {
  const touched = new Set<string>();
  const mutation: Mutation = MUTATIONS[kind]!;
  for (const { key, columns } of rows) {
    const value = columns[kind];
    const at = `${tableOf(kind)}/${key}`;
    if (isInsert(kind)) {
      if (tables.has(at)) throw new Conflict(at);
      tables.set(at, `inserted ${value}`);
    } else if (mutation.does === 'insert' && mutation.onConflict === 'nothing') {
      if (!tables.has(at)) tables.set(at, `inserted ${value}`);
    } else if (mutation.does === 'insert') {
      // Postgres refuses to touch a row twice in one such statement.
      if (touched.has(at)) throw new Conflict(at);
      tables.set(at, `set ${value}`);
    } else if (kind === 'runtime.set') {
      tables.set(at, `set ${value}`);
    } else if (isUpdate(kind)) {
      // Of several matching rows an update would take any: the batch may never send two.
      if (touched.has(at)) throw new Conflict(at);
      const isKept = (part: string) => !Object.hasOwn(columns, part.slice(0, part.indexOf(' ')));
      const kept = (tables.get(at) ?? '').split(';').filter(isKept);
      const written = Object.entries(columns).map((column) => column.join(' '));
      if (tables.has(at)) tables.set(at, [...kept, ...written].sort().join(';'));
    } else {
      tables.delete(at);
    }
    touched.add(at);
  }
}

/** The gated insert: returns the keys that were new. */
function runGated(tables: Tables, kind: string, rows: readonly Row[]): string[] {
  return rows.flatMap((row) => {
    if (tables.has(`${tableOf(kind)}/${row.key}`)) return [];
    run(tables, kind, [row]);
    return [row.key];
  });
}

const KIND_OF = new Map<string, string>(
  MUTATION_KINDS.map((kind) => [STATEMENTS[kind]!.name, kind]),
);
const GATED_KIND_OF = new Map<string, string>([
  [GATED_STATEMENTS['sequence.insert']!.name, 'sequence.insert'],
  [GATED_STATEMENTS['instance.insert']!.name, 'instance.insert'],
]);

const rowsIn = (texts: readonly string[]) => texts.map(rowOf);

/** As the writer applies a batch. */
function flush(tables: Tables, units: readonly BatchUnit[]): Ack[] {
  const inserted = new Set<string>();
  for (const { statement, rows } of gateCommands(KINDS, units)) {
    const kind = GATED_KIND_OF.get(statement.name)!;
    for (const key of runGated(tables, kind, rowsIn(rows))) inserted.add(key);
  }
  for (const { statement, rows } of bodyCommands(KINDS, units, inserted)) {
    run(tables, KIND_OF.get(statement.name)!, rowsIn(rows));
  }
  return units.map((unit) => committedAck(unit, inserted));
}

/** What a unit does, mutation by mutation. */
function applyUnit(tables: Tables, unit: BatchUnit): Ack {
  const inserted: string[] = [];
  let isFirstInsert = true;
  for (let i = 0; i < unit.mutations.length; i += 3) {
    const kind = MUTATION_KINDS[unit.mutations[i] as number]!;
    const key = unit.mutations[i + 1] as string;
    const row = rowOf(unit.mutations[i + 2] as string);
    const isInsert = kind === 'instance.insert' || kind === 'sequence.insert';
    if (unit.gate === 'exists' && isInsert && isFirstInsert) {
      isFirstInsert = false;
      if (runGated(tables, kind, [row]).length === 0) return { seq: unit.seq, outcome: 'exists' };
    } else if (unit.gate === 'batch') {
      if (kind === 'instance.insert') inserted.push(...runGated(tables, kind, [row]));
      else if (inserted.includes(key)) run(tables, kind, [row]);
    } else {
      run(tables, kind, [row]);
    }
  }
  const { seq } = unit;
  return unit.gate === 'batch'
    ? { seq, outcome: 'inserted', ids: inserted }
    : { seq, outcome: 'committed' };
}

const KEYS = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(36));

/**
 * One names a row by more than its key; ids of children are never those of other instances; and a job, or
 * what it notes of an instance, or an item of a start, is never there again once it is gone. Search terms are
 * inserted with their instance.
 */
const APART: ReadonlySet<string> = new Set([
  ...([
    'familyMessage.clear',
    'instance.insertChild',
    'bulkJob.clear',
    'bulkChange.clear',
    'collectedItem.clear',
    'collectedItem.remove',
    'searchTerm.insert',
  ] as const),
]);
/** Kinds that a unit may have beside its gate. Deletions are barriers and tested by example. */
const PLAIN = MUTATION_KINDS.filter((it) => MUTATIONS[it]!.merge !== 'barrier' && !APART.has(it));
const FREE = PLAIN.filter((kind) => !isInsert(kind) && !isUpdate(kind));

const put = (kinds: readonly string[], keys: readonly string[] = KEYS) =>
  fc.tuple(fc.constantFrom(...kinds), fc.constantFrom(...keys), fc.nat(9));

type Puts = readonly (readonly [string, string, number])[];

const ungated = fc.record({
  gate: fc.constant<UnitGate>('none'),
  puts: fc.array(put(PLAIN), { maxLength: 6 }) as fc.Arbitrary<Puts>,
});
const exists = fc
  .tuple(put(['instance.insert', 'sequence.insert']), fc.array(put(FREE), { maxLength: 4 }))
  .map(([first, rest]) => ({ gate: 'exists' as UnitGate, puts: [first, ...rest] as Puts }));
/** With rows that belong to the instances of the unit, as births are defined. */
const births = fc.uniqueArray(fc.constantFrom(...KEYS), { minLength: 1 }).chain((keys) =>
  fc.array(put(FREE, keys), { maxLength: 6 }).map((rest) => ({
    gate: 'batch' as UnitGate,
    puts: [...keys.map((key) => ['instance.insert', key, 1] as const), ...rest] as Puts,
  })),
);

function toUnits(made: readonly { gate: UnitGate; puts: Puts }[]): BatchUnit[] {
  return made.map(({ gate, puts }, seq) =>
    readUnit(
      KINDS,
      {
        seq,
        actor: 'actor',
        incarnation: 0,
        gate,
        mutations: puts.flatMap(([kind, key, value]) => {
          return [MUTATION_KINDS.indexOf(kind), key, textOf(kind, key, value)];
        }),
      },
      undefined,
    ),
  );
}

/** Cuts the units into batches as a lane does. */
function batchesOf(units: readonly BatchUnit[], rowsMax: number): BatchUnit[][] {
  const batches: BatchUnit[][] = [];
  const next = () => new Batch<BatchUnit>({ rowsMax, bytesMax: 10_000 }, new Set());
  let batch = next();
  for (const unit of units) {
    if (batch.tryAdd(unit)) continue;
    batches.push(batch.units);
    batch = next();
    batch.tryAdd(unit);
  }
  return batch.units.length === 0 ? batches : [...batches, batch.units];
}

/** The whole batch, or its halves when it is refused: a unit that is refused alone leaves nothing. */
function flushHalving(tables: Tables, units: readonly BatchUnit[]): Ack[] {
  const acks = whole(tables, () => flush(tables, units));
  if (acks !== undefined) return acks;
  if (units.length === 1) return [duplicate(units[0]!)];
  const middle = units.length >> 1;
  return [
    ...flushHalving(tables, units.slice(0, middle)),
    ...flushHalving(tables, units.slice(middle)),
  ];
}

function duplicate({ seq }: BatchUnit): Ack {
  return { seq, outcome: 'refused', sqlState: '23505', reason: '' };
}

const applyOrRefuse = (tables: Tables, unit: BatchUnit): Ack =>
  whole(tables, () => applyUnit(tables, unit)) ?? duplicate(unit);

/** Undefined when it comes upon a conflict, which leaves nothing of it. */
function whole<T>(tables: Tables, work: () => T): T | undefined {
  const copy = new Map(tables);
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Conflict)) throw error;
    tables.clear();
    for (const [at, value] of copy) tables.set(at, value);
    return undefined;
  }
}

/**
 * An actor updates only rows that it inserted before, which the writer may rely on; what a refused
 * unit inserted is not there.
 */
function updatesOnlyWhatIsThere(units: readonly BatchUnit[], tables: Tables): boolean {
  const copy = new Map(tables);
  return units.every((unit) => {
    const own = new Set<string>();
    for (let i = 0; i < unit.mutations.length; i += 3) {
      const kind = MUTATION_KINDS[unit.mutations[i] as number]!;
      const at = `${tableOf(kind)}/${unit.mutations[i + 1]}`;
      if (isInsert(kind)) own.add(at);
      else if (isUpdate(kind) && !copy.has(at) && !own.has(at)) return false;
    }
    applyOrRefuse(copy, unit);
    return true;
  });
}

test('a batch leaves the rows and outcomes of its units one after the other', (t) => {
  let refusals = 0;
  check(
    t,
    2_000,
    fc.tuple(
      fc.array(fc.oneof(ungated, exists, births), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 4, max: 40 }),
      fc.subarray(KEYS),
    ),
    ([made, rowsMax, present]) => {
      const units = toUnits(made);
      const before: Tables = new Map(
        present.flatMap((key) =>
          ['instances', 'sequences', 'tasks', 'timers'].map((table) => [`${table}/${key}`, '']),
        ),
      );
      fc.pre(updatesOnlyWhatIsThere(units, before));
      const expected = new Map(before);
      const actual = new Map(before);
      const expectedAcks = units.map((unit) => applyOrRefuse(expected, unit));
      const acks = batchesOf(units, rowsMax).flatMap((batch) => flushHalving(actual, batch));
      refusals += acks.filter(({ outcome }) => outcome === 'refused').length;
      assert.deepEqual(acks, expectedAcks);
      assert.deepEqual(new Map([...actual].sort()), new Map([...expected].sort()));
    },
  );
  if (isWholeRun) assert.ok(refusals > 0, 'some batches were refused');
});

test('lag is what waits at the rate of late, and the time without a commit while there is none', () => {
  const readings = [
    { at: 0, backlog: 0, committed: 0 },
    { at: 1_000, backlog: 0, committed: 50 },
    { at: 2_000, backlog: 20, committed: 150 },
    { at: 3_000, backlog: 20, committed: 150 },
    { at: 4_000, backlog: 20, committed: 150 },
    { at: 5_000, backlog: 0, committed: 170 },
  ];
  let at = 0;
  const lag = new WriterLag(() => readings[at++]!);
  const seen = readings.slice(1).map(() => lag.ms());
  assert.deepEqual(seen, [0, 200, 1_000, 2_000, 0]);
});

const TENANT_TABLES = tenantTables(STORE);

/** In one of these whoever has anything at all has something; of all others the rows hang on theirs. */
const FINDING = [
  ...[
    'actions',
    'api_keys',
    'bulk_jobs',
    'capsule_imports',
    'continuity_executions',
    'credentials',
  ],
  ...['cron_schedules', 'events', 'instances', 'pending_starts', 'rate_limits'],
  ...['releases', 'runtimes'],
  ...['sequences', 'tenant_limits', 'triggers', 'webhook_subscriptions', 'worker_endpoints'],
  'workers',
];

const names = TENANT_TABLES.map(({ name }) => name);

test('every table goes with a tenant, or has a reason to stay', () => {
  const staying = Object.values(TABLES).filter(({ stays }) => stays !== undefined);
  const ofCell = staying.map(({ name }) => name);
  assert.deepEqual(ofCell.sort(), ['change_mark', 'lane_flushes', 'lanes']);
  assert.deepEqual([...names, ...ofCell].sort(), Object.keys(TABLES).sort());
});

test('rows by which those of other tables are found are deleted after these', () => {
  for (const [at, { where }] of TENANT_TABLES.entries()) {
    for (const [, other] of where.matchAll(/from (\w+)/g)) {
      assert.ok(names.indexOf(other as string) > at, `${names[at]} before ${other}`);
    }
  }
});

test('a tenant is named as it is, whatever its name has in it', () => {
  const [table] = TENANT_TABLES.filter(({ name }) => name === 'api_keys');
  assert.equal(rowsOf(table!, "'$& $T'"), "tenant_id = '$& $T'");
});

test('whose rows are found by the tenant finds it, or follows what does', () => {
  assert.deepEqual(findingTables(STORE).toSorted(), FINDING);
});

const ROOMS = ['src/db', 'actors', 'docs/statements.sql'];

/** What follows these is a table, but in `extract(… from column)` and `is distinct from column`. */
const NAMED_WITH_SCHEMA =
  /(?<!distinct |extract\(\w+ )\b(?:from|join|into|update|table|references|copy|truncate|only)\s+\(?"?[a-z_]\w*"?\."?[a-z_]\w*/g;

const namesWithSchema = (text: string): string[] => text.match(NAMED_WITH_SCHEMA) ?? [];

function textsIn(room: string): string[] {
  if (!isFolder(room)) return [room];
  const files = readdirSync(room, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => /\.(ts|sql)$/.test(file)).map((file) => path.join(room, file));
}

const isFolder = (room: string) => !path.extname(room);

test('no statement and no migration names the schema of a table', () => {
  assert.deepEqual(namesWithSchema('select 1 from east.instances i join timers t'), [
    'from east.instances',
  ]);
  const files = ROOMS.flatMap(textsIn);
  assert.ok(files.length > 200);
  const found = files.flatMap((file) =>
    namesWithSchema(readFileSync(file, 'utf8')).map((name) => `${file}: ${name}`),
  );
  assert.deepEqual(found, []);
});

test('no migration makes what belongs to a whole database, or runs as somebody else', () => {
  const WHOLE =
    /\bcreate (or replace )?(extension|function|procedure|type|domain|trigger|schema|role|event trigger)\b/g;
  const made = textsIn('src/db/migrations').flatMap((file) =>
    (readFileSync(file, 'utf8').match(WHOLE) ?? []).map((what) => `${file}: ${what}`),
  );
  assert.deepEqual(made, []);
});
