/** Triggers over HTTP: what starts an instance from outside, and what does not. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Trigger, TriggerFired, WebhookTaken } from '../../schema/trigger.js';
import { signatureOf } from '../../src/core/trigger-signature.js';
import { type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const SECRET = 'correct horse battery staple';

/** Of a new sequence that logs what it was started with. */
async function trigger(tenant: Tenant, more: Json = {}): Promise<Trigger> {
  const sequence_name = `s-${randomUUID()}`;
  const params = { message: '{{ data.amount }}' };
  await tenant.sequence([step('say', 'log', { params })], { name: sequence_name });
  return expectStatus(await create(tenant, { sequence_name, ...more }), 201);
}

function create(tenant: Tenant, more: Json): Promise<Reply<Trigger>> {
  const body = { slug: randomUUID(), tenant_id: tenant.name, namespace: 'test', ...more };
  return tenant.post<Trigger>('/triggers', body);
}

describe('a trigger', () => {
  test('is made, read, listed, changed and deleted, and never shows its secret', async () => {
    const tenant = api.tenant();
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
    const list = expectStatus(await tenant.get<Trigger[]>('/triggers'), 200);
    assert.deepEqual(list, [made, other]);
    const events = await tenant.get<Trigger[]>('/triggers?trigger_type=event');
    assert.deepEqual(column(expectStatus(events, 200), 'slug'), [other.slug]);
    const changed = expectStatus(await tenant.patch<Trigger>(path, { enabled: false }), 200);
    assert.deepEqual({ ...changed, updated_at: '' }, { ...made, enabled: false, updated_at: '' });
    expectStatus(await tenant.delete(path), 204);
    for (const reply of [await tenant.get(path), await tenant.delete(path)])
      expectStatus(reply, 404);
    expectStatus(await tenant.post(`${path}/fire`), 404);
  });

  test('is refused with what is wrong', async () => {
    const tenant = api.tenant();
    const { slug, sequence_name } = await trigger(tenant);
    const cases: readonly (readonly [Json, number, RegExp])[] = [
      [{ slug, sequence_name }, 409, /trigger .* exists/],
      [{ sequence_name: 'nothing' }, 404, /sequence nothing in namespace test/],
      [{ sequence_name, version: 7 }, 404, /version 7/],
      [{ sequence_name, slug: '' }, 400, /slug/],
      [{ sequence_name, slug: 'a/b' }, 400, /slug/],
      [{ sequence_name, secret: '' }, 400, /secret/],
      [{ sequence_name, trigger_type: 'nats' }, 400, /trigger_type/],
      [{ sequence_name, trigger_type: 'event' }, 400, /config\.event_name/],
      [
        { sequence_name, trigger_type: 'event', config: { event_name: 'a', correlation_key: 7 } },
        400,
        /config\.correlation_key/,
      ],
      [{ sequence_name, tenant_id: 'another' }, 403, /tenant_id/],
    ];
    for (const [body, status, message] of cases) {
      const reply: Reply<unknown> = await create(tenant, body);
      assert.equal(reply.status, status, JSON.stringify(body));
      assert.match((reply.body as { error: string }).error, message);
    }
    assert.equal(expectStatus(await tenant.get<Trigger[]>('/triggers'), 200).length, 1);
  });

  test('belongs to its tenant, but its slug to the server', async () => {
    const [mine, other] = [api.tenant(), api.tenant()];
    const { slug } = await trigger(mine, { secret: SECRET });
    const path = `/triggers/${slug}`;
    for (const reply of [
      await other.get(path),
      await other.patch(path, {}),
      await other.delete(path),
      await other.post(`${path}/fire`),
    ]) {
      expectStatus(reply, 404);
    }
    const { sequence_name } = await trigger(other);
    expectStatus(await create(other, { slug, sequence_name }), 409);
  });

  test('starts an instance that is told of it, with the version that is newest then', async () => {
    const tenant = api.tenant();
    const { slug, sequence_name } = await trigger(tenant);
    const path = `/triggers/${slug}/fire`;
    const fired = expectStatus(await tenant.post<TriggerFired>(path, { amount: 12 }), 201);
    assert.deepEqual([fired.trigger, fired.sequence_name], [slug, sequence_name]);
    const instance = await tenant.until(fired.instance_id, 'completed');
    assert.deepEqual(instance.metadata, {
      _trigger: slug,
      _trigger_type: 'webhook',
      _trigger_event: { source: 'http_fire' },
    });
    assert.deepEqual([instance.context.data, instance.priority], [{ amount: 12 }, 'Normal']);
    const next = await tenant.sequence([step('a', 'noop')], { name: sequence_name, version: 2 });
    const again = expectStatus(await tenant.post<TriggerFired>(path), 201);
    assert.equal((await tenant.until(again.instance_id, 'completed')).sequence_id, next);
  });

  test('asks for its secret, and starts nothing while it is switched off', async () => {
    const tenant = api.tenant();
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

  test('is charged to the tenant whose trigger it is, once its signature fits', async () => {
    const tenant = api.tenant();
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

  test('that is signed starts an instance of the tenant, once for each nonce', async () => {
    const tenant = api.tenant();
    const { slug } = await trigger(tenant, { secret: SECRET });
    const nonce = randomUUID();
    const taken = expectStatus(await send({ slug, nonce }), 202);
    assert.equal(taken.trigger, slug);
    const { metadata, context } = await tenant.until(taken.instance_id, 'completed');
    assert.deepEqual(metadata._trigger_event, { source: 'public_webhook', user_agent: 'shop/2.1' });
    assert.deepEqual(context.data, { amount: 5 });
    expectStatus(await send({ slug, nonce }), 401);
    expectStatus(await send({ slug, nonce, raw: '{"amount":6}' }), 401);
    expectStatus(await send({ slug }), 202);
    assert.equal(expectStatus(await tenant.get<Json[]>('/instances'), 200).length, 2);
  });

  test('with any flaw is 401 and starts nothing', async () => {
    const tenant = api.tenant();
    const { slug } = await trigger(tenant, { secret: SECRET });
    const old = String(Math.floor(Date.now() / 1_000) - 400);
    const cases: readonly Omit<Sent, 'slug'>[] = [
      { secret: 'wrong' },
      { nonce: 'short' },
      { headers: { 'x-trigger-timestamp': old } },
      { headers: { 'x-trigger-timestamp': '' } },
      { headers: { 'x-trigger-nonce': '' } },
      { headers: { 'x-engine-signature': 'v1=' } },
      // Neither does a body that is no JSON tell whether the signature is right.
      { secret: 'wrong', raw: '{' },
    ];
    for (const flawed of cases) expectStatus(await send({ slug, ...flawed }), 401);
    const { slug: bare } = await trigger(tenant);
    expectStatus(await send({ slug: bare }), 401);
    assert.deepEqual(expectStatus(await tenant.get('/instances'), 200), []);
  });

  test('that is signed must have a body that can be a context', async () => {
    const tenant = api.tenant();
    const { slug } = await trigger(tenant, { secret: SECRET });
    for (const raw of ['{', '[1]', '7', '']) expectStatus(await send({ slug, raw }), 400);
    const large = JSON.stringify({ text: 'x'.repeat(1024 * 1024) });
    expectStatus(await send({ slug, raw: large }), 413);
  });

  test('finds no trigger that is switched off, of events, or of nobody', async () => {
    const tenant = api.tenant();
    const off = await trigger(tenant, { secret: SECRET, enabled: false });
    const config = { event_name: 'paid' };
    const ofEvents = await trigger(tenant, { secret: SECRET, trigger_type: 'event', config });
    for (const slug of [off.slug, ofEvents.slug, 'nobody']) expectStatus(await send({ slug }), 404);
  });
});
