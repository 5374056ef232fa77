/** Cron schedules over HTTP: what can be asked of them, and what their fires create. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { CronSchedule, NextFires, ScheduleCreated } from '../../schema/cron.js';
import type { TaskInstance } from '../../schema/instance.js';
import {
  eventually,
  type Json,
  newHandler,
  sleep,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const EVERY_SECOND = '* * * * * ? *';
const NEVER_SOON = '0 0 0 1 1 ? 2998';

const api = useSharedApi();

interface Scheduled {
  readonly tenant: Tenant;
  readonly sequence: string;
  create(more?: Json): Promise<ScheduleCreated>;
  get(id: string): Promise<CronSchedule>;
  /** The instances of the sequence, oldest first. */
  instances(): Promise<TaskInstance[]>;
}

async function scheduled(
  blocks: readonly Json[] = [step('a', 'noop')],
  tenant = api.tenant(),
): Promise<Scheduled> {
  const sequence = await tenant.sequence(blocks);
  return {
    tenant,
    sequence,
    create: async (more = {}) => {
      const body = bodyOf(tenant, sequence, more);
      return expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
    },
    get: async (id) => expectStatus(await tenant.get<CronSchedule>(`/cron/${id}`), 200),
    instances: async () => {
      const path = `/instances?limit=1000&sequence_id=${sequence}`;
      return expectStatus(await tenant.get<TaskInstance[]>(path), 200).reverse();
    },
  };
}

function bodyOf(tenant: Tenant, sequence_id: string, more: Json = {}): Json {
  const place = { tenant_id: tenant.name, namespace: 'reports', sequence_id };
  return { ...place, cron_expr: NEVER_SOON, ...more };
}

/** Resolves when the schedule, or the others of its shard, had a second more than once to fire. */
async function letFire(watch: Scheduled): Promise<void> {
  const { id } = await watch.create({ cron_expr: EVERY_SECOND });
  const first = await eventually(async () => {
    const { last_triggered_at } = await watch.get(id);
    assert.ok(last_triggered_at !== null);
    return last_triggered_at;
  });
  await eventually(async () => {
    const { last_triggered_at } = await watch.get(id);
    assert.ok(Date.parse(last_triggered_at ?? '') - Date.parse(first) > 1_500);
  });
  expectStatus(await watch.tenant.delete(`/cron/${id}`), 204);
}

