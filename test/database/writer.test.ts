/** The writer against a real Postgres: what is written, in which order, and who is told what. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import pg from 'pg';
import { TASKS } from '../../actors/instance/old-tables.js';
import { linkControl } from '../../actors/runtime/control.js';
import runWriter, {
  type WriterControl,
  type WriterEvent,
} from '../../actors/shard/writer.thread.js';
import { chooseLanes, LANES_MAX, measuredLanes } from '../../actors/writer/lane-count.js';
import { FENCE, FLUSHES_KEPT, WRITER_SETTINGS } from '../../src/db/statements.js';
import {
  type Ack,
  BATCH_ACTOR,
  type PackedAck,
  packedUnit,
  unpackedAck,
} from '../../src/db/units.js';
import { CommitLedger } from '../../src/metrics/ledger.js';
import { Meter } from '../../src/metrics/meter.js';
import { column } from '../helpers/columns.js';
import { useSession } from '../helpers/database.js';
import { LINE_STATEMENTS, STATEMENTS } from '../helpers/store.js';
import {
  auditPut,
  createHarness,
  envelope,
  harness,
  instancePut,
  instanceUpdate,
  NOW,
  outcomeOf,
  outputPut,
  type Put,
  poisonPut,
  prepareLanes,
  sequencePut,
  stopHarnesses,
  timerPut,
  uuid,
} from '../helpers/writer.js';

const { database, client } = useSession();

beforeEach(async () => {
  await client.query(
    `truncate sequences, sequence_tombstones, instances, instance_keys, timers, dead_letters, block_outputs, iteration_snapshots,
       signals, audit_log, worker_tasks, workers, lane_flushes`,
  );
  await prepareLanes(client);
});

afterEach(stopHarnesses);

const start = (options = {}) =>
  harness({ connectionString: database.connectionString, ...options });

async function count(table: string): Promise<number> {
  const { rows } = await client.query(`select count(*)::int as n from ${table}`);
  return rows[0].n as number;
}

/** The column of the only row of the table. */
const only = async (name: string, table: string) =>
  (await one(`select ${name} from ${table}`))[name];

async function one(sql: string): Promise<Record<string, unknown>> {
  const { rows } = await client.query(sql);
  assert.equal(rows.length, 1);
  return rows[0];
}

