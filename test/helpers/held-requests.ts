/** A server whose requests a test answers when it wants to, and steps that call it. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before } from 'node:test';
import { eventually, type Json, step } from './api.js';

export interface HeldRequests {
  /** A step that calls the path. */
  call(id: string, path: string, more?: Json): Json;
  /** The n-th request to the path, counted from 1, once it has arrived. */
  request(path: string, n?: number): Promise<ServerResponse>;
}

/** For the tests of a file. */
export function useHeldRequests(): HeldRequests {
  const held = new Map<string, ServerResponse[]>();
  const server = createServer(({ url = '' }, response) => {
    held.set(url, [...(held.get(url) ?? []), response]);
  });
  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    call: (id, path, more = {}) => {
      const { port } = server.address() as AddressInfo;
      return step(id, 'http_request', {
        params: { url: `http://127.0.0.1:${port}${path}` },
        ...more,
      });
    },
    request: (path, n = 1) =>
      eventually(() => {
        const response = held.get(path)?.[n - 1];
        assert.ok(response, `no request ${n} to ${path}`);
        return response;
      }),
  };
}
