/**
 * What a server sends to others: webhooks, also when something is in the way, and calls, no more of them in a second
 * than may be. One server goes through all of it, from restart to restart, each with settings of its own.
 *
 * Cost: 30 s, since it restarts its server while webhooks are under way.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { DeliveryAttempt, DeliverySummary, OutboxEntry } from '../../schema/webhook.js';
import { eventually, type Json, step, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { listen } from '../helpers/http-handler.js';
import { type Receiver, startReceiver, statuses, statusOf } from '../helpers/receiver.js';
import { describeWebhooks, SECRET } from './outbound/webhooks.js';

const NOOP = [step('a', 'noop')];
const SILENCE = () => undefined;
const ENV = { ENGINE_SHARDS: '2', ENGINE_ALLOW_INTERNAL_URLS: 'true' };

/** Twice as many webhooks, which are more than the 64 places for them. */
const INSTANCES = 80;

let receiver: Receiver;

const api = useApi(async () => {
  receiver = await startReceiver();
  const webhooks = { ENGINE_WEBHOOK_URLS: receiver.url('/main'), ENGINE_WEBHOOK_SECRET: SECRET };
  return { env: { ...ENV, ...webhooks } };
});
const tenant = api.tenant();

after(() => receiver.stop());

const outbox = async () =>
  expectStatus(await api.root.get<OutboxEntry[]>('/webhooks/outbox?limit=1000'), 200);

/** The server comes back with these settings, and with nothing that is to be delivered. */
async function restartAnew(env: Readonly<Record<string, string>>): Promise<void> {
  await api.engine.kill('SIGTERM');
  await api.sql.query('truncate webhook_outbox, webhook_deliveries');
  await api.restart('SIGTERM', { env });
}

describe('a webhook of a server that is let alone', () => {
  describeWebhooks(api, () => receiver);
});

describe('a webhook with something in the way', () => {
  before(() =>
    restartAnew({
      ...ENV,
      ENGINE_WEBHOOK_URLS: ['/one', '/two'].map((path) => receiver.url(path)).join(','),
    }),
  );

  function answer(one: Parameters<Receiver['answer']>[1], two = one): void {
    receiver.answer('/one', one);
    receiver.answer('/two', two);
  }

  const untilEmpty = () => eventually(async () => assert.deepEqual(await outbox(), []));

  async function endedInstances(count: number): Promise<string[]> {
    const sequence = await tenant.sequence(NOOP);
    return Promise.all(Array.from({ length: count }, () => tenant.create(sequence)));
  }

  const pathsOf = (id: string) => new Set(receiver.of(id).map(({ path }) => path));

  test('unsigned without a secret, and the metrics count each delivery once', async () => {
    answer(statuses(503, 200), statusOf(200));
    const [arrival] = await receiver.until(await tenant.run(NOOP), 3);
    assert.equal(arrival?.headers['x-engine-signature'], undefined);
    await untilEmpty();
    answer(statusOf(404), statusOf(200));
    await tenant.run(NOOP);
    await eventually(async () => {
      const { text } = await api.root.get('/metrics');
      assert.match(text, /^engine_webhooks_sent_total 3$/m);
      assert.match(text, /^engine_webhooks_failed_total 1$/m);
    });
    const [parked] = await outbox();
    expectStatus(await api.root.delete(`/webhooks/outbox/${parked?.id}`), 204);
  });

  test('killed between the commit and the delivery: what was committed is delivered after the restart', async () => {
    answer(SILENCE);
    const ids = await endedInstances(INSTANCES);
    // Some hang at the receiver, the others wait for a place.
    await eventually(async () => {
      const left = (await outbox()).filter(({ instance_id }) => ids.includes(String(instance_id)));
      assert.equal(left.length, 2 * ids.length);
    });
    const answered = ids.filter((id) => pathsOf(id).has('/two')).length;
    assert.ok(answered > 0 && answered < ids.length, String(answered));
    await api.engine.kill('SIGKILL');
    answer(statusOf(200));
    await api.restart();
    await untilEmpty();
    for (const id of ids) assert.deepEqual([...pathsOf(id)].sort(), ['/one', '/two'], id);
    const { rows } = await api.sql.query(
      'select count(*)::integer as count from webhook_deliveries where success and instance_id = any($1)',
      [ids],
    );
    assert.deepEqual(rows, [{ count: 2 * ids.length }], 'each delivery was recorded once');
  });

  describe('over a SIGTERM', () => {
    let cutOff: string;
    const [id, delivery, instance] = [randomUUID(), randomUUID(), randomUUID()];

    before(async () => {
      answer(SILENCE);
      cutOff = await tenant.run(NOOP);
      await receiver.until(cutOff, 2);
    });

    test('what is in flight is aborted, and its rows stay for the next start', async () => {
      const { code } = await api.engine.kill('SIGTERM');
      assert.equal(code, 0, api.engine.output());
      const { rows } = await api.sql.query('select status, attempts from webhook_outbox');
      assert.deepEqual(rows, Array(2).fill({ status: 'pending', attempts: 0 }));
    });

    test('what is in the outbox for an address that is not configured any more is still delivered', async () => {
      answer(statusOf(200));
      receiver.answer('/later', statusOf(200));
      await insertWaiting();
      await insertOld();
      await api.restart('SIGKILL', { env: ENV });
      await receiver.until(cutOff, 4);
      const after = await tenant.run(NOOP);
      await tenant.until(after, 'completed');
      assert.deepEqual(receiver.of(after), []);
      const left = await outbox();
      assert.deepEqual(
        column(left, 'instance_id'),
        [instance],
        'nothing is written without an address',
      );
    });

    /** Its second attempt is due in an hour. */
    const insertWaiting = () => {
      const event_type = 'instance.completed';
      const timestamp = new Date().toISOString();
      const body = { event_type, instance_id: instance, timestamp, data: {} };
      return api.sql.query(
        `insert into webhook_outbox (id, url, event_type, instance_id, tenant_id, body, attempts,
         delivery_id, status, next_attempt_at, created_at)
       values ($1, $2, $3, $4, 't', $5, 1, $6, 'pending', now() + interval '1 hour', now())`,
        [id, receiver.url('/later'), event_type, instance, JSON.stringify(body), delivery],
      );
    };

    test('one that waits for its next attempt is tried at once when it is redelivered', async () => {
      const reply = await api.root.post<Json>(`/webhooks/outbox/${id}/redeliver`);
      assert.deepEqual(expectStatus(reply, 200), { redelivered: true, delivery_id: delivery });
      const path = `/webhooks/deliveries/${delivery}`;
      const attempts = expectStatus(await api.root.get<DeliveryAttempt[]>(path), 200);
      assert.deepEqual(columns(attempts, 'attempt_number', 'success'), [[2, true]]);
      assert.equal(receiver.of(instance).length, 1);
      await untilEmpty();
    });

    const insertOld = () =>
      api.sql.query(
        `insert into webhook_deliveries (id, delivery_id, url, event_type, instance_id, attempt_number,
         attempted_at, duration_ms, success, signed)
       select gen_random_uuid(), gen_random_uuid(), 'http://x.example/', 'instance.completed',
         gen_random_uuid(), 1, now() - case when g = 1 then interval '6 days' else '8 days' end, 1,
         true, false
       from generate_series(1, 2501) g`,
      );

    test('attempts of more than a week ago leave the log, however many they are', () =>
      eventually(async () => {
        const { rows } = await api.sql.query(
          "select count(*)::integer as count from webhook_deliveries where url = 'http://x.example/'",
        );
        assert.deepEqual(rows, [{ count: 1 }]);
      }));
  });
});