test('every kind of mutation writes what its row says', async () => {
  const h = await start();
  const key = uuid(1);
  const unset = [
    ...['queue_name', 'overlay', 'worker_id', 'claimed_at', 'heartbeat_at', 'completed_at'],
    ...['output', 'error_message', 'error_retryable', 'resume_checkpoint'],
  ];
  const task = {
    ...Object.fromEntries(unset.map((name) => [name, null])),
    ...{ id: uuid(50), instance_id: key, tenant_id: 't', block_id: 'a', node: 3, iteration: '' },
    ...{ handler_name: 'h', params: { a: 1.1 }, attempt: 1, timeout_ms: 60_000, priority: 5 },
    ...{ state: 'pending', withdrawn: false, claim_epoch: 0, lost_claims: 0 },
    ...{ checkpoint_seq: 0, history: [] },
    ...{ rank: 2, created_at: NOW },
  };
  const claim = {
    ...{ id: task.id, worker_id: 'w', claim_epoch: 1, lost_claims: 0 },
    ...{ checkpoint_seq: 0 },
    ...{ claimed_at: NOW, heartbeat_at: NOW },
  };
  const letter = { instance_id: key, tenant_id: 't', created_at: NOW, failed_at: NOW, reason: 'r' };
  const seen = { tenant_id: 't', worker_id: 'w', handler_name: 'h', queue_name: '', version: '1' };
  await h.put('c', [
    sequencePut(7),
    ['sequence.update', uuid(7), { id: uuid(7), deprecated: true }],
  ]);
  const [, , changed] = instanceUpdate(1, 'waiting', 4);
  await h.put('i', [
    instancePut(1),
    ['instance.change', key, { ...(changed as object), data: { x: 'é' } }],
    ['instance.patch', key, { ...(changed as object), data_patch: { y: 1 } }],
    ['instance.config', key, { id: key, config: {}, context_audit: [1] }],
    outputPut(1, 1, 'text'),
    ['snapshot.set', `${key}:k`, { instance_id: key, key: 'k', items: [1, 'two'] }],
    [
      'signal.insert',
      'sig',
      { id: uuid(9), instance_id: key, seq: 1, signal_type: 's', payload: 1e300, created_at: NOW },
    ],
    auditPut(1, 1),
    ['task.insert', task.id, task],
    ['task.claim', task.id, { ...claim, state: 'claimed' }],
    ['task.history', task.id, { id: task.id, history: [{ a: 1 }] }],
    timerPut(1, true),
    ['deadLetter.set', key, letter],
    ['worker.seen', 't w h', { ...seen, last_seen_at: NOW }],
  ]);
  const sequence = await one('select deprecated, status, definition from sequences');
  assert.deepEqual(Object.values(sequence), [true, 'production', { blocks: [] }]);
  const instance = await one(
    'select state, next_fire_at, data::text as data, data_patch, signal_count, audit_count from instances',
  );
  assert.deepEqual(Object.values(instance), ['waiting', null, '{"x":"é"}', { y: 1 }, 4, 1]);
  assert.equal(await only('output', 'block_outputs'), 'text');
  assert.deepEqual(await only('items', 'iteration_snapshots'), [1, 'two']);
  assert.equal(await only('payload', 'signals'), 1e300);
  assert.deepEqual(await only('entries', 'audit_log'), [{ seq: 1 }]);
  const claimed = await one(`select state, worker_id, timeout_ms, params, history from ${TASKS} t`);
  assert.deepEqual(Object.values(claimed), ['claimed', 'w', '60000', { a: 1.1 }, [{ a: 1 }]]);
  assert.equal(await only('rank', 'worker_tasks'), 2);
  assert.equal(await only('recover', 'timers'), true);
  assert.equal(await only('reason', 'dead_letters'), 'r');
  assert.equal(await only('version', 'workers'), '1');

  await h.put('i', [
    ['snapshot.set', `${key}:k`, { instance_id: key, key: 'k', items: [] }],
    ['task.rank', task.id, { id: task.id, rank: -98 }],
    timerPut(1),
    ['deadLetter.set', key, { ...letter, reason: 'other' }],
    ['worker.seen', 't w h', { ...seen, version: '2', last_seen_at: NOW }],
  ]);
  assert.deepEqual(await only('items', 'iteration_snapshots'), []);
  assert.equal(await only('rank', 'worker_tasks'), -98);
  assert.equal(await only('recover', 'timers'), false);
  assert.equal(await only('reason', 'dead_letters'), 'other');
  assert.equal(await only('version', 'workers'), '2');

  await h.put('i', [
    ['output.dropErrors', key, { instance_id: key }],
    ['snapshot.clear', `${key}:k`, { instance_id: key, key: 'k' }],
    [
      'task.end',
      task.id,
      { ...task, ...claim, state: 'completed', rank: null, output: { done: true } },
    ],
    ['task.note', task.id, { id: task.id, checkpoint_seq: 3, history: [{ b: 2 }] }],
    ['timer.clear', key, { instance_id: key }],
    ['deadLetter.clear', key, { instance_id: key }],
  ]);
  assert.equal(await count('block_outputs'), 1);
  const ended = await one(
    'select state, worker_id, output, checkpoint_seq, history, rank from worker_tasks',
  );
  assert.deepEqual(Object.values(ended), ['completed', 'w', { done: true }, 3, [{ b: 2 }], null]);
  for (const table of ['iteration_snapshots', 'timers', 'dead_letters']) {
    assert.equal(await count(table), 0, table);
  }
});

test('only error outputs are dropped, in their place among the units', async () => {
  const h = await start();
  const [kind, key, row] = outputPut(1, 1);
  const failed = [kind, key, { ...row, output_ref: '__error__' }] as const;
  await Promise.all([
    h.put('i', [instancePut(1), failed, outputPut(1, 2)]),
    h.put('i', [['output.dropErrors', uuid(1), { instance_id: uuid(1) }]]),
    h.put('i', [outputPut(1, 1)]),
  ]);
  const { rows } = await client.query('select attempt, output_ref from block_outputs order by 1');
  assert.deepEqual(rows, [
    { attempt: 1, output_ref: null },
    { attempt: 2, output_ref: null },
  ]);
});

