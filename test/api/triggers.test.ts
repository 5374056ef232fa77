/** Triggers, those that events fire, and webhook subscriptions. */

import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import { signatureOf } from '../../actors/trigger/core/trigger-signature.js';
import type { EventReceipt, EventReceipts } from '../../schema/event.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Trigger, TriggerFired, WebhookTaken } from '../../schema/trigger.js';
import type {
  DeliverySummary,
  SubscriptionCreated,
  WebhookSubscription,
} from '../../schema/webhook.js';
import { eventually, type Json, step, type Tenant, testsOf, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { type Arrival, useReceiver } from '../helpers/receiver.js';

const api = useSharedApi();
const test = testsOf(api);
const SECRET = 'correct horse battery staple';

/** Of a new sequence. */
async function trigger(tenant: Tenant, more: Json = {}): Promise<Trigger> {
  const sequence_name = `s-${randomUUID()}`;
  await tenant.sequence([step('a', 'noop')], { name: sequence_name });
  return expectStatus(await create(tenant, { sequence_name, ...more }), 201);
}

function create(tenant: Tenant, more: Json): Promise<Reply<Trigger>> {
  const body = { slug: randomUUID(), tenant_id: tenant.name, namespace: 'test', ...more };
  return tenant.post<Trigger>('/triggers', body);
}

describe('a trigger', () => {
  test('is made, read, listed, changed and deleted, and never shows its secret', async (tenant) => {
    const made = await trigger(tenant, { secret: SECRET });
    assert.deepEqual(
      [made.tenant_id, made.trigger_type, made.secret, made.version, made.enabled, made.config],
      [tenant.name, 'webhook', '[REDACTED]', null, true, {}],
    );
    const path = `/triggers/${made.slug}`;
    assert.deepEqual(expectStatus(await tenant.get(path), 200), made);
    const config = { event_name: 'paid', correlation_key: 'A-17' };
    const other = await trigger(tenant, { trigger_type: 'event', config });
    assert.deepEqual([other.trigger_type, other.secret, other.config], ['event', null, config]);
    assert.deepEqual(expectStatus(await tenant.get<Trigger[]>('/triggers'), 200), [made, other]);
    const events = await tenant.get<Trigger[]>('/triggers?trigger_type=event');
    assert.deepEqual(column(expectStatus(events, 200), 'slug'), [other.slug]);
    const changed = expectStatus(await tenant.patch<Trigger>(path, { enabled: false }), 200);
    assert.deepEqual({ ...changed, updated_at: '' }, { ...made, enabled: false, updated_at: '' });
    expectStatus(await tenant.delete(path), 204);
    for (const reply of [await tenant.get(path), await tenant.delete(path)])
      expectStatus(reply, 404);
    expectStatus(await tenant.post(`${path}/fire`), 404);
  });

  test('loses what a change gives null for, and can be switched off when its sequence is gone', async (tenant) => {
    const { slug, sequence_name } = await trigger(tenant, { secret: SECRET, version: 1 });
    const change = async (changes: Json) =>
      expectStatus(await tenant.patch<Trigger>(`/triggers/${slug}`, changes), 200);
    const { version, secret } = await change({ enabled: false, config: {} });
    assert.deepEqual([version, secret], [1, '[REDACTED]']);
    const after = await change({ version: null, secret: null, enabled: null });
    assert.deepEqual([after.version, after.secret, after.enabled], [null, null, true]);
    const named = `/sequences/by-name?namespace=test&name=${sequence_name}`;
    const { body } = await tenant.get<{ id: string }>(`${named}&tenant_id=${tenant.name}`);
    expectStatus(await tenant.delete(`/sequences/${body.id}`), 204);
    assert.equal((await change({ enabled: false })).enabled, false);
    expectStatus(await tenant.patch(`/triggers/${slug}`, { version: 1 }), 404);
  });

  test('is refused with what is wrong', async (tenant) => {
    const { slug, sequence_name } = await trigger(tenant);
    const cases: readonly (readonly [Json, number, RegExp])[] = [
      [{ slug, sequence_name }, 409, /trigger .* exists/],
      [{ sequence_name: 'nothing' }, 404, /sequence nothing in namespace test/],
      [{ sequence_name, version: 7 }, 404, /version 7/],
      [
        { sequence_name, slug: 'a/b' },
        400,
        /slug must have letters, digits, dots, _, ~ and - only/,
      ],
      [{ sequence_name, slug: '..' }, 400, /slug must not be \. or \.\., which no address has/],
      [{ sequence_name, slug: 'outbox' }, 400, /slug must not be outbox/],
      [{ sequence_name, secret: '' }, 400, /secret/],
      [{ sequence_name, trigger_type: 'event' }, 400, /config\.event_name/],
      [{ sequence_name, tenant_id: 'another' }, 403, /tenant_id/],
    ];
    for (const [body, status, message] of cases) {
      const reply: Reply<unknown> = await create(tenant, body);
      assert.equal(reply.status, status, JSON.stringify(body));
      assert.match((reply.body as { error: string }).error, message);
    }
    assert.equal(expectStatus(await tenant.get<Trigger[]>('/triggers'), 200).length, 1);
    // A slug belongs to the server.
    const other = api.tenant();
    const theirs = await trigger(other);
    expectStatus(await create(other, { slug, sequence_name: theirs.sequence_name }), 409);
  });

  test('starts an instance that is told of it, with the version that is newest then', async (tenant) => {
    const { slug, sequence_name } = await trigger(tenant);
    const path = `/triggers/${slug}/fire`;
    const fired = expectStatus(await tenant.post<TriggerFired>(path, { amount: 12 }), 201);
    assert.deepEqual([fired.trigger, fired.sequence_name], [slug, sequence_name]);
    const instance = await tenant.until(fired.instance_id ?? '', 'completed');
    assert.deepEqual(instance.metadata, {
      _trigger: slug,
      _trigger_type: 'webhook',
      _trigger_event: { source: 'http_fire' },
    });
    assert.deepEqual([instance.context.data, instance.priority], [{ amount: 12 }, 'Normal']);
    const next = await tenant.sequence([step('a', 'noop')], { name: sequence_name, version: 2 });
    const again = expectStatus(await tenant.post<TriggerFired>(path), 201);
    assert.equal((await tenant.until(again.instance_id ?? '', 'completed')).sequence_id, next);
  });

  test('asks for its secret, and starts nothing while it is switched off', async (tenant) => {
    const { slug } = await trigger(tenant, { secret: SECRET });
    const fire = (secret?: string) =>
      tenant.request('POST', `/triggers/${slug}/fire`, {
        body: {},
        ...(secret === undefined ? {} : { headers: { 'x-trigger-secret': secret } }),
      });
    expectStatus(await fire(), 401);
    expectStatus(await fire('wrong'), 401);
    expectStatus(await fire(SECRET), 201);
    await tenant.patch(`/triggers/${slug}`, { enabled: false });
    expectStatus(await fire(SECRET), 400);
    await tenant.patch(`/triggers/${slug}`, { enabled: true, secret: 'new' });
    expectStatus(await fire(SECRET), 401);
    expectStatus(await fire('new'), 201);
  });
});

describe('a webhook from outside', () => {
  interface Sent {
    readonly slug: string;
    readonly raw?: string;
    readonly nonce?: string;
    readonly secret?: string;
    readonly headers?: Record<string, string>;
  }

  /** Without a key and a tenant. */
  function send({
    slug,
    raw = '{"amount":5}',
    nonce = randomUUID(),
    secret = SECRET,
    headers,
  }: Sent) {
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const signature = signatureOf(secret, timestamp, nonce, Buffer.from(raw));
    return api.root
      .with({ apiKey: null, tenant: null })
      .request<WebhookTaken>('POST', `/webhooks/${slug}`, {
        raw,
        headers: {
          'x-trigger-timestamp': timestamp,
          'x-trigger-nonce': nonce,
          'x-engine-signature': signature,
          'user-agent': 'shop/2.1',
          ...headers,
        },
      });
  }

  test('is charged to the tenant whose trigger it is, once its signature fits', async (tenant) => {
    const { slug } = await trigger(tenant, { secret: SECRET });
    const limits = `/tenants/${tenant.name}/limits`;
    expectStatus(await api.root.put(limits, { rows_per_second: 1, rows_burst: 1 }), 200);
    expectStatus(await send({ slug, secret: 'another one, which does not fit' }), 401);
    expectStatus(await send({ slug }), 202);
    const refused = await send({ slug });
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '1'], refused.text);
    expectStatus(await api.root.delete(limits), 204);
    expectStatus(await send({ slug }), 202);
  });

  test('that is signed starts an instance of the tenant, once for each nonce', async (tenant) => {
    const { slug } = await trigger(tenant, { secret: SECRET });
    const nonce = randomUUID();
    const taken = expectStatus(await send({ slug, nonce }), 202);
    assert.equal(taken.trigger, slug);
    const { metadata, context } = await tenant.until(taken.instance_id ?? '', 'completed');
    assert.deepEqual(metadata._trigger_event, { source: 'public_webhook', user_agent: 'shop/2.1' });
    assert.deepEqual(context.data, { amount: 5 });
    expectStatus(await send({ slug, nonce }), 401);
    expectStatus(await send({ slug, nonce, raw: '{"amount":6}' }), 401);
    expectStatus(await send({ slug }), 202);
    assert.equal(expectStatus(await tenant.get<Json[]>('/instances'), 200).length, 2);
  });

  test('with any flaw is 401 and starts nothing', async (tenant) => {
    const { slug } = await trigger(tenant, { secret: SECRET });
    const old = String(Math.floor(Date.now() / 1_000) - 400);
    const cases: readonly Omit<Sent, 'slug'>[] = [
      { secret: 'wrong' },
      { headers: { 'x-trigger-timestamp': old } },
      { headers: { 'x-trigger-nonce': '' } },
      // Neither does a body that is no JSON tell whether the signature is right.
      { secret: 'wrong', raw: '{' },
    ];
    for (const flawed of cases) expectStatus(await send({ slug, ...flawed }), 401);
    const { slug: bare } = await trigger(tenant);
    expectStatus(await send({ slug: bare }), 401);
    assert.deepEqual(expectStatus(await tenant.get('/instances'), 200), []);
  });

  test('that is signed must have a body that can be a context', async () => {
    const { slug } = await trigger(api.tenant(), { secret: SECRET });
    for (const raw of ['{', '[1]']) expectStatus(await send({ slug, raw }), 400);
    expectStatus(await send({ slug, raw: JSON.stringify({ text: 'x'.repeat(1024 * 1024) }) }), 413);
  });

  test('finds no trigger that is switched off, of events, or of nobody', async (tenant) => {
    const off = await trigger(tenant, { secret: SECRET, enabled: false });
    const config = { event_name: 'paid' };
    const ofEvents = await trigger(tenant, { secret: SECRET, trigger_type: 'event', config });
    for (const slug of [off.slug, ofEvents.slug, 'nobody']) expectStatus(await send({ slug }), 404);
  });
});

