/**
 * The server behind a real nginx and a real HAProxy, each set up as docs/operate/proxies.md shows: what
 * clients are promised without a proxy holds behind it, too. Where one of the programs is not installed, its
 * tests are skipped and say so.
 *
 * Cost: 45 s, since real proxies stand before its servers.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkerTask } from '../../schema/worker.js';
import { TrustedProxies } from '../../src/http/connections.js';
import { startHttpServer } from '../../src/http/server.js';
import { addressRanges } from '../../src/server/config-values.js';
import type { Tenant } from '../helpers/api.js';
import { eventually, newHandler, step, tenantThrough, useApi } from '../helpers/api.js';
import { BACKENDS } from '../helpers/backends.js';
import { expectStatus } from '../helpers/client.js';
import { byDepth } from '../helpers/depth.js';
import { DEFAULT_API_KEY, freePort } from '../helpers/engine.js';
import { openEvents } from '../helpers/event-stream.js';
import { isInstalled, PROXY_KINDS, type RunningProxy, startProxy } from '../helpers/proxies.js';
import { FaultProxy } from '../helpers/proxy.js';
import { describeRouting } from './proxies/routing.js';

/** The longest poll there is: longer than what either proxy waits unless told otherwise. */
const LONG_POLL_MS = byDepth(2_000, 60_000);
const CREATORS = 8;
const KIB = 1024;
type Created = { readonly id: string; readonly deduplicated?: boolean };

for (const kind of PROXY_KINDS) {
  test(`${kind} starts as the manual shows it, and answers for a server that is away`, async (t) => {
    if (!isInstalled(kind)) return t.skip('it is not installed, and so none of its tests is run');
    const proxy = await startProxy(kind, { ports: [await freePort()] });
    const status = await statusOf(proxy, 'GET', '/health/live');
    await proxy.stop();
    assert.ok(status === 502 || status === 503, String(status));
  });
}

/** The servers of requests differ in what they make of bytes, which the tests of the front hold of both. */
const SERVERS = byDepth(BACKENDS.slice(0, 1), BACKENDS);
const installed = PROXY_KINDS.filter(isInstalled);

