/**
 * The law of batches: the statements of a batch leave the rows, and tell the outcomes, that its units
 * one after the other would. Shown on a model of the tables.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Ack } from '../../actors/runtime/protocol.js';
import type { UnitGate } from '../../src/core/unit.js';
import {
  Batch,
  type BatchUnit,
  bodyCommands,
  committedAck,
  gateCommands,
  readUnit,
} from '../../src/db/batch.js';
import {
  MUTATION_KINDS,
  MUTATIONS,
  type Mutation,
  type MutationKind,
} from '../../src/db/mutations.js';
import { GATED_STATEMENTS, STATEMENTS } from '../../src/db/statements.js';
import { check } from '../helpers/properties.js';

/** A value for each column, which are named after the kinds that write them. */
interface Row {
  readonly key: string;
  readonly columns: Readonly<Partial<Record<MutationKind, number>>>;
}

function rowOf(text: string): Row {
  const { key, ...columns } = JSON.parse(text) as { key: string };
  return { key, columns };
}

/** A kind writes the columns of those that narrow it, too. */
function textOf(kind: MutationKind, key: string, value: number): string {
  const narrower = MUTATION_KINDS.filter((it) => (MUTATIONS[it] as Mutation).narrows === kind);
  const columns = [kind, ...narrower].map((column) => [column, value]);
  return JSON.stringify({ key, ...Object.fromEntries(columns) });
}

/** `table/key` → what the statements left there. */
type Tables = Map<string, string>;

class Conflict extends Error {}

/** The group of a special mutation stands for its table: what it prunes nobody else writes. */
function tableOf(kind: MutationKind): string {
  const mutation: Mutation = MUTATIONS[kind];
  return mutation.does === 'special' ? mutation.group : mutation.table;
}

function isInsert(kind: MutationKind): boolean {
  const mutation: Mutation = MUTATIONS[kind];
  return mutation.does === 'insert' && mutation.onConflict === 'error';
}

function isUpdate(kind: MutationKind): boolean {
  return MUTATIONS[kind].does === 'update' || kind === 'execution.update';
}

/** One statement of the kind over the rows. @throws Conflict as a unique index would */
function run(tables: Tables, kind: MutationKind, rows: readonly Row[]): void {
  const touched = new Set<string>();
  const mutation: Mutation = MUTATIONS[kind];
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
function runGated(tables: Tables, kind: MutationKind, rows: readonly Row[]): string[] {
  return rows.flatMap((row) => {
    if (tables.has(`${tableOf(kind)}/${row.key}`)) return [];
    run(tables, kind, [row]);
    return [row.key];
  });
}

const KIND_OF = new Map<string, MutationKind>(
  MUTATION_KINDS.map((kind) => [STATEMENTS[kind].name, kind]),
);
const GATED_KIND_OF = new Map<string, MutationKind>([
  [GATED_STATEMENTS['sequence.insert'].name, 'sequence.insert'],
  [GATED_STATEMENTS['instance.insert'].name, 'instance.insert'],
]);

const rowsIn = (texts: readonly string[]) => texts.map(rowOf);

/** As the writer applies a batch. */
function flush(tables: Tables, units: readonly BatchUnit[]): Ack[] {
  const inserted = new Set<string>();
  for (const { statement, rows } of gateCommands(units)) {
    const kind = GATED_KIND_OF.get(statement.name)!;
    for (const key of runGated(tables, kind, rowsIn(rows))) inserted.add(key);
  }
  for (const { statement, rows } of bodyCommands(units, inserted)) {
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
 * what it notes of an instance, is never there again once it is gone.
 */
const APART: ReadonlySet<MutationKind> = new Set([
  'kinNote.clear',
  'instance.insertChild',
  'bulkJob.clear',
  'bulkChange.clear',
]);
/** Kinds that a unit may have beside its gate. Deletions are barriers and tested by example. */
const PLAIN = MUTATION_KINDS.filter(
  (kind) => MUTATIONS[kind].merge !== 'barrier' && !APART.has(kind),
);
const FREE = PLAIN.filter((kind) => !isInsert(kind) && !isUpdate(kind));

const put = (kinds: readonly MutationKind[], keys: readonly string[] = KEYS) =>
  fc.tuple(fc.constantFrom(...kinds), fc.constantFrom(...keys), fc.nat(9));

type Puts = readonly (readonly [MutationKind, string, number])[];

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
    readUnit({
      seq,
      actor: 'actor',
      incarnation: 0,
      gate,
      mutations: puts.flatMap(([kind, key, value]) => [
        MUTATION_KINDS.indexOf(kind),
        key,
        textOf(kind, key, value),
      ]),
    }),
  );
}

/** Cuts the units into batches as a lane does. */
function batchesOf(units: readonly BatchUnit[], rowsMax: number): BatchUnit[][] {
  const batches: BatchUnit[][] = [];
  let batch = new Batch<BatchUnit>({ rowsMax, bytesMax: 10_000 });
  for (const unit of units) {
    if (batch.tryAdd(unit)) continue;
    batches.push(batch.units);
    batch = new Batch<BatchUnit>({ rowsMax, bytesMax: 10_000 });
    batch.tryAdd(unit);
  }
  return batch.units.length === 0 ? batches : [...batches, batch.units];
}

/** The whole batch, or its halves when it is refused: a unit that is refused alone leaves nothing. */
function flushHalving(tables: Tables, units: readonly BatchUnit[]): Ack[] {
  const copy = new Map(tables);
  try {
    return flush(tables, units);
  } catch (error) {
    if (!(error instanceof Conflict)) throw error;
    tables.clear();
    for (const [at, value] of copy) tables.set(at, value);
  }
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

function applyOrRefuse(tables: Tables, unit: BatchUnit): Ack {
  const copy = new Map(tables);
  try {
    return applyUnit(tables, unit);
  } catch (error) {
    if (!(error instanceof Conflict)) throw error;
    tables.clear();
    for (const [at, value] of copy) tables.set(at, value);
    return duplicate(unit);
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
  assert.ok(refusals > 0, 'some batches were refused');
});
