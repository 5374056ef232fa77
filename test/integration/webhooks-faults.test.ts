/**
 * Outbound webhooks when something is in the way: a process that is killed, a receiver that never
 * answers, an address that may not be reached, settings that change.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import type { DeliveryAttempt, DeliverySummary, OutboxEntry } from '../../schema/webhook.js';
import {
  type Api,
  type ApiOptions,
  eventually,
  type Json,
  newHandler,
  startApi,
  step,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { startEngine } from '../helpers/engine.js';
import { type Receiver, startReceiver, statuses, statusOf } from '../helpers/receiver.js';

/** A server and a receiver for one test. */
async function start(
  t: TestContext,
  envOf: (receiver: Receiver) => Record<string, string>,
  options: ApiOptions = {},
): Promise<{ api: Api; receiver: Receiver }> {
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const api = await startApi({
    ...options,
    env: { ENGINE_SHARDS: '2', ENGINE_ALLOW_INTERNAL_URLS: 'true', ...envOf(receiver) },
  });
  t.after(() => api.stop());
  return { api, receiver };
}

const NOOP = [step('a', 'noop')];

async function outbox(api: Api): Promise<OutboxEntry[]> {
  return expectStatus(await api.root.get<OutboxEntry[]>('/webhooks/outbox?limit=1000'), 200);
}

const untilEmpty = (api: Api) => eventually(async () => assert.deepEqual(await outbox(api), []));

async function sql<Row extends object>(api: Api, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: api.database.connectionString });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

test('killed between the commit and the delivery: what was committed is delivered after the restart', async (t) => {
  const { api, receiver } = await start(t, (it) => ({ ENGINE_WEBHOOK_URLS: it.url('/hook') }));
  receiver.answer('/hook', () => undefined);
  const tenant = api.tenant();
  const sequence = await tenant.sequence(NOOP);
  const ids = await Promise.all(Array.from({ length: 200 }, () => tenant.create(sequence)));
  // Some hang at the receiver, the others wait for a place.
  await eventually(async () => assert.equal((await outbox(api)).length, ids.length));
  const answered = ids.filter((id) => receiver.of(id).length > 0).length;
  assert.ok(answered > 0 && answered < ids.length, String(answered));
  await api.engine.kill('SIGKILL');
  receiver.answer('/hook', statusOf(200));
  await api.restart();
  await untilEmpty(api);
  for (const id of ids) assert.ok(receiver.of(id).length > 0, id);
  const [row] = await sql<{ count: string }>(
    api,
    'select count(*)::text as count from webhook_deliveries where success',
  );
  assert.equal(row?.count, String(ids.length), 'each delivery was recorded once');
});

test('killed again and again while instances end: every end is told', async (t) => {
  const { api, receiver } = await start(t, (it) => ({
    ENGINE_WEBHOOK_URLS: [it.url('/one'), it.url('/two')].join(','),
  }));
  const tenant = api.tenant();
  const sequence = await tenant.sequence(NOOP);
  const ids: string[] = [];
  for (let round = 0; round < 3; round++) {
    await Promise.all(
      Array.from({ length: 40 }, async () => ids.push(await tenant.create(sequence))),
    );
    await api.restart('SIGKILL');
  }
  await untilEmpty(api);
  for (const id of ids) {
    const paths = new Set(receiver.of(id).map(({ path }) => path));
    assert.deepEqual([...paths].sort(), ['/one', '/two'], id);
  }
});

test('a receiver that never answers does not hold up another one, nor the instances', async (t) => {
  const { api, receiver } = await start(t, (it) => ({
    ENGINE_WEBHOOK_URLS: [it.url('/dead'), it.url('/healthy')].join(','),
  }));
  receiver.answer('/dead', () => undefined);
  const tenant = api.tenant();
  const sequence = await tenant.sequence(NOOP);
  const ids = await Promise.all(Array.from({ length: 200 }, () => tenant.create(sequence)));
  await eventually(() => {
    for (const id of ids) {
      assert.ok(
        receiver.of(id).some(({ path }) => path === '/healthy'),
        id,
      );
    }
  });
  const handler = newHandler();
  const id = await tenant.run([step('work', handler)]);
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'completed');
  const rows = await eventually(async () => {
    const left = await outbox(api);
    assert.ok(left.every(({ url }) => url === receiver.url('/dead')));
    return left;
  });
  const inFlight = rows.filter(({ status }) => status === 'in_flight').length;
  assert.ok(inFlight > 0 && inFlight <= 32, `${inFlight} of 64 places`);
});

test('SIGTERM aborts what is in flight, and its rows stay for the next start', async (t) => {
  const { api, receiver } = await start(t, (it) => ({ ENGINE_WEBHOOK_URLS: it.url('/hook') }));
  receiver.answer('/hook', () => undefined);
  const id = await api.tenant().run(NOOP);
  await receiver.until(id, 1);
  const { code } = await api.engine.kill('SIGTERM');
  assert.equal(code, 0, api.engine.output());
  const rows = await sql<{ status: string; attempts: number }>(
    api,
    'select status, attempts from webhook_outbox',
  );
  assert.deepEqual(rows, [{ status: 'pending', attempts: 0 }]);
  receiver.answer('/hook', statusOf(200));
  await api.restart();
  await untilEmpty(api);
  assert.equal(receiver.of(id).length, 2);
});

