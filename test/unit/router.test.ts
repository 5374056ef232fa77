/** The router over a real server: what becomes of answers that cannot be built or sent. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { IN_PLACE } from '../../actors/runtime/offload.js';
import type { OnReply } from '../../actors/shard/client.js';
import { realClock } from '../../src/clock.js';
import { Residence } from '../../src/cluster/residence.js';
import { Crowd } from '../../src/crowd.js';
import { wrongCell } from '../../src/errors.js';
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
import { BACKENDS } from '../helpers/backends.js';
import { Client } from '../helpers/raw-client.js';

const INSTANCE = '/instances/0195ffff-0000-7000-8000-000000000001';
const UNSENDABLE: HttpReply = { status: 200, body: '{}', headers: [['x-a', 'line\nbreak']] };

/** As of a cell whose name came from a place where nobody looked at it. */
const UNSENDABLE_REFUSAL = wrongCell('w\u00e9st', 'east');

const lines: string[] = [];
const servers: HttpServer[] = [];

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
    residence: new Residence({
      cell: 'east',
      directory: { placementsOf: async () => [], settle: async () => new Map() },
      onAway: () => undefined,
      clock: realClock,
    }),
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
      'tenants.list': async () => {
        throw UNSENDABLE_REFUSAL;
      },
      'instances.stream': async () => throwing,
    } as Partial<FrontOperations> as FrontOperations,
    pages: () => undefined,
    front: { reads: { of: () => undefined } } as unknown as FrontDeps,
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
  for (const backend of BACKENDS) servers.push(await startHttpServer(backend, options, handler));
});

after(async () => {
  for (const server of servers) await server.close();
});

for (const [at, backend] of BACKENDS.entries()) {
  const portOf = () => servers[at]?.port as number;

  test(`an answer that cannot be sent is a 500 and a line with the request, wherever it came from (${backend})`, async () => {
    const answers = {
      probe: '/info',
      front: '/handlers',
      refusal: '/tenants',
      stream: `${INSTANCE}/stream`,
      shard: INSTANCE,
    };
    for (const [by, path] of Object.entries(answers)) {
      lines.length = 0;
      const reply = await fetch(`http://127.0.0.1:${portOf()}/api/v1${path}`, {
        headers: { 'x-request-id': `by-${by}` },
      });
      assert.deepEqual([reply.status, await reply.text()], [500, '{"error":"internal error"}'], by);
      const told = by === 'refusal' ? 'an answer could not be sent' : 'defect';
      const line = lines.find((text) => text.includes(`"msg":"${told}"`));
      assert.match(String(line), new RegExp(`"requestId":"by-${by}"`), by);
    }
  });

  test(`a cell that none can be called is refused without its name, whatever bytes it has (${backend})`, async () => {
    for (const named of ['w\u00e9st', 'a'.repeat(64), 'no cell']) {
      const client = await Client.open(portOf());
      const head = `GET /api/v1/tenants HTTP/1.1\r\nHost: h\r\nx-cell: ${named}\r\n\r\n`;
      client.send(Buffer.from(head, 'latin1'));
      const { status, headers, body } = await client.reply();
      assert.equal(status, 400, named);
      assert.equal(headers['x-cell'], undefined);
      assert.equal(body, '{"error":"invalid argument: x-cell is no name of a cell"}');
      client.close();
    }
  });
}
