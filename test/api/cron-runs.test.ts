/** What schedules start their instances with, and runs that somebody asks for, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CronSchedule, ScheduleCreated, ScheduleRun } from '../../schema/cron.js';
import type { TaskInstance } from '../../schema/instance.js';
import {
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const NEVER_SOON = '0 0 0 1 1 ? 2998';
const STARTED = {
  context: { data: { amount: 5 }, config: { mode: 'fast' } },
  metadata: { team: 'sales' },
  priority: 'high',
};
/** `context.data.amount` must be a number. */
const INPUT_SCHEMA = {
  type: 'object',
  properties: { amount: { type: 'number' } },
  required: ['amount'],
};

const api = useSharedApi();

interface Scheduled {
  readonly tenant: Tenant;
  post(more?: Json): ReturnType<Tenant['post']>;
  /** Resolves with the id of a new schedule. */
  create(more?: Json): Promise<string>;
  run(id: string, body?: Json): Promise<ScheduleRun>;
}

async function scheduled(blocks = [step('a', 'noop')], more: Json = {}): Promise<Scheduled> {
  const tenant = api.tenant();
  const sequence_id = await tenant.sequence(blocks, more);
  const place = { tenant_id: tenant.name, namespace: 'test', sequence_id, cron_expr: NEVER_SOON };
  const post = (more: Json = {}) => tenant.post('/cron', { ...place, ...more });
  return {
    tenant,
    post,
    create: async (more) => (expectStatus(await post(more), 201) as ScheduleCreated).id,
    run: async (id, body) =>
      expectStatus(await tenant.post<ScheduleRun>(`/cron/${id}/run`, body), 201),
  };
}

function startOf({ context, metadata, priority }: TaskInstance) {
  const { data, config } = context;
  return { context: { data, config }, metadata, priority };
}

describe('what a schedule starts', () => {
  test('begins with its context, metadata and priority, and with those of a change', async () => {
    const { tenant, create, run } = await scheduled();
    const id = await create({ ...STARTED, cron_expr: '* * * * * ? *' });
    const [fired] = await eventually(async () => {
      const { body } = await tenant.get<TaskInstance[]>('/instances');
      assert.ok(body.length > 0);
      return body;
    });
    assert.deepEqual(startOf(fired as TaskInstance), { ...STARTED, priority: 'High' });
    const changes = { enabled: false, priority: 'LOW', context: { data: { amount: 6 } } };
    const changed = expectStatus(await tenant.put<CronSchedule>(`/cron/${id}`, changes), 200);
    const { context, priority, metadata } = changed;
    assert.deepEqual([priority, metadata], ['Low', STARTED.metadata]);
    assert.deepEqual(context, { data: { amount: 6 }, config: {} });
    const asked = await tenant.instance((await run(id)).id);
    assert.deepEqual(startOf(asked), { context, priority, metadata });
  });

  test('is accepted by the input_schema when it is stored, or the schedule is 400', async () => {
    const { tenant, post, create } = await scheduled(undefined, { input_schema: INPUT_SCHEMA });
    for (const context of [undefined, { data: {} }, { data: { amount: 'much' } }]) {
      const reply = await post({ context });
      assert.equal(reply.status, 400);
      assert.match((reply.body as { error: string }).error, /context.data.*amount/);
    }
    const id = await create({ context: { data: { amount: 1 } } });
    const change = await tenant.put(`/cron/${id}`, { context: { data: {} } });
    assert.equal(change.status, 400);
    const { body } = await tenant.get<CronSchedule[]>('/cron');
    assert.deepEqual(column(body, 'id'), [id]);
    assert.deepEqual(body[0]?.context.data, { amount: 1 });
  });
});

test('an expression that never fires is 400, also when it is changed to that', async () => {
  const { tenant, post, create } = await scheduled();
  const id = await create();
  for (const cron_expr of ['0 0 0 30 2 ? *', '0 0 30 2 *', '0 0 0 1 1 ? 2020']) {
    for (const reply of [
      await post({ cron_expr }),
      await tenant.put(`/cron/${id}`, { cron_expr }),
    ]) {
      assert.equal(reply.status, 400);
      assert.match((reply.body as { error: string }).error, /cron_expr .* never fires/);
    }
  }
  assert.equal((await tenant.get<CronSchedule>(`/cron/${id}`)).body.cron_expr, NEVER_SOON);
});

describe('a run that somebody asks for', () => {
  test('creates one instance now, and leaves the next fire as it is, enabled or not', async () => {
    const { tenant, create, run } = await scheduled();
    for (const enabled of [true, false]) {
      const id = await create({ enabled });
      const before = (await tenant.get<CronSchedule>(`/cron/${id}`)).body;
      const { id: instance, instance_id, deduplicated } = await run(id);
      assert.deepEqual([instance_id, deduplicated], [instance, false]);
      await tenant.until(instance, 'completed');
      const { last_triggered_at, ...after } = (await tenant.get<CronSchedule>(`/cron/${id}`)).body;
      assert.ok(last_triggered_at !== null);
      assert.deepEqual({ ...after, last_triggered_at: null }, before);
    }
  });

  test('happens once for each idempotency key of the schedule, however many ask at once', async () => {
    const { tenant, create, run } = await scheduled();
    const [id, other] = [await create(), await create()];
    const body = { idempotency_key: 'monday' };
    const runs = await Promise.all(Array.from({ length: 8 }, () => run(id, body)));
    assert.equal(new Set(column(runs, 'id')).size, 1);
    assert.equal(runs.filter(({ deduplicated }) => !deduplicated).length, 1);
    assert.equal((await run(id, body)).deduplicated, true);
    assert.equal((await run(other, body)).deduplicated, false);
    assert.equal((await run(id)).deduplicated, false);
    assert.equal((await tenant.get<TaskInstance[]>('/instances')).body.length, 3);
  });

  test('keeps to the overlap policy: refused with skip and buffer_one, beside the other with allow', async () => {
    const { tenant, create, run } = await scheduled([step('a', newHandler())]);
    for (const overlap_policy of ['skip', 'buffer_one']) {
      const id = await create({ overlap_policy });
      const first = await run(id);
      const refused = await tenant.post<{ error: string }>(`/cron/${id}/run`);
      assert.equal(refused.status, 409);
      assert.match(refused.body.error, new RegExp(first.id));
      await tenant.signal(first.id, 'cancel');
      await run(id);
    }
    const id = await create();
    assert.notEqual((await run(id)).id, (await run(id)).id);
  });

  test('cancels the one before with cancel_previous', async () => {
    const { tenant, create, run } = await scheduled([step('a', newHandler())]);
    const id = await create({ overlap_policy: 'cancel_previous' });
    const first = await run(id);
    const second = await run(id);
    await tenant.until(first.id, 'cancelled');
    await tenant.until(second.id, 'waiting');
  });

  test('of a schedule that is not there, or is of another tenant, is 404', async () => {
    const { tenant, create } = await scheduled();
    const id = await create();
    assert.equal((await api.tenant().post(`/cron/${id}/run`)).status, 404);
    expectStatus(await tenant.delete(`/cron/${id}`), 204);
    assert.equal((await tenant.post(`/cron/${id}/run`)).status, 404);
  });
});
