/** Cron schedules over HTTP: what can be asked of them, and what fires and runs create. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type {
  CronSchedule,
  NextFires,
  ScheduleCreated,
  SchedulePreview,
  ScheduleRun,
} from '../../schema/cron.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, newHandler, step, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const EVERY_SECOND = '* * * * * ? *';
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
  readonly sequence: string;
  post(more?: Json): Promise<Reply<ScheduleCreated & { error: string }>>;
  create(more?: Json): Promise<ScheduleCreated>;
  /** As somebody asks for it. */
  run(id: string, body?: Json): Promise<ScheduleRun>;
  get(id: string): Promise<CronSchedule>;
  /** The instances of the sequence, oldest first. */
  instances(): Promise<TaskInstance[]>;
}

async function scheduled(
  blocks: readonly Json[] = [step('a', 'noop')],
  more: Json = {},
): Promise<Scheduled> {
  const tenant = api.tenant();
  const sequence = await tenant.sequence(blocks, more);
  const post = (more?: Json) =>
    tenant.post<ScheduleCreated & { error: string }>('/cron', bodyOf(tenant, sequence, more));
  return {
    tenant,
    sequence,
    post,
    create: async (more) => expectStatus(await post(more), 201),
    run: async (id, body) =>
      expectStatus(await tenant.post<ScheduleRun>(`/cron/${id}/run`, body), 201),
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

/** Resolves when the sequence has so many instances, all of which have ended. */
function fired({ instances }: Scheduled, count: number): Promise<TaskInstance[]> {
  return eventually(async () => {
    const found = await instances();
    assert.ok(found.length >= count && found.every(({ state }) => state === 'completed'));
    return found;
  });
}

describe('Cron: schedules can be created, read, updated, disabled and deleted; a bad expression is 4xx; lists are per tenant; timezone and metadata are returned unchanged; an update changes next_fire_at; each fire creates an instance', () => {
  test('a schedule is created, read, changed and deleted', async () => {
    const { tenant, sequence, create, get } = await scheduled();
    const given = {
      cron_expr: '0 30 9 ? JAN-JUN MON-FRI 2990-2998',
      timezone: 'Europe/Berlin',
      metadata: { team: 'sales', nested: { list: [1, null] } },
      overlap_policy: 'skip',
    };
    const { id, next_fire_at } = await create(given);
    const record = await get(id);
    assert.deepEqual(record, {
      ...given,
      id,
      tenant_id: tenant.name,
      namespace: 'reports',
      sequence_id: sequence,
      sequence: null,
      version: null,
      enabled: true,
      context: { data: {}, config: {} },
      priority: 'Normal',
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
    const seen = { ...updated, next_fire_at: null, updated_at: null };
    assert.deepEqual(seen, { ...record, ...changes, next_fire_at: null, updated_at: null });
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

  test('the list shows the tenant its own schedules, oldest first', async () => {
    const { tenant, create, get } = await scheduled();
    const other = await scheduled();
    await other.create();
    const ids = [(await create()).id, (await create()).id, (await create()).id];
    const list = (query: string) => tenant.get<CronSchedule[]>(`/cron?${query}`);
    const { body } = await list(`tenant_id=${other.tenant.name}`);
    assert.deepEqual(column(body, 'id'), ids);
    assert.deepEqual(body[0], await get(ids[0] as string));
    assert.deepEqual(column((await list('limit=2&offset=2')).body, 'id'), ids.slice(2));
  });

  test('what cannot be read is 400 and names the field', async () => {
    const { tenant, post, create } = await scheduled();
    const refused = async (more: Json, text: RegExp) => {
      const reply = await post(more);
      assert.equal(reply.status, 400, JSON.stringify(more));
      assert.match(reply.body.error, text);
    };
    const { id } = await create();
    for (const cron_expr of ['', 'soon', '0 61 * * * * *', '0 0 0 30 2 ? *']) {
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
    assert.deepEqual(column((await tenant.get<CronSchedule[]>('/cron')).body, 'id'), [id]);
  });
});

test('Cron weekdays: 1 is Sunday and 7 Saturday with six or seven fields, 0 and 7 are Sunday with five; names always work', async () => {
  const { create } = await scheduled();
  const weekdayOf = async (cron_expr: string) => {
    const { next_fire_at } = await create({ cron_expr, enabled: false });
    return new Date(next_fire_at ?? '').getUTCDay();
  };
  for (const [expression, weekday] of [
    ['0 0 0 ? * 7 *', 6],
    ['0 0 0 ? * 2', 1],
    ['0 0 * * 7', 0],
    ['0 0 0 ? * sun *', 0],
  ] as const) {
    assert.equal(await weekdayOf(expression), weekday, expression);
  }
});

describe('fires', { concurrency: true }, () => {
  test('Cron: a schedule fires at its instant; after downtime it fires once; the instance id follows from schedule and fire time', async () => {
    const watch = await scheduled();
    const metadata = { team: 'sales' };
    const timezone = 'America/New_York';
    const { id } = await watch.create({ cron_expr: EVERY_SECOND, timezone, metadata });
    const instances = await fired(watch, 2);
    const times = instances.map(({ idempotency_key = '' }) => idempotency_key.split(`${id}:`)[1]);
    assert.equal(new Set(times).size, instances.length, 'every second has its own');
    for (const [index, { idempotency_key, created_at, ...instance }] of instances.entries()) {
      const time = Date.parse(times[index] ?? '');
      assert.match(idempotency_key ?? '', /^cron:/);
      assert.ok(Date.parse(created_at) >= time && time % 1_000 === 0, 'none before its time');
      assert.ok(instance.id.endsWith(id.slice(-4)), 'the routing bits are those of the schedule');
      const seen = [instance.namespace, instance.tenant_id, instance.timezone, instance.priority];
      assert.deepEqual(seen, ['reports', watch.tenant.name, timezone, 'Normal']);
      assert.deepEqual([instance.metadata, instance.context.data], [metadata, {}]);
    }
    const { last_triggered_at, last_error } = await watch.get(id);
    assert.ok(last_triggered_at !== null);
    assert.equal(last_error, null);
  });

  test('The engine keeps `cron_schedule_id`, delays and release attribution outside `metadata`, which is returned as it was given', async () => {
    const watch = await scheduled();
    const metadata = { order: '7', cron_schedule_id: 'mine' };
    await watch.create({ cron_expr: EVERY_SECOND, metadata });
    assert.deepEqual((await fired(watch, 1))[0]?.metadata, metadata);
  });

  test('what is disabled never fires, and what is deleted stops', async () => {
    const [disabled, deleted] = [await scheduled(), await scheduled()];
    const off = { cron_expr: EVERY_SECOND, enabled: false };
    assert.ok((await disabled.create(off)).next_fire_at !== null);
    const { id } = await deleted.create({ cron_expr: EVERY_SECOND });
    expectStatus(await deleted.tenant.delete(`/cron/${id}`), 204);
    const before = await deleted.instances();
    const watch = await scheduled();
    await watch.create({ cron_expr: EVERY_SECOND });
    await fired(watch, 2);
    assert.deepEqual(await disabled.instances(), []);
    assert.equal((await deleted.instances()).length, before.length);
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

  test('with skip, a fire while an earlier run has not ended makes no instance and is counted', async () => {
    const { create, instances, get } = await scheduled([step('a', newHandler())]);
    const { id } = await create({ cron_expr: EVERY_SECOND, overlap_policy: 'skip' });
    await eventually(async () => {
      const { skipped_fires, last_skipped_at } = await get(id);
      assert.ok(skipped_fires >= 1 && last_skipped_at !== null);
    });
    assert.equal((await instances()).length, 1);
  });

  test('and are counted', async () => {
    const counted = async () => {
      const { text } = await api.root.with({ prefix: '' }).get('/metrics');
      return Number(/^engine_cron_triggered_total (\d+)/m.exec(text)?.[1]);
    };
    const before = await counted();
    await (await scheduled()).create({ cron_expr: EVERY_SECOND });
    await eventually(async () => assert.ok((await counted()) > before));
  });
});

test('Cron expressions have seven, six or five fields, `?`, and macros such as `@daily`', async () => {
  const { create, get } = await scheduled();
  const expressions = ['0 0 12 * * ? *', '0 0 12 ? * MON', '0 12 * * *', '@daily', '@yearly'];
  for (const cron_expr of expressions) {
    const { id, next_fire_at } = await create({ cron_expr, enabled: false });
    assert.ok(next_fire_at !== null, cron_expr);
    assert.equal((await get(id)).cron_expr, cron_expr);
  }
});

test('next fires are listed in UTC, with n between 1 and 50 and 5 without it', async () => {
  const { tenant, create } = await scheduled();
  const { id, next_fire_at } = await create({
    cron_expr: '0 0 0 1 1 ? 2900-2999',
    timezone: 'Europe/Berlin',
  });
  const fires = async (query: string) =>
    expectStatus(await tenant.get<NextFires>(`/cron/${id}/next-fires${query}`), 200);
  const five = [2899, 2900, 2901, 2902, 2903].map((year) => `${year}-12-31T23:00:00.000Z`);
  assert.equal(five[0], next_fire_at);
  assert.deepEqual(await fires(''), { timezone: 'Europe/Berlin', fires: five });
  const counts = { '?n=1': 1, '?n=-4': 1, '?n=50': 50, '?n=1000': 50 };
  for (const [query, count] of Object.entries(counts)) {
    assert.equal((await fires(query)).fires.length, count, query);
  }
  assert.equal((await tenant.get(`/cron/${id}/next-fires?n=many`)).status, 400);
});

describe('a preview', () => {
  const preview = (tenant: Tenant, body: Json) =>
    tenant.post<SchedulePreview & { error: string }>('/cron/preview', body);

  test('tells the next fires in UTC and as clocks of the zone show them, also where these are changed', async () => {
    const tenant = api.tenant();
    const body = { cron_expr: '30 2 * * *', timezone: 'Europe/Berlin', count: 3 };
    for (const [from, ...fires] of [
      ['2026-03-28T02:00:00+01:00', '28T02:30:00.000+01:00', '29T03:00:00.000+02:00'],
      ['2026-10-24T00:00:00Z', '24T02:30:00.000+02:00', '25T02:30:00.000+02:00'],
    ] as const) {
      const { timezone, fires: found } = expectStatus(
        await preview(tenant, { ...body, from }),
        200,
      );
      assert.deepEqual([timezone, found.length], [body.timezone, 3]);
      const month = from.slice(0, 8);
      const local = fires.map((text) => `${month}${text}`);
      assert.deepEqual(column(found, 'local').slice(0, 2), local);
      for (const fire of found) assert.equal(fire.at, new Date(fire.local).toISOString());
    }
    const { fires } = expectStatus(await preview(tenant, { cron_expr: '@hourly' }), 200);
    assert.equal(fires.length, 5);
    assert.ok(fires.every(({ at, local }) => local === at.replace('Z', '+00:00')));
    assert.deepEqual((await tenant.get('/cron')).body, []);
  });

  test('refuses what a creation refuses, and names the field', async () => {
    const tenant = api.tenant();
    for (const [more, text] of [
      [{ cron_expr: 'soon' }, /cron_expr must have seven fields/],
      [{ cron_expr: undefined }, /cron_expr is required/],
      [{ cron_expr: '0 0 0 1 1 ? 2001' }, /cron_expr .* never fires/],
      [{ timezone: 'Mars/Olympus' }, /timezone must be a known IANA time zone/],
      [{ count: 0 }, /count must be >= 1/],
      [{ count: 101 }, /count must be <= 100/],
      [{ from: 'tomorrow' }, /from must be an RFC 3339 timestamp/],
    ] as const) {
      const reply = await preview(tenant, { cron_expr: '@daily', ...more });
      assert.equal(reply.status, 400, JSON.stringify(more));
      assert.match(reply.body.error, text);
    }
    const over = { cron_expr: '0 0 0 1 1 ? 2990', from: '2990-01-01T00:00:00Z' };
    assert.deepEqual(expectStatus(await preview(tenant, over), 200).fires, []);
  });
});

describe('a change', () => {
  test('keeps the fire that waits for an earlier run, unless it changes when it fires', async () => {
    const { tenant, create, get, instances } = await scheduled([step('a', newHandler())]);
    const times = { cron_expr: EVERY_SECOND, timezone: 'Europe/Berlin', enabled: true };
    const { id } = await create({ ...times, overlap_policy: 'buffer_one' });
    const waiting = await eventually(async () => {
      const { next_fire_at, last_triggered_at } = await get(id);
      assert.ok(last_triggered_at !== null && Date.parse(next_fire_at ?? '') < Date.now() - 100);
      return next_fire_at;
    });
    const change = async (changes: Json) =>
      expectStatus(await tenant.put<CronSchedule>(`/cron/${id}`, changes), 200).next_fire_at;
    const context = { data: { n: 1 } };
    for (const changes of [{}, times, { metadata: { a: 1 } }, { context, priority: 'high' }]) {
      assert.equal(await change(changes), waiting, JSON.stringify(changes));
    }
    const [first] = await instances();
    await tenant.signal(first?.id as string, 'cancel');
    const second = await eventually(async () => {
      const [, found] = await instances();
      assert.ok(found !== undefined);
      return found;
    });
    assert.equal(second.idempotency_key, `cron:${id}:${waiting}`);
    assert.deepEqual([second.context.data, second.priority], [context.data, 'High']);
    assert.equal((await get(id)).skipped_fires, 0);
    assert.equal(await change({ cron_expr: NEVER_SOON }), '2997-12-31T23:00:00.000Z');
  });

  /** Schedules that are due in one second, on a machine of any speed. */
  async function dueTogether(
    count: number,
    leadMs = 2_000,
  ): Promise<{ watch: Scheduled; due: Date; ids: string[] }> {
    const watch = await scheduled();
    const due = new Date(Math.ceil((Date.now() + leadMs) / 1_000) * 1_000);
    const cron_expr = `${due.getUTCSeconds()} ${due.getUTCMinutes()} * * * ? *`;
    const made = await Promise.all(Array.from(Array(count), () => watch.create({ cron_expr })));
    const areInTime = made.every(({ next_fire_at }) => next_fire_at === due.toISOString());
    if (!areInTime) return dueTogether(count, 2 * leadMs);
    return { watch, due, ids: column(made, 'id') };
  }

  test('of many schedules in the second in which they are due loses none of their fires', async () => {
    const { watch, due, ids } = await dueTogether(80);
    await Promise.all(
      ids.map(async (id, n) => {
        await setTimeout(due.getTime() - 400 - Date.now() + 10 * n);
        expectStatus(await watch.tenant.put(`/cron/${id}`, { metadata: { n } }), 200);
      }),
    );
    const keys = column(await fired(watch, ids.length), 'idempotency_key');
    const expected = ids.map((id) => `cron:${id}:${due.toISOString()}`);
    assert.deepEqual([...keys].sort(), expected.sort());
  });

  test('takes away what it gives null for, which its instances begin without', async () => {
    const { tenant, create, get, run } = await scheduled();
    const given = {
      timezone: 'Asia/Tokyo',
      enabled: false,
      timeout: 5_000,
      overlap_policy: 'skip',
    };
    const { id } = await create({ ...STARTED, ...given });
    const nulls = Object.fromEntries(Object.keys({ ...STARTED, ...given }).map((at) => [at, null]));
    expectStatus(await tenant.put(`/cron/${id}`, nulls), 200);
    const record = await get(id);
    const atFirst = await get((await create()).id);
    for (const name of Object.keys(nulls) as (keyof CronSchedule)[]) {
      assert.deepEqual(record[name], atFirst[name], name);
    }
    const { context, metadata, priority } = startOf(await tenant.instance((await run(id)).id));
    assert.deepEqual([context, metadata, priority], [{ data: {}, config: {} }, {}, 'Normal']);
  });

  test('is 400 where it names what cannot be changed, and nothing is changed', async () => {
    const { tenant, create, get } = await scheduled();
    const { id } = await create();
    const before = await get(id);
    for (const name of ['sequence_id', 'namespace', 'next_fire_at'] as const) {
      const changes = { enabled: false, [name]: before[name] };
      const reply = await tenant.put<{ error: string }>(`/cron/${id}`, changes);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, new RegExp(`${name} cannot be changed`));
    }
    assert.deepEqual(await get(id), before);
  });
});

describe('sequences and tenants', () => {
  test('an unknown or foreign sequence is 404, another tenant 403', async () => {
    const { tenant, sequence } = await scheduled();
    const other = await scheduled();
    for (const id of [randomUUID(), other.sequence]) {
      assert.equal((await tenant.post('/cron', bodyOf(tenant, id))).status, 404);
    }
    const foreign = { ...bodyOf(tenant, sequence), tenant_id: other.tenant.name };
    assert.equal((await tenant.post('/cron', foreign)).status, 403);
    assert.deepEqual((await tenant.get('/cron')).body, []);
  });

  test('a sequence takes its schedules along', async () => {
    const { tenant, sequence, create } = await scheduled();
    const { id } = await create();
    expectStatus(await tenant.delete(`/sequences/${sequence}`), 204);
    assert.equal((await tenant.get(`/cron/${id}`)).status, 404);
    assert.deepEqual((await tenant.get<CronSchedule[]>('/cron')).body, []);
  });
});

function startOf({ context, metadata, priority }: TaskInstance) {
  const { data, config } = context;
  return { context: { data, config }, metadata, priority };
}

describe('what a schedule starts', () => {
  test('begins with its context, metadata and priority, and with those of a change', async () => {
    const { tenant, create, run } = await scheduled();
    const { id } = await create({ ...STARTED, cron_expr: '* * * * * ? *' });
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
      assert.match(reply.body.error, /context.data.*amount/);
    }
    const { id } = await create({ context: { data: { amount: 1 } } });
    assert.equal((await tenant.put(`/cron/${id}`, { context: { data: {} } })).status, 400);
    const { body } = await tenant.get<CronSchedule[]>('/cron');
    assert.deepEqual(column(body, 'id'), [id]);
    assert.deepEqual(body[0]?.context.data, { amount: 1 });
  });
});

describe('a run that somebody asks for', () => {
  test('creates one instance now, and leaves the next fire as it is, enabled or not', async () => {
    const { tenant, create, get, run } = await scheduled();
    for (const enabled of [true, false]) {
      const { id } = await create({ enabled });
      const before = await get(id);
      const { id: instance, instance_id, deduplicated } = await run(id);
      assert.deepEqual([instance_id, deduplicated], [instance, false]);
      await tenant.until(instance, 'completed');
      const { last_triggered_at, ...after } = await get(id);
      assert.ok(last_triggered_at !== null);
      assert.deepEqual({ ...after, last_triggered_at: null }, before);
    }
  });

  test('happens once for each idempotency key of the schedule, however many ask at once', async () => {
    const { tenant, create, run } = await scheduled();
    const [{ id }, { id: other }] = [await create(), await create()];
    const body = { idempotency_key: 'monday' };
    const runs = await Promise.all(Array.from({ length: 8 }, () => run(id, body)));
    assert.equal(new Set(column(runs, 'id')).size, 1);
    assert.equal(runs.filter(({ deduplicated }) => !deduplicated).length, 1);
    assert.equal((await run(id, body)).deduplicated, true);
    assert.equal((await run(other, body)).deduplicated, false);
    assert.equal((await run(id)).deduplicated, false);
    assert.equal((await tenant.get<TaskInstance[]>('/instances')).body.length, 3);
  });

  test('keeps to the overlap policy: refused, beside the other, or in its place; without a schedule 404', async () => {
    const { tenant, create, run } = await scheduled([step('a', newHandler())]);
    for (const overlap_policy of ['skip', 'buffer_one']) {
      const { id } = await create({ overlap_policy });
      const first = await run(id);
      const refused = await tenant.post<{ error: string }>(`/cron/${id}/run`);
      assert.equal(refused.status, 409);
      assert.match(refused.body.error, new RegExp(first.id));
      await tenant.signal(first.id, 'cancel');
      await run(id);
    }
    const { id } = await create();
    assert.notEqual((await run(id)).id, (await run(id)).id);
    const { id: replacing } = await create({ overlap_policy: 'cancel_previous' });
    const first = await run(replacing);
    const second = await run(replacing);
    await tenant.until(first.id, 'cancelled');
    await tenant.until(second.id, 'waiting');
    assert.equal((await api.tenant().post(`/cron/${id}/run`)).status, 404);
    expectStatus(await tenant.delete(`/cron/${id}`), 204);
    assert.equal((await tenant.post(`/cron/${id}/run`)).status, 404);
  });
});
