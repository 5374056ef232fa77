/** A client of HTTP that sends bytes as they are, whatever a server may think of them. */

import { once } from 'node:events';
import net from 'node:net';

/** A promise with its switch outside. */
export class Signal {
  raise: () => void = () => {};
  readonly raised = new Promise<void>((resolve) => {
    this.raise = resolve;
  });
}

export type Reply = { status: number; headers: Record<string, string>; body: string };

/** A connection that sends bytes as they are and takes replies apart. */
export class Client {
  /** All that was received, one character a byte. */
  text = '';
  readonly closed: Promise<void>;
  readonly #socket: net.Socket;
  #at = 0;
  #wake = new Signal();

  /** @param localAddress whose connection it is */
  static async open(port: number, localAddress = '127.0.0.1'): Promise<Client> {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
    await once(socket, 'connect');
    return new Client(socket);
  }

  constructor(socket: net.Socket) {
    this.#socket = socket;
    // A reset after the reply is the server's right when it refused what we still send.
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
      this.#raise();
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#raise();
        resolve();
      });
    });
  }

  send(bytes: string | Buffer): void {
    this.#socket.write(bytes);
  }

  /** Sends bytes and gives the server the time to read them apart from the next ones. */
  async sendAlone(bytes: string | Buffer): Promise<void> {
    this.#socket.write(bytes);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  finish(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** The next reply; that to a HEAD, like a 100, has no body. */
  async reply(method = 'GET'): Promise<Reply> {
    const headEnd = await this.#until(() => {
      const end = this.text.indexOf('\r\n\r\n', this.#at);
      return end < 0 ? undefined : end;
    });
    const [statusLine = '', ...lines] = this.text.slice(this.#at, headEnd).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const start = headEnd + 4;
    const length = method === 'HEAD' ? 0 : Number(headers['content-length'] ?? 0);
    await this.#until(() => (this.text.length >= start + length ? true : undefined));
    this.#at = start + length;
    const body = Buffer.from(this.text.slice(start, this.#at), 'latin1').toString('utf8');
    return { status: Number(statusLine.split(' ')[1]), headers, body };
  }

  /** Waits until at least so many bytes have been received, heads and chunk frames included. */
  async bytes(bytes: number): Promise<void> {
    await this.#until(() => (this.text.length >= bytes ? true : undefined));
  }

  /** Waits until `part` has been received `times` times. */
  async count(part: string, times: number): Promise<void> {
    let at = 0;
    let found = 0;
    await this.#until(() => {
      for (let next = this.text.indexOf(part, at); next >= 0; next = this.text.indexOf(part, at)) {
        found += 1;
        at = next + part.length;
      }
      return found >= times ? true : undefined;
    });
  }

  async #until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const seen = look();
      if (seen !== undefined) return seen;
      if (this.#socket.closed) throw new Error(`closed after ${JSON.stringify(this.text)}`);
      await this.#wake.raised;
    }
  }

  #raise(): void {
    const wake = this.#wake;
    this.#wake = new Signal();
    wake.raise();
  }
}
