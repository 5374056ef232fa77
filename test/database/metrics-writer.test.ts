/**
 * The counts of commit units when connections break around a commit, and when the writer is gone before
 * it hears of one: what is counted is what is in the rows.
 */

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import type { Ack, UnitEnvelope } from '../../actors/runtime/protocol.js';
import { Writer } from '../../actors/writer/writer.js';
import { realClock } from '../../src/clock.js';
import type { UnitGate } from '../../src/core/unit.js';
import { createClient } from '../../src/db/pool.js';
import { FENCE } from '../../src/db/statements.js';
import { COUNTER_INDEX } from '../../src/metrics/catalog.js';
import { CommitLedger } from '../../src/metrics/ledger.js';
import { Meter } from '../../src/metrics/meter.js';
import { eventually } from '../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { type Fault, FaultProxy } from '../helpers/proxy.js';
import {
  auditPut,
  envelope,
  instancePut,
  type Put,
  poisonPut,
  prepareLanes,
} from '../helpers/writer.js';

const COUNTER = COUNTER_INDEX.engine_signals_delivered_total;
const APPLICATION = `metrics writer ${process.pid}`;
const silent = () => undefined;

let database: TestDatabase;
let client: pg.Client;
let proxy: FaultProxy;
let url: string;
let ledger: CommitLedger;
let meter: Meter;
let writers: Writer[];
let acks: Ack[];
let seq: number;

before(async () => {
  database = await createTestDatabase();
  client = new pg.Client(database.connectionString);
  await client.connect();
});

after(async () => {
  await client.end();
  await database.drop();
});

beforeEach(async () => {
  await client.query('truncate instances, audit_log');
  await prepareLanes(client);
  ({ proxy, url } = await FaultProxy.before(database.connectionString));
  ledger = new CommitLedger(1);
  meter = new Meter();
  writers = [];
  acks = [];
  seq = 0;
});

afterEach(async () => {
  for (const writer of writers) await writer.stop();
  await proxy.stop();
});

/** A writer over the memory that all of a test's writers share, as one thread after the other does. */
async function startWriter(connectionString: string): Promise<Writer> {
  const writer = new Writer({
    connect: () =>
      createClient({ connectionString, applicationName: APPLICATION, statementTimeoutMs: 0 }),
    applicationName: APPLICATION,
    epoch: 1,
    lanes: 1,
    clock: realClock,
    log: { info: silent, warn: silent, error: silent },
    ledger: new CommitLedger(1, ledger.memory),
    meter: new Meter(meter.memory),
    onAcks: (_shard, _incarnation, list) => acks.push(...list),
    onFenced: () => assert.fail('fenced'),
    onDatabase: silent,
  });
  writers.push(writer);
  await writer.start();
  return writer;
}

/** A unit of an actor of its own that counts `by`. */
function counted(by: number, puts: readonly Put[], gate: UnitGate = 'none'): UnitEnvelope {
  seq += 1;
  return { ...envelope(seq, `actor ${seq}`, puts, gate), counts: [COUNTER, by] };
}

const total = () => ledger.totals()[COUNTER];

const settled = (units: number) => eventually(() => assert.equal(acks.length, units));

async function auditRows(): Promise<number> {
  const { rows } = await client.query('select count(*)::int as n from audit_log');
  return rows[0].n as number;
}

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['cut-before', 'breaks before the commit arrives'],
  ['cut-after', 'breaks after the commit was made'],
  ['mute', 'goes silent after the commit was made'],
];

for (const [fault, how] of FAULTS) {
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

test('a unit whose commit the writer never hears of is counted when its successor has looked', async () => {
  const writer = await startWriter(url);
  const sent = proxy.whenSent(FENCE.name, 'mute');
  writer.submit(0, 0, [counted(1, [auditPut(1, 1)])]);
  await sent;
  await eventually(async () => assert.equal(await auditRows(), 1));
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
  assert.equal(await auditRows(), 1);
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
  assert.deepEqual(
    acks.map(({ outcome }) => outcome),
    ['committed', 'exists', 'committed'],
  );
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