test('the id of a deleted sequence is taken for as long as there is a tombstone', async () => {
  const h = await start();
  const put = async () => (await h.put('c', [sequencePut(0)], 'exists')).outcome;
  const tombstone = { id: uuid(0), created_at: '2031-01-01T00:00:00Z' };
  assert.equal(await put(), 'committed');
  await h.put('c', [
    ['sequence.delete', uuid(0), { id: uuid(0) }],
    ['tombstone.set', uuid(0), tombstone],
  ]);
  assert.equal(await put(), 'exists');
  assert.equal(await count('sequences'), 0);
  await h.put('c', [['tombstone.clear', uuid(0), { id: uuid(0) }]]);
  assert.equal(await put(), 'committed');
});

test('what arrives during a flush is one batch, and outcomes come in order', async () => {
  const h = await start();
  const { meter } = h.writer.options;
  const batches = () =>
    meter.observations('engine_writer_flush_units').buckets.reduce((all, one) => all + one);
  const before = batches();
  const settled = Array.from({ length: 400 }, (_, n) => h.put(`a${n % 7}`, [auditPut(n % 7, n)]));
  const seen = new Set((await Promise.all(settled)).map((ack) => ack.outcome));
  assert.deepEqual(seen, new Set(['committed']));
  const expected = settled.map((_, n) => n + 1);
  assert.deepEqual(column(h.acks, 'seq'), expected);
  assert.equal(batches() - before, 2);
  assert.equal(meter.observations('engine_writer_flush_units').sum, 400);
  assert.equal(meter.gauge('engine_writer_backlog_units'), 0);
  assert.equal(meter.gauge('engine_writer_backlog_bytes'), 0);
  assert.equal(await count('audit_log'), 400);
});

test('a row says the same whether it goes alone, with a few, or with many', async () => {
  const h = await start();
  const said = {
    data: { 'a"b': ['c\\d', 'e,f', "'", 'Zoë 😀', null, 1.5e-7] },
    metadata: {},
    timezone: '',
  };
  const puts = (from: number, rows: number) =>
    Array.from({ length: rows }, (_, n) => instancePut(from + n, said));
  await h.put('a', puts(10, 1));
  await h.put('a', puts(20, 2));
  await h.put('a', puts(30, 3));
  await h.put('b', puts(40, 1), 'exists');
  await h.put('b', puts(50, 3), 'batch');
  const { rows } = await client.query(
    `select count(*)::int as n, (to_jsonb(i) - 'id' - 'data') || jsonb_build_object('data', i.data::text) as said
     from instances i group by 2`,
  );
  assert.deepEqual(column(rows, 'n'), [10]);
  assert.deepEqual(JSON.parse(rows[0].said.data), said.data);
  assert.equal(rows[0].said.timezone, '');
});

test('units of one batch that change a context leave what the last ones wrote, and the first context', async () => {
  const h = await start();
  await h.put('i', [instancePut(1, { data: { a: 1, b: 1 } }), instancePut(2)]);
  const [, key, row] = instanceUpdate(1, 'running');
  const patch = (n: number, data_patch: unknown, more = {}): Put => {
    return ['instance.patch', key, { ...row, signal_count: n, data_patch, ...more }];
  };
  const columns = 'state, signal_count, data::text, data_patch::text, creation_data::text';
  const seen = async () =>
    Object.values(await one(`select ${columns} from instances where id = '${uuid(1)}'`));
  // A character of this kind makes a row an object.
  const [smile, plain] = ['\u{1f600}\n', 'x'];
  await Promise.all([h.put('i', [patch(1, { b: 2 })]), h.put('i', [patch(2, { b: 3, c: plain })])]);
  assert.deepEqual(await seen(), ['running', 2, '{"a":1,"b":1}', '{"b":3,"c":"x"}', null]);
  const whole: Put = [
    'instance.change',
    key,
    { ...row, signal_count: 3, data_patch: null, data: { d: smile } },
  ];
  for (const [n, state] of ['waiting', `waiting ${smile}`].entries()) {
    // In one batch, behind the one of the other actor that is under way.
    const first = h.put('other', [auditPut(3, n)]);
    const later = [whole, patch(4, { e: plain }), instanceUpdate(1, state, 5)];
    await Promise.all([first, ...later.map((put) => h.put('i', [put]))]);
    const data = JSON.stringify({ d: smile });
    assert.deepEqual(await seen(), [state, 5, data, '{"e":"x"}', '{"a":1,"b":1}']);
  }
});