// ---------------------------------------------------------------- events

/** Of a new sequence, fired by events with the name. */
async function eventTrigger(tenant: Tenant, event_name: string, more: Json = {}, config = {}) {
  const event = { trigger_type: 'event', config: { event_name, ...config } };
  return (await trigger(tenant, { ...event, ...more })).slug;
}

const send = (tenant: Tenant, event_name: string, more: Json = {}) =>
  tenant.post<EventReceipt>('/events', { event_name, producer_event_id: randomUUID(), ...more });

/** What was started in the tenant, once there is as much of it. */
const started = (tenant: Tenant, count: number) =>
  eventually(async () => {
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    assert.equal(list.length, count);
    for (const { state } of list) assert.equal(state, 'completed');
    return list;
  });

const slugsOf = (instances: readonly TaskInstance[]) =>
  instances.map(({ metadata }) => metadata._trigger).sort();

describe('triggers of events', () => {
  test('an event fires every trigger with its name, and starts an instance with the payload', async (tenant) => {
    const slugs = [await eventTrigger(tenant, 'paid'), await eventTrigger(tenant, 'paid')];
    await eventTrigger(tenant, 'other');
    const more = { correlation_key: 'A-17', payload: { amount: 12 } };
    const receipt = expectStatus(await send(tenant, 'paid', more), 201);
    assert.deepEqual([receipt.triggers, receipt.matched, receipt.satisfied], [2, 0, false]);
    const instances = await started(tenant, 2);
    assert.deepEqual(slugsOf(instances), slugs.sort());
    for (const { context, metadata, priority } of instances) {
      assert.deepEqual([context.data, priority], [{ amount: 12 }, 'Normal']);
      assert.deepEqual(metadata, {
        _trigger: metadata._trigger,
        _trigger_type: 'event',
        _trigger_event: {
          source: 'event',
          event_id: receipt.event_id,
          event_name: 'paid',
          correlation_key: 'A-17',
        },
      });
    }
    // It is kept for steps like any other, and nothing shows what it has fired.
    const event = expectStatus(await tenant.get<Json>(`/events/${receipt.event_id}`), 200);
    assert.deepEqual([event.status, Object.hasOwn(event, 'fires')], ['pending', false]);
  });

  test('an event with a payload that is no object fires with that as its member payload', async (tenant) => {
    await eventTrigger(tenant, 'paid');
    await send(tenant, 'paid', { payload: [1, 2] });
    await send(tenant, 'paid');
    const data = (await started(tenant, 2)).map(({ context }) => JSON.stringify(context.data));
    assert.deepEqual(data.sort(), ['{"payload":[1,2]}', '{"payload":null}']);
  });

  test('an event fires a trigger with a correlation_key only if it has that key', async (tenant) => {
    const plain = await eventTrigger(tenant, 'paid');
    const keyed = await eventTrigger(tenant, 'paid', {}, { correlation_key: 'A-17' });
    assert.equal((await send(tenant, 'paid', { correlation_key: 'A-18' })).body.triggers, 1);
    assert.equal((await send(tenant, 'paid', { correlation_key: 'A-17' })).body.triggers, 2);
    assert.deepEqual(slugsOf(await started(tenant, 3)), [plain, plain, keyed].sort());
  });

  test('an event fires nothing that is switched off, and nothing of another tenant', async () => {
    const [mine, other] = [api.tenant(), api.tenant()];
    const off = await eventTrigger(mine, 'paid', { enabled: false });
    await eventTrigger(other, 'paid');
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, undefined);
    await mine.patch(`/triggers/${off}`, { enabled: true });
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, 1);
    assert.equal((await started(mine, 1)).length, 1);
    await mine.patch(`/triggers/${off}`, { config: { event_name: 'settled' } });
    assert.equal(expectStatus(await send(mine, 'paid'), 201).triggers, undefined);
    assert.deepEqual(expectStatus(await other.get('/instances'), 200), []);
  });

  test('an event that is sent twice fires once', async (tenant) => {
    await eventTrigger(tenant, 'paid');
    const event = { producer_event_id: 'settlement-4711' };
    const replies = await Promise.all([1, 2, 3].map(() => send(tenant, 'paid', event)));
    replies.push(await send(tenant, 'paid', event));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 200, 201]);
    const told = replies.map(({ body }) => `${body.duplicate} ${body.triggers}`).sort();
    assert.deepEqual(told, [...Array(3).fill('true undefined'), 'false 1'].sort());
    await send(tenant, 'paid');
    await started(tenant, 2);
  });

  test('an event of a batch fires like any other, and those beside it that fire nothing do not', async (tenant) => {
    await eventTrigger(tenant, 'paid');
    const names = ['paid', 'other', 'paid'];
    const events = names.map((event_name, n) => ({
      event_name,
      producer_event_id: `e-${n}`,
      payload: { n },
    }));
    const reply = await tenant.post<EventReceipts>('/events/batch', { events });
    const { outcomes } = expectStatus(reply, 200);
    assert.deepEqual(column(outcomes, 'triggers'), [1, undefined, 1]);
    const numbers = (await started(tenant, 2)).map(({ context }) => Number(context.data.n));
    assert.deepEqual(numbers.sort(), [0, 2]);
  });

  test('an event fires the other triggers if one cannot start its instance', async (tenant) => {
    const name = `s-${randomUUID()}`;
    const input_schema = { type: 'object', required: ['amount'] };
    await tenant.sequence([step('a', 'noop')], { name, input_schema });
    await eventTrigger(tenant, 'paid', { slug: `a-${randomUUID()}`, sequence_name: name });
    const fired = await eventTrigger(tenant, 'paid', { slug: `b-${randomUUID()}` });
    const { event_id, triggers } = expectStatus(await send(tenant, 'paid'), 201);
    assert.equal(triggers, 2);
    assert.deepEqual(slugsOf(await started(tenant, 1)), [fired]);
    await eventually(async () => {
      const text = 'select 1 from events where id = $1 and fires is not null';
      assert.equal((await api.sql.query(text, [event_id])).rowCount, 0);
    });
  });
});

