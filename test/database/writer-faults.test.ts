/**
 * The writer between faults: connections that break at the worst moment, a database that is silent,
 * slow or away. Whatever happens, a unit is written once, told once, and counted once.
 */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Writer } from '../../actors/writer/writer.js';
import type { TroubleKind } from '../../schema/system.js';
import type { UnitGate } from '../../src/core/unit.js';
import { COMMIT, FENCE } from '../../src/db/statements.js';
import { isFaultOfData } from '../../src/db/trouble.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { COUNTER_INDEX } from '../../src/metrics/catalog.js';
import { CommitLedger } from '../../src/metrics/ledger.js';
import { Meter } from '../../src/metrics/meter.js';
import { eventually } from '../helpers/api.js';
import { column } from '../helpers/columns.js';
import { useSession } from '../helpers/database.js';
import { type Fault, FaultProxy } from '../helpers/proxy.js';
import {
  auditPut,
  createHarness,
  envelope,
  harness,
  instancePut,
  instanceUpdate,
  outcomeOf,
  type Put,
  poisonPut,
  prepareLanes,
  stopHarnesses,
  timerPut,
  uuid,
  type WriterHarness,
} from '../helpers/writer.js';

const { database, client } = useSession();
let proxy: FaultProxy;
let url: string;

beforeEach(async () => {
  await client.query('truncate instances, audit_log, timers');
  await prepareLanes(client);
  ({ proxy, url } = await FaultProxy.before(database.connectionString));
});

afterEach(async () => {
  await stopHarnesses();
  await proxy.stop();
});

async function count(table: string): Promise<number> {
  const { rows } = await client.query(`select count(*)::int as n from ${table}`);
  return rows[0].n as number;
}

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['cut-before', 'breaks before the commit arrives'],
  ['cut-after', 'breaks after the commit was made'],
  ['mute', 'goes silent after the commit was made'],
];

for (const [fault, how] of FAULTS) {
  test(`a connection that ${how} loses and repeats nothing`, async () => {
    const h = await harness({ connectionString: url });
    await h.put('a', [auditPut(1, 1)]);
    const sent = proxy.whenSent(FENCE.name, fault);
    // A repeated insert would be refused as a duplicate.
    const settled = h.put('a', [auditPut(1, 2)]);
    await sent;
    const more = h.put('a', [auditPut(1, 3)]);
    assert.deepEqual(await Promise.all([settled, more]), [
      { seq: 2, outcome: 'committed' },
      { seq: 3, outcome: 'committed' },
    ]);
    assert.equal(await count('audit_log'), 3);
    assert.deepEqual(h.events, ['down', 'up']);
  });

  test(`gated units keep their outcomes when the connection ${how}`, async () => {
    const h = await harness({ connectionString: url });
    await h.put('i2', [instancePut(2)]);
    const sent = proxy.whenSent(COMMIT.name, fault);
    const settled = [
      h.put('i1', [instancePut(1), auditPut(1, 1)], 'exists'),
      h.put('i2', [instancePut(2), auditPut(2, 1)], 'exists'),
      h.put('b', [instancePut(3), timerPut(3), instancePut(2), timerPut(2)], 'batch'),
    ];
    await sent;
    assert.deepEqual(await Promise.all(settled), [
      { seq: 2, outcome: 'committed' },
      { seq: 3, outcome: 'exists' },
      { seq: 4, outcome: 'inserted', ids: [uuid(3)] },
    ]);
    assert.equal(await count('instances'), 3);
    assert.equal(await count('audit_log'), 1);
    assert.equal(await count('timers'), 1);
  });

  test(`a unit is counted once when the connection ${how}`, async () => {
    const writer = await startWriter(url);
    writer.submit(0, 0, [counted(1, [auditPut(1, 1)])]);
    await settled(1);
    const sent = proxy.whenSent(FENCE.name, fault);
    writer.submit(0, 0, [counted(10, [auditPut(1, 2)])]);
    await sent;
    writer.submit(0, 0, [counted(100, [auditPut(1, 3)])]);
    await settled(3);
    assert.equal(total(), 111);
  });
}

test('a connection that breaks before the answer of a gate repeats the gate', async () => {
  const h = await harness({ connectionString: url });
  const sent = proxy.whenSent(FENCE.name, 'cut-after');
  const settled = h.put('i1', [instancePut(1), auditPut(1, 1)], 'exists');
  await sent;
  assert.deepEqual(await settled, { seq: 1, outcome: 'committed' });
  assert.equal(await count('audit_log'), 1);
});