describe('Cron: bad expression 4xx; CRUD; disabled never fires; deleted stops firing; list is tenant-scoped; timezone and metadata round-trip; update changes next_fire_at; fired instance appears', () => {
  test('a schedule is created, read, changed and deleted', async () => {
    const { tenant, sequence, create, get } = await scheduled();
    const { id, next_fire_at } = await create({
      cron_expr: '0 30 9 ? JAN-JUN MON-FRI 2990-2998',
      timezone: 'Europe/Berlin',
      metadata: { team: 'sales', nested: { list: [1, null] } },
      overlap_policy: 'skip',
    });
    const record = await get(id);
    assert.deepEqual(record, {
      id,
      tenant_id: tenant.name,
      namespace: 'reports',
      sequence_id: sequence,
      sequence: null,
      version: null,
      cron_expr: '0 30 9 ? JAN-JUN MON-FRI 2990-2998',
      timezone: 'Europe/Berlin',
      enabled: true,
      metadata: { team: 'sales', nested: { list: [1, null] } },
      context: { data: {}, config: {} },
      priority: 'Normal',
      overlap_policy: 'skip',
      timeout: null,
      skipped_fires: 0,
      last_skipped_at: null,
      last_triggered_at: null,
      next_fire_at,
      last_error: null,
      created_at: record.created_at,
      updated_at: record.created_at,
    });
    // 1 January 2990 is a Monday.
    assert.equal(next_fire_at, '2990-01-01T08:30:00.000Z');

    const changes = { cron_expr: '@yearly', timezone: 'Asia/Tokyo', enabled: false };
    const updated = expectStatus(await tenant.put<CronSchedule>(`/cron/${id}`, changes), 200);
    assert.deepEqual(
      { ...updated, next_fire_at: null, updated_at: null },
      { ...record, ...changes, next_fire_at: null, updated_at: null },
    );
    assert.match(updated.next_fire_at ?? '', /^20\d\d-12-31T15:00:00.000Z$/);
    assert.deepEqual(await get(id), updated);

    expectStatus(await tenant.delete(`/cron/${id}`), 204);
    for (const reply of [
      await tenant.get(`/cron/${id}`),
      await tenant.put(`/cron/${id}`, {}),
      await tenant.delete(`/cron/${id}`),
      await tenant.get(`/cron/${id}/next-fires`),
    ]) {
      assert.equal(reply.status, 404);
    }
  });

  test('a fired instance appears, as the schedule says, once for each second', async () => {
    const { create, instances, get, tenant } = await scheduled();
    const metadata = { team: 'sales' };
    const { id } = await create({
      cron_expr: EVERY_SECOND,
      timezone: 'America/New_York',
      metadata,
    });
    const fired = await eventually(async () => {
      const found = await instances();
      assert.ok(found.length >= 3 && found.every(({ state }) => state === 'completed'));
      return found;
    });
    const seconds = fired.map(({ created_at }) => Math.floor(Date.parse(created_at) / 1_000));
    assert.equal(new Set(seconds).size, seconds.length);
    for (const { namespace, tenant_id, timezone, priority, metadata: copy, context } of fired) {
      assert.deepEqual(
        { namespace, tenant_id, timezone, priority, copy, data: context.data },
        {
          namespace: 'reports',
          tenant_id: tenant.name,
          timezone: 'America/New_York',
          priority: 'Normal',
          copy: metadata,
          data: {},
        },
      );
    }
    const { last_triggered_at, last_error } = await get(id);
    assert.ok(last_triggered_at !== null);
    assert.equal(last_error, null);
  });

  test('what is disabled never fires, and what is deleted stops', async () => {
    const disabled = await scheduled();
    const deleted = await scheduled([step('a', 'noop')], disabled.tenant);
    const { next_fire_at } = await disabled.create({ cron_expr: EVERY_SECOND, enabled: false });
    assert.ok(next_fire_at !== null);
    const { id } = await deleted.create({ cron_expr: EVERY_SECOND });
    await eventually(async () => assert.ok((await deleted.instances()).length > 0));
    expectStatus(await deleted.tenant.delete(`/cron/${id}`), 204);
    const before = await deleted.instances();
    await letFire(await scheduled());
    assert.deepEqual(await disabled.instances(), []);
    assert.equal((await deleted.instances()).length, before.length);
  });

  test('the list shows the tenant its own schedules, oldest first, and more behind a link', async () => {
    const { tenant, create, get } = await scheduled();
    const other = await scheduled();
    await other.create();
    const ids = [(await create()).id, (await create()).id, (await create()).id];
    const all = await tenant.get<CronSchedule[]>('/cron');
    assert.deepEqual(column(all.body, 'id'), ids);
    assert.deepEqual(all.body[0], await get(ids[0] as string));
    const foreign = await tenant.get<CronSchedule[]>(`/cron?tenant_id=${other.tenant.name}`);
    assert.equal(foreign.body.length, 3);
    const page = await tenant.get<CronSchedule[]>('/cron?limit=2');
    assert.equal(page.body.length, 2);
    assert.match(String(page.headers.link), /cursor=[^>]+>; rel="next"/);
    const rest = await tenant.get<CronSchedule[]>('/cron?limit=2&offset=2');
    assert.deepEqual(column(rest.body, 'id'), ids.slice(2));
  });

  test('what cannot be read is 400 and names the field', async () => {
    const { tenant, sequence, create } = await scheduled();
    const refused = async (more: Json, text: RegExp) => {
      const reply = await tenant.post<{ error: string }>('/cron', bodyOf(tenant, sequence, more));
      assert.equal(reply.status, 400, JSON.stringify(more));
      assert.match(reply.body.error, text);
    };
    const { id } = await create();
    for (const cron_expr of [
      '',
      'soon',
      '* * * *',
      '0 61 * * * * *',
      '0 0 0 * * * * *',
      '@never',
    ]) {
      await refused({ cron_expr }, /cron_expr/);
      const reply = await tenant.put<{ error: string }>(`/cron/${id}`, { cron_expr });
      assert.equal(reply.status, 400, cron_expr);
      assert.match(reply.body.error, /cron_expr/);
    }
    await refused({ timezone: 'Mars/Olympus' }, /timezone must be a known IANA time zone/);
    assert.equal((await tenant.put(`/cron/${id}`, { timezone: 'Mars/Olympus' })).status, 400);
    await refused({ overlap_policy: 'maybe' }, /overlap_policy/);
    await refused({ cron_expr: undefined }, /cron_expr is required/);
    await refused({ tenant_id: undefined }, /tenant_id is required/);
    const list = await tenant.get<CronSchedule[]>('/cron');
    assert.deepEqual(column(list.body, 'id'), [id]);
  });
});