// ---------------------------------------------------------------- webhook subscriptions

const receiver = useReceiver();

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
  test('is made, read, listed, changed and deleted', async (tenant) => {
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

  test('whose address, events or secret cannot be meant is 400, and nothing is stored', async (tenant) => {
    for (const [more, field] of [
      [{ url: 'not an address' }, /url: the url is not valid/],
      [{ url: 'ftp://hooks.example/in' }, /url: the url must use http or https/],
      [{ url: 'http://me:secret@hooks.example/in' }, /url: credentials/],
      [{ events: ['instance.exploded'] }, /events\[0\] must be one of instance.completed/],
      [{ secret: '' }, /secret must not be blank/],
    ] as const) {
      const [status, error] = await refused(tenant, more);
      assert.equal(status, 400, error);
      assert.match(error, field);
    }
    assert.deepEqual((await tenant.get('/webhooks')).body, []);
  });

  test('is the twenty-first of its tenant: 409', async (tenant) => {
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
  test('every instance that ends after the answer, signed with its own secret', async (tenant) => {
    for (let count = 1; count <= 3; count += 1) {
      const made = await subscribe(tenant);
      // On different shards.
      const ids = await Promise.all(Array.from({ length: 6 }, () => ended(tenant)));
      for (const id of ids) {
        const arrival = (await receiver.until(id, count)).find(({ path }) => path === pathOf(made));
        assert.ok(arrival !== undefined, `subscription ${count} was not told`);
        assert.ok(isSigned(arrival, made.secret));
      }
    }
  });

  test('what ended, of which tenant, namespace and version, with its metadata', async (tenant) => {
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

  test('only its own events of its own tenant', async (tenant) => {
    const other = api.tenant();
    const failures = await subscribe(tenant, { events: ['instance.failed'] });
    const all = await subscribe(tenant);
    const strange = await subscribe(other);
    const completed = await ended(tenant);
    const failed = await tenant.run([step('a', 'fail')]);
    const foreign = await ended(other);
    const seen = paths(await receiver.until(failed, 2));
    assert.deepEqual(seen, [pathOf(failures), pathOf(all)].sort());
    assert.deepEqual(paths(await receiver.until(completed, 1)), [pathOf(all)]);
    assert.deepEqual(paths(await receiver.until(foreign, 1)), [pathOf(strange)]);
  });

  test('at its new address and with its new secret once the change is answered', async (tenant) => {
    const made = await subscribe(tenant);
    const url = receiver.url(`/${randomUUID()}`);
    expectStatus(await tenant.patch(`/webhooks/${made.id}`, { url, secret: SECRET }), 200);
    const [arrival] = await receiver.until(await ended(tenant), 1);
    assert.ok(arrival !== undefined && isSigned(arrival, SECRET));
    assert.equal(arrival.path, new URL(url).pathname);
  });

  test('its tenant sees the deliveries, and nobody else', async (tenant) => {
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
});
