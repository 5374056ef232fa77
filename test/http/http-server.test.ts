/**
 * One suite over real sockets for both backends of the transport: whatever the router may rely on
 * must hold on each of them. What becomes of odd requests is told by the corpus of raw ones.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { AddressRequests, Connections, TrustedProxies } from '../../src/http/connections.js';
import { IDLE_TICK_MS, NodeConnection } from '../../src/http/node-connection.js';
import {
  type HttpBodyStream,
  type HttpExchange,
  type HttpHandler,
  type HttpRequest,
  type HttpServerOptions,
  startHttpServer,
} from '../../src/http/server.js';
import type { Transport } from '../../src/http/transport.js';
import { BACKENDS } from '../helpers/backends.js';
import { Client, type Reply, Signal } from '../helpers/raw-client.js';

const MAX_BODY_BYTES = 1_000;
const MAX_HEADER_BYTES = 2_000;
const UUID = '11111111-2222-4333-8444-555555555555';
const SERVER_URL = new URL('../../src/http/server.js', import.meta.url).href;

type Options = Partial<HttpServerOptions>;

/** The head of a request that announces a body of so many bytes. */
const announcing = (length: number) =>
  `POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`;

for (const backend of BACKENDS) {
  /** A server of the test, with which it ends. */
  const serve = async (t: TestContext, handler: HttpHandler, options: Options = {}) => {
    const logged: { level: string; message: string }[] = [];
    const log = (level: string) => (_fields: object, message: string) => {
      logged.push({ level, message });
    };
    const server = await startHttpServer(
      backend,
      { ...QUIET, log: { info: log('info'), warn: log('warn'), error: log('error') }, ...options },
      handler,
    );
    t.after(() => server.close());
    // Which backend it is; the tests look at what comes after.
    logged.length = 0;
    return { server, port: server.port, logged };
  };

  describe(`the ${backend} backend`, () => {
    test('a route may take less than the server, and its refusal has the number', async (t) => {
      const bodyBytesOf = (_: string, path: string) => (path === '/all' ? undefined : 70_000);
      const { port } = await serve(t, describeRequest, { maxBodyBytes: 200_000, bodyBytesOf });
      for (const [path, bytes, status] of [
        ['/part', 70_000, 200],
        ['/part', 70_001, 413],
        ['/all', 200_000, 200],
        ['/all', 200_001, 413],
      ] as const) {
        const text = 'x'.repeat(bytes);
        for (const body of [
          `Content-Length: ${bytes}\r\n\r\n${text}`,
          `Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
        ]) {
          const reply = await answerTo(port, `POST ${path} HTTP/1.1\r\nHost: h\r\n${body}`);
          assert.equal(reply.status, status, `${path} ${body.slice(0, 20)}`);
          if (status === 413) assert.match(reply.body, new RegExp(`than ${bytes - 1} bytes`));
        }
      }
    });

    test('no answer is stored or sniffed, and a refusal says why', async (t) => {
      const { port } = await serve(t, describeRequest);
      for (const [bytes, status, says] of [
        [request(), 200, '"path":"/"'],
        [request('X-Api-Key: a\r\nX-Api-Key: b\r\n'), 400, 'x-api-key'],
        [posting('b', 'Content-Encoding: BR\r\n'), 415, ' br '],
        [posting('x'.repeat(MAX_BODY_BYTES + 1)), 413, `"payload too large: `],
        [request('', `/?${'q'.repeat(30_000)}`), 431, '"error":"'],
      ] as const) {
        const reply = await answerTo(port, bytes);
        assert.equal(reply.status, status, bytes.slice(0, 80));
        assert.ok(reply.body.includes(says), reply.body);
        const told = new Map(Object.entries(reply.headers));
        assert.equal(told.get('cache-control'), 'no-store');
        assert.equal(told.get('x-content-type-options'), 'nosniff');
        assert.equal(told.get('vary'), 'authorization, x-api-key, x-tenant-id, accept');
      }
    });

    test('a body stays valid after later requests have come', async (t) => {
      const kept: HttpRequest[] = [];
      const keep: HttpHandler = (request, exchange) => {
        kept.push(request);
        exchange.reply({ status: 200, body: undefined });
      };
      const { port } = await serve(t, keep);
      const client = await Client.open(port);
      for (const text of ['first', 'other']) {
        client.send(posting(text));
        await client.reply();
      }
      client.close();
      const found = kept.map((request) => request.body.toString());
      assert.deepEqual(found, ['first', 'other']);
    });

    test('headers stay readable after the callback, and only captured ones may be asked', async (t) => {
      let seen: HttpRequest | undefined;
      const later: HttpHandler = (request, exchange) => {
        seen = request;
        setImmediate(() => {
          exchange.reply({ status: 200, body: JSON.stringify(request.header('x-tenant-id')) });
        });
      };
      const { port } = await serve(t, later);
      const client = await Client.open(port);
      client.send(
        'GET / HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: grün\r\nAccept: a\r\nAccept: b\r\n\r\n',
      );
      assert.equal((await client.reply()).body, '"grün"');
      assert.deepEqual([seen?.header('accept'), seen?.header('x-api-key')], ['a', undefined]);
      assert.throws(() => seen?.header('x-never-asked-for'));
    });

    test('HEAD gets the headers of GET without the body', async (t) => {
      const { port } = await serve(t, describeRequest);
      const client = await asking(port, request('', '/abc'));
      const get = await client.reply();
      client.send('HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n');
      const head = await client.reply('HEAD');
      assert.equal(head.headers['content-type'], get.headers['content-type']);
      // The body names the method, which is one letter longer here.
      assert.equal(Number(head.headers['content-length']), get.body.length + 1);
      client.send(request('', '/abc'));
      assert.equal((await client.reply()).body, get.body);
    });

    test('a 204 has no length, an empty 200 has length 0 and no content type', async (t) => {
      const status: HttpHandler = (request, exchange) =>
        exchange.reply({ status: Number(request.path.slice(1)), body: undefined });
      const { port } = await serve(t, status);
      const none = await answerTo(port, request('', '/204'));
      assert.deepEqual([none.status, none.headers['content-length']], [204, undefined]);
      const { headers } = await answerTo(port, request('', '/200'));
      assert.deepEqual([headers['content-length'], headers['content-type']], ['0', undefined]);
    });

    test('text that is not ASCII is sent with its length in bytes', async (t) => {
      const greet: HttpHandler = (_request, exchange) =>
        exchange.reply({ status: 200, body: '{"a":"ä€"}', contentType: 'text/plain' });
      const { port } = await serve(t, greet);
      const reply = await fetch(`http://127.0.0.1:${port}/`);
      assert.equal(await reply.text(), '{"a":"ä€"}');
      assert.equal(reply.headers.get('content-type'), 'text/plain');
      assert.equal(reply.headers.get('content-length'), '13');
    });

    test('bytes are sent as they are', async (t) => {
      const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const { port } = await serve(t, (_, exchange) => exchange.reply({ status: 200, body }));
      const reply = await fetch(`http://127.0.0.1:${port}/`);
      assert.deepEqual(Buffer.from(await reply.arrayBuffer()), body);
    });

    test('every reply echoes the request id, sanitised, or carries a new one', async (t) => {
      const { port } = await serve(t, describeRequest);
      for (const [header, expected] of [
        ['', UUID],
        ['X-Request-Id: Ab_9-z\r\n', 'Ab_9-z'],
        ['X-Request-Id: a b/c;d\r\n', 'abcd'],
        ['X-Request-Id: ///\r\n', UUID],
        [`X-Request-Id: ${'r'.repeat(200)}\r\n`, 'r'.repeat(128)],
      ] as const) {
        const reply = await answerTo(port, request(header));
        assert.equal(reply.headers['x-request-id'], expected);
        assert.equal(JSON.parse(reply.body).requestId, expected);
      }
      const refused = request('X-Api-Key: a\r\nX-Api-Key: b\r\nX-Request-Id: mine\r\n');
      assert.equal((await answerTo(port, refused)).headers['x-request-id'], 'mine');
    });

    test('only an allowed origin may read answers, and its preflight needs no handler', async (t) => {
      const { port } = await serve(t, describeRequest, { corsOrigins: ['https://a.example'] });
      const preflight = (origin: string) =>
        answerTo(
          port,
          `OPTIONS /x HTTP/1.1\r\nHost: h\r\nOrigin: ${origin}\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
        );
      const allowed = await preflight('https://a.example');
      assert.deepEqual([allowed.status, allowed.body], [204, '']);
      const allow = (name: string) => allowed.headers[`access-control-allow-${name}`];
      assert.equal(allow('origin'), 'https://a.example');
      assert.equal(allow('methods'), 'GET, POST, PUT, PATCH, DELETE, OPTIONS');
      assert.match(allow('headers') ?? '', /x-tenant-id/);
      const foreign = await preflight('https://b.example');
      assert.deepEqual([foreign.status, corsNames(foreign)], [204, []]);

      const { headers } = await answerTo(port, request('Origin: https://a.example\r\n'));
      assert.equal(headers['access-control-allow-origin'], 'https://a.example');
      assert.deepEqual(corsNames(await answerTo(port, request('Origin: null\r\n'))), []);
      const options = await answerTo(port, 'OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n');
      assert.equal(JSON.parse(options.body).method, 'OPTIONS');
    });

    test('a client that sends megabytes too many still reads its 413', async (t) => {
      const { port } = await serve(t, describeRequest);
      const reply = await fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        body: Buffer.alloc(8 * 1024 * 1024),
      });
      assert.equal(reply.status, 413);
      assert.match(((await reply.json()) as { error: string }).error, /^payload too large: /);
    });

    test('a body announced beyond the limit is answered before it comes', async (t) => {
      if (backend === 'uws') return t.skip('its answer waits for the body, up to 16 MiB');
      const { port } = await serve(t, describeRequest);
      const client = await Client.open(port);
      const length = 1_000_000;
      client.send(announcing(length));
      const reply = await client.reply();
      assert.deepEqual([reply.status, reply.headers.connection], [413, 'close']);
      // What comes all the same is taken, so that no reset overtakes the answer; then it closes.
      client.send(Buffer.alloc(length - 1));
      client.send('xGET / HTTP/1.1\r\nHost: h\r\n\r\n');
      await client.closed;
      assert.equal(client.text.match(/HTTP\/1\.1/g)?.length, 1);
    });

    test('a body whose content-length is far beyond the limit is refused before it arrives', async (t) => {
      const { port } = await serve(t, describeRequest);
      const client = await asking(port, announcing(999_999_999));
      assert.equal((await client.reply()).status, 413);
      await client.closed;
    });

    test('bodies beyond the shared memory are refused with 503', async (t) => {
      const { port } = await serve(t, describeRequest, { maxBufferedBytes: 1_000 });
      const first = await Client.open(port);
      const second = await Client.open(port);
      const head = announcing(900);
      await first.sendAlone(head + 'x'.repeat(600));
      await second.sendAlone(head + 'x'.repeat(600));
      second.send('x'.repeat(300));
      const refused = await second.reply();
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
      first.send('x'.repeat(300));
      assert.equal((await first.reply()).status, 200);
      first.send(head + 'x'.repeat(600));
      first.send('x'.repeat(300));
      assert.equal((await first.reply()).status, 200);
    });

    test('what cannot be served now is told so by its length, and is not kept while it comes', async (t) => {
      const asked: number[] = [];
      const refuseBody = (bytes: number) => {
        asked.push(bytes);
        return bytes > 200_000 ? unavailable('ENG_OVERLOADED', 'full', 3_000) : undefined;
      };
      const { port } = await serve(t, describeRequest, { refuseBody, maxBodyBytes: 1_000_000 });
      const lengthy = (bytes: number) => announcing(bytes) + 'x'.repeat(bytes);
      const client = await Client.open(port);
      for (const bytes of [65_536, 100_000]) {
        client.send(lengthy(bytes));
        assert.equal((await client.reply()).status, 200);
      }
      client.send(lengthy(300_000));
      const refused = await client.reply();
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '3']);
      await client.closed;
      assert.deepEqual(asked, [100_000, 300_000]);
    });

    test('a HEAD that is refused closes its connection', async (t) => {
      const never: HttpHandler = () => assert.fail('the handler was called');
      const { port } = await serve(t, never);
      const client = await Client.open(port);
      client.send('HEAD / HTTP/1.1\r\nHost: h\r\nX-Api-Key: a\r\nX-Api-Key: b\r\n\r\n');
      assert.equal((await client.reply('HEAD')).status, 400);
      await client.closed;
    });

    test('an abort before the reply is told once, and the reply goes nowhere', async (t) => {
      const exchanges: HttpExchange[] = [];
      let aborts = 0;
      const arrived = new Signal();
      const aborted = new Signal();
      const park: HttpHandler = (_request, exchange) => {
        exchanges.push(exchange);
        exchange.onAbort(() => {
          aborts += 1;
          aborted.raise();
        });
        arrived.raise();
      };
      const { server, port, logged } = await serve(t, park);
      const client = await asking(port);
      await arrived.raised;
      client.close();
      await aborted.raised;
      const [exchange] = exchanges;
      assert.equal(exchange?.aborted, true);
      exchange?.reply({ status: 200, body: '{}' });
      let toldLate = false;
      exchange?.onAbort(() => {
        toldLate = true;
      });
      assert.equal(toldLate, true);
      assert.equal(aborts, 1);
      assert.deepEqual(logged, []);
      await server.close();
      assert.equal(aborts, 1);
    });

    test('a client that goes away within its body never reaches the handler', async (t) => {
      const bodies: string[] = [];
      const collect: HttpHandler = (request, exchange) => {
        bodies.push(request.body.toString());
        exchange.reply({ status: 200, body: '{}' });
      };
      const { port } = await serve(t, collect, { maxBufferedBytes: 1_000 });
      const client = await Client.open(port);
      await client.sendAlone(announcing(900) + 'x'.repeat(800));
      client.close();
      await client.closed;
      // The memory of the broken body is free again only once the server has noticed.
      for (let status = 503; status !== 200; ) {
        const next = await asking(port, announcing(900));
        await next.sendAlone('y'.repeat(800));
        next.send('y'.repeat(100));
        ({ status } = await next.reply());
        next.close();
      }
      assert.deepEqual(bodies, ['y'.repeat(900)]);
    });

    test('a stalled body is answered with 408, and its connection is closed', async (t) => {
      const { port } = await serve(t, describeRequest, { bodyIdleTimeoutMs: 40 });
      const client = await asking(port, `${announcing(5)}ab`);
      const reply = await client.reply();
      assert.equal(reply.status, 408);
      assert.equal(typeof JSON.parse(reply.body).error, 'string');
      await client.closed;
    });

    test('a handler that throws answers 500 without details, and is logged', async (t) => {
      const broken: HttpHandler = () => {
        throw new Error('secret');
      };
      const { port, logged } = await serve(t, broken);
      const client = await Client.open(port);
      for (let i = 0; i < 2; i += 1) {
        client.send(request());
        const reply = await client.reply();
        assert.deepEqual([reply.status, reply.body], [500, '{"error":"internal error"}']);
      }
      client.close();
      const shown = logged.map((line) => line.level);
      assert.deepEqual(shown, ['error', 'error']);
    });

    test('a second reply is dropped with a log line', async (t) => {
      const twice: HttpHandler = (_request, exchange) => {
        exchange.reply({ status: 200, body: '1' });
        exchange.reply({ status: 200, body: '2' });
      };
      const { port, logged } = await serve(t, twice);
      const reply = await fetch(`http://127.0.0.1:${port}/`);
      assert.equal(await reply.text(), '1');
      assert.equal(logged.length, 1);
    });

    test('a reply header with a line break is refused instead of sent', async (t) => {
      const split: HttpHandler = (_request, exchange) =>
        exchange.reply({ status: 200, body: '1', headers: [['link', 'a\r\nx-evil: 1']] });
      const { port } = await serve(t, split);
      const reply = await fetch(`http://127.0.0.1:${port}/`);
      assert.deepEqual([reply.status, reply.headers.get('x-evil')], [500, null]);
    });

    test('a stream reaches a slow reader whole and in order', async (t) => {
      const piece = 'abcdefghij'.repeat(10_000);
      const pieces = 200;
      const filled = new Signal();
      const produce: HttpHandler = (_request, exchange) => {
        const stream = exchange.stream({ status: 200, contentType: 'text/plain' });
        let sent = 0;
        let mayGoOn = true;
        const go = () => {
          mayGoOn = true;
          while (mayGoOn && sent < pieces) {
            sent += 1;
            mayGoOn = stream.write(sent % 2 === 0 ? piece : Buffer.from(piece));
          }
          if (!mayGoOn) filled.raise();
          else stream.end();
        };
        stream.onDrain(go);
        setImmediate(go);
      };
      const { port } = await serve(t, produce);
      const client = await Client.open(port);
      client.pause();
      client.send(request('Connection: close\r\n'));
      await filled.raised;
      client.resume();
      await client.closed;
      const body = unchunk(client.text.slice(client.text.indexOf('\r\n\r\n') + 4));
      assert.equal(body.length, piece.length * pieces);
      assert.equal(body === piece.repeat(pieces), true);
    });

    test('a last write that filled the socket arrives without a further one', async (t) => {
      const bytes = 8 * 1024 * 1024;
      const filled = new Signal();
      const produce: HttpHandler = (_request, exchange) => {
        const stream = exchange.stream({ status: 200, contentType: 'text/plain' });
        setImmediate(() => {
          assert.equal(stream.write('x'.repeat(bytes)), false);
          filled.raise();
        });
      };
      const { port } = await serve(t, produce);
      const client = await Client.open(port);
      client.pause();
      client.send(request());
      await filled.raised;
      client.resume();
      await client.bytes(bytes);
    });

    test('a client that does not read its stream is cut off in the end', async (t) => {
      let written = 0;
      const full = new Signal();
      const events: HttpHandler = (_request, exchange) => {
        const stream = exchange.stream({ status: 200, contentType: 'text/event-stream' });
        const more = () => {
          for (let i = 0; i < 100; i += 1) {
            written += 1_000;
            if (!stream.write('x'.repeat(1_000))) return full.raise();
          }
          setImmediate(more);
        };
        more();
      };
      const { port } = await serve(t, events);
      const client = await Client.open(port);
      t.after(() => client.close());
      client.pause();
      client.send(request());
      await full.raised;
      assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`);
    });

    test('a stream whose client goes away is aborted and swallows the rest', async (t) => {
      let stream: HttpBodyStream | undefined;
      const gone = new Signal();
      const events: HttpHandler = (_request, exchange) => {
        exchange.onAbort(() => gone.raise());
        stream = exchange.stream({ status: 200, contentType: 'text/event-stream' });
        stream.write('data: 1\n\n');
      };
      const { port } = await serve(t, events);
      const client = await asking(port);
      await client.count('data', 1);
      client.close();
      await gone.raised;
      assert.equal(stream?.write('data: 2\n\n'), false);
      stream?.end();
    });

    test('listeners that throw are logged and harm nobody', async (t) => {
      const cut = new Signal();
      const broken: HttpHandler = (_request, exchange) => {
        exchange.onAbort(() => {
          throw new Error('abort listener');
        });
        exchange.onAbort(() => cut.raise());
        const stream = exchange.stream({ status: 200, contentType: 'text/plain' });
        stream.onDrain(() => {
          throw new Error('drain listener');
        });
        setImmediate(() => stream.write(Buffer.alloc(8 * 1024 * 1024)));
      };
      const { port, logged } = await serve(t, broken);
      const client = await asking(port);
      await client.closed;
      await cut.raised;
      assert.equal(logged.length, 2);
    });

    test('HEAD of a stream ends with its head, and its producer is stopped', async (t) => {
      const gone = new Signal();
      const events: HttpHandler = (_request, exchange) => {
        exchange.stream({ status: 200, contentType: 'text/event-stream' }).write('data: 1\n\n');
        exchange.onAbort(() => gone.raise());
      };
      const { port } = await serve(t, events);
      const client = await Client.open(port);
      for (let i = 0; i < 2; i += 1) {
        client.send('HEAD / HTTP/1.1\r\nHost: h\r\n\r\n');
        assert.equal((await client.reply('HEAD')).headers['content-type'], 'text/event-stream');
      }
      await gone.raised;
    });

    test('after stopListening the open connection is served once more and closed', async (t) => {
      const { server, port } = await serve(t, describeRequest);
      const client = await asking(port);
      assert.notEqual((await client.reply()).headers.connection, 'close');
      await client.sendAlone('GET / HTTP/1.1\r\n');
      server.stopListening();
      server.stopListening();
      await assert.rejects(Client.open(port));
      client.send('Host: h\r\n\r\n');
      const after = await client.reply();
      assert.deepEqual([after.status, after.headers.connection], [200, 'close']);
      await client.closed;
    });

    test('a stream that is open when the server stops ends properly', async (t) => {
      let stream: HttpBodyStream | undefined;
      const open: HttpHandler = (_request, exchange) => {
        stream = exchange.stream({ status: 200, contentType: 'text/event-stream' });
        stream.write('first\n');
      };
      const { server, port } = await serve(t, open);
      const client = await asking(port);
      await client.count('first', 1);
      server.stopListening();
      stream?.write('last\n');
      stream?.end();
      await client.count('0\r\n\r\n', 1);
      const given = unchunk(client.text.slice(client.text.indexOf('\r\n\r\n') + 4));
      assert.equal(given, 'first\nlast\n');
    });

    test('close aborts what is open, and may be called again', async (t) => {
      const arrived = new Signal();
      const gone = new Signal();
      const park: HttpHandler = (_request, exchange) => {
        exchange.onAbort(() => gone.raise());
        arrived.raise();
      };
      const { server, port } = await serve(t, park);
      const client = await asking(port);
      await arrived.raised;
      await server.close();
      await gone.raised;
      await client.closed;
      await server.close();
    });

    test('an address that is taken is refused at the start', async (t) => {
      const { port } = await serve(t, describeRequest);
      const taken = new RegExp(`port ${port} of 127.0.0.1 is in use`);
      await assert.rejects(serve(t, describeRequest, { port }), taken);
    });

    test('a connection too many is closed, and finds a place once another has gone', async (t) => {
      const connections = new Connections({ max: 1, perAddressMax: 1 }, { warn: () => {} });
      const { port } = await serve(t, describeRequest, { connections });
      const first = await asking(port);
      assert.equal((await first.reply()).status, 200);
      const second = await asking(port);
      assert.equal((await second.reply()).status, 503);
      await second.closed;
      assert.deepEqual([connections.open, connections.refused], [1, 1]);
      first.send(request());
      assert.equal((await first.reply()).status, 200);
      first.close();
      await until(() => connections.open === 0);
      const third = await asking(port);
      assert.equal((await third.reply()).status, 200);
    });

    test('one address has its share of the connections, and another one finds a place', async (t) => {
      const connections = new Connections({ max: 9, perAddressMax: 2 }, { warn: () => {} });
      const { port } = await serve(t, describeRequest, { connections });
      const status = async (client: Client) => {
        client.send(request());
        return (await client.reply()).status;
      };
      const first = await Client.open(port, '127.0.0.2');
      const second = await Client.open(port, '127.0.0.2');
      assert.deepEqual([await status(first), await status(second)], [200, 200]);
      const third = await Client.open(port, '127.0.0.2');
      assert.equal(await status(third), 429);
      await third.closed;
      assert.equal(await status(await Client.open(port, '127.0.0.3')), 200);
      second.close();
      await until(() => connections.open <= 2);
      assert.equal(await status(await Client.open(port, '127.0.0.2')), 200);
    });

    test('health is answered while one address holds every connection, or all its requests are stalled bodies', async (t) => {
      const connections = new Connections({ max: 4, perAddressMax: 3 }, { warn: () => {} });
      const requests = new AddressRequests(2);
      const { port } = await serve(t, describeRequest, {
        connections,
        requests,
        probePaths: PROBES,
      });
      const open = (from: string) => Client.open(port, from);
      // Behind a request in work uWebSockets.js closes.
      const times = backend === 'node' ? 2 : 1;
      for (let n = 0; n < 2; n += 1) await asking(port, announcing(90), '127.0.0.2');
      const kept = await open('127.0.0.2');
      await until(() => connections.open === 3);
      const over = await asking(port, request(), '127.0.0.2');
      assert.equal((await over.reply()).status, 429);
      for (const path of PROBES) {
        kept.send(request('', path));
        assert.equal((await kept.reply()).status, 200);
      }
      kept.send(request());
      assert.equal((await kept.reply()).status, 429);
      // More that say nothing than there are spare connections, and their own address asks among them, and another.
      for (let n = 0; n < LIMITS.spareConnections + 8; n += 1) await open('127.0.0.2');
      await asking(port, request(), '127.0.0.4');
      await until(() => connections.open === 4);
      for (const from of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
        const probe = await asking(port, request('', '/health').repeat(times), from);
        const { status, headers } = await probe.reply();
        assert.deepEqual([status, headers.connection], [200, 'close'], from);
        await probe.closed;
        assert.equal(probe.text.match(/HTTP/g)?.length, 1);
        const other = await asking(port, request('', '/else'), from);
        assert.equal((await other.reply()).status, 503, from);
        await other.closed;
        const body = await asking(port, posting('{}'), from);
        // uWebSockets.js closes without an answer what may have a body.
        if (backend === 'node') assert.equal((await body.reply()).status, 503, from);
        await body.closed;
      }
      assert.equal(connections.open, 4);
    });

    /** With a bound of two requests for each address, and a handler that answers nothing by itself. */
    const parked = async (t: TestContext, options: Options = {}) => {
      const requests = new AddressRequests(2);
      const held: HttpExchange[] = [];
      const keep: HttpHandler = (_request, exchange) => void held.push(exchange);
      const { port } = await serve(t, keep, { requests, ...options });
      return { held, requests, port };
    };

    test('requests beyond the limit of an address are refused with 429, and those of other addresses are served', async (t) => {
      const { held, requests, port } = await parked(t);
      await post(port);
      await post(port);
      await until(() => held.length === 2);
      const refused = await post(port);
      const { status, headers, body } = await refused.reply();
      assert.deepEqual([status, headers['x-error-code']], [429, 'ENG_TOO_MANY_REQUESTS']);
      assert.ok(Number(headers['retry-after']) > 0);
      assert.match(body, /\b2 of this address\b.*ENGINE_MAX_REQUESTS_PER_ADDRESS/);
      await post(port, '127.0.0.3');
      await until(() => held.length === 3);
      assert.equal(requests.refused, 1);
    });

    test('the next request finds room when one is answered, its stream ended, or its client gone', async (t) => {
      const { held, port } = await parked(t);
      const clients = [await post(port), await post(port)];
      await until(() => held.length === 2);
      held[0]!.reply({ status: 200, body: '{}' });
      clients.push(await post(port));
      await until(() => held.length === 3);
      const stream = held[1]!.stream({ status: 200, contentType: 'text/plain' });
      const during = await post(port);
      assert.equal((await during.reply()).status, 429);
      stream.end();
      clients.push(await post(port));
      await until(() => held.length === 4);
      clients[2]!.close();
      await until(() => held[2]!.aborted);
      clients.push(await post(port));
      await until(() => held.length === 5);
    });

    test('a request beyond the bound with a body is refused, and nothing behind it is served', async (t) => {
      const { held, port } = await parked(t);
      await post(port);
      await post(port);
      await until(() => held.length === 2);
      const refused = await post(port, '127.0.0.2', '', '{}');
      assert.equal((await refused.reply()).status, 429);
      await refused.closed;
      assert.equal(held.length, 2);
    });

    test('behind a trusted proxy the bound holds for each address of its clients', async (t) => {
      const proxies = new TrustedProxies([{ address: '127.0.0.2', bits: 32 }]);
      const { held, port } = await parked(t, { proxies });
      const of = (address: string) => `X-Forwarded-For: ${address}\r\n`;
      const clients = [];
      for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2']) {
        clients.push(await post(port, '127.0.0.2', of(address)));
      }
      await until(() => held.length === 3);
      const refused = await post(port, '127.0.0.2', of('10.0.0.1'));
      assert.equal((await refused.reply()).status, 429);
      for (const client of [...clients, refused]) client.close();
    });

    test('a process whose server is closed exits by itself', async () => {
      const script = `
        import { startHttpServer } from ${JSON.stringify(SERVER_URL)};
        const log = { info() {}, warn() {}, error() {} };
        const server = await startHttpServer('${backend}', {
          host: '127.0.0.1', port: 0, maxBodyBytes: 10, maxHeaderBytes: 1000, corsOrigins: [],
          newRequestId: () => 'id', bodyIdleTimeoutMs: 60000, log,
        }, (request, exchange) => exchange.reply({ status: 200, body: '{}' }));
        const reply = await fetch('http://127.0.0.1:' + server.port + '/');
        await reply.text();
        server.stopListening();
        await server.close();`;
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const [code] = await once(child, 'exit');
      assert.equal(code, 0);
    });
  });
}

const PROBES = new Set(['/health', '/api/health']);
const QUIET: HttpServerOptions = {
  host: '127.0.0.1',
  port: 0,
  maxBodyBytes: MAX_BODY_BYTES,
  maxHeaderBytes: MAX_HEADER_BYTES,
  corsOrigins: [],
  newRequestId: () => UUID,
  bodyIdleTimeoutMs: 5_000,
  log: { info() {}, warn() {}, error() {} },
};

test('a proxy that keeps idle connections for a minute closes them before node:http does', async () => {
  const server = await startHttpServer('node', QUIET, describeRequest);
  const { headers } = await fetch(`http://127.0.0.1:${server.port}/`);
  const [, seconds] = /timeout=(\d+)/.exec(headers.get('keep-alive') ?? '') ?? [];
  assert.ok(Number(seconds) > 60, String(seconds));
  await server.close();
});

test('node:http closes a connection that was idle for longer than it promises', () => {
  const socket = new PassThrough();
  const connection = new NodeConnection({} as Transport, socket);
  for (let ms = 0; ms < 75_000; ms += IDLE_TICK_MS) connection.tick();
  assert.equal(socket.destroyed, false);
  connection.tick();
  assert.equal(socket.destroyed, true);
});

test('a client that pipelines behind requests in work gets every answer in order, up to a bound', async () => {
  const waiting: HttpExchange[] = [];
  const server = await startHttpServer('node', QUIET, (_request, exchange) =>
    waiting.push(exchange),
  );
  const client = await Client.open(server.port);
  const count = LIMITS.pipelinedRequestsMax;
  client.send(request().repeat(count + 50));
  await until(() => waiting.length >= count);
  // The last one is answered first.
  for (const [n, exchange] of [...waiting.entries()].reverse()) {
    exchange.reply({ status: 200, body: String(n) });
  }
  for (let n = 0; n < count; n++) assert.equal((await client.reply()).body, String(n));
  assert.equal((await client.reply()).status, 429);
  await client.closed;
  assert.equal(waiting.length, count);
  await server.close();
});

test('off the main thread uws is refused, and auto takes node:http with a log line', async () => {
  const script = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(SERVER_URL)}).then(async ({ startHttpServer }) => {
      const lines = [];
      const log = { info: (_, message) => lines.push(message), warn() {}, error() {} };
      const start = (backend) => startHttpServer(backend, {
        host: '127.0.0.1', port: 0, maxBodyBytes: 10, maxHeaderBytes: 1000, corsOrigins: [],
        newRequestId: () => 'id', bodyIdleTimeoutMs: 1000, log,
      }, (request, exchange) => exchange.reply({ status: 200, body: '{}' }));
      const refused = await start('uws').then(() => '', (err) => err.message);
      const server = await start('auto');
      const reply = await fetch('http://127.0.0.1:' + server.port + '/');
      await reply.text();
      await server.close();
      parentPort.postMessage({ refused, lines, status: reply.status });
    });`;
  const worker = new Worker(script, { eval: true });
  const [seen] = await once(worker, 'message');
  await worker.terminate();
  assert.match(seen.refused, /does not load/);
  assert.match(seen.lines.join(), /does not load here .*: serving with node:http/);
  assert.equal(seen.status, 200);
});

const request = (headers = '', target = '/') =>
  `GET ${target} HTTP/1.1\r\nHost: h\r\n${headers}\r\n`;
const posting = (body: string, headers = '') =>
  `POST / HTTP/1.1\r\nHost: h\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;

/** A connection on which this was asked. */
async function asking(port: number, bytes = request(), from?: string): Promise<Client> {
  const client = await Client.open(port, from);
  client.send(bytes);
  return client;
}

/** On a connection of its own. */
async function answerTo(port: number, bytes: string): Promise<Reply> {
  const client = await asking(port, bytes);
  const reply = await client.reply();
  client.close();
  return reply;
}

/** Answers with what it was asked. */
function describeRequest(request: HttpRequest, exchange: HttpExchange): void {
  const { method, path, query, requestId } = request;
  const body = JSON.stringify({ method, path, query, requestId, body: request.body.toString() });
  exchange.reply({ status: 200, body });
}

/** As from an address, whose answer may still be to come. */
const post = (port: number, from = '127.0.0.2', header = '', body = '') =>
  asking(port, posting(body, header), from);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

const corsNames = (reply: Reply) =>
  Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));

function unchunk(text: string): string {
  let body = '';
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    const length = Number.parseInt(text.slice(at, lineEnd), 16);
    if (length === 0) return body;
    body += text.slice(lineEnd + 2, lineEnd + 2 + length);
    at = lineEnd + 2 + length + 2;
  }
}
