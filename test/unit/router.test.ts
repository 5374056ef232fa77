/** The router over a real server: what becomes of answers that cannot be built or sent. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { IN_PLACE } from '../../actors/runtime/offload.js';
import type { OnReply } from '../../actors/shard/client.js';
import { realClock } from '../../src/clock.js';
import { Crowd } from '../../src/crowd.js';
import { createAuth } from '../../src/http/auth.js';
import { Gate } from '../../src/http/gate.js';
import {
  type FrontDeps,
  type FrontOperations,
  frontBodies,
} from '../../src/http/operations/operation.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import { createRouter, type RouterDeps } from '../../src/http/router.js';
import { type HttpReply, type HttpServer, startHttpServer } from '../../src/http/server.js';
import { createLogger } from '../../src/log.js';

const INSTANCE = '/instances/0195ffff-0000-7000-8000-000000000001';
const UNSENDABLE: HttpReply = { status: 200, body: '{}', headers: [['x-a', 'line\nbreak']] };

const lines: string[] = [];
let server: HttpServer;

before(async () => {
  const log = createLogger('error', 'test', { write: (line) => void lines.push(line) });
  const gate = new Gate(realClock);
  gate.set('serving');
  const keys: RouterDeps['keys'] = { whenGone: () => () => undefined };
  const throwing = () => {
    throw new Error('no feed');
  };
  const handler = createRouter({
    gate,
    authorise: createAuth({
      apiKey: undefined,
      requireTenantHeader: false,
      protectDocs: false,
      keys: { use: () => undefined },
    }),
    admission: { admit: () => undefined },
    keys,
    ...frontBodies(IN_PLACE),
    client: {
      shardOf: () => 0,
      anyShard: () => 0,
      abort: () => undefined,
      send: (_shard, _operation, _tenant, _target, _body, onReply: OnReply) => {
        setImmediate(onReply, { status: 42, body: '{}' });
        return 1;
      },
    },
    crowd: new Crowd(),
    operations: {
      info: () => UNSENDABLE,
      handlers: async () => UNSENDABLE,
      'instances.stream': async () => throwing,
    } as Partial<FrontOperations> as FrontOperations,
    pages: () => undefined,
    front: {} as FrontDeps,
    protectDocs: false,
    watch: new RequestWatch({ log, monotonic: realClock.monotonic, tracer: undefined }),
    log,
  });
  const options = {
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 1_000,
    maxHeaderBytes: 10_000,
    corsOrigins: [],
    newRequestId: () => 'made-here',
    bodyIdleTimeoutMs: 10_000,
    log,
  };
  server = await startHttpServer('node', options, handler);
});

after(() => server?.close());

test('an answer that cannot be sent is a 500 and a line with the request, wherever it came from', async () => {
  const answers = {
    probe: '/info',
    front: '/handlers',
    stream: `${INSTANCE}/stream`,
    shard: INSTANCE,
  };
  for (const [by, path] of Object.entries(answers)) {
    lines.length = 0;
    const reply = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      headers: { 'x-request-id': `by-${by}` },
    });
    assert.deepEqual([reply.status, await reply.text()], [500, '{"error":"internal error"}'], by);
    const line = lines.find((text) => text.includes('"msg":"defect"'));
    assert.match(String(line), new RegExp(`"requestId":"by-${by}"`), by);
  }
});
