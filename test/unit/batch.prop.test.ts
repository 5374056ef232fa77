/**
 * The law of batches: the statements of a batch leave the rows, and tell the outcomes, that its units
 * one after the other would. Shown on a model of the tables.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Ack } from '../../actors/protocol.js';
import {
  MUTATION_KINDS,
  MUTATION_RULES,
  type MutationKind,
  type UnitGate,
} from '../../src/core/unit.js';
import {
  Batch,
  type BatchUnit,
  bodyCommands,
  committedAck,
  gateCommands,
  readUnit,
} from '../../src/db/batch.js';
import { GATED_STATEMENTS, STATEMENTS } from '../../src/db/statements.js';

interface Row {
  readonly key: string;
  readonly value: number;
}

/** `table/key` → what the statements left there. */
type Tables = Map<string, string>;

class Conflict extends Error {}

const TABLE_OF: Readonly<Record<MutationKind, string>> = {
  'sequence.insert': 'sequences',
  'sequence.update': 'sequences',
  'sequence.delete': 'sequences',
  'instance.insert': 'instances',
  'instance.update': 'instances',
  'instance.context': 'instances',
  'instance.rebind': 'instances',
  'instance.trace': 'instances',
  'instance.delete': 'instances',
  'injection.set': 'injections',
  'output.dropErrors': 'outputs',
  'output.dropBlocks': 'outputs',
  'output.insert': 'outputs',
  'snapshot.clear': 'snapshots',
  'snapshot.set': 'snapshots',
  'signal.insert': 'signals',
  'audit.insert': 'audit',
  'stepLog.insert': 'logs',
  'checkpoint.insert': 'checkpoints',
  'checkpoint.prune': 'checkpoints',
  'task.insert': 'tasks',
  'task.update': 'tasks',
  'openTask.insert': 'open',
  'openTask.delete': 'open',
  'timer.clear': 'timers',
  'timer.set': 'timers',
  'deadLetter.clear': 'dead',
  'deadLetter.set': 'dead',
  'permitRequest.clear': 'requests',
  'permitRequest.set': 'requests',
  'permit.clear': 'permits',
  'permit.set': 'permits',
  'rateLimit.clear': 'limits',
  'rateLimit.set': 'limits',
  'rateGrant.prune': 'pruned grants',
  'rateGrant.insert': 'grants',
  'worker.seen': 'workers',
  'cron.clear': 'schedules',
  'cron.set': 'schedules',
  'apiKey.insert': 'keys',
  'apiKey.update': 'keys',
  'webhook.clear': 'outbox',
  'webhook.set': 'outbox',
  'delivery.insert': 'deliveries',
  'delivery.prune': 'pruned deliveries',
  'changeMark.set': 'change mark',
  'release.set': 'releases',
  'releaseDecision.insert': 'decisions',
  'releaseOutcome.clear': 'outcomes',
  'releaseOutcome.set': 'outcomes',
  'instance.ownership': 'instances',
  'effect.insert': 'receipts',
  'effectResolution.set': 'resolutions',
  'execution.insert': 'executions',
  'execution.update': 'executions',
  'location.insert': 'locations',
  'provenance.insert': 'provenance',
  'runtime.set': 'runtimes',
  'placement.insert': 'placements',
  'handoff.set': 'handoffs',
  'artifact.insert': 'artifacts',
  'capsuleImport.insert': 'imports',
  'migration.set': 'migrations',
};

const INSERTS: ReadonlySet<MutationKind> = new Set([
  'sequence.insert',
  'instance.insert',
  'output.insert',
  'signal.insert',
  'audit.insert',
  'stepLog.insert',
  'checkpoint.insert',
  'task.insert',
  'rateGrant.insert',
  'apiKey.insert',
  'delivery.insert',
  'releaseDecision.insert',
  'execution.insert',
  'location.insert',
  'provenance.insert',
  'placement.insert',
  'artifact.insert',
  'capsuleImport.insert',
]);
const UPSERTS: ReadonlySet<MutationKind> = new Set([
  'snapshot.set',
  'openTask.insert',
  'timer.set',
  'deadLetter.set',
  'injection.set',
  'permitRequest.set',
  'permit.set',
  'rateLimit.set',
  'worker.seen',
  'cron.set',
  'webhook.set',
  'changeMark.set',
  'release.set',
  'releaseOutcome.set',
  'effectResolution.set',
  'handoff.set',
  'migration.set',
]);
/** Of several rows of one key they take the last. */
const LAST_WINS: ReadonlySet<MutationKind> = new Set(['runtime.set']);
/** A row that is there already stays. */
const FIRST_WINS: ReadonlySet<MutationKind> = new Set(['effect.insert']);
const UPDATES: ReadonlySet<MutationKind> = new Set([
  'sequence.update',
  'instance.update',
  'instance.context',
  'instance.rebind',
  'instance.trace',
  'instance.ownership',
  'task.update',
  'apiKey.update',
  'execution.update',
]);