test('connections that break again and again repeat nothing', async () => {
  const h = await harness({ connectionString: url, lanes: 2 });
  const rounds = 15;
  for (let round = 0; round < rounds; round++) {
    const sent = proxy.whenSent(FENCE.name, round % 2 === 0 ? 'cut-after' : 'cut-before');
    const settled = Array.from({ length: 20 }, (_, n) => h.put(`a${n}`, [auditPut(n, round)]));
    await sent;
    assert.ok((await Promise.all(settled)).every((ack) => ack.outcome === 'committed'));
  }
  assert.equal(await count('audit_log'), rounds * 20);
});

test('an idle connection that breaks is replaced before it is needed', async () => {
  const h = await harness({ connectionString: url });
  await h.put('a', [auditPut(1, 1)]);
  proxy.cut();
  await h.event('down');
  await h.event('up');
  await h.put('a', [auditPut(1, 2)]);
  assert.deepEqual(h.events, ['down', 'up']);
});

test('a writer stops when the database has lost acknowledged data', async () => {
  const h = await harness({ connectionString: url });
  await h.put('a', [auditPut(1, 1)]);
  await client.query('delete from lane_flushes');
  proxy.cut();
  await h.event('fenced');
});

test('a backend that the operator ends is replaced, and nothing is lost', async () => {
  const applicationName = 'writer ended test';
  const h = await harness({ connectionString: url, applicationName });
  for (let round = 0; round < 5; round++) {
    const settled = Array.from({ length: 50 }, (_, n) => h.put(`a${n}`, [auditPut(n, round)]));
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
      [applicationName],
    );
    await Promise.all(settled);
  }
  assert.equal(await count('audit_log'), 250);
});

test('a query that the operator cancels is repeated as a whole', async () => {
  const h = await harness({ connectionString: url, applicationName: 'writer cancelled test' });
  await h.put('a', [instancePut(1)]);
  await client.query('begin');
  await client.query('select 1 from instances for update');
  const settled = h.put('a', [auditPut(1, 1), instanceUpdate(1, 'waiting')]);
  await waitsForLock('writer cancelled test');
  await client.query(
    'select pg_cancel_backend(pid) from pg_stat_activity where application_name = $1',
    ['writer cancelled test'],
  );
  await client.query('commit');
  assert.equal((await settled).outcome, 'committed');
  assert.equal(await count('audit_log'), 1);
});

test('a lost database is reported at once, and waiting writes follow when it is back', async () => {
  const h = await harness({ connectionString: url });
  proxy.refuse();
  await h.event('down');
  const settled = Array.from({ length: 100 }, (_, n) => h.put(`a${n}`, [auditPut(n, 1)]));
  assert.equal(h.writer.options.meter.gauge('engine_writer_backlog_units'), 100);
  proxy.resume();
  await Promise.all(settled);
  await h.event('up');
  assert.equal(await count('audit_log'), 100);
});

test('a database that stalls is told, and nothing is lost', async () => {
  const h = await harness({ connectionString: url });
  proxy.stall();
  const settled = h.put('a', [auditPut(1, 1)]);
  await h.event('down');
  proxy.resume();
  assert.equal((await settled).outcome, 'committed');
  await h.event('up');
  assert.equal(await count('audit_log'), 1);
});

test('a slow flush is waited for and not cut off', async () => {
  const h = await harness({ connectionString: url });
  await h.put('a', [instancePut(1)]);
  await client.query('begin');
  await client.query('select 1 from instances for update');
  // Looks at the silent flush come over connections of their own.
  const looks = proxy.connections(2);
  const settled = h.put('a', [instanceUpdate(1, 'waiting')]);
  await looks;
  await client.query('commit');
  assert.equal((await settled).outcome, 'committed');
  assert.deepEqual(h.events, []);
});

test('a deadlock or serialization failure is repeated', async () => {
  await failing('40001', 3, async () => {
    const h = await harness({ connectionString: url });
    assert.equal((await h.put('a', [auditPut(1, 1)])).outcome, 'committed');
    assert.deepEqual(h.events, []);
  });
});

