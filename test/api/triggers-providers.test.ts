/** Triggers that publish events, and requests that are signed as providers sign them. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import { signatureOf } from '../../actors/trigger/core/trigger-signature.js';
import type { EventDetails, EventReceipt, StoredEvent } from '../../schema/event.js';
import type { Trigger, TriggerFired, WebhookTaken } from '../../schema/trigger.js';
import { eventually, type Json, step, type Tenant, testsOf, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { github, secondsNow, slack, standardWebhooks, stripe } from '../helpers/providers.js';

const api = useSharedApi();
const test = testsOf(api);
const SECRET = 'whsec_c2VjcmV0IG9mIHNpeHRlZW4g';

const PAID: Json = {
  event: 'stripe.{{ body.type }}',
  key: '{{ body.data.object.metadata.order }}',
  payload: { amount: '{{ body.data.object.amount }}' },
};

async function trigger(tenant: Tenant, more: Json): Promise<string> {
  return expectStatus(await create(tenant, more), 201).slug;
}

function create(tenant: Tenant, more: Json): Promise<Reply<Trigger>> {
  const body = { slug: randomUUID(), tenant_id: tenant.name, namespace: 'test', ...more };
  return tenant.post<Trigger>('/triggers', body);
}

const publishing = (tenant: Tenant, scheme: string, publish: Json = PAID) =>
  trigger(tenant, { publish, verify: { scheme, secret: SECRET } });

/** As somebody outside, without a key. */
const deliver = (slug: string, raw: string, headers: Record<string, string>) =>
  api.root
    .with({ apiKey: null, tenant: null })
    .request<WebhookTaken>('POST', `/webhooks/${slug}`, { raw, headers });

const stripeBody = (id: string, more: Json = {}) =>
  JSON.stringify({
    ...{ id, object: 'event', type: 'charge.succeeded' },
    data: { object: { amount: 42, metadata: { order: 'A-17' } } },
    ...more,
  });

const eventsOf = async (tenant: Tenant) =>
  expectStatus(await tenant.get<StoredEvent[]>('/events'), 200);

const waiting = (tenant: Tenant, name: string, key = 'A-17') =>
  tenant.runUntil('waiting', [step('w', 'wait_for_event', { params: { name, key } })]);

