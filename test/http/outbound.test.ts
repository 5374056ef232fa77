/**
 * Where requests may go by the rules of an operator, shown by who is connected to: a sink on all addresses of
 * the loopback counts every connection. Each row is tried as a URL and as the target of a redirect.
 */

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { Resolver } from '../../src/handlers/address-guard.js';
import { type OutboundSettings, outboundPolicy } from '../../src/handlers/outbound-rules.js';
import { failureOf, listen, openHandler, type TestServer } from '../helpers/http-handler.js';
import { serve } from '../helpers/loopback.js';
import { spellings } from '../helpers/ssrf-vectors.js';

/** What names resolve to; one with several answers gives all of them, `flip` a new one each time. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'open.test': ['127.1.0.1'],
  'inside.test': ['127.2.0.1'],
  'mixed.test': ['127.1.0.1', '127.2.0.1'],
  'a.svc.test': ['127.2.0.1'],
  'a.b.svc.test': ['127.2.0.1'],
  'svc.test': ['127.2.0.1'],
  'asvc.test': ['127.2.0.1'],
  'bad.svc.test': ['127.2.0.1'],
  'meta.svc.test': ['169.254.169.254'],
  'private.svc.test': ['127.3.0.1'],
  'evil.test': ['127.1.0.1'],
  'a.evil.test': ['127.1.0.1'],
};
const resolve: Resolver = async (name) =>
  (NAMES[name.replace(/\.$/, '')] ?? []).map((address) => ({ address, family: 4 }));

interface Row {
  readonly settings: Partial<OutboundSettings>;
  readonly reached: readonly string[];
  readonly refused: readonly string[];
}

const within = (addresses: readonly string[]) => addresses.flatMap((each) => spellings(each));

/** `PORT` is the port of the sink. */
const TABLE: Readonly<Record<string, Row>> = {
  'an allowed range opens exactly that range': {
    settings: { allow: ['127.1.0.0/16'] },
    reached: ['127.1.0.1', '127.1.255.254', '127.1.2.3', 'open.test', 'evil.test'],
    refused: [
      ...within(['127.0.0.1', '127.2.0.1', '127.0.255.255', '10.0.0.1', '169.254.169.254']),
      ...['localhost', 'a.localhost', '[::1]', '[::ffff:127.1.0.1]', '[::127.1.0.1]', '[::]'],
      ...['inside.test', 'mixed.test', 'inside.test.', 'a.svc.test', 'unknown.test'],
    ],
  },
  'an allowed address opens itself, at its port': {
    settings: { allow: ['127.1.0.1:PORT', '127.2.0.1:1'] },
    reached: ['127.1.0.1', 'open.test'],
    refused: [...within(['127.1.0.2', '127.2.0.1', '127.0.0.1']), 'inside.test', 'mixed.test'],
  },
  'what is denied is refused although it is allowed': {
    settings: {
      allow: ['127.0.0.0/8', 'bad.svc.test', '*.svc.test'],
      deny: ['127.2.0.0/16', '*.evil.test', 'bad.svc.test'],
    },
    reached: ['127.1.0.1', '127.0.0.1', 'open.test', 'evil.test', 'private.svc.test'],
    refused: [
      ...within(['127.2.0.1', '127.2.255.255']),
      ...['inside.test', 'mixed.test', 'a.evil.test', 'A.EVIL.test.', 'bad.svc.test', 'a.svc.test'],
      ...['[::ffff:127.2.0.1]', '[::ffff:127.1.0.1]'],
    ],
  },
  'an allowed name is reached wherever it leads, but for link-local addresses': {
    settings: { allow: ['*.svc.test', 'inside.test:PORT', 'open.test:1'] },
    reached: ['a.svc.test', 'a.b.svc.test', 'A.SVC.test', 'inside.test', 'inside.test.'],
    refused: [
      ...['svc.test', 'asvc.test', 'meta.svc.test', 'open.test', 'mixed.test'],
      ...within(['127.2.0.1', '127.3.0.1']),
    ],
  },
  'a denied range stays closed where every address is open': {
    settings: { allowInternalUrls: true, deny: ['127.2.0.0/16', '169.254.0.0/16', 'open.test'] },
    reached: ['127.1.0.1', '127.0.0.1', 'evil.test', '[::ffff:127.1.0.1]'],
    refused: [
      ...within(['127.2.0.1', '169.254.169.254']),
      ...['inside.test', 'mixed.test', 'meta.svc.test', 'open.test', '[::ffff:127.2.0.1]'],
      ...['[::ffff:169.254.169.254]', '[::127.2.0.1]', '[64:ff9b::127.2.0.1]', '[2002:7f02:1::1]'],
    ],
  },
  'everything can be denied': {
    settings: { allowInternalUrls: true, deny: ['*'] },
    reached: [],
    refused: [...within(['127.1.0.1', '127.0.0.1']), ...Object.keys(NAMES)],
  },
};

const VECTORS_MIN = 200;