test('the second unit with an idempotency key finds the first and writes nothing', async () => {
  const h = await start();
  const outcomes = await Promise.all([
    h.put('i1', [instancePut(1, { data: { first: true } }), auditPut(1, 1)], 'exists'),
    h.put('i1', [instancePut(1, { data: { first: false } }), auditPut(1, 2)], 'exists'),
    h.put('i2', [instancePut(2), auditPut(2, 1)], 'exists'),
  ]);
  assert.deepEqual(outcomes, [
    { seq: 1, outcome: 'committed' },
    { seq: 2, outcome: 'exists' },
    { seq: 3, outcome: 'committed' },
  ]);
  assert.deepEqual(await h.put('i2', [instancePut(2)], 'exists'), { seq: 4, outcome: 'exists' });
  assert.deepEqual((await one(`select data from instances where id = '${uuid(1)}'`)).data, {
    first: true,
  });
  assert.equal(await count('audit_log'), 2);
});

test('a sequence whose version is taken exists, also when both come in one batch', async () => {
  const h = await start();
  const outcomes = await Promise.all([
    h.put('c', [sequencePut(1, 'same')], 'exists'),
    h.put('c', [sequencePut(2, 'same')], 'exists'),
    h.put('c', [sequencePut(3, 'other')], 'exists'),
  ]);
  assert.deepEqual(column(outcomes, 'outcome'), ['committed', 'exists', 'committed']);
});

test('only the unit whose data is refused fails, with the later ones of its actor', async () => {
  const h = await start();
  const settled = Array.from({ length: 300 }, (_, n) => {
    const actor = `a${n % 10}`;
    if (n === 123 || n === 205) return h.put(actor, [auditPut(n, 1), poisonPut(n)]);
    return h.put(actor, [auditPut(n, 1)]);
  });
  const acks = await Promise.all(settled);
  const expected = Array.from({ length: 300 }, (_, n) => {
    if (n === 123 || n === 205) return 'refused';
    if (n % 10 === 3 && n > 123) return 'suffix';
    return n % 10 === 5 && n > 205 ? 'suffix' : 'committed';
  });
  assert.deepEqual(column(acks, 'outcome'), expected);
  assert.equal(outcomeOf(acks[123]!)[1], '22P05');
  const { rows } = await client.query('select instance_id from audit_log order by 1');
  const wanted = expected.flatMap((outcome, n) => (outcome === 'committed' ? [uuid(n)] : []));
  assert.deepEqual(column(rows, 'instance_id'), wanted);
});

test('a refused actor stays refused until its next incarnation', async () => {
  const h = await start();
  assert.equal((await h.put('a', [poisonPut(1)])).outcome, 'refused');
  assert.equal((await h.put('a', [auditPut(1, 1)])).outcome, 'suffix');
  assert.equal((await h.put('a', [auditPut(1, 2)], 'none', 1)).outcome, 'committed');
  assert.equal((await h.put('a', [auditPut(1, 3)], 'none', 1)).outcome, 'committed');
  assert.equal((await h.put('b', [auditPut(2, 1)])).outcome, 'committed');
});

test('a refused gated unit leaves no trace, and its batch goes on', async () => {
  const h = await start();
  const acks = await Promise.all([
    h.put('i1', [instancePut(1)], 'exists'),
    h.put('i2', [instancePut(2), poisonPut(2)], 'exists'),
    h.put('b', [instancePut(3), timerPut(3)], 'batch'),
  ]);
  assert.deepEqual(column(acks, 'outcome'), ['committed', 'refused', 'inserted']);
  assert.equal(await count('instances'), 2);
});

test('units of one actor keep their order over several lanes', async () => {
  const h = await start({ lanes: 4, limits: { rowsMax: 20, bytesMax: 1_000_000 } });
  const actors = Array.from({ length: 20 }, (_, n) => n);
  await Promise.all(
    Array.from({ length: 30 }, (_, round) =>
      actors.map((n) =>
        h.put(`a${n}`, round === 0 ? [instancePut(n)] : [instanceUpdate(n, 'running', round)]),
      ),
    ).flat(),
  );
  const { rows } = await client.query('select distinct signal_count from instances');
  assert.deepEqual(rows, [{ signal_count: 29 }]);
  const used = await client.query('select distinct lane from lane_flushes order by lane');
  assert.deepEqual(column(used.rows, 'lane'), [0, 1, 2, 3]);
});

