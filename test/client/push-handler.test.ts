/** The handler of worker endpoints in the client library, called as platforms call it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ACCEPTED, createHandler, FatalError, toLambda } from '../../client/src/push/index.js';
import { messageSignature } from '../../src/core/message-signature.js';
import { listen } from '../helpers/http-handler.js';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const QUIET = { debug() {}, info() {}, warn() {}, error() {} };

const task = (handler_name: string, params: object = {}) => ({
  ...{ id: 'task', handler_name, params, worker_id: 'endpoint:e', claim_epoch: 3 },
  ...{ checkpoint_seq: 2, resume_checkpoint: { at: 1 }, idempotency_key: 'key' },
});

interface Signing {
  readonly secret?: string;
  readonly at?: number;
}

function signed(body: string, { secret = SECRET, at = Date.now() }: Signing = {}) {
  const timestamp = Math.floor(at / 1_000);
  return {
    'webhook-id': 'task_3',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': messageSignature(secret, { id: 'task_3', timestamp, body }),
  };
}

const post = (body: string, headers: Record<string, string>) =>
  new Request('https://here.example/', { method: 'POST', headers, body });

const handlers = {
  double: ({ params }: { params: { n?: number } }) => ({ n: (params.n ?? 0) * 2 }),
  refuse: () => {
    throw new FatalError('declined');
  },
  break: () => {
    throw new Error('broken');
  },
  later: () => ACCEPTED,
} as never;

const send = async (name: string, params?: object) => {
  const body = JSON.stringify(task(name, params));
  const response = await createHandler({ handlers, secret: SECRET })(post(body, signed(body)));
  return [response.status, await response.text()] as const;
};

describe('createHandler', () => {
  test('answers by what the handler returns or throws', async () => {
    assert.deepEqual(await send('double', { n: 2 }), [200, '{"n":4}']);
    assert.deepEqual(await send('refuse'), [422, '{"message":"declined","retryable":false}']);
    assert.deepEqual(await send('break'), [500, '{"message":"broken"}']);
    assert.deepEqual(await send('later'), [202, '']);
    assert.equal((await send('unknown'))[0], 404);
  });

  test('runs only what was signed with one of its secrets in the last minutes', async () => {
    const body = JSON.stringify(task('double'));
    const receive = createHandler({ handlers, secret: ['an older secret', SECRET] });
    const status = async (headers: Record<string, string>, text = body) =>
      (await receive(post(text, headers))).status;
    assert.equal(await status(signed(body)), 200);
    assert.equal(await status(signed(body, { secret: 'an older secret' })), 200);
    assert.equal(await status(signed(body, { secret: 'another secret' })), 401);
    assert.equal(await status(signed(body), `${body} `), 401);
    assert.equal(await status(signed(body, { at: Date.now() - 600_000 })), 401);
    assert.equal(await status({}), 401);
    const patient = createHandler({ handlers, secret: SECRET, toleranceMs: Infinity });
    const atAnyTime = async (headers: Record<string, string>) =>
      (await patient(post(body, headers))).status;
    assert.equal(await atAnyTime(signed(body, { at: Date.now() + 2 * 86_400_000 })), 200);
    assert.equal(await atAnyTime(signed(body, { secret: 'another secret' })), 401);
    assert.throws(
      () => createHandler({ handlers, secret: SECRET, toleranceMs: Number.NaN }),
      TypeError,
    );
    const several = {
      ...signed(body),
      'webhook-signature': `v1a,x ${signed(body)['webhook-signature']}`,
    };
    assert.equal(await status(several), 200);
    const got = await receive(new Request('https://here.example/'));
    assert.equal(got.status, 405);
  });

  test('answers 500 with the reason while its secret is no key', async () => {
    const body = JSON.stringify(task('double'));
    const response = await createHandler({ handlers, secret: 'whsec_?' })(post(body, signed(body)));
    assert.equal(response.status, 500);
    assert.match(await response.text(), /base64/);
  });

  test('saves checkpoints by the API, each numbered by the answer to the one before', async (t) => {
    const saved: object[] = [];
    const { origin } = await listen(t, (request, response) => {
      let text = '';
      request.on('data', (piece) => {
        text += piece;
      });
      request.on('end', () => {
        const body = JSON.parse(text) as { checkpoint_seq: number };
        saved.push({ url: request.url, key: request.headers['x-api-key'], ...body });
        response.end(JSON.stringify({ checkpoint_seq: body.checkpoint_seq + 1 }));
      });
    });
    const receive = createHandler({
      handlers: {
        save: async ({ checkpoint }, ctx) => {
          await Promise.all([ctx.checkpoint({ at: 2 }), ctx.checkpoint({ at: 3 })]);
          return { resumed: checkpoint };
        },
      },
      secret: SECRET,
      api: { url: origin, apiKey: 'k', tenant: 't' },
      log: QUIET,
    });
    const body = JSON.stringify(task('save'));
    const response = await receive(post(body, signed(body)));
    assert.deepEqual(await response.json(), { resumed: { at: 1 } });
    const claim = { worker_id: 'endpoint:e', claim_epoch: 3 };
    const url = '/api/v1/workers/tasks/task/heartbeat';
    assert.deepEqual(saved, [
      { url, key: 'k', ...claim, checkpoint_seq: 2, checkpoint: { at: 2 } },
      { url, key: 'k', ...claim, checkpoint_seq: 3, checkpoint: { at: 3 } },
    ]);
  });

  test('serves function URLs of Lambda, with a body in base64 too', async () => {
    const lambda = toLambda(createHandler({ handlers, secret: SECRET }));
    const body = JSON.stringify(task('double', { n: 3, text: 'ü' }));
    const event = {
      rawPath: '/',
      headers: signed(body),
      requestContext: { http: { method: 'POST' } },
    };
    const plain = await lambda({ ...event, body });
    assert.deepEqual([plain.statusCode, plain.body], [200, '{"n":6}']);
    const packed = Buffer.from(body).toString('base64');
    const coded = await lambda({ ...event, body: packed, isBase64Encoded: true });
    assert.deepEqual([coded.statusCode, coded.body], [200, '{"n":6}']);
    const got = await lambda({ ...event, requestContext: { http: { method: 'GET' } } });
    assert.equal(got.statusCode, 405);
  });
});
