/** The schemes by which requests for triggers are verified, with the examples of the providers' documents. */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import {
  boundedId,
  schemeOf,
  type Verification,
  verifyProblem,
} from '../../actors/trigger/core/schemes.js';
import type { TriggerVerify } from '../../schema/trigger-parts.js';
import type { JsonObject } from '../../src/base/json.js';
import type { UnixMs } from '../../src/base/time.js';
import { github, slack, standardWebhooks, stripe } from '../helpers/providers.js';

interface Sent {
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly secrets?: readonly string[];
  /** In seconds. */
  readonly now?: number;
}

const SECRET = 'c2VjcmV0IG9mIHNpeHRlZW4g';
const AT = 1_700_000_000;

function deliveryOf({ headers, body = '{}' }: Sent) {
  return { header: (name: string) => headers[name], body: Buffer.from(body) };
}

function problemOf(settings: Verification, sent: Sent): string | undefined {
  const { secrets = [SECRET], now = AT } = sent;
  const delivery = { ...deliveryOf(sent), settings, secrets, now: (now * 1_000) as UnixMs };
  return schemeOf(settings).problem(delivery);
}

const idOf = (scheme: Verification['scheme'], sent: Sent, body: JsonObject = {}) =>
  schemeOf({ scheme }).idOf(deliveryOf(sent), body);

describe("the example of a provider's documents is accepted, and not with another secret or body", () => {
  const examples: readonly (readonly [
    Verification,
    Sent & { readonly secrets: readonly string[] },
  ])[] = [
    [
      { scheme: 'standard_webhooks' },
      {
        headers: {
          'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
          'webhook-timestamp': '1614265330',
          'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
        },
        body: '{"test": 2432232314}',
        secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
        now: 1_614_265_330,
      },
    ],
    [
      { scheme: 'github' },
      {
        headers: {
          'x-hub-signature-256':
            'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
        },
        body: 'Hello, World!',
        secrets: ["It's a Secret to Everybody"],
      },
    ],
    [
      { scheme: 'slack' },
      {
        headers: {
          'x-slack-request-timestamp': '1531420618',
          'x-slack-signature':
            'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
        },
        body:
          'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&' +
          'channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&' +
          'command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2F' +
          'commands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&' +
          'trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
        secrets: ['8f742231b10e8888abcd99yyyzzz85a5'],
        now: 1_531_420_618,
      },
    ],
  ];
  for (const [settings, sent] of examples) {
    test(settings.scheme, () => {
      assert.equal(problemOf(settings, sent), undefined);
      assert.equal(
        problemOf(settings, { ...sent, secrets: ['other', ...sent.secrets] }),
        undefined,
      );
      assert.match(problemOf(settings, { ...sent, secrets: ['other'] }) ?? '', /does not fit/);
      assert.match(problemOf(settings, { ...sent, body: `${sent.body} ` }) ?? '', /does not fit/);
    });
  }
});

test('a signature with a time is refused before and after its window, which can be changed', () => {
  const cases: readonly (readonly [Verification, (at: string) => Record<string, string>])[] = [
    [{ scheme: 'stripe' }, (at) => stripe(SECRET, '{}', at)],
    [{ scheme: 'slack' }, (at) => slack(SECRET, '{}', at)],
    [{ scheme: 'standard_webhooks' }, (at) => standardWebhooks(`whsec_${SECRET}`, '{}', 'm', at)],
  ];
  for (const [settings, sign] of cases) {
    const secrets = settings.scheme === 'standard_webhooks' ? [`whsec_${SECRET}`] : [SECRET];
    const problemAt = (at: number, more: Partial<Verification> = {}) =>
      problemOf({ ...settings, ...more }, { headers: sign(String(at)), secrets });
    for (const apart of [-300, 0, 300]) assert.equal(problemAt(AT + apart), undefined);
    for (const apart of [-301, 301])
      assert.match(problemAt(AT + apart) ?? '', /more than 300000 ms/);
    assert.equal(problemAt(AT - 600, { tolerance_ms: 600_000 }), undefined);
    assert.match(problemAt(AT - 20, { tolerance_ms: 10_000 }) ?? '', /more than 10000 ms/);
    assert.match(problemOf(settings, { headers: sign('soon'), secrets }) ?? '', /unix time/);
  }
});

test('one fitting signature of several is enough, as providers send while a secret is replaced', () => {
  const { 'stripe-signature': signature } = stripe(SECRET, '{}', String(AT));
  const [, own] = (signature ?? '').split(',');
  const several = `t=${AT},v1=${'0'.repeat(64)},${own},v0=${'1'.repeat(64)}`;
  assert.equal(
    problemOf({ scheme: 'stripe' }, { headers: { 'stripe-signature': several } }),
    undefined,
  );
  const only = `t=${AT},v0=${own?.slice('v1='.length)}`;
  assert.match(
    problemOf({ scheme: 'stripe' }, { headers: { 'stripe-signature': only } }) ?? '',
    /fit/,
  );
  const secrets = [`whsec_${SECRET}`];
  const standard = standardWebhooks(`whsec_${SECRET}`, '{}', 'm', String(AT));
  const headers = {
    ...standard,
    'webhook-signature': `v1,AAAA ${standard['webhook-signature']} v1a,B`,
  };
  assert.equal(problemOf({ scheme: 'standard_webhooks' }, { headers, secrets }), undefined);
});