test('writes of others do not wait for the flush of a batch', async () => {
  const h = await start({ lanes: 2, isLastForBatches: true });
  await client.query('begin');
  await client.query('select from lanes where lane = 1 for update');
  let isCommitted = false;
  const batch = h.put(`${BATCH_ACTOR}1`, [instancePut(1), instancePut(2)]).then(() => {
    isCommitted = true;
  });
  for (const n of [3, 4, 5]) await h.put(`a${n}`, [instancePut(n)]);
  assert.equal(isCommitted, false);
  await client.query('commit');
  await batch;
  assert.equal(await count('instances'), 5);
});

test('births of the same instances from several lanes are all answered', async () => {
  const h = await start({ lanes: 4 });
  const some = Array.from({ length: 40 }, (_, n) => n);
  const settled = Array.from({ length: 40 }, (_, round) => {
    const order = round % 2 === 0 ? some : some.toReversed();
    return h.put(
      `births ${round}`,
      order.map((n) => instancePut(n)),
      'batch',
    );
  });
  const acks = await Promise.all(settled);
  const born = acks.flatMap((it) => (it.outcome === 'inserted' ? it.ids : assert.fail(it.outcome)));
  assert.deepEqual(born.toSorted(), some.map(uuid));
  assert.equal(await count('instances'), 40);
});

test('of an instance and a collected creation with one idempotency key, one is written, whichever lanes they use', async () => {
  const h = await start({ lanes: 4, isLastForBatches: true });
  const some = Array.from({ length: 200 }, (_, n) => n);
  const acks = await Promise.all(
    some.map((n) => {
      const id = uuid(n);
      const key = { ...{ id, instance_id: uuid(n + 1_000), tenant_id: 't', idempotency_key: 'k' } };
      const collected = () =>
        h.put(`start ${n}`, [['instanceKey.insert', id, { ...key, created_at: NOW }]], 'exists');
      const single = () => h.put(id, [instancePut(n)], 'exists');
      const batch = () => h.put(`${BATCH_ACTOR}${n}`, [instancePut(n)], 'batch');
      const others = n % 2 === 0 ? [single, batch] : [batch, single];
      return Promise.all(
        (n % 3 === 0 ? [collected, ...others] : [...others, collected]).map((put) => put()),
      );
    }),
  );
  const isNew = (ack: Ack) =>
    ack.outcome === 'inserted' ? ack.ids.length === 1 : ack.outcome === 'committed';
  assert.deepEqual(
    acks.map((of) => of.filter(isNew).length),
    some.map(() => 1),
  );
  assert.equal((await count('instances')) + (await count('instance_keys')), some.length);
});

test('a discarded shard has nothing written any more, and what was in flight is settled', async () => {
  const h = await start();
  const posts = Array.from({ length: 50 }, (_, n) => envelope(n, 'a', [auditPut(n, 1)]));
  h.writer.submit(1, 3, [envelope(100, 'a', [auditPut(100, 1)])]);
  h.writer.submit(1, 3, posts);
  const other = h.put('b', [auditPut(200, 1)]);
  await h.writer.discard(1, 3);
  h.writer.submit(1, 3, [envelope(101, 'a', [auditPut(101, 1)])]);
  h.writer.submit(1, 2, [envelope(102, 'a', [auditPut(102, 1)])]);
  h.writer.submit(1, 4, [envelope(1, 'a', [auditPut(300, 1)])]);
  await other;
  await h.writer.drain();
  const { rows } = await client.query('select instance_id from audit_log order by 1');
  assert.deepEqual(column(rows, 'instance_id'), [uuid(100), uuid(200), uuid(300)]);
  assert.equal(h.writer.options.meter.gauge('engine_writer_backlog_units'), 0);
});