test('Cron numeric weekday: 1 = Sunday … 7 = Saturday in the 7- and 6-field forms, 0 or 7 = Sunday in the 5-field form; names always work', async () => {
  const { create } = await scheduled();
  const weekdayOf = async (cron_expr: string) => {
    const { next_fire_at } = await create({ cron_expr, enabled: false });
    return new Date(next_fire_at ?? '').getUTCDay();
  };
  for (const [expression, weekday] of [
    ['0 0 0 ? * 1 *', 0],
    ['0 0 0 ? * 7 *', 6],
    ['0 0 0 ? * 2', 1],
    ['0 0 * * 0', 0],
    ['0 0 * * 7', 0],
    ['0 0 * * 2', 2],
    ['0 0 0 ? * sun *', 0],
    ['0 0 * * Tue', 2],
  ] as const) {
    assert.equal(await weekdayOf(expression), weekday, expression);
  }
});

test('Cron firing: At the instant (timer), not on a ten-second poll; missed stretch fires once; deterministic instance id per (schedule, fire time)', async () => {
  const { create, instances } = await scheduled();
  const { id } = await create({ cron_expr: EVERY_SECOND });
  const fired = await eventually(async () => {
    const found = await instances();
    assert.ok(found.length >= 4);
    return found;
  });
  // Every second has its own, and none comes before its time.
  const times = fired.map(({ idempotency_key }) => {
    const [, time = ''] = idempotency_key?.split(`cron:${id}:`) ?? [];
    return Date.parse(time);
  });
  for (const [index, { created_at }] of fired.entries()) {
    assert.ok(Date.parse(created_at) >= (times[index] as number));
    assert.equal((times[index] as number) % 1_000, 0);
  }
  // The routing bits are those of the schedule.
  assert.ok(fired.every((instance) => instance.id.endsWith(id.slice(-4))));
});

test('`cron_schedule_id`, delay bookkeeping and release attribution have fields or columns of their own; `metadata` is returned as the caller gave it', async () => {
  const { create, instances } = await scheduled();
  const metadata = { order: '7', cron_schedule_id: 'mine' };
  await create({ cron_expr: EVERY_SECOND, metadata });
  const [instance] = await eventually(async () => {
    const found = await instances();
    assert.ok(found.length > 0);
    return found;
  });
  assert.deepEqual(instance?.metadata, metadata);
});

test('Cron fields: Seven; five and six, `?` and `@daily` and its kind are accepted too', async () => {
  const { tenant, create, get } = await scheduled();
  for (const cron_expr of [
    '0 0 12 * * ? *',
    '0 0 12 ? * MON',
    '0 12 * * *',
    '@hourly',
    '@daily',
    '@weekly',
    '@monthly',
    '@yearly',
  ]) {
    const { id, next_fire_at } = await create({ cron_expr, enabled: false });
    assert.ok(next_fire_at !== null, cron_expr);
    assert.equal((await get(id)).cron_expr, cron_expr);
  }
  assert.equal((await tenant.get<CronSchedule[]>('/cron')).body.length, 8);
});

describe('next fires', () => {
  test('are listed in UTC, with n between 1 and 50 and 5 without it', async () => {
    const { tenant, create } = await scheduled();
    const { id, next_fire_at } = await create({
      cron_expr: '0 0 0 1 1 ? 2900-2999',
      timezone: 'Europe/Berlin',
    });
    const fires = async (query: string) =>
      expectStatus(await tenant.get<NextFires>(`/cron/${id}/next-fires${query}`), 200);
    const five = await fires('');
    assert.equal(five.timezone, 'Europe/Berlin');
    assert.equal(five.fires[0], next_fire_at);
    assert.deepEqual(
      five.fires,
      [2899, 2900, 2901, 2902, 2903].map((year) => `${year}-12-31T23:00:00.000Z`),
    );
    const counts = { '?n=1': 1, '?n=0': 1, '?n=-4': 1, '?n=50': 50, '?n=51': 50, '?n=1000': 50 };
    for (const [query, count] of Object.entries(counts)) {
      assert.equal((await fires(query)).fires.length, count, query);
    }
    assert.equal((await tenant.get(`/cron/${id}/next-fires?n=many`)).status, 400);
  });

  test('a schedule whose years are over has none, and can still be changed', async () => {
    const { tenant, create, get } = await scheduled();
    const { id } = await create({ enabled: false });
    // As one that was stored in its time.
    const years = "update cron_schedules set cron_expr = '0 0 0 1 1 ? 2001' where id = $1";
    await api.sql.query(years, [id]);
    const { body } = await tenant.get<NextFires>(`/cron/${id}/next-fires`);
    assert.deepEqual(body, { timezone: 'UTC', fires: [] });
    expectStatus(await tenant.put(`/cron/${id}`, { metadata: { is: 'over' } }), 200);
    assert.deepEqual((await get(id)).metadata, { is: 'over' });
  });
});