test('Private addresses are refused unless ENGINE_ALLOW_INTERNAL_URLS, at the delivery', async () => {
  const urls = [receiver.url('/one'), receiver.url('/one').replace('127.0.0.1', 'localhost')];
  await restartAnew({ ENGINE_SHARDS: '2', ENGINE_WEBHOOK_URLS: urls.join(',') });
  const id = await tenant.run(NOOP);
  const rows = await eventually(async () => {
    const found = await outbox();
    assert.deepEqual(column(found, 'status'), ['parked', 'parked']);
    return found;
  });
  for (const { attempts, last_error } of rows) {
    assert.equal(attempts, 1);
    assert.match(String(last_error), /^internal_policy: the address of .* is not public, or /);
  }
  const path = '/webhooks/deliveries?error_class=internal_policy';
  assert.equal(expectStatus(await api.root.get<DeliverySummary[]>(path), 200).length, 2);
  assert.deepEqual(receiver.of(id), []);
  assert.equal((await api.root.post(`/webhooks/outbox/${rows[0]?.id}/redeliver`)).status, 502);
});

test('calls and webhooks of a tenant are spread over the seconds, and none of them fails', async (t) => {
  const [perSecond, instances] = [50, 20];
  const arrivals: string[] = [];
  const { origin } = await listen(t, (request, response) => {
    arrivals.push(request.url ?? '');
    request.resume();
    response.end('{}');
  });
  await restartAnew({
    ...ENV,
    ENGINE_WEBHOOK_URLS: `${origin}/webhook`,
    ENGINE_HTTP_RATE_PER_TENANT: String(perSecond),
  });
  const params = { url: `${origin}/call` };
  const sequence = await tenant.sequence([step('call', 'http_request', { params })]);
  const beganAt = performance.now();
  const ids = await Promise.all(Array.from({ length: instances }, () => tenant.create(sequence)));
  const all = 2 * instances;
  await eventually(() => assert.ok(arrivals.length >= all));
  const tookMs = performance.now() - beganAt;
  // The first one, and those of a tenth of a second at once.
  const freeMax = 1 + perSecond / 10;
  assert.ok(tookMs >= ((all - freeMax) / perSecond) * 1_000, `${all} calls within ${tookMs} ms`);
  for (const id of ids) await tenant.until(id, 'completed');
  const calls = arrivals.filter((path) => path === '/call').length;
  assert.deepEqual([calls, arrivals.length], [instances, all]);
});
