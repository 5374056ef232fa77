/**
 * Threads that die. The real supervisor with real threads on a real database, in this process, so that one of its threads can be ended from outside, as an out-of-memory error would
 * end it.
 *
 * Cost: 15 s, since it kills the threads of an engine.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { memoryMib, threadHeapMib } from '../../actors/shard/thread-memory.js';
import { COUNTER_NAMES, type CounterName } from '../../src/metrics/catalog.js';
import { eventually } from '../helpers/api.js';
import { persist, startThreadEngine, type ThreadEngine } from '../helpers/thread-engine.js';

const SHARDS = 3;
const TENANT = 'threads';
const HOUR_MS = 3_600_000;

let engine: ThreadEngine;
let client: ThreadEngine['client'];
let supervisor: ThreadEngine['supervisor'];
let sql: ThreadEngine['sql'];
let watcher: NodeJS.Timeout;
let noop: string;
let external: string;

before(async () => {
  engine = await startThreadEngine({ shards: SHARDS, lanes: 1, tenant: TENANT });
  ({ client, supervisor, sql } = engine);
  watcher = setInterval(lookForDecreases, 5);
  noop = await engine.store('noop', [{ type: 'step', id: 'a', handler: 'noop' }]);
  external = await engine.store('external', [
    { type: 'step', id: 'work', handler: 'threads.work' },
    { type: 'step', id: 'rest', handler: 'sleep', params: { duration_ms: 300 } },
  ]);
});

after(async () => {
  clearInterval(watcher);
  await engine?.stop();
});

const ask: ThreadEngine['ask'] = (...question) => engine.ask(...question);
const creation: ThreadEngine['creation'] = (...of) => engine.creation(...of);

const stateOf = async (id: string) =>
  (await persist(() => ask<{ state: string }>('instances.get', id, undefined))).state;

async function until(id: string, state: string): Promise<void> {
  const deadline = performance.now() + 200_000;
  for (;;) {
    const current = await stateOf(id);
    if (current === state) return;
    assert.ok(performance.now() < deadline, `instance stayed ${current}`);
  }
}

/** Creates while `thread` is ended in the middle; returns what was acknowledged. */
async function createWhileEnding(thread: Worker, count: number): Promise<string[]> {
  const acknowledged: string[] = [];
  const create = async (index: number) => {
    const sequence = index % 2 === 0 ? noop : external;
    const { id } = await ask<{ id: string }>('instances.create', '', creation(sequence));
    acknowledged.push(id);
  };
  const many = () => Promise.allSettled(Array.from({ length: count }, (_, i) => create(i)));
  const before = many();
  const ended = once(thread, 'exit');
  await thread.terminate();
  await Promise.all([before, many(), ended]);
  return acknowledged;
}

async function storedIds(): Promise<Set<string>> {
  const { rows } = await sql.query<{ id: string }>('select id from instances');
  return new Set(rows.map(({ id }) => id));
}

const lastSeen = new Map<CounterName, number>();
const decreases: string[] = [];

function lookForDecreases(): void {
  for (const name of COUNTER_NAMES) {
    const value = supervisor.metrics.counter(name);
    const last = lastSeen.get(name) ?? 0;
    if (value < last) decreases.push(`${name} went from ${last} to ${value}`);
    lastSeen.set(name, value);
  }
}

test('when a shard dies its callers get 503, and what was acknowledged is there and goes on', async () => {
  const { shards } = await supervisor.threads();
  const acknowledged = await createWhileEnding(shards[1] as Worker, 200);
  const ids = await storedIds();
  const seen = acknowledged.filter((id) => !ids.has(id));
  assert.deepEqual(seen, []);
  // Both shards answer for all of them, the new one from rows.
  for (const id of acknowledged) assert.ok(['completed', 'waiting'].includes(await stateOf(id)));
});

test('when the writer dies nothing acknowledged is lost, and the engine writes on', async () => {
  const { writer } = await supervisor.threads();
  const acknowledged = await createWhileEnding(writer, 200);
  const { id } = await persist(() =>
    ask<{ id: string }>('instances.create', '', creation(noop, 'after the writer')),
  );
  const ids = await storedIds();
  const seen = [...acknowledged, id].filter((each) => !ids.has(each));
  assert.deepEqual(seen, []);
});

test('when all threads die in one instant they are replaced, and nothing acknowledged is lost', async () => {
  const { id: before } = await persist(() =>
    ask<{ id: string }>('instances.create', '', creation(noop, 'before all died')),
  );
  const { writer, shards } = await supervisor.threads();
  const acknowledged = createWhileEnding(writer, 100);
  await Promise.all(shards.map((thread) => thread.terminate()));
  const ids = [...(await acknowledged), before];
  const { id: afterwards } = await persist(() =>
    ask<{ id: string }>('instances.create', '', creation(noop, 'after all died')),
  );
  await until(afterwards, 'completed');
  const stored = await storedIds();
  const seen = ids.filter((each) => !stored.has(each));
  assert.deepEqual(seen, []);
});

