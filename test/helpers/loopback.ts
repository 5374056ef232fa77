/** Servers on loopback, on a port that the system chooses unless the test does. */

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Has it listen; resolves with its port. */
export async function portOf(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(port, host), 'listening');
  return (server.address() as AddressInfo).port;
}

export type Served = Awaited<ReturnType<typeof serve>>;

/** Serves HTTP until it is stopped, which cuts off what is under way. */
export async function serve(onRequest: RequestListener) {
  const server = createServer(onRequest);
  const port = await portOf(server);
  return {
    ...{ server, port, url: `http://127.0.0.1:${port}` },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
