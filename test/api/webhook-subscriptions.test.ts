/** The webhook subscriptions of tenants, over HTTP and at a real receiver. */

import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type {
  DeliverySummary,
  OutboxEntry,
  SubscriptionCreated,
  WebhookSubscription,
} from '../../schema/webhook.js';
import { eventually, type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { type Arrival, type Receiver, startReceiver, statusOf } from '../helpers/receiver.js';

const api = useSharedApi();
let receiver: Receiver;
before(async () => {
  receiver = await startReceiver();
});
after(() => receiver.stop());

const SECRET = 'a secret of the caller';

async function subscribe(tenant: Tenant, more: Json = {}): Promise<SubscriptionCreated> {
  const body = { url: receiver.url(`/${randomUUID()}`), ...more };
  return expectStatus(await tenant.post<SubscriptionCreated>('/webhooks', body), 201);
}

async function refused(tenant: Tenant, more: Json): Promise<readonly [number, string]> {
  const body = { url: 'http://hooks.example/in', ...more };
  const reply = await tenant.post<{ error: string }>('/webhooks', body);
  return [reply.status, reply.body.error];
}

/** Ends with success. */
const ended = (tenant: Tenant, more: Json = {}) => tenant.run([step('a', 'noop')], more);

function isSigned({ headers, text }: Arrival, secret: string): boolean {
  const timestamp = headers['x-engine-timestamp'];
  const digest = createHmac('sha256', secret).update(`${timestamp}.${text}`).digest('hex');
  return headers['x-engine-signature'] === `sha256=${digest}`;
}

const paths = (arrivals: readonly Arrival[]) => column(arrivals, 'path').sort();
const pathOf = ({ url }: WebhookSubscription) => new URL(url).pathname;

describe('a webhook subscription', () => {
  test('is made, read, listed, changed and deleted', async () => {
    const tenant = api.tenant();
    const { secret, ...made } = await subscribe(tenant, { events: ['instance.failed'] });
    assert.match(secret, /^whsec_[0-9a-f]{64}$/);
    assert.deepEqual([made.tenant_id, made.events], [tenant.name, ['instance.failed']]);
    assert.deepEqual(expectStatus(await tenant.get(`/webhooks/${made.id}`), 200), made);
    const other = await subscribe(tenant, { secret: SECRET });
    assert.equal(other.secret, SECRET);
    assert.deepEqual(other.events, ['instance.completed', 'instance.failed']);
    const list = expectStatus(await tenant.get<WebhookSubscription[]>('/webhooks'), 200);
    assert.deepEqual(column(list, 'id'), [made.id, other.id]);
    assert.deepEqual(list[0], made);
    const changes = { url: receiver.url('/elsewhere'), events: ['instance.completed'] };
    const path = `/webhooks/${made.id}`;
    const changed = expectStatus(await tenant.patch<WebhookSubscription>(path, changes), 200);
    assert.deepEqual({ ...changed, updated_at: '' }, { ...made, ...changes, updated_at: '' });
    assert.deepEqual(expectStatus(await tenant.get(path), 200), changed);
    expectStatus(await tenant.delete(path), 204);
    for (const reply of [
      await tenant.get(path),
      await tenant.patch(path, {}),
      await tenant.delete(path),
      await tenant.get(`${path}/deliveries`),
    ]) {
      assert.equal(reply.status, 404);
    }
  });

  test('of another tenant is not found', async () => {
    const { id } = await subscribe(api.tenant());
    const stranger = api.tenant();
    for (const reply of [
      await stranger.get(`/webhooks/${id}`),
      await stranger.patch(`/webhooks/${id}`, { secret: 'mine' }),
      await stranger.delete(`/webhooks/${id}`),
      await stranger.get(`/webhooks/${id}/deliveries`),
    ]) {
      assert.equal(reply.status, 404);
    }
    assert.deepEqual((await stranger.get('/webhooks')).body, []);
    assert.equal((await refused(stranger, { tenant_id: 'somebody-else' }))[0], 403);
  });

  test('whose address, events or secret cannot be meant is 400, and nothing is stored', async () => {
    const tenant = api.tenant();
    for (const [more, field] of [
      [{ url: undefined }, /url is required/],
      [{ url: 'not an address' }, /url: the url is not valid/],
      [{ url: 'ftp://hooks.example/in' }, /url: the url must use http or https/],
      [{ url: 'http://me:secret@hooks.example/in' }, /url: credentials/],
      [{ events: ['instance.exploded'] }, /events\[0\] must be one of instance.completed/],
      [{ events: [] }, /events must not be empty/],
      [{ secret: '' }, /secret must not be blank/],
    ] as const) {
      const [status, error] = await refused(tenant, more);
      assert.equal(status, 400, error);
      assert.match(error, field);
    }
    assert.deepEqual((await tenant.get('/webhooks')).body, []);
  });

  test('is the twenty-first of its tenant: 409', async () => {
    const tenant = api.tenant();
    const made = await Promise.all(Array.from({ length: 20 }, () => subscribe(tenant)));
    const [status, error] = await refused(tenant, {});
    assert.equal(status, 409);
    assert.match(error, /at most 20 webhook subscriptions/);
    expectStatus(await tenant.delete(`/webhooks/${made[0]?.id}`), 204);
    await subscribe(tenant);
  });

  test('keeps its secret sealed', async () => {
    const { id } = await subscribe(api.tenant(), { secret: SECRET });
    const { rows } = await api.sql.query('select secret from webhook_subscriptions where id = $1', [
      id,
    ]);
    assert.deepEqual(Object.keys(rows[0].secret), ['sealed']);
  });
});

describe('what a subscription is told', () => {
  test('every instance that ends after the answer, signed with its own secret', async () => {
    const tenant = api.tenant();
    for (let count = 1; count <= 8; count += 1) {
      const made = await subscribe(tenant);
      // On different shards.
      const ids = await Promise.all(Array.from({ length: 6 }, () => ended(tenant)));
      for (const id of ids) {
        const arrivals = await receiver.until(id, count);
        const arrival = arrivals.find(({ path }) => path === pathOf(made));
        assert.ok(arrival !== undefined, `subscription ${count} was not told`);
        assert.ok(isSigned(arrival, made.secret));
      }
    }
  });

  test('what ended, of which tenant, namespace and version, with its metadata', async () => {
    const tenant = api.tenant();
    await subscribe(tenant);
    const blocks = [step('a', 'fail', { params: { message: 'broken' } })];
    const sequence = await tenant.sequence(blocks, { name: 'payments', version: 7 });
    const metadata = { order: { id: 1 } };
    const id = await tenant.create(sequence, { metadata });
    const [arrival] = await receiver.until(id, 1);
    const { updated_at } = await tenant.until(id, 'failed');
    assert.deepEqual(arrival?.body, {
      event_type: 'instance.failed',
      instance_id: id,
      timestamp: updated_at,
      tenant_id: tenant.name,
      namespace: 'test',
      sequence_id: sequence,
      sequence_name: 'payments',
      sequence_version: 7,
      metadata,
      failure: (await tenant.instance(id)).failure,
      data: { error: 'broken', attempts: 1, block_id: 'a' },
    });
  });

  test('only its own events of its own tenant', async () => {
    const tenant = api.tenant();
    const other = api.tenant();
    const failures = await subscribe(tenant, { events: ['instance.failed'] });
    const all = await subscribe(tenant);
    const strange = await subscribe(other);
    const completed = await ended(tenant);
    const failed = await tenant.run([step('a', 'fail')]);
    const foreign = await ended(other);
    assert.deepEqual(
      paths(await receiver.until(failed, 2)),
      [pathOf(failures), pathOf(all)].sort(),
    );
    assert.deepEqual(paths(await receiver.until(completed, 1)), [pathOf(all)]);
    assert.deepEqual(paths(await receiver.until(foreign, 1)), [pathOf(strange)]);
  });

  test('at its new address and with its new secret once the change is answered', async () => {
    const tenant = api.tenant();
    const made = await subscribe(tenant);
    const url = receiver.url(`/${randomUUID()}`);
    expectStatus(await tenant.patch(`/webhooks/${made.id}`, { url, secret: SECRET }), 200);
    const id = await ended(tenant);
    const [arrival] = await receiver.until(id, 1);
    assert.ok(arrival !== undefined && isSigned(arrival, SECRET));
    assert.equal(arrival.path, new URL(url).pathname);
  });

  test('its tenant sees the deliveries, and nobody else', async () => {
    const tenant = api.tenant();
    const made = await subscribe(tenant);
    const twin = await subscribe(tenant);
    const id = await ended(tenant);
    const deliveries = await eventually(async () => {
      const path = `/webhooks/${made.id}/deliveries`;
      const found = expectStatus(await tenant.get<DeliverySummary[]>(path), 200);
      assert.equal(found.length, 1);
      return found;
    });
    const [{ instance_id, url, delivered, subscription_id }] = deliveries as [DeliverySummary];
    assert.deepEqual([instance_id, url, delivered, subscription_id], [id, made.url, true, made.id]);
    const failed = `/webhooks/${twin.id}/deliveries?delivered=false`;
    assert.deepEqual((await tenant.get(failed)).body, []);
  });

  test('nothing any more once it is deleted, not even what waited', async () => {
    const tenant = api.tenant();
    const made = await subscribe(tenant);
    const kept = await subscribe(tenant);
    receiver.answer(pathOf(made), () => undefined);
    const id = await ended(tenant);
    await receiver.until(id, 2);
    const waiting = async () => {
      const { body } = await api.root.get<OutboxEntry[]>('/webhooks/outbox?limit=1000');
      return body.filter(({ instance_id }) => instance_id === id);
    };
    await eventually(async () => assert.deepEqual(column(await waiting(), 'url'), [made.url]));
    receiver.answer(pathOf(made), statusOf(400));
    const parked = await tenant.run([step('a', 'noop')]);
    await eventually(async () => {
      const { body } = await api.root.get<OutboxEntry[]>('/webhooks/outbox?limit=1000');
      const [row] = body.filter(({ instance_id }) => instance_id === parked);
      assert.equal(row?.status, 'parked');
    });
    expectStatus(await tenant.delete(`/webhooks/${made.id}`), 204);
    await eventually(async () => assert.deepEqual(await waiting(), []));
    const { rows } = await api.sql.query(
      'select 1 from webhook_outbox where subscription_id = $1',
      [made.id],
    );
    assert.deepEqual(rows, []);
    const later = await ended(tenant);
    assert.deepEqual(paths(await receiver.until(later, 1)), [pathOf(kept)]);
  });
});
