/**
 * A TCP proxy between a client and a server that breaks connections in chosen ways: it can stall,
 * refuse, cut everything, or act at the moment when the client sends a certain text. Knows nothing
 * of what it carries.
 */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What happens to the connection on which a watched text is sent.
 * - `cut-before`: the text never arrives, and both ends see the connection break.
 * - `cut-after`: the text arrives and is answered, but the client sees the connection break instead.
 * - `mute`: the text arrives, no answer ever comes back, and nothing breaks: a half-open connection.
 */
export type Fault = 'cut-before' | 'cut-after' | 'mute';

type Watch = { readonly text: string; readonly fault: Fault; readonly seen: () => void };

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** What is left of `cut-after` and `mute` once the text was seen. */
  fault: Fault | undefined;
}

export class FaultProxy {
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<Pair>();
  #watch: Watch | undefined;
  #isStalled = false;
  #isRefusing = false;

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client) => this.#accept(client));
  }

  /** Listens on a free port of the loopback interface. */
  static async start(target: { host: string; port: number }): Promise<FaultProxy> {
    const server = createServer();
    const proxy = new FaultProxy(server, target);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  /** A Postgres URL that leads through the proxy instead. */
  static async before(connectionString: string): Promise<{ proxy: FaultProxy; url: string }> {
    const url = new URL(connectionString);
    const proxy = await FaultProxy.start({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    return { proxy, url: url.href };
  }

  /** So many connections were made since the start. */
  accepted = 0;

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Acts on the first connection that sends the text; resolves when it has been sent. */
  whenSent(text: string, fault: Fault): Promise<void> {
    return new Promise((seen) => {
      this.#watch = { text, fault, seen };
    });
  }

  /** Resolves when so many more connections have been made and ended. */
  connections(wanted: number): Promise<void> {
    return new Promise((resolve) => {
      let left = wanted;
      const ended = () => {
        left -= 1;
        if (left === 0) resolve();
      };
      this.#server.on('connection', (client) => client.once('close', ended));
    });
  }

  /** Nothing gets through in either direction, and nothing is lost. New connections hang. */
  stall(): void {
    this.#isStalled = true;
    for (const pair of this.#pairs) pause(pair);
  }

  resume(): void {
    this.#isStalled = false;
    this.#isRefusing = false;
    for (const { client, server } of this.#pairs) {
      client.resume();
      server.resume();
    }
  }

  /** Breaks every connection there is. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }

  /** Breaks every connection and every new one, until `resume`. */
  refuse(): void {
    this.#isRefusing = true;
    this.cut();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#isRefusing) {
      client.destroy();
      return;
    }
    this.accepted += 1;
    const server = connect(this.#target);
    const pair: Pair = { client, server, fault: undefined };
    this.#pairs.add(pair);
    // A text may be split over two pieces.
    let tail = '';
    client.on('data', (data) => {
      const watch = this.#watch;
      const text = tail + data.toString('latin1');
      tail = text.slice(-64);
      if (watch !== undefined && text.includes(watch.text)) {
        this.#watch = undefined;
        pair.fault = watch.fault;
        if (watch.fault === 'cut-before') client.destroy();
        watch.seen();
      }
      if (pair.fault !== 'cut-before') server.write(data);
    });
    server.on('data', (data) => {
      if (pair.fault === undefined) client.write(data);
      else if (pair.fault === 'cut-after') client.destroy();
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      // The other end is told by `close`; what kind of error it was does not matter.
      one.on('error', () => undefined);
      one.on('close', () => {
        this.#pairs.delete(pair);
        // The client of a half-open connection learns nothing.
        if (pair.fault !== 'mute') other.destroy();
      });
    }
    if (this.#isStalled) pause(pair);
  }
}

function pause({ client, server }: Pair): void {
  client.pause();
  server.pause();
}
