/** What is decided about deliveries to worker endpoints, without a server. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Decision, decisionOn } from '../../actors/push/core/decision.js';
import { Pause } from '../../actors/push/core/pause.js';
import { keyProblem, messageSignature } from '../../src/core/message-signature.js';
import type { PushAnswer } from '../../src/handlers/push-sender.js';
import { createPushSender } from '../../src/handlers/push-sender.js';
import { listen, openHandler } from '../helpers/http-handler.js';

const SENT = { endpoint: 'e', secret: 'the secret of e', timeoutMs: 5_000 };

const answer = (status: number, text = '', more: Partial<PushAnswer> = {}): Decision =>
  decisionOn(
    { kind: 'answered', status, retryAfterMs: undefined, text, free: () => undefined, ...more },
    SENT,
  );

describe('the signature of a delivery', () => {
  test('is that of Standard Webhooks', () => {
    const message = {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestamp: 1614265330,
      body: '{"test": 2432232314}',
    };
    const signature = messageSignature('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', message);
    assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  test('takes any text as its key, but after whsec_ only base64', () => {
    assert.equal(keyProblem('any text'), undefined);
    assert.match(String(keyProblem('whsec_no base64')), /base64/);
    assert.match(String(keyProblem('whsec_')), /base64/);
  });
});

describe('the reply of an endpoint', () => {
  test('completes the task by an object, or by nothing', () => {
    assert.deepEqual(answer(200, '{"a":1}'), { kind: 'complete', output: { a: 1 } });
    assert.deepEqual(answer(201, '{"a":1}'), { kind: 'complete', output: { a: 1 } });
    for (const text of ['', ' \n', 'null']) {
      assert.deepEqual(answer(200, text), { kind: 'complete', output: {} });
    }
    assert.deepEqual(answer(202, '{"a":1}'), { kind: 'keep' });
  });

  test('fails the attempt by what is no object, and by what could not be stored unchanged', () => {
    for (const text of [
      '[1]',
      '"a"',
      '<html>',
      '{"a":1e999}',
      '{"a":1,"a":2}',
      '{"a":"\\ud800"}',
    ]) {
      const decision = answer(200, text);
      assert.ok(decision.kind === 'fail' && decision.retryable, text);
    }
  });

  test('is final only as 4xx with retryable false', () => {
    const final = '{"retryable":false,"message":"declined"}';
    assert.deepEqual(answer(422, final), {
      kind: 'fail',
      message: 'endpoint e answered 422: declined',
      retryable: false,
    });
    for (const [status, text] of [
      [500, final],
      [422, '{"retryable":"false"}'],
      [404, 'no'],
    ] as const) {
      const decision = answer(status, text);
      assert.ok(decision.kind === 'fail' && decision.retryable, `${status} ${text}`);
    }
    assert.match(JSON.stringify(answer(307)), /redirects are not followed/);
  });

  test('returns the task by 429, and by 503 that names a time', () => {
    assert.deepEqual(answer(429), { kind: 'return', reason: 'answered 429', pauseMs: undefined });
    const asked = { retryAfterMs: 2_000 };
    assert.deepEqual(answer(429, '', asked), {
      kind: 'return',
      reason: 'answered 429',
      pauseMs: 2_000,
    });
    assert.equal(answer(503, '', asked).kind, 'return');
    assert.equal(answer(503).kind, 'fail');
    const atOnce = { kind: 'return', reason: 'answered 503', pauseMs: undefined };
    assert.deepEqual(answer(503, '', { retryAfterMs: 0 }), atOnce);
    const longest = answer(503, '', { retryAfterMs: 86_400_000 });
    assert.equal(longest.kind === 'return' && longest.pauseMs, 3_600_000);
  });

  test('returns the task when nothing was sent, and fails the attempt when something may have been', () => {
    assert.equal(decisionOn({ kind: 'unsent', reason: 'r' }, SENT).kind, 'return');
    assert.equal(decisionOn({ kind: 'broken', reason: 'r' }, SENT).kind, 'fail');
    assert.equal(decisionOn({ kind: 'timeout' }, SENT).kind, 'fail');
    assert.equal(decisionOn({ kind: 'aborted' }, SENT).kind, 'drop');
  });

  test('shows the beginning of a body, without the secret of the endpoint', () => {
    const decision = answer(500, `${'x'.repeat(500)} ${SENT.secret} ${'y'.repeat(500)}`);
    assert.ok(decision.kind === 'fail');
    assert.ok(!decision.message.includes('secret of'));
    assert.match(decision.message, /^endpoint e answered 500: x+ \[REDACTED\]/);
    assert.ok(decision.message.length < 600);
  });
});

describe('the pause of an endpoint', () => {
  test('grows with each try after it up to a minute, and ends with an answer', () => {
    const pause = new Pause();
    let now = 0;
    const lengths = Array.from({ length: 9 }, () => {
      assert.equal(pause.begin(now, undefined, 0), true);
      const until = pause.until(now) ?? now;
      const ms = until - now;
      now = until;
      return ms;
    });
    assert.deepEqual(
      lengths,
      [1, 2, 4, 8, 16, 32, 60, 60, 60].map((secs) => secs * 1_000),
    );
    assert.equal(pause.isDoubtful, true);
    assert.equal(pause.end(), true);
    assert.equal(pause.end(), false);
    pause.begin(now, undefined, 0);
    assert.equal((pause.until(now) ?? 0) - now, 1_000);
  });

  test('counts requests that fail together once, and lasts as long as the longest asks', () => {
    const pause = new Pause();
    assert.equal(pause.begin(0, undefined, 0), true);
    assert.equal(pause.begin(10, undefined, 0), false);
    assert.equal(pause.begin(20, 5_000, 0), false);
    assert.equal(pause.until(20), 5_020);
  });

  test('is lifted for one try, after which it goes on growing', () => {
    const pause = new Pause();
    pause.begin(0, 3_600_000, 0);
    pause.lift();
    assert.deepEqual([pause.until(1), pause.isDoubtful], [undefined, true]);
    pause.begin(1, undefined, 0);
    assert.equal(pause.until(1), 2_001);
  });
});

describe('a delivery', () => {
  const REQUEST = {
    ...{ tenant: 't', secret: 's', id: 'm_1', body: '{}', idempotencyKey: 'k' },
    ...{ traceparent: undefined, timeoutMs: 10_000 },
  };
  const signal = new AbortController().signal;

  test('that finds no connection is unsent, and one that breaks after it was sent is broken', async (t) => {
    const { deps: http } = openHandler(t);
    const { origin, server } = await listen(t, (request) => request.socket.destroy());
    const sender = createPushSender({ http, now: () => 0 });
    const broken = await sender.send({ ...REQUEST, url: origin }, signal);
    assert.equal(broken.kind, 'broken');
    server.close();
    server.closeAllConnections();
    const unsent = await sender.send({ ...REQUEST, url: origin }, signal);
    assert.deepEqual(unsent, { kind: 'unsent', reason: 'transport error ECONNREFUSED' });
  });

  test('whose answer cannot be decoded is no success, and an error is shown as far as it can be', async (t) => {
    const { deps: http } = openHandler(t);
    const { origin } = await listen(t, (request, response) => {
      response
        .writeHead(request.url === '/ok' ? 200 : 500)
        .end(Buffer.from('{"a":"\xe4"}', 'latin1'));
    });
    const sender = createPushSender({ http, now: () => 0 });
    const decisionAt = async (path: string) =>
      decisionOn(await sender.send({ ...REQUEST, url: origin + path }, signal), SENT);
    assert.deepEqual(await decisionAt('/ok'), {
      ...{ kind: 'fail', retryable: true },
      message: 'endpoint e answered 200, but its bytes are not utf-8',
    });
    assert.deepEqual(await decisionAt('/error'), {
      ...{ kind: 'fail', retryable: true },
      message: 'endpoint e answered 500: {"a":"\ufffd"}',
    });
  });

  test('to an address that is not allowed is unsent', async (t) => {
    const { deps: http } = openHandler(t, { isAllowed: () => false });
    const sender = createPushSender({ http, now: () => 0 });
    const { kind } = await sender.send({ ...REQUEST, url: 'http://127.0.0.1:1/' }, signal);
    assert.equal(kind, 'unsent');
  });
});