/** What the writer meets, and whether the units are to blame. */
const FAILURES: readonly (readonly [sqlState: string, kind: TroubleKind | 'refused'])[] = [
  ['53100', 'disk-full'],
  ['53200', 'resources'],
  ['53000', 'descriptors'],
  ['53300', 'connections'],
  ['42501', 'rights'],
  ['42P01', 'schema'],
  ['42703', 'schema'],
  ['3F000', 'schema'],
  ['25006', 'read-only'],
  ['0A000', 'other'],
  ['55000', 'other'],
  ['P0001', 'other'],
  ['XX001', 'other'],
  ['0A000', 'other'],
  ['22003', 'refused'],
  ['23514', 'refused'],
  ['54001', 'refused'],
];

test('a value that the encoding of the database cannot hold is an error of the data', () => {
  assert.ok(isFaultOfData('0A000', 'conversion between UTF8 and SQL_ASCII is not supported'));
});

for (const [sqlState, kind] of FAILURES) {
  const what = kind === 'refused' ? 'is the fault of the data' : `refuses nobody: ${kind}`;
  test(`what fails with ${sqlState} ${what}`, async () => {
    await failing(sqlState, 2, async () => {
      const h = await harness({ connectionString: url });
      const ack = await h.put('a', [auditPut(1, 1)]);
      if (kind === 'refused') return assert.deepEqual(outcomeOf(ack), ['refused', sqlState]);
      assert.equal(ack.outcome, 'committed');
      assert.deepEqual(h.events, ['down', 'up']);
      assert.deepEqual(h.troubles, [{ kind, sqlState, message: 'made to fail' }]);
    });
  });
}

test('while a table is renamed its units wait', async () => {
  const h = await harness({ connectionString: url });
  await h.put('a', [auditPut(1, 1)]);
  await client.query('alter table audit_log rename to audit_gone');
  const settled = h.put('a', [auditPut(1, 2)]);
  await h.event('down');
  const seen = h.troubles.map((trouble) => [trouble.kind, trouble.sqlState]);
  assert.deepEqual(seen, [['schema', '42P01']]);
  await client.query('alter table audit_gone rename to audit_log');
  assert.equal((await settled).outcome, 'committed');
  assert.equal(await count('audit_log'), 2);
});

test('a writer can be stopped while the database is away', async () => {
  const h = await harness({ connectionString: url });
  proxy.stall();
  void h.put('a', [auditPut(1, 1)]);
  await h.stop();
  assert.equal(h.acks.length, 0);
});

test('a writer that never reached the database can be stopped', async () => {
  proxy.refuse();
  const h = createHarness({ connectionString: url });
  const started = assert.rejects(h.writer.start(), /stopped/);
  await h.event('down');
  await h.stop();
  await started;
});

test('a shard is discarded only when the fate of its flush is known', async () => {
  const h = await harness({ connectionString: url });
  const sent = proxy.whenSent(FENCE.name, 'cut-after');
  void h.put('a', [auditPut(1, 1)]);
  await sent;
  proxy.refuse();
  let isDiscarded = false;
  const discarded = h.writer.discard(0, 0).then(() => {
    isDiscarded = true;
  });
  await h.event('down');
  assert.equal(isDiscarded, false);
  proxy.resume();
  await discarded;
  assert.equal(await count('audit_log'), 1);
});

test('a take-over during a lost flush fences the writer', async () => {
  const h = await harness({ connectionString: url });
  const sent = proxy.whenSent(FENCE.name, 'cut-before');
  void h.put('a', [auditPut(1, 1)]);
  await sent;
  await client.query('update lanes set epoch = 2');
  // The flush may have been sent again before the take-over: then the next one is fenced.
  void h.put('a', [auditPut(1, 2)]);
  await h.event('fenced');
  await h.stop();
  assert.equal(await count('audit_log'), h.acks.length);
});

// ---------------------------------------------------------------- counts of units

const COUNTER = COUNTER_INDEX.engine_signals_delivered_total;
/** One name, as writers have that follow one another. */
const APPLICATION = `counting writer ${process.pid}`;

let ledger: CommitLedger;
let meter: Meter;
let writers: WriterHarness[];
let seq: number;

beforeEach(() => {
  ledger = new CommitLedger(1);
  meter = new Meter();
  writers = [];
  seq = 0;
});

/** A writer over the memory that all of a test's writers share, as one thread after the other does. */
async function startWriter(connectionString: string): Promise<Writer> {
  const started = await harness({
    connectionString,
    applicationName: APPLICATION,
    ledger: new CommitLedger(1, ledger.memory),
    meter: new Meter(meter.memory),
  });
  writers.push(started);
  return started.writer;
}