describe('a trigger that publishes', () => {
  test('a published delivery ends the wait for it, once, however often the provider repeats it', async (tenant) => {
    const slug = await publishing(tenant, 'stripe');
    const id = await waiting(tenant, 'stripe.charge.succeeded');
    const raw = stripeBody('evt_1');
    const first = expectStatus(await deliver(slug, raw, stripe(SECRET, raw)), 202);
    const { trigger: name, matched, duplicate, event_id } = first;
    assert.deepEqual([name, matched, duplicate], [slug, 1, false]);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { w: { amount: 42 } });
    // Repeated later, with a new signature, and at the same time.
    const at = String(Number(secondsNow()) - 60);
    const again = [stripe(SECRET, raw), stripe(SECRET, raw), stripe(SECRET, raw, at)];
    const replies = await Promise.all(again.map((headers) => deliver(slug, raw, headers)));
    for (const reply of replies) {
      const { body } = reply;
      assert.deepEqual([reply.status, body.duplicate, body.event_id], [202, true, event_id]);
    }
    const [only, ...others] = await eventsOf(tenant);
    assert.deepEqual([only?.producer_event_id, others], [`trigger:${slug}:evt_1`, []]);
  });

  test('publishes the body, without a key, unless it has templates for them', async (tenant) => {
    const slug = await publishing(tenant, 'github', {
      event: 'github.{{ headers.x-github-event }}',
    });
    const raw = '{"action":"opened"}';
    const headers = { ...github(SECRET, raw, 'd-1'), 'x-github-event': 'pull_request' };
    const { event_id } = expectStatus(await deliver(slug, raw, headers), 202);
    const event = expectStatus(await tenant.get<EventDetails>(`/events/${event_id}`), 200);
    const { event_name, correlation_key, payload } = event;
    assert.deepEqual(
      [event_name, correlation_key, payload],
      ['github.pull_request', null, { action: 'opened' }],
    );
  });

  test('takes the id of its events from a template, also for calls', async (tenant) => {
    const slug = await trigger(tenant, { publish: { event: 'paid', id: 'p-{{ body.id }}' } });
    const fire = (body: Json) => tenant.post<TriggerFired>(`/triggers/${slug}/fire`, body);
    const first = expectStatus(await fire({ id: 1 }), 202);
    const again = expectStatus(await fire({ id: 1, more: true }), 202);
    assert.deepEqual([first.duplicate, again.duplicate], [false, true]);
    assert.equal(again.event_id, first.event_id);
    expectStatus(await fire({ id: 2 }), 202);
    const ids = (await eventsOf(tenant)).map((event) => event.producer_event_id);
    assert.deepEqual(ids, ['p-2', 'p-1']);
    // Without a template each call is a new event.
    const plain = await trigger(tenant, { publish: { event: 'called' } });
    for (let n = 0; n < 2; n++) {
      const sent = await tenant.post<TriggerFired>(`/triggers/${plain}/fire`, { same: true });
      assert.equal(expectStatus(sent, 202).duplicate, false);
    }
  });

  test('nobody else can use the id of a delivery, which would suppress it', async (tenant) => {
    const id = 'trigger:payments:evt_1';
    const event = { event_name: 'other', producer_event_id: id };
    const [sequence_id, common] = [
      await tenant.sequence([step('a', 'noop')]),
      { namespace: 'test' },
    ];
    const creation = { tenant_id: tenant.name, sequence_id, ...common, idempotency_key: id };
    const refused: readonly (readonly [string, object, string])[] = [
      ['/events', event, 'producer_event_id'],
      ['/events/batch', { events: [event] }, 'events[0].producer_event_id'],
      ['/instances', creation, 'idempotency_key'],
      ['/instances/batch', { instances: [creation] }, 'instances[0].idempotency_key'],
    ];
    for (const [path, body, member] of refused) {
      const reply = await tenant.post<{ error: string }>(path, body);
      const { error } = expectStatus(reply, 400);
      assert.ok(error.includes(`${member} must not begin with trigger:`), error);
    }
    const slug = await trigger(tenant, { publish: { event: 'paid', id: '{{ body.id }}' } });
    const fired = await tenant.post<{ error: string }>(`/triggers/${slug}/fire`, { id });
    assert.match(expectStatus(fired, 422).error, /publish\.id must not come to trigger:/);
    assert.deepEqual(await eventsOf(tenant), []);
  });

  test('refuses with 422 what gives no name or key, and publishes nothing', async (tenant) => {
    const cases: readonly (readonly [Json, RegExp])[] = [
      [
        { event: '{{ body.kind }}' },
        /publish\.event must not come to null, and \{\{ body\.kind \}\} does/,
      ],
      [{ event: 'paid', key: 'order-{{ body.order }}' }, /publish\.key must not come to null/],
      [{ event: 'paid', key: '{{ body.blank }}' }, /publish\.key must not come to a blank text/],
      [{ event: 'paid', key: '{{ body.list }}' }, /publish\.key must come to a text or a number/],
      [
        { event: 'paid', key: '{{ json(body) }}'.repeat(1_000) },
        /publish\.key: .* larger than 2 MiB/,
      ],
      [{ event: '{{ body.long }}' }, /publish\.event must come to at most 255 characters/],
      [{ event: 'paid', id: '{{ headers.x-id }}' }, /publish\.id must not come to null/],
      [
        { event: 'paid', payload: { a: '{{ body.text | base64_decode }}' } },
        /publish\.payload: .*base64/,
      ],
    ];
    const body = {
      blank: ' ',
      list: [1],
      long: 'x'.repeat(256),
      text: '!',
      more: 'y'.repeat(3_000),
    };
    for (const [publish, message] of cases) {
      const slug = await trigger(tenant, { publish });
      const reply: Reply<unknown> = await tenant.post(`/triggers/${slug}/fire`, body);
      assert.deepEqual([reply.status, reply.headers['x-error-code']], [422, 'ENG_TEMPLATE']);
      assert.match((reply.body as { error: string }).error, message);
    }
    assert.deepEqual(await eventsOf(tenant), []);
  });

  test('on an event passes it on once, and fires no other trigger with it', async (tenant) => {
    const config = { event_name: 'ping' };
    const event = { trigger_type: 'event', config };
    // Each would fire the other for ever.
    await trigger(tenant, { ...event, publish: { event: 'pong', key: '{{ body.n }}' } });
    const back = { trigger_type: 'event', config: { event_name: 'pong' } };
    await trigger(tenant, { ...back, publish: { event: 'ping' } });
    const id = await waiting(tenant, 'pong', '7');
    const sent = { event_name: 'ping', producer_event_id: 'p', payload: { n: 7 } };
    const receipt = expectStatus(await tenant.post<EventReceipt>('/events', sent), 201);
    assert.equal(receipt.triggers, 1);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id), { w: { n: 7 } });
    const text = 'select 1 from events where tenant_id = $1 and fires is not null';
    await eventually(async () => {
      assert.equal((await api.sql.query(text, [tenant.name])).rowCount, 0);
    });
    assert.equal((await eventsOf(tenant)).length, 2);
  });

  test('by a request fires the triggers of its event', async (tenant) => {
    const sequence_name = `s-${randomUUID()}`;
    await tenant.sequence([step('a', 'noop')], { name: sequence_name });
    const config = { event_name: 'stripe.charge.succeeded' };
    await trigger(tenant, { sequence_name, trigger_type: 'event', config });
    const slug = await publishing(tenant, 'stripe');
    const raw = stripeBody('evt_1');
    assert.equal(expectStatus(await deliver(slug, raw, stripe(SECRET, raw)), 202).triggers, 1);
    await eventually(async () => {
      const list = expectStatus(await tenant.get<Json[]>('/instances'), 200);
      assert.equal(list.length, 1);
    });
  });

  test('is refused with members that do not go together, and changed between both effects', async (tenant) => {
    const sequence_name = `s-${randomUUID()}`;
    await tenant.sequence([step('a', 'noop')], { name: sequence_name });
    const publish = { event: 'paid' };
    const verify = { scheme: 'stripe', secret: SECRET };
    const cases: readonly (readonly [Json, RegExp])[] = [
      [{}, /exactly one of sequence_name and publish/],
      [{ sequence_name, publish }, /exactly one of sequence_name and publish/],
      [{ publish, version: 1 }, /version goes with sequence_name/],
      [
        { publish: { event: '{{ bdy.type }}' } },
        /publish\.event: unknown template root "bdy"; did you mean body\?/,
      ],
      [
        { publish: { event: 'e', payload: { a: ['{{ data.x }}'] } } },
        /publish\.payload\.a\[0\]: .*there are body, headers/,
      ],
      [{ publish: { event: '{{ secrets.a }}' } }, /unknown template root "secrets"/],
      [
        { publish: { event: '{{ body.a | uper() }}' } },
        /publish\.event: unknown template filter "uper"/,
      ],
      [{ publish: { event: 'paid.{{ body.type' } }, /publish\.event: \{\{ without \}\}/],
      [{ publish: { event: 'e', key: '{{ body.a }}{{ body.b' } }, /publish\.key: \{\{ without/],
      [
        { publish: { event: 'e', payload: ['{{ a {{ body.b }}'] } },
        /publish\.payload\[0\]: \{\{ w/,
      ],
      [{ publish: { event: `${'e'.repeat(256)}{{ body.a }}` } }, /publish\.event .* at most 255/],
      [{ publish: { event: 'e', key: 'k'.repeat(513) } }, /publish\.key .* at most 512/],
      [{ publish: { event: 'e', id: 'trigger:{{ body.id }}' } }, /publish\.id must not come to tr/],
      [{ publish, secret: ' ' }, /: secret must not be blank/],
      ...(
        [
          ['engine', ' ', 'must not be blank'],
          ['hmac', [SECRET, '\t'], 'must not be blank'],
          ['stripe', `${SECRET}\n`, 'must not begin or end'],
          ['github', ` ${SECRET}`, 'must not begin or end'],
          ['slack', `${SECRET} `, 'must not begin or end'],
          ['bearer', 'two words', 'must not have blanks'],
          ['basic', ' : ', 'must be user:password'],
        ] as const
      ).map(([scheme, secret, rule]): readonly [Json, RegExp] => {
        const header = scheme === 'hmac' ? { header: 'x' } : {};
        return [
          { publish, verify: { scheme, secret, ...header } },
          new RegExp(`: verify\\.secret ${rule}`),
        ];
      }),
      [
        { publish, verify: { scheme: 'bearer', secret: 'two words ', header: 'x-token' } },
        /verify\.secret must be what a header can carry/,
      ],
      [
        { sequence_name, trigger_type: 'event', config: { event_name: 'e'.repeat(256) } },
        /config\.event_name must have at most 255/,
      ],
      [{ publish, verify, secret: SECRET }, /secret must not be given beside verify/],
      [
        { publish, verify: { ...verify, header: 'x' } },
        /verify\.header is not used by the scheme stripe/,
      ],
      [
        { publish, verify, trigger_type: 'event', config: { event_name: 'e' } },
        /verify is for webhook triggers/,
      ],
    ];
    for (const [body, message] of cases) {
      const reply: Reply<unknown> = await create(tenant, body);
      assert.equal(reply.status, 400, reply.text);
      assert.match((reply.body as { error: string }).error, message);
    }
    assert.deepEqual(expectStatus(await tenant.get('/triggers'), 200), []);
    for (const fit of [
      { scheme: 'github', secret: 'any text is a key' },
      { scheme: 'basic', secret: 'a user:pass word' },
      { scheme: 'basic', secret: 'key:' },
      { scheme: 'bearer', secret: 'two words', header: 'x-token' },
    ]) {
      await tenant.delete(`/triggers/${await trigger(tenant, { publish, verify: fit })}`);
    }
    const slug = await trigger(tenant, { publish, verify });
    const change = (changes: Json) => tenant.patch<Trigger>(`/triggers/${slug}`, changes);
    expectStatus(await change({ sequence_name }), 400);
    const starts = expectStatus(await change({ sequence_name, publish: null }), 200);
    assert.deepEqual([starts.sequence_name, starts.publish], [sequence_name, null]);
    const back = expectStatus(await change({ sequence_name: null, publish }), 200);
    assert.deepEqual([back.sequence_name, back.publish], [null, publish]);
  });
});

describe('a request of a provider', () => {
  test('starts one instance for each delivery, and shows no secret', async (tenant) => {
    const sequence_name = `s-${randomUUID()}`;
    await tenant.sequence([step('a', 'noop')], { name: sequence_name });
    const verify = { scheme: 'standard_webhooks', secret: SECRET };
    const slug = await trigger(tenant, { sequence_name, verify });
    const raw = '{"amount":5}';
    const send = (id: string) => deliver(slug, raw, standardWebhooks(SECRET, raw, id));
    const first = expectStatus(await send('msg_1'), 202);
    assert.equal(first.duplicate, undefined);
    const again = expectStatus(await send('msg_1'), 202);
    assert.deepEqual([again.duplicate, again.instance_id], [true, first.instance_id]);
    assert.equal(expectStatus(await send('msg_2'), 202).duplicate, undefined);
    assert.equal(expectStatus(await tenant.get<Json[]>('/instances'), 200).length, 2);
    const shown = expectStatus(await tenant.get<Trigger>(`/triggers/${slug}`), 200);
    assert.deepEqual([shown.secret, shown.verify], [null, { ...verify, secret: '[REDACTED]' }]);
    const { rows } = await api.sql.query('select secret from triggers where slug = $1', [slug]);
    assert.deepEqual(Object.keys(rows[0].secret), ['sealed']);
    // The secret of a provider is not asked of callers with a key.
    expectStatus(await tenant.post(`/triggers/${slug}/fire`, {}), 201);
  });

  test('a request of a provider with another secret, body or time is 401 and has no effect', async (tenant) => {
    const slug = await publishing(tenant, 'stripe');
    const raw = stripeBody('evt_1');
    const old = String(Number(secondsNow()) - 301);
    for (const headers of [
      stripe('wrong', raw),
      stripe(SECRET, raw, old),
      stripe(SECRET, '{}'),
      {},
    ]) {
      expectStatus(await deliver(slug, raw, headers), 401);
    }
    assert.deepEqual(await eventsOf(tenant), []);
  });

  test('is accepted with either of two secrets, and with one again after the change', async (tenant) => {
    const slug = await publishing(tenant, 'github', { event: 'e' });
    const statusWith = async (secret: string) => {
      const raw = `{"n":"${randomUUID()}"}`;
      return (await deliver(slug, raw, github(secret, raw, randomUUID()))).status;
    };
    const change = async (changes: Json) =>
      expectStatus(await tenant.patch<Trigger>(`/triggers/${slug}`, changes), 200);
    const verify = { scheme: 'github', secret: ['the next secret', SECRET] };
    assert.equal((await change({ verify })).verify?.secret, '[REDACTED]');
    assert.deepEqual([await statusWith(SECRET), await statusWith('the next secret')], [202, 202]);
    await change({ verify: { ...verify, secret: 'the next secret' } });
    assert.deepEqual([await statusWith(SECRET), await statusWith('the next secret')], [401, 202]);
    // What the change does not name stays.
    await change({ publish: { event: 'f' }, secret: null });
    assert.equal(await statusWith('the next secret'), 202);
    await change({ verify: null });
    assert.equal(await statusWith('the next secret'), 401);
  });

  test('of Slack is answered as Slack asks: its challenge, then 200 without a body', async (tenant) => {
    const publish = { event: 'slack.{{ body.event.type | body.command }}' };
    const slug = await publishing(tenant, 'slack', publish);
    const hello = '{"type":"url_verification","challenge":"c-17","token":"t"}';
    const challenged = await deliver(slug, hello, slack(SECRET, hello));
    expectStatus(challenged, 200);
    assert.equal(challenged.text, 'c-17');
    expectStatus(await deliver(slug, hello, slack('wrong', hello)), 401);
    const raw = '{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}';
    for (const at of [secondsNow(), String(Number(secondsNow()) - 5)]) {
      const reply = await deliver(slug, raw, slack(SECRET, raw, at));
      assert.deepEqual([reply.status, reply.text], [200, '']);
    }
    const form = 'command=%2Fpay&text=A-17+now';
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    expectStatus(await deliver(slug, form, { ...type, ...slack(SECRET, form) }), 200);
    const sent = (await eventsOf(tenant)).map(({ event_name, payload }) => [event_name, payload]);
    assert.deepEqual(sent, [
      ['slack./pay', { command: '/pay', text: 'A-17 now' }],
      ['slack.app_mention', JSON.parse(raw)],
    ]);
  });

  test('may be a form with JSON in its member payload', async (tenant) => {
    const slug = await publishing(tenant, 'github', { event: '{{ body.payload.action }}' });
    const raw = `payload=${encodeURIComponent('{"action":"opened"}')}`;
    const headers = {
      ...{ 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
      ...github(SECRET, raw, 'd-1'),
    };
    expectStatus(await deliver(slug, raw, headers), 202);
    assert.equal((await eventsOf(tenant))[0]?.event_name, 'opened');
  });

  test('shows its headers to templates, but no credentials', async (tenant) => {
    const payload = {
      kind: '{{ headers.x-kind }}',
      password: '{{ headers.authorization }}',
      token: '{{ headers.x-token }}',
    };
    const verify = { scheme: 'bearer', header: 'X-Token', secret: SECRET };
    const slug = await trigger(tenant, { publish: { event: 'e', payload }, verify });
    const headers = { 'x-token': SECRET, 'x-kind': 'note', authorization: 'Basic eDp5' };
    // The sender proves who it is, and may say the same twice.
    for (let n = 0; n < 2; n++) {
      assert.equal(expectStatus(await deliver(slug, '{}', headers), 202).duplicate, false);
    }
    const { rows } = await api.sql.query('select payload from events where tenant_id = $1', [
      tenant.name,
    ]);
    assert.deepEqual(rows[0].payload, { kind: 'note', password: null, token: null });
  });

  test('of our own scheme is 401 when it is repeated, also if it publishes', async (tenant) => {
    const slug = await publishing(tenant, 'engine', { event: 'e' });
    const [at, nonce] = [secondsNow(), randomUUID()];
    const headers = {
      'x-trigger-timestamp': at,
      'x-trigger-nonce': nonce,
      'x-engine-signature': signatureOf(SECRET, at, nonce, Buffer.from('{}')),
    };
    expectStatus(await deliver(slug, '{}', headers), 202);
    expectStatus(await deliver(slug, '{}', headers), 401);
    assert.equal((await eventsOf(tenant)).length, 1);
  });

  test('is counted by what became of it', async (tenant) => {
    const counts = async () => {
      const { text } = await api.root.get('/metrics');
      const of = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
      return ['accepted', 'repeated', 'refused'].map((word) => of(`engine_webhooks_${word}_total`));
    };
    const slug = await publishing(tenant, 'stripe');
    const raw = stripeBody('evt_1');
    const before = await counts();
    await deliver(slug, raw, stripe(SECRET, raw));
    await deliver(slug, raw, stripe(SECRET, raw));
    await deliver(slug, raw, stripe('wrong', raw));
    const after = await counts();
    for (const [at, count] of after.entries()) assert.ok(count >= (before[at] ?? 0) + 1);
  });
});