test('a record that was read before its shard died is not read again behind a later change', async () => {
  const keys = Array.from({ length: 40 }, (_, i) => `read before ${i}`);
  const made = keys.map((key) =>
    persist(() => ask<{ id: string }>('instances.create', '', creation(external, key))),
  );
  const ids = (await Promise.all(made)).map(({ id }) => id);
  const changed = async (id: string) => {
    const { rows } = await sql.query<{ updated_at: Date }>(
      'select updated_at from instances where id = $1',
      [id],
    );
    return rows[0]!.updated_at.toISOString();
  };
  const look = async (id: string) => {
    const least = await changed(id);
    const { updated_at } = await ask<{ updated_at: string }>('instances.get', id, undefined);
    assert.ok(updated_at >= least, `${updated_at} was read behind ${least}`);
  };
  for (const id of ids) await persist(() => look(id));
  const keptBefore = client.readsKept;
  for (const id of ids) await look(id);
  assert.equal(client.readsKept - keptBefore, ids.length);
  const { shards } = await supervisor.threads();
  const dying = shards[1] as Worker;
  const signal = (id: string) =>
    ask('instances.signal', id, { signal_type: 'update_context', payload: { mark: id } });
  const ended = once(dying, 'exit');
  // Whether they are committed by then, or at all, nobody knows: the rows say it.
  const signals = Promise.allSettled(ids.map(signal));
  await Promise.all([dying.terminate(), ended, signals]);
  for (let round = 0; round < 3; round++) {
    for (const id of ids) await persist(() => look(id));
  }
});

test('a timer that a dead shard held in memory still fires', async () => {
  const { id } = await persist(() =>
    ask<{ id: string }>('instances.create', '', creation(external, 'sleeper')),
  );
  const [task] = await drainUntil(id);
  assert.ok(task !== undefined);
  const body = { worker_id: 'w', claim_epoch: task.claim_epoch, output: {} };
  await ask('workers.complete', task.id, body);
  assert.equal(await stateOf(id), 'running');
  const { shards } = await supervisor.threads();
  await (shards[client.shardOf(id)] as Worker).terminate();
  await until(id, 'completed');
});

/** What the rows say of each counter; nothing here lets an instance complete twice. */
const COUNTED = `select
  (select count(*) from (
    select e from instances, json_array_elements(creation_audit) e
    union all select e from audit_log, json_array_elements(entries) e
  ) as audit(entry) where coalesce(entry->>'from_state', entry->>-2) in ('scheduled', '0')) as engine_instances_claimed_total,
  (select count(*) from instances where state = 'completed') as engine_instances_completed_total,
  (select count(*) from dead_letters) as engine_instances_failed_total,
  (select count(*) from worker_tasks where state = 'failed') as engine_steps_failed_total,
  (select count(*) from signals) as engine_signals_delivered_total,
  (select count(*) from release_decisions) as engine_release_decisions_total,
  (select count(*) from release_decisions where to_state = 'rolled_back')
    as engine_release_rollbacks_total`;

test('the counters say what the rows say, whatever died, and none ever went down', async () => {
  const { metrics } = supervisor;
  const { id } = await persist(() =>
    ask<{ id: string }>('instances.create', '', creation(external, 'failing')),
  );
  const [task] = await drainUntil(id);
  const failure = { worker_id: 'w', claim_epoch: task?.claim_epoch, message: 'no' };
  await ask('workers.fail', String(task?.id), failure);
  await until(id, 'failed');
  // A commit can be read before its writer has heard of it.
  await eventually(async () => {
    assert.ok(await supervisor.isIdle(), 'the engine does not come to rest');
    const { rows } = await sql.query<Record<CounterName, string>>(COUNTED);
    const counted = Object.entries(rows[0] ?? {}).map(([name, count]) => [name, Number(count)]);
    const told = counted.map(([name]) => [name, metrics.counter(name as CounterName)]);
    assert.deepEqual(Object.fromEntries(told), Object.fromEntries(counted));
  });
  assert.ok(metrics.counter('engine_instances_failed_total') > 0);
  assert.ok(metrics.counter('engine_signals_delivered_total') > 0);
  assert.deepEqual(decreases, []);
  // Histograms count on when a thread is replaced.
  const { buckets } = metrics.observations('engine_instance_processing_seconds');
  const advanced = buckets.reduce((all, one) => all + one);
  assert.ok(advanced >= metrics.counter('engine_instances_claimed_total'));
});

// ---------------------------------------------------------------- the engine

test('each thread has its part of the memory, and no more', async () => {
  const { writer, shards } = await supervisor.threads();
  const heapMib = threadHeapMib(memoryMib(), SHARDS + 1);
  for (const { resourceLimits } of [writer, ...shards]) {
    assert.equal(resourceLimits?.maxOldGenerationSizeMb, heapMib);
  }
});

test('a clock that was set is also that of a thread that is replaced', async () => {
  supervisor.setClock(engine.clockOffsetMs + HOUR_MS);
  const { shards } = await supervisor.threads();
  // Not all: an engine whose threads die more than ten times a minute gives up.
  await Promise.all(shards.slice(1).map((thread) => thread.terminate()));
  for (const key of ['set 1', 'set 2', 'set 3', 'set 4']) {
    const { id } = await persist(() =>
      ask<{ id: string }>('instances.create', '', creation(noop, key)),
    );
    const { created_at } = await persist(() => ask<{ created_at: string }>('instances.get', id));
    assert.ok(Math.abs(Date.parse(created_at) - Date.now() - HOUR_MS) < HOUR_MS / 2, created_at);
  }
});

type Task = { readonly id: string; readonly instance_id: string; readonly claim_epoch: number };

/** Polls until the task of this instance comes; the others stay with this worker. */
async function drainUntil(instance: string): Promise<Task[]> {
  const poll = { handler_name: 'threads.work', worker_id: 'w', limit: 1_000, wait_ms: 1_000 };
  const deadline = performance.now() + 200_000;
  while (performance.now() < deadline) {
    const tasks = await persist(() => ask<Task[]>('workers.poll', '', poll));
    const found = tasks.filter((task) => task.instance_id === instance);
    if (found.length > 0) return found;
  }
  return [];
}