/** A unit of an actor of its own that counts `by`. */
function counted(by: number, puts: readonly Put[], gate: UnitGate = 'none'): UnitEnvelope {
  seq += 1;
  return { ...envelope(seq, `actor ${seq}`, puts, gate), counts: [COUNTER, by] };
}

const total = () => ledger.totals()[COUNTER];

const acked = () => writers.flatMap(({ acks }) => acks);
const settled = (units: number) => eventually(() => assert.equal(acked().length, units));

test('a unit whose commit the writer never hears of is counted when its successor has looked', async () => {
  const writer = await startWriter(url);
  const sent = proxy.whenSent(FENCE.name, 'mute');
  writer.submit(0, 0, [counted(1, [auditPut(1, 1)])]);
  await sent;
  await eventually(async () => assert.equal(await count('audit_log'), 1));
  await writer.stop();
  await startWriter(database.connectionString);
  assert.equal(total(), 1);
});

test('a unit that was never committed is not counted, whatever its writer had prepared', async () => {
  const writer = await startWriter(url);
  writer.submit(0, 0, [counted(1, [auditPut(1, 1)])]);
  await settled(1);
  const sent = proxy.whenSent(FENCE.name, 'cut-before');
  writer.submit(0, 0, [counted(10, [auditPut(1, 2)])]);
  await sent;
  proxy.refuse();
  await writer.stop();
  const successor = await startWriter(database.connectionString);
  assert.equal(await count('audit_log'), 1);
  assert.equal(total(), 1);
  successor.submit(0, 1, [counted(100, [auditPut(1, 3)])]);
  await settled(2);
  assert.equal(total(), 101);
});

test('of a batch that is halved, what is refused is not counted', async () => {
  const writer = await startWriter(url);
  const units = Array.from({ length: 8 }, (_, i) =>
    counted(10 ** i, i === 3 ? [poisonPut(1)] : [auditPut(1, i)]),
  );
  writer.submit(0, 0, units);
  await settled(8);
  assert.equal(total(), 11_110_111);
});

test('a unit whose gate finds its row is not counted', async () => {
  const writer = await startWriter(url);
  writer.submit(0, 0, [counted(1, [instancePut(1)], 'exists')]);
  await settled(1);
  writer.submit(0, 0, [
    counted(10, [instancePut(1), auditPut(1, 1)], 'exists'),
    counted(100, [instancePut(2), auditPut(2, 1)], 'exists'),
  ]);
  await settled(3);
  assert.deepEqual(column(acked(), 'outcome'), ['committed', 'exists', 'committed']);
  assert.equal(total(), 101);
});

test('flushes are measured, and nothing is left waiting', async () => {
  const writer = await startWriter(url);
  writer.submit(0, 0, [counted(1, [auditPut(1, 1)]), counted(1, [auditPut(1, 2)])]);
  await settled(2);
  const { buckets, sum } = meter.observations('engine_writer_flush_units');
  assert.deepEqual([buckets.reduce((all, one) => all + one), sum], [1, 2]);
  assert.equal(meter.gauge('engine_writer_backlog_units'), 0);
  assert.equal(meter.gauge('engine_writer_backlog_bytes'), 0);
});

// ---------------------------------------------------------------- what the tests share

/** Resolves when a session of that name waits for a lock. */
async function waitsForLock(applicationName: string): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      `select 1 from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
      [applicationName],
    );
    if (rows.length > 0) return;
    await nextLook();
  }
}

/** Inside a transaction the view is a snapshot, which is given up here. */
async function nextLook(): Promise<void> {
  await client.query('select pg_sleep(0.01), pg_stat_clear_snapshot()');
}

/** Runs `use` while the first inserts into the audit log fail with the code. */
async function failing(sqlState: string, times: number, use: () => Promise<void>): Promise<void> {
  await client.query('create sequence attempts');
  await client.query(`
    create function fail_first() returns trigger language plpgsql as $$
    begin
      if nextval('attempts') <= ${times} then
        raise exception 'made to fail' using errcode = '${sqlState}';
      end if;
      return new;
    end $$`);
  await client.query(
    'create trigger fail_first before insert on audit_log for each row execute function fail_first()',
  );
  try {
    await use();
  } finally {
    await client.query('drop trigger fail_first on audit_log');
    await client.query('drop function fail_first');
    await client.query('drop sequence attempts');
  }
}