test('the names of headers from before the standard are known', () => {
  const secrets = [`whsec_${SECRET}`];
  const named = standardWebhooks(`whsec_${SECRET}`, '{}', 'm', String(AT));
  const headers = Object.fromEntries(
    Object.entries(named).map(([name, value]) => [name.replace('webhook-', 'svix-'), value]),
  );
  assert.equal(problemOf({ scheme: 'standard_webhooks' }, { headers, secrets }), undefined);
  assert.equal(idOf('standard_webhooks', { headers }), 'm');
});

test('a plain signature has the header, prefix, encoding and hash of its settings', () => {
  const body = '{"a":1}';
  const macOf = (hash: string) => createHmac(hash, SECRET).update(body);
  const base = { scheme: 'hmac', header: 'X-Signature' } as const;
  const cases: readonly (readonly [Partial<Verification>, string])[] = [
    [{}, macOf('sha256').digest('hex')],
    [{}, macOf('sha256').digest('hex').toUpperCase()],
    [{ encoding: 'base64' }, macOf('sha256').digest('base64')],
    [{ encoding: 'base64', algorithm: 'sha1' }, macOf('sha1').digest('base64').replace(/=+$/, '')],
    [{ encoding: 'base64url', prefix: 'v1=' }, `v1=${macOf('sha256').digest('base64url')}`],
    [{ algorithm: 'sha512', prefix: 'sha512=' }, `sha512=${macOf('sha512').digest('hex')}`],
  ];
  for (const [more, signature] of cases) {
    const settings = { ...base, ...more };
    const sent = { headers: { 'x-signature': signature }, body };
    assert.equal(problemOf(settings, sent), undefined, JSON.stringify(settings));
    assert.equal(problemOf(settings, { ...sent, body: '{}' }), 'x-signature does not fit');
    assert.equal(problemOf({ ...settings, prefix: 'x=' }, sent), 'x-signature does not fit');
  }
  assert.equal(problemOf(base, { headers: {}, body }), 'x-signature does not fit');
});

test('a password and a token are compared with the header authorization, a token also with another', () => {
  const basic = (text: string) => ({
    authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  });
  const secrets = ['shop:pass:word'];
  assert.equal(
    problemOf({ scheme: 'basic' }, { headers: basic('shop:pass:word'), secrets }),
    undefined,
  );
  for (const headers of [basic('shop:pass'), basic(''), {}, { authorization: 'shop:pass:word' }]) {
    assert.equal(
      problemOf({ scheme: 'basic' }, { headers, secrets }),
      'authorization does not fit',
    );
  }
  const token = ['t-0123456789'];
  const bearer = (headers: Record<string, string>, more: Partial<Verification> = {}) =>
    problemOf({ scheme: 'bearer', ...more }, { headers, secrets: token });
  assert.equal(bearer({ authorization: 'bearer t-0123456789' }), undefined);
  assert.equal(bearer({ authorization: 't-0123456789' }), 'authorization does not fit');
  assert.equal(
    bearer({ 'x-gitlab-token': 't-0123456789' }, { header: 'X-Gitlab-Token' }),
    undefined,
  );
  assert.equal(bearer({}, { header: 'X-Gitlab-Token' }), 'x-gitlab-token does not fit');
});

test('a repeated delivery has the same id, and another delivery another one', () => {
  const sent = (headers: Record<string, string> = {}, body = '{}') => ({ headers, body });
  assert.equal(idOf('stripe', sent(), { id: 'evt_1' }), 'evt_1');
  assert.equal(idOf('github', sent(github(SECRET, '{}', 'd-1'))), 'd-1');
  assert.equal(idOf('slack', sent(slack(SECRET, '{}', '5')), { event_id: 'Ev1' }), 'Ev1');
  const command = (at: string) => idOf('slack', sent(slack(SECRET, '{}', at)));
  assert.equal(command('5'), command('5'));
  assert.notEqual(command('5'), command('6'));
  assert.equal(idOf('hmac', sent()), idOf('hmac', sent()));
  assert.notEqual(idOf('hmac', sent()), idOf('hmac', sent({}, '{"a":1}')));
  // Who sends is known, and may mean the same again.
  assert.equal(idOf('bearer', sent()), undefined);
  assert.equal(idOf('basic', sent({ 'idempotency-key': 'k' })), 'k');
});

test('an id of any length becomes a key', () => {
  assert.equal(boundedId('evt_1'), 'evt_1');
  for (const odd of ['x'.repeat(129), 'a b', 'ü']) assert.match(boundedId(odd), /^[0-9a-f]{64}$/);
  assert.notEqual(boundedId('a b'), boundedId('a c'));
});

test('settings that a scheme does not use, misses or cannot read are refused', () => {
  const cases: readonly (readonly [TriggerVerify, string | undefined])[] = [
    [{ scheme: 'stripe', secret: 'whsec_x', tolerance_ms: 1_000 }, undefined],
    [
      { scheme: 'stripe', secret: 'whsec_x', header: 'x' },
      'verify.header is not used by the scheme stripe',
    ],
    [
      { scheme: 'github', secret: 'x', tolerance_ms: 1_000 },
      'verify.tolerance_ms is not used by the scheme github',
    ],
    [{ scheme: 'hmac', secret: 'x' }, 'verify.header is required by the scheme hmac'],
    [{ scheme: 'hmac', secret: 'x', header: 'x', encoding: null }, undefined],
    [{ scheme: 'basic', secret: ['a:b', 'c'] }, 'verify.secret must be user:password'],
    [
      { scheme: 'standard_webhooks', secret: 'whsec_!' },
      'verify.secret must be whsec_ and the key in base64',
    ],
  ];
  for (const [verify, problem] of cases) assert.equal(verifyProblem(verify), problem);
});
