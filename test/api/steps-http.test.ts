/**
 * http_request as a step: templates, the tries of its policy, and answers that no column holds. What is
 * sent and what fails is in `http-request.test.ts` and `insecure-auth.test.ts`.
 */

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { step, transform, useTenant } from '../helpers/api.js';
import { listen } from '../helpers/http-handler.js';

const tenant = useTenant();

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly token: unknown;
  readonly body: string;
}

/** A server outside, and the requests that it has seen. */
async function outside(
  t: TestContext,
  answer: (response: ServerResponse, seen: readonly Seen[]) => void,
): Promise<{ origin: string; seen: readonly Seen[] }> {
  const seen: Seen[] = [];
  const { origin } = await listen(t, async (request: IncomingMessage, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    seen.push({ method, url, token: headers['idempotency-key'], body });
    answer(response, seen);
  });
  return { origin, seen };
}

test('templates fill url and body, and later steps read the answer', async (t) => {
  const { origin, seen } = await outside(t, (response) => response.end('said'));
  const params = { url: `${origin}/{{ data.path }}?y=1`, body: { n: '{{ data.n }}' } };
  const blocks = [
    step('a', 'http_request', { params: { ...params, method: 'POST' } }),
    transform('b', { status: '{{ outputs.a.status }}' }),
  ];
  const id = await tenant.runUntil('completed', blocks, { path: 'p', n: 4 });
  const { method, url, body } = seen[0] ?? {};
  assert.deepEqual([method, url, body], ['POST', '/p?y=1', '{"n":4}']);
  const { a, b } = await tenant.outputsOf(id);
  assert.deepEqual([a?.status, a?.body, b], [200, 'said', { status: 200 }]);
});

test('5xx are tried again by the policy, with one idempotency token a try', async (t) => {
  const { origin, seen } = await outside(t, (response, { length }) =>
    response.writeHead([500, 503][length - 1] ?? 200).end('made it'),
  );
  const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
  const params = { url: origin, method: 'POST' };
  const id = await tenant.runUntil('completed', [step('a', 'http_request', { params, retry })]);
  const { a } = await tenant.outputsOf(id);
  assert.deepEqual([a?.status, a?.body], [200, 'made it']);
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map(({ token }) => token)).size, 3);
});

test('a body that cannot be stored does not stop the instance for ever', async (t) => {
  const { origin } = await outside(t, (response) => response.end('a\u0000b\ud800'));
  const blocks = [step('a', 'http_request', { params: { url: origin } })];
  const id = await tenant.runUntil('completed', blocks);
  assert.equal((await tenant.outputsOf(id)).a?.status, 200);
});