describe('sequences and tenants', () => {
  test('an unknown or foreign sequence is 404, and another tenant sees nothing of a schedule', async () => {
    const { tenant, create, sequence } = await scheduled();
    const other = await scheduled();
    for (const id of [randomUUID(), other.sequence]) {
      assert.equal((await tenant.post('/cron', bodyOf(tenant, id))).status, 404);
    }
    const foreign = { ...bodyOf(tenant, sequence), tenant_id: other.tenant.name };
    assert.equal((await tenant.post('/cron', foreign)).status, 403);
    const { id } = await create();
    for (const reply of [
      await other.tenant.get(`/cron/${id}`),
      await other.tenant.put(`/cron/${id}`, { enabled: false }),
      await other.tenant.delete(`/cron/${id}`),
      await other.tenant.get(`/cron/${id}/next-fires`),
    ]) {
      assert.equal(reply.status, 404);
    }
    assert.equal((await tenant.get<CronSchedule>(`/cron/${id}`)).body.enabled, true);
  });

  test('a sequence takes its schedules along', async () => {
    const { tenant, sequence, create, instances } = await scheduled();
    const { id } = await create({ cron_expr: EVERY_SECOND });
    await eventually(async () => assert.ok((await instances()).length > 0));
    await eventually(async () => {
      assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 204);
    });
    assert.equal((await tenant.get(`/cron/${id}`)).status, 404);
    await letFire(await scheduled());
    await eventually(async () => assert.deepEqual(await instances(), []));
    assert.deepEqual((await tenant.get<CronSchedule[]>('/cron')).body, []);
  });

  test('a context that the sequence does not take makes no instance and is shown', async () => {
    const tenant = api.tenant();
    const blocks = [step('a', 'noop')];
    const sequence = await tenant.sequence(blocks, { namespace: 'reports', name: 'daily' });
    const named = { sequence_id: undefined, sequence: 'daily', cron_expr: EVERY_SECOND };
    const body = bodyOf(tenant, sequence, { ...named, enabled: false });
    const { id } = expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
    const input_schema = { type: 'object', required: ['order'] };
    const next = { namespace: 'reports', name: 'daily', version: 2, input_schema };
    await tenant.sequence(blocks, next);
    expectStatus(await tenant.put(`/cron/${id}`, { enabled: true }), 200);
    await eventually(async () => {
      const { last_error } = (await tenant.get<CronSchedule>(`/cron/${id}`)).body;
      assert.match(last_error ?? '', /context\.data/);
    });
    assert.deepEqual((await tenant.get<TaskInstance[]>('/instances')).body, []);
  });
});

describe('a fire while an earlier run has not ended', () => {
  test('skip: makes no instance and is counted', async () => {
    const { create, instances, get } = await scheduled([step('a', newHandler())]);
    const { id } = await create({ cron_expr: EVERY_SECOND, overlap_policy: 'skip' });
    const record = await eventually(async () => {
      const found = await get(id);
      assert.ok(found.skipped_fires >= 2);
      return found;
    });
    assert.ok(record.last_skipped_at !== null);
    assert.equal((await instances()).length, 1);
  });

  test('buffer_one: waits for the end of the run, and fires once then', async () => {
    const handler = newHandler();
    const { tenant, create, instances, get } = await scheduled([step('a', handler)]);
    const { id } = await create({ cron_expr: EVERY_SECOND, overlap_policy: 'buffer_one' });
    const task = await tenant.task(handler);
    await eventually(async () => {
      const { next_fire_at } = await get(id);
      assert.ok(Date.parse(next_fire_at ?? '') < Date.now() - 1_000);
    });
    assert.equal((await instances()).length, 1);
    await tenant.complete(task);
    await tenant.task(handler);
    assert.equal((await instances()).length, 2);
  });

  test('cancel_previous: the run is cancelled, then a new one begins', async () => {
    const { create, instances } = await scheduled([sleep('a', 60_000)]);
    await create({ cron_expr: EVERY_SECOND, overlap_policy: 'cancel_previous' });
    await eventually(async () => {
      const states = (await instances()).map(({ state }) => state);
      assert.ok(states.length >= 3);
      assert.ok(states.slice(0, -1).every((state) => state === 'cancelled'));
    });
  });

  test('allow: they run beside one another', async () => {
    const { create, instances } = await scheduled([sleep('a', 60_000)]);
    await create({ cron_expr: EVERY_SECOND });
    await eventually(async () => {
      const running = (await instances()).filter(({ state }) => state === 'running');
      assert.ok(running.length >= 2);
    });
  });
});

test('instances that schedules created are counted', async () => {
  const watch = await scheduled();
  const counted = async () => {
    const { text } = await api.root.with({ prefix: '' }).get('/metrics');
    return Number(/^engine_cron_triggered_total (\d+)/m.exec(text)?.[1]);
  };
  const before = await counted();
  await watch.create({ cron_expr: EVERY_SECOND });
  await eventually(async () => assert.ok((await counted()) > before));
});