test('a writer whose epoch is over writes nothing, says so once, and acknowledges nothing', async () => {
  const h = await start({ lanes: 2 });
  await h.put('a', [auditPut(1, 1)]);
  await client.query('update lanes set epoch = 2');
  for (let n = 0; n < 20; n++) void h.put(`a${n}`, [auditPut(2, n)]);
  await h.event('fenced');
  void h.put('a', [auditPut(3, 1)]);
  await assert.rejects(h.writer.drain(), /fenced/);
  await h.stop();
  assert.equal(await count('audit_log'), 1);
  assert.equal(h.acks.length, 1);
  const seen = h.events.filter((name) => name === 'fenced');
  assert.deepEqual(seen, ['fenced']);
});

test('the fence fails by a code of its own for an owner that was replaced and for a repeated flush', async () => {
  const fence = (...values: readonly number[]) => client.query(FENCE.text, [...values]);
  await client.query('update lanes set epoch = 2 where lane = 1');
  await fence(0, 1, 7);
  await assert.rejects(fence(0, 1, 7), { code: '23505' });
  for (const [lane, epoch] of [[1, 1] as const, [1, 3] as const, [LANES_MAX, 1] as const]) {
    await assert.rejects(fence(lane, epoch, 7), { code: '23502' });
  }
  await fence(1, 2, 7);
  const { rows } = await client.query('select lane, batch::int from lane_flushes order by 1');
  assert.deepEqual(rows, [
    { lane: 0, batch: 7 },
    { lane: 1, batch: 7 },
  ]);
});

test('a flush that waits while its engine is replaced is not committed', async () => {
  const h = await start();
  await client.query('begin; update lanes set epoch = 2');
  void h.put('a', [auditPut(1, 1)]);
  const observer = new pg.Client({ connectionString: database.connectionString });
  await observer.connect();
  const waiting =
    "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%lane_flushes%'";
  while ((await observer.query(waiting)).rows.length === 0);
  await observer.end();
  await client.query('commit');
  await h.event('fenced');
  assert.equal(await count('audit_log'), 0);
  assert.equal(await count('lane_flushes'), 0);
});

test('a writer of an older epoch does not start, and leaves the sessions of its successor', async () => {
  const applicationName = 'writer successor test';
  await client.query('update lanes set epoch = 2');
  const owner = await start({ epoch: 2, applicationName });
  const stale = createHarness({ connectionString: database.connectionString, applicationName });
  await assert.rejects(stale.writer.start(), /fenced/);
  assert.deepEqual(stale.events, ['fenced']);
  await owner.put('a', [auditPut(1, 1)]);
  assert.deepEqual(owner.events, []);
});

test('a new writer first ends what an earlier one of its name left running', async () => {
  const applicationName = 'writer leftover test';
  const leftover = new pg.Client({
    connectionString: database.connectionString,
    application_name: applicationName,
  });
  const broken = new Promise<void>((resolve) => leftover.on('error', () => resolve()));
  await leftover.connect();
  await leftover.query('begin');
  await leftover.query('select from lanes where lane = 0 for update');
  const h = await start({ applicationName });
  await broken;
  assert.equal((await h.put('a', [auditPut(1, 1)])).outcome, 'committed');
});

test('flushes leave no dead version of a row behind, and forget old numbers', async () => {
  const lane = async () => await one('select ctid::text, xmin::text from lanes where lane = 0');
  const before = await lane();
  const last = 2 * FLUSHES_KEPT;
  await client.query(
    'insert into lane_flushes select 0, batch from generate_series(1, $1::int - 2) as batch',
    [last],
  );
  const h = await start();
  for (let n = 1; n <= 4; n++)
    assert.equal((await h.put('a', [auditPut(1, n)])).outcome, 'committed');
  assert.deepEqual(await lane(), before);
  const kept = await one(
    'select min(batch)::int, max(batch)::int, count(*)::int from lane_flushes',
  );
  assert.deepEqual(kept, { min: FLUSHES_KEPT, max: last + 2, count: FLUSHES_KEPT + 3 });
});

