/** How many requests of one address are in flight, on both backends: who has too many is told so, and others are served. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AddressRequests } from '../../src/http/address-requests.js';
import {
  type HttpExchange,
  type HttpServerOptions,
  startHttpServer,
} from '../../src/http/server.js';
import { TrustedProxies } from '../../src/http/trusted-proxies.js';
import { BACKENDS } from '../helpers/backends.js';
import { Client } from '../helpers/raw-client.js';

const silent = () => undefined;
const OPTIONS: HttpServerOptions = {
  host: '127.0.0.1',
  port: 0,
  maxBodyBytes: 1_000,
  maxHeaderBytes: 10_000,
  corsOrigins: [],
  newRequestId: () => 'made-here',
  bodyIdleTimeoutMs: 10_000,
  log: { info: silent, warn: silent, error: silent },
};

const OK = { status: 200, body: '{}' };

for (const backend of BACKENDS) {
  describe(`the bound by address with the ${backend} backend`, () => {
    /** A server that answers nothing by itself. */
    const serving = async (
      use: (fixture: {
        port: number;
        held: HttpExchange[];
        requests: AddressRequests;
      }) => Promise<void>,
      proxies?: TrustedProxies,
    ) => {
      const requests = new AddressRequests(2);
      const held: HttpExchange[] = [];
      const server = await startHttpServer(
        backend,
        { ...OPTIONS, requests, ...(proxies && { proxies }) },
        (_request, exchange) => void held.push(exchange),
      );
      try {
        await use({ port: server.port, held, requests });
      } finally {
        await server.close();
      }
    };
    const ask = async (port: number, from = '127.0.0.2', header = '', body = '') => {
      const client = await Client.open(port, from);
      const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
      client.send(`POST / HTTP/1.1\r\nHost: h\r\n${header}${length}\r\n${body}`);
      return client;
    };
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise(setImmediate);
    };

    test('requests of an address beyond the bound are refused with 429 that says so, and those of others are served', async () => {
      await serving(async ({ port, held, requests }) => {
        const open = [await ask(port), await ask(port)];
        await until(() => held.length === 2);
        const refused = await ask(port);
        const { status, headers, body } = await refused.reply();
        assert.deepEqual([status, headers['x-error-code']], [429, 'ENG_TOO_MANY_REQUESTS']);
        assert.ok(Number(headers['retry-after']) > 0);
        assert.match(body, /\b2 of this address\b.*ENGINE_MAX_REQUESTS_PER_ADDRESS/);
        const other = await ask(port, '127.0.0.3');
        await until(() => held.length === 3);
        assert.equal(requests.refused, 1);
        for (const client of [...open, refused, other]) client.close();
      });
    });

    test('find room again when one is answered, when its stream has ended, and when its client has gone', async () => {
      await serving(async ({ port, held }) => {
        const clients = [await ask(port), await ask(port)];
        await until(() => held.length === 2);
        held[0]!.reply(OK);
        clients.push(await ask(port));
        await until(() => held.length === 3);
        const stream = held[1]!.stream({ status: 200, contentType: 'text/plain' });
        const during = await ask(port);
        assert.equal((await during.reply()).status, 429);
        stream.end();
        clients.push(await ask(port));
        await until(() => held.length === 4);
        clients[2]!.close();
        await until(() => held[2]!.aborted);
        clients.push(await ask(port));
        await until(() => held.length === 5);
        for (const client of [...clients, during]) client.close();
      });
    });

    test('that are refused with a body have nothing behind it served', async () => {
      await serving(async ({ port, held }) => {
        const open = [await ask(port), await ask(port)];
        await until(() => held.length === 2);
        const refused = await ask(port, '127.0.0.2', '', '{}');
        assert.equal((await refused.reply()).status, 429);
        await refused.closed;
        assert.equal(held.length, 2);
        for (const client of open) client.close();
      });
    });

    test('behind a trusted proxy are those of its clients', async () => {
      const proxies = new TrustedProxies([{ address: '127.0.0.2', bits: 32 }]);
      await serving(async ({ port, held }) => {
        const of = (address: string) => `X-Forwarded-For: ${address}\r\n`;
        const clients = [];
        for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2']) {
          clients.push(await ask(port, '127.0.0.2', of(address)));
        }
        await until(() => held.length === 3);
        const refused = await ask(port, '127.0.0.2', of('10.0.0.1'));
        assert.equal((await refused.reply()).status, 429);
        for (const client of [...clients, refused]) client.close();
      }, proxies);
    });
  });
}
