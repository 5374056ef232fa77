/**
 * Counters while threads die: the real supervisor with real threads on a real database, in this process,
 * so that a shard or the writer can be ended in the middle of its work. Whatever dies, the counters say
 * what the rows say, and never go down.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EngineError } from '../../src/errors.js';
import { COUNTER_NAMES, type CounterName } from '../../src/metrics/catalog.js';
import { eventually } from '../helpers/api.js';
import { startThreadEngine, type ThreadEngine } from '../helpers/thread-engine.js';

const SHARDS = 2;
const TENANT = 'counters';
const HANDLER = 'counters.work';
/** Enough for several flushes to be under way when a thread is ended. */
const CREATIONS = 100;

let engine: ThreadEngine;
let supervisor: ThreadEngine['supervisor'];
let sql: ThreadEngine['sql'];
let noop: string;
let external: string;
let watcher: NodeJS.Timeout;
let isWhole = true;
let replacements = 0;
const decreases: string[] = [];

before(async () => {
  engine = await startThreadEngine({
    shards: SHARDS,
    lanes: 2,
    tenant: TENANT,
    hooks: {
      onComplete: (isComplete) => {
        isWhole = isComplete;
        if (isComplete) replacements += 1;
      },
    },
  });
  ({ supervisor, sql } = engine);
  watcher = setInterval(lookForDecreases, 5);
  noop = await engine.store('noop', [{ type: 'step', id: 'inside', handler: 'noop' }]);
  const retry = { max_attempts: 2, initial_backoff: 20, max_backoff: 20 };
  external = await engine.store('external', [
    { type: 'step', id: 'outside', handler: HANDLER, retry },
  ]);
});

after(async () => {
  clearInterval(watcher);
  await engine?.stop();
});

// ---------------------------------------------------------------- counters and rows

const counter = (name: CounterName) => supervisor.metrics.counter(name);

const lastSeen = new Map<CounterName, number>();

function lookForDecreases(): void {
  for (const name of COUNTER_NAMES) {
    const value = counter(name);
    const last = lastSeen.get(name) ?? 0;
    if (value < last) decreases.push(`${name} went from ${last} to ${value}`);
    lastSeen.set(name, value);
  }
}

const AUDIT = `(
  select e from instances, json_array_elements(creation_audit) e
  union all select e from audit_log, json_array_elements(entries) e
) as audit(entry)`;

/** What the rows say of each counter; nothing here lets an instance fail or complete twice. */
const ROWS = `select
  (select count(*) from ${AUDIT} where entry->>'from_state' = 'scheduled')
    as engine_instances_claimed_total,
  (select count(*) from instances where state = 'completed') as engine_instances_completed_total,
  (select count(*) from dead_letters) as engine_instances_failed_total,
  (select count(*) from block_outputs where block_id = 'inside') +
    (select count(*) from worker_tasks) as engine_steps_executed_total,
  (select count(*) from worker_tasks where state = 'failed') as engine_steps_failed_total,
  (select count(*) from ${AUDIT} where entry->>'event_type' = 'step_retried')
    as engine_steps_retried_total,
  (select count(*) from signals) as engine_signals_delivered_total`;

type Counts = Partial<Record<CounterName, number>>;

async function rowCounts(): Promise<Counts> {
  const { rows } = await sql.query<Record<CounterName, string>>(ROWS);
  return Object.fromEntries(
    Object.entries(rows[0]!).map(([name, count]) => [name, Number(count)]),
  ) as Counts;
}

/** Timers may still be going off: then rows and counters agree a little later. */
const agree = () =>
  eventually(async () => {
    assert.ok(await supervisor.isIdle(), 'the engine does not come to rest');
    const rows = await rowCounts();
    const counters = Object.keys(rows).map((name) => [name, counter(name as CounterName)]);
    assert.deepEqual(Object.fromEntries(counters), rows);
  });

// ---------------------------------------------------------------- work

const ask: ThreadEngine['ask'] = (...question) => engine.ask(...question);
const creation: ThreadEngine['creation'] = (...of) => engine.creation(...of);