test('a flush is on disk before it is told, whatever the database has set', async () => {
  await client.query(`
    create function note_setting() returns trigger language plpgsql as $$
    begin
      new.tenant_id = current_setting('synchronous_commit');
      return new;
    end $$;
    create trigger note_setting before insert on audit_log
      for each row execute function note_setting()`);
  const settings = [
    ['off', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ] as const;
  try {
    for (const [set, expected] of settings) {
      await client.query(`alter database ${database.name} set synchronous_commit = ${set}`);
      const h = await start();
      await h.put('a', [auditPut(1, 1)]);
      assert.deepEqual(await one('select tenant_id from audit_log'), { tenant_id: expected });
      await h.stop();
      await client.query('truncate audit_log');
    }
  } finally {
    await client.query(`alter database ${database.name} reset synchronous_commit`);
    await client.query('drop function note_setting cascade');
  }
});

test('units that come before the start are written after it', async () => {
  const h = createHarness({ connectionString: database.connectionString });
  const settled = h.put('a', [auditPut(1, 1)]);
  await h.writer.start();
  assert.equal((await settled).outcome, 'committed');
});

test('after a stop nothing is written', async () => {
  const h = await start();
  const settled = h.put('a', [auditPut(1, 1)]);
  await h.stop();
  await settled;
  void h.put('a', [auditPut(1, 2)]);
  assert.equal(await count('audit_log'), 1);
});

test('the plans of the statements do not read whole tables, however small these were', async () => {
  const h = await start();
  await h.put('i1', [instancePut(1), timerPut(1)]);
  // The generic plan, as it is kept after some runs on an empty table.
  await client.query(WRITER_SETTINGS);
  for (const kind of [
    'instance.update',
    'task.end',
    'timer.clear',
    'sequence.delete',
    'instance.delete',
  ] as const) {
    const forms = [
      ['json', STATEMENTS[kind]!, '[]'],
      ['text', LINE_STATEMENTS[kind], ''],
    ] as const;
    for (const [type, statement, none] of forms) {
      if (statement === undefined) continue;
      await client.query(`prepare planned(${type}) as ${statement.text}`);
      const { rows } = await client.query(`explain execute planned('${none}')`);
      await client.query('deallocate planned');
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.doesNotMatch(plan, /Seq Scan/, statement.name);
    }
  }
  await client.query('reset all');
});

test('lanes are chosen by the time of a durable commit', async () => {
  const times = (ms: number) => chooseLanes(() => Promise.resolve(ms));
  assert.deepEqual([await times(0.2), await times(2), await times(10)], [1, 2, LANES_MAX]);
  // The first ones are slow wherever the disk has been busy, as behind migrations.
  let count = 0;
  const cold = () => Promise.resolve(++count <= 10 ? 50 : count % 2 === 0 ? 3 : 0.3);
  assert.equal(await chooseLanes(cold), 1);
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  assert.equal(await measuredLanes('postgres://nobody@127.0.0.1:1/none', log, 2), 1);
  assert.ok([1, 2, LANES_MAX].includes(await measuredLanes(database.connectionString, log, 8)));
});

test('the thread serves shards over ports, and writes what was posted before it stops', async () => {
  const control = new MessageChannel();
  const events = new MessageChannel();
  const shard = new MessageChannel();
  const meter = new Meter();
  const told: WriterEvent[] = [];
  events.port1.on('message', (event: WriterEvent) => told.push(event));
  const ended = runWriter({
    connectionString: database.connectionString,
    applicationName: 'writer thread test',
    logLevel: 'silent',
    logFormat: 'json',
    cell: undefined,
    control: control.port2,
    events: events.port2,
    meter: meter.memory,
    ledger: new CommitLedger(2),
  });
  const link = linkControl<WriterControl>(control.port1, 10_000);
  await link.remote.attachShard(0, 1, shard.port2);
  await link.remote.start(1, 1);
  const acked = new Promise<PackedAck[]>((resolve) => shard.port1.once('message', resolve));
  const post = (...seqs: number[]) =>
    seqs.map((seq) => packedUnit(envelope(seq, 'a', [auditPut(1, seq)])));
  shard.port1.postMessage(post(1, 2));
  assert.deepEqual((await acked).map(unpackedAck), [
    { seq: 1, outcome: 'committed' },
    { seq: 2, outcome: 'committed' },
  ]);
  assert.equal(meter.observations('engine_writer_flush_units').sum, 2);
  shard.port1.postMessage(post(3));
  await link.remote.stop();
  await ended;
  link.close('the test is over');
  shard.port1.close();
  events.port1.close();
  assert.equal(await count('audit_log'), 3);
  assert.deepEqual(told, []);
});