/** One statement of the kind over the rows. @throws Conflict as a unique index would */
function run(tables: Tables, kind: MutationKind, rows: readonly Row[]): void {
  const touched = new Set<string>();
  for (const { key, value } of rows) {
    const at = `${TABLE_OF[kind]}/${key}`;
    if (INSERTS.has(kind)) {
      if (tables.has(at)) throw new Conflict(at);
      tables.set(at, `inserted ${value}`);
    } else if (UPSERTS.has(kind)) {
      // Postgres refuses to touch a row twice in one such statement.
      if (touched.has(at)) throw new Conflict(at);
      tables.set(at, `set ${value}`);
    } else if (LAST_WINS.has(kind)) {
      tables.set(at, `set ${value}`);
    } else if (FIRST_WINS.has(kind)) {
      if (!tables.has(at)) tables.set(at, `inserted ${value}`);
    } else if (UPDATES.has(kind)) {
      // Of several matching rows an update would take any: the batch may never send two.
      if (touched.has(at)) throw new Conflict(at);
      const columns = (tables.get(at) ?? '').split(';').filter((part) => !part.startsWith(kind));
      if (tables.has(at)) tables.set(at, [...columns, `${kind} ${value}`].sort().join(';'));
    } else {
      tables.delete(at);
    }
    touched.add(at);
  }
}

/** The gated insert: returns the keys that were new. */
function runGated(tables: Tables, kind: MutationKind, rows: readonly Row[]): string[] {
  return rows.flatMap((row) => {
    if (tables.has(`${TABLE_OF[kind]}/${row.key}`)) return [];
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

/** As the writer applies a batch. */
function flush(tables: Tables, units: readonly BatchUnit[]): Ack[] {
  const born = new Set<string>();
  for (const { statement, rows } of gateCommands(units)) {
    const kind = GATED_KIND_OF.get(statement.name)!;
    for (const key of runGated(tables, kind, JSON.parse(rows) as Row[])) born.add(key);
  }
  for (const { statement, rows } of bodyCommands(units, born)) {
    run(tables, KIND_OF.get(statement.name)!, JSON.parse(rows) as Row[]);
  }
  return units.map((unit) => committedAck(unit, born));
}

/** What the specification of units says, mutation by mutation. */
function applyUnit(tables: Tables, unit: BatchUnit): Ack {
  const born: string[] = [];
  let isFirstInsert = true;
  for (let i = 0; i < unit.mutations.length; i += 3) {
    const kind = MUTATION_KINDS[unit.mutations[i] as number]!;
    const key = unit.mutations[i + 1] as string;
    const row = JSON.parse(unit.mutations[i + 2] as string) as Row;
    const isInsert = kind === 'instance.insert' || kind === 'sequence.insert';
    if (unit.gate === 'exists' && isInsert && isFirstInsert) {
      isFirstInsert = false;
      if (runGated(tables, kind, [row]).length === 0) return [unit.seq, 'exists'];
    } else if (unit.gate === 'births') {
      if (kind === 'instance.insert') born.push(...runGated(tables, kind, [row]));
      else if (born.includes(key)) run(tables, kind, [row]);
    } else {
      run(tables, kind, [row]);
    }
  }
  return unit.gate === 'births' ? [unit.seq, 'born', born] : [unit.seq, 'committed'];
}

const KEYS = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(36));

/** Kinds that a unit may have beside its gate. Deletions are barriers and tested by example. */
const PLAIN = MUTATION_KINDS.filter((kind) => MUTATION_RULES[kind].merge !== 'barrier');
const FREE = PLAIN.filter((kind) => !INSERTS.has(kind) && !UPDATES.has(kind));

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
    gate: 'births' as UnitGate,
    puts: [...keys.map((key) => ['instance.insert', key, 1] as const), ...rest] as Puts,
  })),
);

function toUnits(made: readonly { gate: UnitGate; puts: Puts }[]): BatchUnit[] {
  return made.map(({ gate, puts }, seq) =>
    readUnit([
      seq,
      'actor',
      0,
      gate,
      puts.flatMap(([kind, key, value]) => [
        MUTATION_KINDS.indexOf(kind),
        key,
        JSON.stringify({ key, value } satisfies Row),
      ]),
    ]),
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
  if (units.length === 1) return [[units[0]!.seq, 'refused', '23505', '']];
  const middle = units.length >> 1;
  return [
    ...flushHalving(tables, units.slice(0, middle)),
    ...flushHalving(tables, units.slice(middle)),
  ];
}

function applyOrRefuse(tables: Tables, unit: BatchUnit): Ack {
  const copy = new Map(tables);
  try {
    return applyUnit(tables, unit);
  } catch (error) {
    if (!(error instanceof Conflict)) throw error;
    tables.clear();
    for (const [at, value] of copy) tables.set(at, value);
    return [unit.seq, 'refused', '23505', ''];
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
      const at = `${TABLE_OF[kind]}/${unit.mutations[i + 1]}`;
      if (INSERTS.has(kind)) own.add(at);
      else if (UPDATES.has(kind) && !copy.has(at) && !own.has(at)) return false;
    }
    applyOrRefuse(copy, unit);
    return true;
  });
}

test('a batch leaves the rows and outcomes of its units one after the other', () => {
  let refusals = 0;
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ungated, exists, births), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 4, max: 40 }),
      fc.subarray(KEYS),
      (made, rowsMax, present) => {
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
        refusals += acks.filter(([, outcome]) => outcome === 'refused').length;
        assert.deepEqual(acks, expectedAcks);
        assert.deepEqual(new Map([...actual].sort()), new Map([...expected].sort()));
      },
    ),
    { numRuns: 2_000 },
  );
  assert.ok(refusals > 0, 'some batches were refused');
});