let keys = 0;

/** Every way to create: plain, in batches that repeat a key, and with one key twice at a time. */
function create(count: number): Promise<unknown>[] {
  return Array.from({ length: count }, (_, i) => {
    if (i % 10 === 0) {
      const key = `k${keys}`;
      const instances = [creation(noop), creation(noop, key), creation(external, key)];
      return ask('instances.createBatch', '', { instances });
    }
    if (i % 5 === 0) {
      keys += 1;
      const twice = () => ask('instances.create', '', creation(noop, `k${keys}`));
      return Promise.all([twice(), twice()]);
    }
    return ask('instances.create', '', creation(i % 2 === 0 ? noop : external));
  });
}

interface Task {
  readonly id: string;
  readonly instance_id: string;
  readonly claim_epoch: number;
}

/** A round of a worker: some tasks succeed, some fail for good, some are tried again. */
async function work(): Promise<number> {
  const poll = { handler_name: HANDLER, worker_id: 'w', limit: 50 };
  const tasks = await ask<Task[]>('workers.poll', '', poll);
  await Promise.all(
    tasks.map(async ({ id, instance_id, claim_epoch }, i) => {
      const claim = { worker_id: 'w', claim_epoch };
      if (i % 2 === 0) await ask('instances.signal', instance_id, { signal_type: 'custom:ping' });
      if (i % 3 === 0) await ask('workers.complete', id, { ...claim, output: {} });
      else await ask('workers.fail', id, { ...claim, message: 'no', retryable: i % 3 === 1 });
    }),
  );
  return tasks.length;
}

/** What a dying thread answers is 503; anything else is wrong. */
async function refusedAtMost(work: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) {
    if (result.status === 'fulfilled') continue;
    const { reason } = result as { reason: unknown };
    if (!(reason instanceof EngineError && reason.status === 503)) throw reason;
  }
}

const untilNoTasks = () =>
  eventually(async () => {
    const done = await work().catch((error: unknown) => {
      if (error instanceof EngineError && error.status === 503) return -1;
      throw error;
    });
    assert.equal(done, 0);
  });

/** Loads the engine, and ends threads when something is committed and more is under way. */
async function loadWhile(kill?: () => Promise<unknown>): Promise<void> {
  const under = [...create(CREATIONS), work()];
  await Promise.any(under);
  if (kill !== undefined) {
    const before = replacements;
    await kill();
    await eventually(() => assert.ok(isWhole && replacements > before));
  }
  await refusedAtMost([...under, ...create(CREATIONS), work(), work()]);
  await untilNoTasks();
}

// ---------------------------------------------------------------- the tests

test('without a death the counters are what the rows say', async () => {
  await loadWhile();
  await agree();
  assert.ok(counter('engine_steps_retried_total') > 0);
  assert.ok(counter('engine_instances_failed_total') > 0);
});

test('when a shard dies under load the counters are what the rows say', async () => {
  const { shards } = await supervisor.threads();
  await loadWhile(() => shards[1]!.terminate());
  await agree();
});

test('when the writer dies under load the counters are what the rows say', async () => {
  for (let round = 0; round < 3; round++) {
    const { writer } = await eventually(() => supervisor.threads());
    await loadWhile(() => writer.terminate());
    await agree();
  }
});

test('when both die at once the counters are what the rows say, and none ever went down', async () => {
  const { writer, shards } = await eventually(() => supervisor.threads());
  await loadWhile(() => Promise.all([shards[0]!.terminate(), writer.terminate()]));
  await agree();
  assert.ok(counter('engine_recovery_stale_instances_total') >= 0);
  assert.deepEqual(decreases, []);
});

test('histograms count on when a thread is replaced', async () => {
  const { buckets } = supervisor.metrics.observations('engine_instance_processing_seconds');
  const advanced = buckets.reduce((all, one) => all + one);
  assert.ok(advanced >= counter('engine_instances_claimed_total'));
  const flushes = supervisor.metrics.observations('engine_writer_flush_units');
  assert.ok(flushes.sum >= counter('engine_instances_completed_total'));
});
