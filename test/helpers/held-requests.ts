/** A server whose requests a test answers when it wants to, and steps that call it. */

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before } from 'node:test';
import { eventually, type Json, step } from './api.js';
import { type Served, serve } from './loopback.js';

export interface HeldRequests {
  /** A step that calls the path. */
  call(id: string, path: string, more?: Json): Json;
  /** The n-th request to the path, counted from 1, once it has arrived. */
  request(path: string, n?: number): Promise<ServerResponse>;
}

/** For the tests of a file. */
export function useHeldRequests(): HeldRequests {
  const held = new Map<string, ServerResponse[]>();
  let server: Served;
  before(async () => {
    server = await serve(({ url = '' }, response) => {
      held.set(url, [...(held.get(url) ?? []), response]);
    });
  });
  after(() => server.stop());
  return {
    call: (id, path, more = {}) =>
      step(id, 'http_request', { params: { url: `${server.url}${path}` }, ...more }),
    request: (path, n = 1) =>
      eventually(() => {
        const response = held.get(path)?.[n - 1];
        assert.ok(response, `no request ${n} to ${path}`);
        return response;
      }),
  };
}
