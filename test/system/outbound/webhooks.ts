/** What is sent when an instance ends, how it is signed, what is tried again, and what people can do by hand. */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { DeliveryAttempt, DeliverySummary, OutboxEntry } from '../../../schema/webhook.js';
import type { Api, Json } from '../../helpers/api.js';
import { eventually, forEach, newHandler, sleep, step } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import { column } from '../../helpers/columns.js';
import { type Arrival, type Receiver, statusOf } from '../../helpers/receiver.js';

/** With this secret the server signs what it sends to `/main` of the receiver. */
export const SECRET = 'the-secret-of-the-webhooks';

const FAILING = step('a', 'fail', { params: { message: 'broken' } });

function assertSigned(arrival: Arrival | undefined): void {
  const { headers, text } = arrival as Arrival;
  const digest = createHmac('sha256', SECRET).update(`${headers['x-engine-timestamp']}.${text}`);
  assert.equal(headers['x-engine-signature'], `sha256=${digest.digest('hex')}`);
}

/** The tests of webhooks to one address that is configured. The receiver is asked for when they run. */
export function describeWebhooks(api: Api, receiverOf: () => Receiver): void {
  const tenant = api.tenant();
  let receiver: Receiver;
  before(() => {
    receiver = receiverOf();
  });

  /** What is in the outbox for the instance. */
  async function outboxOf(instance: string): Promise<OutboxEntry[]> {
    const asked = await api.root.get<OutboxEntry[]>('/webhooks/outbox?limit=1000');
    const rows = expectStatus(asked, 200);
    return rows.filter((row) => row.instance_id === instance);
  }

  async function deliveriesOf(instance: string, query = ''): Promise<DeliverySummary[]> {
    const path = `/webhooks/deliveries?limit=1000${query}`;
    const rows = expectStatus(await api.root.get<DeliverySummary[]>(path), 200);
    return rows.filter((row) => row.instance_id === instance);
  }

  async function attemptsOf(delivery: string | undefined): Promise<DeliveryAttempt[]> {
    return expectStatus(
      await api.root.get<DeliveryAttempt[]>(`/webhooks/deliveries/${delivery}`),
      200,
    );
  }

  /** Runs the blocks to their end, with this answer of the receiver; resolves with the instance. */
  async function endWith(answer: Parameters<Receiver['answer']>[1], blocks = [step('a', 'noop')]) {
    receiver.answer('/main', answer);
    return tenant.run(blocks);
  }

  /** The one webhook of the instance, once it is parked. */
  function untilParked(instance: string): Promise<OutboxEntry> {
    return eventually(async () => {
      const [row] = await outboxOf(instance);
      assert.equal(row?.status, 'parked');
      return row as OutboxEntry;
    });
  }

  const untilDelivered = (instance: string) =>
    eventually(async () => assert.deepEqual(await outboxOf(instance), []));

  describe('what is sent', () => {
    before(() => receiver.answer('/main', statusOf(200)));

    test('a completed instance is told, signed; then it leaves the outbox, and its attempt is in the log', async () => {
      const id = await tenant.run([step('a', 'noop')]);
      const [arrival] = await receiver.until(id, 1);
      const { updated_at } = await tenant.until(id, 'completed');
      const { event_type, timestamp: at, data } = arrival?.body ?? {};
      assert.deepEqual([event_type, at, data], ['instance.completed', updated_at, {}]);
      assert.equal(arrival?.headers['content-type'], 'application/json');
      assert.ok(Math.abs(Number(arrival?.headers['x-engine-timestamp']) - Date.now() / 1_000) < 60);
      assertSigned(arrival);
      await untilDelivered(id);
      const [summary, ...others] = await deliveriesOf(id);
      assert.deepEqual(others, []);
      const [attempt, ...more] = await attemptsOf(summary?.delivery_id);
      assert.deepEqual(more, []);
      const { id: attemptId, attempted_at, duration_ms, ...rest } = attempt as DeliveryAttempt;
      assert.match(attemptId, /^[0-9a-f-]{36}$/);
      assert.ok(duration_ms >= 0);
      assert.deepEqual(rest, {
        delivery_id: summary?.delivery_id,
        url: receiver.url('/main'),
        ...{ event_type: 'instance.completed', instance_id: id, attempt_number: 1, success: true },
        ...{ status_code: 200, signed: true },
      });
      const { first_attempted_at, last_attempted_at, delivered } = summary ?? {};
      const seen = [first_attempted_at, last_attempted_at, delivered];
      assert.deepEqual(seen, [attempted_at, attempted_at, true]);
    });

    /** The data of the only webhook of an instance that fails like this. */
    const FAILURES: Record<string, { fail: () => Promise<string>; data: Json }> = {
      'the last of several tries': {
        fail: async () => {
          const retry = { max_attempts: 3, initial_backoff: 1 };
          const params = { message: 'still broken', retryable: true };
          return tenant.run([step('tried', 'fail', { params, retry })]);
        },
        data: { error: 'still broken', attempts: 3, block_id: 'tried' },
      },
      'a request': {
        fail: async () => {
          const id = await tenant.run([step('work', newHandler())]);
          await tenant.move(id, 'failed');
          return id;
        },
        data: { error: 'failed by request' },
      },
      'a block that is no step': {
        fail: () =>
          tenant.run([forEach('each', 'no', [step('a', 'noop')])], {
            context: { data: { no: 'list' } },
          }),
        data: { block_id: 'each' },
      },
    };
    for (const [what, { fail, data }] of Object.entries(FAILURES)) {
      test(`a failure by ${what} is told with what is known of it`, async () => {
        const [arrival] = await receiver.until(await fail(), 1);
        assert.ok(arrival);
        assert.equal(arrival.body.event_type, 'instance.failed');
        assert.equal(typeof arrival.body.data.error, 'string');
        assert.deepEqual(arrival.body.data, { error: arrival.body.data.error, ...data });
      });
    }

    test('an instance that fails again after a retry is told of again', async () => {
      const id = await tenant.run([FAILING]);
      await receiver.until(id, 1);
      expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
      const events = (await receiver.until(id, 2)).map(({ body }) => body.event_type);
      assert.deepEqual(events, ['instance.failed', 'instance.failed']);
    });

    test('nothing is said of a cancelled instance, nor of a dry run', async () => {
      const cancelled = await tenant.run([sleep('a', 60_000)]);
      await tenant.move(cancelled, 'cancelled');
      const dry = await tenant.run([step('a', 'noop')], { dry_run: true });
      await tenant.until(dry, 'completed');
      const dryFailure = await tenant.run([FAILING], { dry_run: true });
      await tenant.until(dryFailure, 'failed');
      await receiver.until(await tenant.run([step('a', 'noop')]), 1);
      for (const id of [cancelled, dry, dryFailure]) {
        assert.deepEqual(receiver.of(id), []);
        assert.deepEqual(await outboxOf(id), []);
      }
    });
  });
  describe('by hand', () => {
    const redeliver = (id: string) => api.root.post<Json>(`/webhooks/outbox/${id}/redeliver`);

    test('a preview says what would be sent, a redelivery sends it and removes the row', async () => {
      const instance = await endWith(statusOf(410));
      const row = await untilParked(instance);
      const path = `/webhooks/outbox/${row.id}`;
      assert.deepEqual(expectStatus(await api.root.get(`${path}/redeliver-preview`), 200), {
        url: receiver.url('/main'),
        event_type: 'instance.completed',
        payload_bytes: Buffer.byteLength(String(receiver.of(instance)[0]?.text)),
        will_be_signed: true,
        previous_delivery_id: row.delivery_id,
        previous_attempts: 1,
        last_error: 'http_status: status 410',
      });
      receiver.answer('/main', statusOf(204));
      const reply = expectStatus(await redeliver(row.id), 200);
      assert.equal(reply.redelivered, true);
      assert.notEqual(reply.delivery_id, row.delivery_id);
      assert.deepEqual(await outboxOf(instance), []);
      const actions = await tenant.get<Json[]>(`/actions?target=${row.id}`);
      assert.deepEqual(
        expectStatus(actions, 200).map(({ summary }) => summary),
        [`redelivered webhook delivery ${row.id}`],
      );
      const [attempt] = await attemptsOf(String(reply.delivery_id));
      assert.deepEqual([attempt?.attempt_number, attempt?.success], [1, true]);
      assert.equal((await redeliver(row.id)).status, 404);
      assert.equal((await api.root.get(`${path}/redeliver-preview`)).status, 404);
      assert.equal((await api.root.delete(path)).status, 404);
    });

    test('a redelivery that fails is a 502, and the webhook stays parked until it is discarded', async () => {
      const instance = await endWith(statusOf(400));
      const before = await untilParked(instance);
      receiver.answer('/main', statusOf(503));
      const reply = await redeliver(before.id);
      assert.deepEqual([reply.status, reply.headers['x-error-code']], [502, 'ENG_DELIVERY_FAILED']);
      const [row] = await outboxOf(instance);
      assert.deepEqual([row?.status, row?.attempts], ['parked', 2]);
      assert.equal(row?.last_error, 'http_status: status 503');
      assert.notEqual(row?.delivery_id, before.delivery_id);
      assert.equal((await api.root.delete(`/webhooks/outbox/${before.id}`)).status, 204);
      assert.deepEqual(await outboxOf(instance), []);
      assert.equal((await deliveriesOf(instance)).length, 2, 'the log keeps them');
    });

    test('deliveries are listed newest first and found by address, event and outcome', async () => {
      const failed = await endWith(statusOf(418), [FAILING]);
      await untilParked(failed);
      const done = await endWith(statusOf(200));
      await untilDelivered(done);
      const list = expectStatus(
        await api.root.get<DeliverySummary[]>('/webhooks/deliveries?limit=2'),
        200,
      );
      assert.deepEqual(column(list, 'instance_id'), [done, failed]);
      const url = encodeURIComponent(receiver.url('/main'));
      for (const [query, expected] of [
        [`&url=${url}`, true],
        ['&url=http%3A%2F%2Felsewhere.example%2F', false],
        ['&event_type=instance.failed', true],
        ['&event_type=instance.completed', false],
        ['&delivered=false', true],
        ['&delivered=true', false],
        ['&error_class=http_status', true],
        ['&error_class=timeout', false],
      ] as const) {
        assert.equal((await deliveriesOf(failed, query)).length, expected ? 1 : 0, query);
      }
      assert.equal((await api.root.get('/webhooks/deliveries?error_class=nonsense')).status, 400);
      const unknown = '00000000-0000-7000-8000-000000000000';
      assert.equal((await api.root.get(`/webhooks/deliveries/${unknown}`)).status, 404);
    });
  });
  test('the secret is neither in the outbox, nor in the log of deliveries, nor in a log line', async () => {
    const instance = await endWith(statusOf(400));
    const { delivery_id } = await untilParked(instance);
    const texts = await Promise.all(
      ['/webhooks/outbox', '/webhooks/deliveries', `/webhooks/deliveries/${delivery_id}`].map(
        async (path) => (await api.root.get(path)).text,
      ),
    );
    const line = await eventually(() => {
      const found = api.engine
        .logs()
        .find(({ msg, instanceId }) => msg === 'webhook parked' && instanceId === instance);
      assert.ok(found);
      return found;
    });
    assert.equal(line.host, new URL(receiver.url('/')).host);
    for (const text of [...texts, api.engine.output()]) assert.ok(!text.includes(SECRET));
  });
}
