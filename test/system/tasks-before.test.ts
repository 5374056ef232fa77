/**
 * An engine on a database of the version before, whose tasks are in the old tables: they are read there until they
 * are moved, by what changes them or in the background.
 *
 * Cost: 20 s, since engines are killed and started.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TASKS } from '../../actors/instance/old-tables.js';
import { WORKER_TASKS } from '../../actors/instance/task-tables.js';
import { columnsBut } from '../../src/db/table.js';
import { eventually, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { STORE_AS_BEFORE } from '../helpers/tasks-before.js';

const api = useApi();
const MOVED = 'moved the tasks of the version before';
type Six = [string, string, string, string, string, string];

/** Ended and open tasks of a tenant without instances, which are moved first. */
const OTHERS = 10_000;
const FILL = `
  insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name, params, attempt,
    priority, rank, state, claim_epoch, checkpoint_seq, history, created_at)
  select ('0195' || lpad(to_hex(g), 4, '0') || '-0000-7000-8000-000000000000')::uuid, gen_random_uuid(), 'others', 'a',
    0, '', 'unserved', '{}', 0, 1, case when g % 10 = 0 then 2 end,
    case when g % 10 = 0 then 'pending' else 'completed' end, 0, 0, '[]', now()
  from generate_series(1, ${OTHERS}) g
  on conflict do nothing`;

const ALL = `select count(*)::int as tasks, md5(string_agg(t::text, ';' order by id)) as rows
  from (select ${columnsBut(WORKER_TASKS).join(', ')} from ${TASKS} t) t`;
const PLACES = `select (select count(*) from worker_tasks)::int as now,
  (select count(*) from worker_tasks_before)::int as before, (select count(*) from open_tasks)::int as open`;

const only = async <Row extends object>(text: string): Promise<Row> =>
  (await api.sql.query<Row>(text)).rows[0]!;
const places = () => only<{ now: number; before: number; open: number }>(PLACES);

async function killAndStoreAsBefore(): Promise<void> {
  await api.engine.kill('SIGKILL');
  await api.sql.query(FILL);
  await api.sql.query(STORE_AS_BEFORE);
  await api.sql.query('analyze worker_tasks_before; analyze open_tasks; analyze worker_tasks');
}

async function isOld(task: string): Promise<boolean> {
  const { rows } = await api.sql.query('select from worker_tasks_before where id = $1', [task]);
  return rows.length > 0;
}

const LISTS = [
  '/workers/tasks',
  '/workers/tasks?limit=1',
  ...['pending', 'claimed', 'pending,claimed', 'completed', 'failed', 'failed,pending'].map(
    (states) => `/workers/tasks?state=${states}`,
  ),
  '/workers/tasks?worker_id=w1',
  '/workers/tasks?state=claimed&worker_id=w1',
  '/workers/tasks/stats',
  '/queues',
];

async function shown(tenant: Tenant, instances: readonly string[]): Promise<unknown[]> {
  const { rows } = await api.sql.query(
    `select id from ${TASKS} t where tenant_id = $1 order by id`,
    [tenant.name],
  );
  const paths = [
    ...LISTS,
    ...column(rows, 'id').map((id) => `/workers/tasks/${id}/attempts`),
    ...instances.flatMap((id) =>
      ['attempts', 'explain', 'effects', 'tree'].map((part) => `/instances/${id}/${part}`),
    ),
  ];
  return Promise.all(paths.map(async (path) => [path, expectStatus(await tenant.get(path), 200)]));
}

test('tasks of the version before are listed, explained, claimed and ended as before', async () => {
  const tenant = api.tenant();
  const handlers = Array.from({ length: 6 }, newHandler);
  const [pending, claimed, again, paused, ended, retried] = handlers as Six;
  const retry = { max_attempts: 3, initial_backoff_ms: 1, max_backoff_ms: 1 };
  const ids: string[] = [];
  for (const handler of handlers) ids.push(await tenant.run([step('a', handler, { retry })]));
  const heldOnce = await tenant.task(claimed);
  const beat = { claim_epoch: 1, checkpoint: { page: 3 }, checkpoint_seq: 0 };
  const returned = await tenant.task(again);
  assert.equal(await tenant.call('heartbeat', returned, { ...beat, release: true }), 200);
  const heldTwice = await tenant.task(again);
  await tenant.signal(ids[3]!, 'pause');
  await tenant.until(ids[3]!, 'paused');
  await tenant.complete(await tenant.task(ended), { n: 1 });
  const failed = await tenant.task(retried);
  assert.equal(await tenant.call('heartbeat', failed, beat), 200);
  await tenant.fail(failed, 'once more', true);
  await eventually(async () => assert.equal((await tenant.tasks(retried))[0]?.attempt, 1));
  const before = await shown(tenant, ids);

  await killAndStoreAsBefore();
  const rows = await only(ALL);
  await api.restart();
  assert.deepEqual(await only(ALL), rows);
  assert.deepEqual(await shown(tenant, ids), before);

  const changesInPlace = async (task: string, change: () => Promise<unknown>) => {
    assert.ok(await isOld(task), 'it was moved in the background');
    await change();
    assert.equal(await isOld(task), false);
  };
  await changesInPlace(heldOnce.id, () => tenant.complete(heldOnce));
  await changesInPlace(heldTwice.id, async () => {
    const next = { claim_epoch: 2, checkpoint: { page: 4 }, checkpoint_seq: 1 };
    assert.equal(await tenant.call('heartbeat', heldTwice, next), 200);
  });
  assert.equal(await tenant.call('complete', failed, { claim_epoch: 1 }), 409);
  assert.equal((await tenant.attempts(failed.id)).at(-1)?.[0], 'stale_mutation_rejected');
  assert.deepEqual(await tenant.poll(paused), []);
  await tenant.signal(ids[3]!, 'resume');
  for (const handler of [pending, paused, retried]) {
    const task = await tenant.task(handler);
    assert.deepEqual(task.resume_checkpoint, handler === retried ? { page: 3 } : undefined);
    await tenant.complete(task);
  }
  await tenant.complete(heldTwice);
  for (const id of ids) await tenant.until(id, 'completed');
  const { tasks } = await only<{ tasks: number }>(ALL);
  await allMoved(tasks);
});

test('a kill while tasks are moved loses none and repeats none', async () => {
  await killAndStoreAsBefore();
  const rows = await only<{ tasks: number }>(ALL);
  await api.restart();
  for (let kills = 0; kills < 3; kills++) {
    const { now } = await places();
    await eventually(async () => assert.ok((await places()).now > now));
    await api.restart('SIGKILL');
  }
  await allMoved(rows.tasks);
  assert.deepEqual(await only(ALL), rows);
});

async function allMoved(tasks: number): Promise<void> {
  const all = { now: tasks, before: 0, open: 0 };
  await eventually(async () => assert.deepEqual(await places(), all));
  await eventually(() => assert.ok(api.engine.logs().some(({ msg }) => msg === MOVED)));
}