for (const backend of installed.length === 0 ? [] : SERVERS) {
  describe(`served by ${backend}`, () => {
    const api = useApi({
      env: {
        ENGINE_SHARDS: '2',
        ENGINE_HTTP_BACKEND: backend,
        ENGINE_TRUSTED_PROXIES: '127.0.0.1',
        // Were the proxy one client like others, hardly any test here would get an answer.
        ENGINE_MAX_CONNECTIONS_PER_ADDRESS: '1',
        ENGINE_MAX_REQUESTS_PER_ADDRESS: '50',
      },
    });

    for (const kind of installed) {
      describe(`behind ${kind}`, () => {
        /** Between the proxy and the server. */
        let link: FaultProxy;
        let proxy: RunningProxy;
        let tenant: Tenant;

        before(async () => {
          link = await FaultProxy.start({ host: '127.0.0.1', port: api.engine.port });
          proxy = await startProxy(kind, { ports: [link.port] });
          tenant = tenantThrough(proxy.url, api.tenant().name);
          await untilServed(proxy);
        });
        after(async () => {
          await tenant.close();
          await proxy.stop();
          await link.stop();
        });

        test('many polls wait for as long as they ask, and are answered by the server', async () => {
          const poll = () => tenant.poll(newHandler(), { wait_ms: LONG_POLL_MS });
          assert.deepEqual(await Promise.all(Array.from({ length: 10 }, poll)), Array(10).fill([]));
        });

        test('events arrive while their stream is open, and it ends as it should', async () => {
          const handler = newHandler();
          const id = await tenant.run([step('a', handler)]);
          const stream = await openEvents({
            url: `${proxy.url}/api/v1/instances/${id}/stream`,
            headers: { 'x-api-key': DEFAULT_API_KEY, 'x-tenant-id': tenant.name },
          });
          assert.equal(stream.status, 200);
          await stream.until(({ events }) => events.length > 0);
          const before = stream.events.length;
          await tenant.complete(await tenant.task(handler));
          await stream.until(({ events }) => events.length > before);
          await stream.ended;
        });

        test('bodies up to the limit arrive whole', async () => {
          const sequence = await tenant.sequence([step('a', newHandler())]);
          const filler = 'x'.repeat(240 * KIB);
          const instances = Array.from({ length: 40 }, (_, n) =>
            tenant.creation(sequence, { context: { data: { n, filler } } }),
          );
          const { status, text } = await tenant.post('/instances/batch', { instances });
          assert.equal(status, 201, text);
          const ids = await ofSequence(tenant, sequence);
          const stored = await Promise.all(ids.map((id) => tenant.instance(id)));
          const whole = stored.filter(({ context }) => context.data.filler === filler);
          const numbers = whole.map(({ context }) => Number(context.data.n));
          const shown = numbers.toSorted((a, b) => a - b);
          const expected = instances.map((_, n) => n);
          assert.deepEqual(shown, expected);
        });

        test('refusals of the server reach the client as they are', async () => {
          const large = await tenant.request<{ error: string }>('POST', '/workers/tasks/poll', {
            raw: `"${'x'.repeat(65 * KIB)}"`,
          });
          assert.equal(large.status, 413, large.text);
          assert.match(large.body.error, /larger than 65536 bytes/);
          assert.ok(large.headers['x-error-code']);

          const headers = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`x-${n}`, '']));
          const many = await tenant.request<{ error: string }>('GET', '/instances', { headers });
          assert.equal(many.status, 431);
          assert.match(many.body.error, /more than 48 headers/);

          const method = await tenant.delete<{ error: string }>('/instances');
          assert.equal(method.status, 405);
          assert.ok(method.headers.allow);

          const limits = `/tenants/${tenant.name}/limits`;
          await tenant.with({ tenant: null }).put(limits, { queue_depth_max: 1 });
          const sequence = await tenant.sequence([step('a', newHandler())]);
          const create = () =>
            tenant.post<{ error: string }>('/instances', tenant.creation(sequence));
          const answers = [await create(), await create()];
          await tenant.with({ tenant: null }).delete(limits);
          const refused = answers.find(({ status }) => status === 429);
          assert.match(String(refused?.body.error), /queue_depth_max/);
          assert.match(String(refused?.headers['retry-after']), /^\d+$/);
        });

        test('a body beyond all limits is a 413, and the next request is served', async () => {
          const body = `"${'x'.repeat(11 * KIB * KIB)}"`;
          assert.equal(await statusOf(proxy, 'POST', '/api/v1/sequences', body), 413);
          assert.equal(await statusOf(proxy, 'GET', '/health/live'), 200);
        });

        test('requests share connections to the server', async () => {
          const made = link.accepted;
          for (let n = 0; n < 50; n += 1) await tenant.get('/instances?limit=1');
          // One, or a few where health checks are made.
          assert.ok(link.accepted - made < 25, String(link.accepted - made));
        });

        test('a connection that the server closed while it was idle costs no request', async () => {
          const sequence = await tenant.sequence([step('a', newHandler())]);
          for (let n = 0; n < 10; n += 1) {
            link.cut();
            // The proxy is told by its system, and looks before it takes the next request.
            await pause(20);
            await tenant.create(sequence);
          }
        });

        test('a request whose answer is lost is not done twice', async () => {
          const sequence = await tenant.sequence([step('a', newHandler())]);
          const key = randomUUID();
          const body = tenant.creation(sequence, { idempotency_key: key });
          const sent = link.whenSent(key, 'cut-after');
          const lost = await creationThrough(proxy, tenant, body);
          await sent;
          // HAProxy may close the connection instead, as a server may at any time.
          assert.ok(lost === undefined || lost.status === 502, lost?.text);
          const { deduplicated } = expectStatus(
            await tenant.post<Created>('/instances', body),
            201,
          );
          assert.equal(deduplicated, true);
          assert.equal((await ofSequence(tenant, sequence)).length, 1);
        });

        test('a restart of the server loses no request and does none twice', async () => {
          const sequence = await tenant.sequence([step('a', newHandler())]);
          const told = new Map<string, string>();
          let isOver = false;
          const creator = async () => {
            while (!isOver) {
              const key = randomUUID();
              const body = tenant.creation(sequence, { idempotency_key: key });
              told.set(key, await untilCreated(tenant, body));
            }
          };
          const creators = Array.from({ length: CREATORS }, creator);
          await eventually(() => assert.ok(told.size > 50));
          const poll = { handler_name: newHandler(), worker_id: 'w', wait_ms: 60_000 };
          const parked = tenant.post<WorkerTask[]>('/workers/tasks/poll', poll);
          await untilWaiting(tenant, poll.handler_name);
          await api.restart('SIGTERM');
          const after = told.size;
          await eventually(() => assert.ok(told.size > after + 50));
          isOver = true;
          await Promise.all(creators);
          const answer = await parked;
          assert.deepEqual([answer.status, answer.body], [200, []], answer.text);
          const stored = await ofSequence(tenant, sequence);
          assert.deepEqual(stored.toSorted(), [...told.values()].toSorted());
        });

        test('bodies that stall and idle connections of one client leave the server up, and sessions of others go on', async () => {
          const connect = (localAddress: string, bytes: string) => {
            const socket = net.connect({ port: proxy.port, host: '127.0.0.1', localAddress });
            socket.on('error', () => {}).write(bytes);
            return socket;
          };
          const head = (length: number) =>
            `POST /api/v1/instances HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`;
          const poll = tenant.poll(newHandler(), { wait_ms: 5_000 });
          // The address of the checks, too: what reached the server would take their room.
          const sockets = Array.from({ length: 60 }, () => connect('127.0.0.1', head(500)));
          for (let n = 0; n < 20; n += 1) {
            sockets.push(connect('127.0.0.2', `${head(90_000)}"${'x'.repeat(20_000)}`));
          }
          const crowd = kind === 'nginx' ? 0 : 520;
          const idle = Array.from({ length: crowd }, () => connect('127.0.0.3', ''));
          try {
            // Two looks in vain, of one a second, would end the poll.
            for (const until = performance.now() + 4_000; performance.now() < until; ) {
              assert.equal(await statusOf(proxy, 'GET', '/health/ready'), 200);
              const { status } = await tenant.get('/instances?limit=1');
              assert.equal(status, 200);
              await pause(100);
            }
            assert.deepEqual(await poll, []);
            const kept = idle.filter(({ destroyed }) => !destroyed).length;
            assert.equal(kept, Math.min(crowd, 500));
          } finally {
            for (const socket of [...sockets, ...idle]) socket.destroy();
          }
        });

        test('the server is told who sent a request, whatever the sender says of that', async () => {
          const server = await startHttpServer(
            backend,
            {
              host: '127.0.0.1',
              port: 0,
              maxBodyBytes: KIB,
              maxHeaderBytes: 16 * KIB,
              corsOrigins: [],
              newRequestId: randomUUID,
              bodyIdleTimeoutMs: 5_000,
              proxies: new TrustedProxies(addressRanges('127.0.0.1', 'X')),
              log: { info() {}, warn() {}, error() {} },
            },
            (request, exchange) => exchange.reply({ status: 200, body: request.peer() }),
          );
          const before = await startProxy(kind, { ports: [server.port] });
          try {
            await untilServed(before);
            const senders = ['127.0.0.2', '127.0.0.3'];
            const seen = await Promise.all(senders.map((sender) => seenAs(before, sender)));
            assert.deepEqual(seen, senders);
          } finally {
            await before.stop();
            await server.close();
          }
        });
      });
    }
  });
}