test('what is in the outbox for an address that is not configured any more is still delivered', async (t) => {
  const { api, receiver } = await start(t, (it) => ({ ENGINE_WEBHOOK_URLS: it.url('/old') }));
  receiver.answer('/old', () => undefined);
  const tenant = api.tenant();
  const before = await tenant.run(NOOP);
  await receiver.until(before, 1);
  receiver.answer('/old', statusOf(200));
  await api.restart('SIGKILL', { env: { ENGINE_ALLOW_INTERNAL_URLS: 'true' } });
  await untilEmpty(api);
  assert.equal(receiver.of(before).length, 2);
  const after = await tenant.run(NOOP);
  await tenant.until(after, 'completed');
  assert.deepEqual(await outbox(api), [], 'nothing is written without an address');
  assert.deepEqual(receiver.of(after), []);
});

test('Private addresses are refused unless ENGINE_ALLOW_INTERNAL_URLS, at the delivery', async (t) => {
  const { api, receiver } = await start(t, (it) => ({
    ENGINE_WEBHOOK_URLS: [it.url('/hook'), it.url('/hook').replace('127.0.0.1', 'localhost')].join(
      ',',
    ),
    ENGINE_ALLOW_INTERNAL_URLS: 'false',
  }));
  const id = await api.tenant().run(NOOP);
  const rows = await eventually(async () => {
    const found = await outbox(api);
    assert.deepEqual(
      found.map(({ status }) => status),
      ['parked', 'parked'],
    );
    return found;
  });
  for (const { attempts, last_error } of rows) {
    assert.equal(attempts, 1);
    assert.match(String(last_error), /^internal_policy: the address of .* is not public$/);
  }
  const path = '/webhooks/deliveries?error_class=internal_policy';
  assert.equal(expectStatus(await api.root.get<DeliverySummary[]>(path), 200).length, 2);
  assert.deepEqual(receiver.of(id), []);
  const redelivery = await api.root.post(`/webhooks/outbox/${rows[0]?.id}/redeliver`);
  assert.equal(redelivery.status, 502);
});

test('one that waits for its next attempt is tried at once when it is redelivered', async (t) => {
  const { api, receiver } = await start(t, () => ({}));
  const [id, delivery, instance] = [randomUUID(), randomUUID(), randomUUID()];
  await sql(
    api,
    `insert into webhook_outbox (id, url, event_type, instance_id, tenant_id, body, attempts,
       delivery_id, status, next_attempt_at, created_at)
     values ('${id}', '${receiver.url('/hook')}', 'instance.completed', '${instance}', 't',
       '{"instance_id":"${instance}"}', 1, '${delivery}', 'pending', now() + interval '1 hour',
       now())`,
  );
  await api.restart();
  const reply = await api.root.post<Json>(`/webhooks/outbox/${id}/redeliver`);
  assert.deepEqual(expectStatus(reply, 200), { redelivered: true, delivery_id: delivery });
  const path = `/webhooks/deliveries/${delivery}`;
  const attempts = expectStatus(await api.root.get<DeliveryAttempt[]>(path), 200);
  assert.deepEqual(
    attempts.map(({ attempt_number, success }) => [attempt_number, success]),
    [[2, true]],
  );
  assert.equal(receiver.of(instance).length, 1);
  assert.deepEqual(await outbox(api), []);
});

test('attempts of more than a week ago leave the log, however many they are', async (t) => {
  const { api } = await start(t, () => ({}));
  await sql(
    api,
    `insert into webhook_deliveries (id, delivery_id, url, event_type, instance_id, attempt_number,
       attempted_at, duration_ms, success, signed)
     select gen_random_uuid(), gen_random_uuid(), 'http://x.example/', 'instance.completed',
       gen_random_uuid(), 1, now() - case when g = 1 then interval '6 days' else '8 days' end, 1,
       true, false
     from generate_series(1, 2501) g`,
  );
  await api.restart('SIGTERM');
  await eventually(async () => {
    const rows = await sql<{ count: number }>(
      api,
      'select count(*)::integer as count from webhook_deliveries',
    );
    assert.deepEqual(rows, [{ count: 1 }]);
  });
});

test('unsigned without a secret, and the metrics count each delivery once', async (t) => {
  const { api, receiver } = await start(t, (it) => ({ ENGINE_WEBHOOK_URLS: it.url('/hook') }));
  const tenant = api.tenant();
  receiver.answer('/hook', statuses(503, 200));
  const id = await tenant.run(NOOP);
  const [arrival] = await receiver.until(id, 2);
  assert.equal(arrival?.headers['x-engine-signature'], undefined);
  await untilEmpty(api);
  receiver.answer('/hook', statusOf(404));
  await tenant.run(NOOP);
  await eventually(async () => {
    const text = await metricsOf(api);
    assert.match(text, /^engine_webhooks_sent_total 1$/m);
    assert.match(text, /^engine_webhooks_failed_total 1$/m);
  });
});

async function metricsOf(api: Api): Promise<string> {
  const reply = await fetch(`${api.engine.url}/metrics`, {
    headers: { 'x-api-key': String(api.engine.apiKey) },
  });
  return reply.text();
}

test('an address that is none stops the start, which names the variable and no credentials', async () => {
  for (const [value, message] of [
    ['http://ok.example/,nonsense', /ENGINE_WEBHOOK_URLS: address 2 is not an http or https URL/],
    ['ftp://files.example/', /ENGINE_WEBHOOK_URLS: address 1 is not an http or https URL/],
    ['https://user:hunter2@hook.example/', /ENGINE_WEBHOOK_URLS: address 1 must not contain/],
  ] as const) {
    await assert.rejects(
      startEngine({
        databaseUrl: 'postgres://127.0.0.1:1/none',
        env: { ENGINE_WEBHOOK_URLS: value },
      }),
      ({ message: text }: Error) => {
        assert.match(text, message);
        assert.doesNotMatch(text, /hunter2/);
        return true;
      },
    );
  }
});
