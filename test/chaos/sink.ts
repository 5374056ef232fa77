/** Where the http_request steps of a chaos run arrive: remembers the last path segment of each. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Sink {
  readonly url: string;
  readonly tokens: ReadonlySet<string>;
  stop(): void;
}

export async function startSink(): Promise<Sink> {
  const tokens = new Set<string>();
  const server = createServer((request, response) => {
    tokens.add((request.url ?? '').split('/').at(-1)!);
    request.resume();
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    tokens,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