/** A server that redirects to its query, which the rules of every row let be reached by the address. */
const HOP = '127.9.9.9';

test('the table has at least 200 vectors', () => {
  const vectors = Object.values(TABLE).flatMap(({ refused }) => new Set(refused).size);
  const count = vectors.reduce((sum, each) => sum + each, 0);
  assert.ok(count >= VECTORS_MIN, `${count}`);
});

for (const [title, row] of Object.entries(TABLE)) {
  test(`${title}: by URL and by redirect, no connection is made but to what may be reached`, async (t) => {
    const sink = await listen(t, (_request, response) => response.end('sink'), '0.0.0.0');
    const hop = await listen(t, redirect, HOP);
    const ports = (rules: readonly string[] = []) =>
      rules.map((rule) => rule.replace('PORT', String(sink.port)));
    const allow = ports(row.settings.allow);
    const deny = ports(row.settings.deny);
    const guard = outboundPolicy({ allowInternalUrls: false, ...row.settings, allow, deny });
    // The hop is reached whatever the rules are, so that its redirects are what is judged.
    const isAllowed = Object.assign(
      (...[address, of]: Parameters<typeof guard>) => address === HOP || guard(address, of),
      {
        refusesName: (of: { hostname: string; port: number | undefined }) =>
          of.hostname !== HOP && guard.refusesName?.(of) === true,
      },
    );
    const handler = openHandler(t, { isAllowed, resolve });
    for (const host of [...row.reached, ...row.refused]) {
      const url = `http://${host}:${sink.port}/`;
      for (const target of [url, `${hop.origin}/?${encodeURIComponent(url)}`]) {
        const before = sink.connects();
        const outcome = await handler.run({ url: target, headers: { connection: 'close' } });
        if (row.reached.includes(host)) {
          assert.equal(outcome.kind, 'success', `${target} ${JSON.stringify(outcome)}`);
        } else {
          assert.equal(failureOf(outcome).retryable, false, target);
          assert.equal(sink.connects(), before, target);
        }
      }
    }
  });
}

describe('through a proxy', () => {
  test('names are looked up by the proxy, and rules about names hold', async (t) => {
    const proxy = await openProxy(t, await listen(t, (_request, response) => response.end('sink')));
    const isAllowed = outboundPolicy({
      allowInternalUrls: false,
      allow: [],
      deny: ['denied.test', '1.1.1.1'],
    });
    const handler = openHandler(t, {
      isAllowed,
      resolve: () => assert.fail('looked up'),
      proxy: { url: `http://user:word@127.0.0.1:${proxy.port}`, except: '' },
    });
    const outcome = await handler.run({ url: 'http://somewhere.test/a' });
    assert.equal(outcome.kind, 'success', JSON.stringify(outcome));
    assert.deepEqual(proxy.asked, ['somewhere.test:80 Basic dXNlcjp3b3Jk']);
    for (const host of ['denied.test', '1.1.1.1', '127.0.0.1', 'localhost', '[::1]']) {
      assert.equal(failureOf(await handler.run({ url: `http://${host}/` })).retryable, false, host);
    }
    assert.equal(proxy.asked.length, 1);
  });

  test('what is reached without it is looked up and judged here', async (t) => {
    const sink = await listen(t, (_request, response) => response.end('sink'), '0.0.0.0');
    const proxy = await openProxy(t, sink);
    const isAllowed = outboundPolicy({
      allowInternalUrls: false,
      allow: ['127.1.0.0/16'],
      deny: [],
    });
    const handler = openHandler(t, {
      isAllowed,
      resolve,
      proxy: { url: `http://127.0.0.1:${proxy.port}`, except: 'open.test,inside.test' },
    });
    const run = (host: string) => handler.run({ url: `http://${host}:${sink.port}/` });
    assert.equal((await run('open.test')).kind, 'success');
    assert.equal(failureOf(await run('inside.test')).retryable, false);
    assert.deepEqual([sink.connects(), proxy.asked], [1, []]);
  });
});

function redirect(request: IncomingMessage, response: ServerResponse): void {
  // Characters beyond ASCII go out as the bytes of their UTF-8.
  const location = Buffer.from(decodeURIComponent(request.url?.slice(2) ?? '')).toString('latin1');
  response.writeHead(302, { location, connection: 'close' }).end();
}

interface Proxy {
  readonly port: number;
  /** Who was asked for, and with which credentials. */
  readonly asked: string[];
}

/** Takes every CONNECT to the server, whatever it asks for. */
async function openProxy(t: TestContext, to: TestServer): Promise<Proxy> {
  const asked: string[] = [];
  const { server, port, stop } = await serve(() => undefined);
  server.on('connect', (request, socket) => {
    asked.push([request.url, request.headers['proxy-authorization']].filter(Boolean).join(' '));
    const there = connect(to.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      there.pipe(socket).pipe(there);
    });
    for (const each of [socket, there]) each.on('error', () => there.destroy());
    t.after(() => [socket, there].map((each) => each.destroy()));
  });
  t.after(stop);
  return { port, asked };
}