if (installed.length > 0) describe('in front of cells', describeRouting);

/** Its checks may have found that the engine is away, or have found nothing yet. */
async function untilServed(proxy: RunningProxy): Promise<void> {
  await eventually(async () => assert.equal(await statusOf(proxy, 'GET', '/health/ready'), 200));
}

/** Asks once, without the contract: an answer may be the proxy's own. */
async function statusOf(
  { url }: RunningProxy,
  method: string,
  path: string,
  body?: string,
): Promise<number> {
  const reply = await fetch(url + path, { method, ...(body === undefined ? {} : { body }) });
  await reply.arrayBuffer();
  return reply.status;
}

/** Undefined without an answer. */
async function creationThrough(
  { url }: RunningProxy,
  { name }: Tenant,
  body: object,
): Promise<{ status: number; text: string } | undefined> {
  const reply = await fetch(`${url}/api/v1/instances`, {
    method: 'POST',
    headers: {
      'x-api-key': DEFAULT_API_KEY,
      'x-tenant-id': name,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  }).catch(() => undefined);
  return reply && { status: reply.status, text: await reply.text() };
}

/** A page may be shorter than was asked for, where records are long. */
async function ofSequence(tenant: Tenant, sequence: string): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const query = `sequence_id=${sequence}&limit=1000&offset=${ids.length}`;
    const page = expectStatus(await tenant.get<Created[]>(`/instances?${query}`), 200);
    if (page.length === 0) return ids;
    ids.push(...page.map(({ id }) => id));
  }
}

/** As a client does it: an answer that is none, or of the proxy, is asked for again with the same key. */
async function untilCreated(tenant: Tenant, body: object): Promise<string> {
  const plain = tenant.with({});
  return eventually(async () => {
    const { status, body: created, text } = await plain.post<Created>('/instances', body);
    assert.ok(status === 200 || status === 201, `${status} ${text}`);
    return created.id;
  });
}

/** A worker is known as soon as its poll was received. */
async function untilWaiting(tenant: Tenant, handler: string): Promise<void> {
  await eventually(async () => {
    const { text } = await tenant.get('/workers');
    assert.ok(text.includes(handler), text);
  });
}

async function textOf(socket: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const piece of socket) text += piece;
  return text;
}

/** What the server takes the sender for who connects from this address, and claims to be another. */
function seenAs({ port }: RunningProxy, localAddress: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-for': '203.0.113.9' };
    http
      .get({ port, host: '127.0.0.1', localAddress, headers, agent: false }, (reply) => {
        textOf(reply).then(resolve, reject);
      })
      .once('error', reject);
  });
}
