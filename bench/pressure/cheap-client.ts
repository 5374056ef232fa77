/**
 * The attacker's requests, which cost its process next to nothing: prepared bytes on connections that are used again,
 * or on one that is held. Only the status of an answer is parsed.
 */

import { connect, type Socket } from 'node:net';
import { HttpConnection } from '../client/http-connection.js';

const STATUS = /^HTTP\/1\.1 (\d{3})/;

export class CheapClient {
  readonly #port: number;
  readonly #headers: string;
  readonly #free: HttpConnection[] = [];
  readonly #open = new Set<HttpConnection>();
  readonly #held = new Set<Socket>();
  readonly #prepared = new Map<Buffer, Buffer>();
  /** Of the request under way, by its connection. */
  readonly #lost = new Map<HttpConnection, (error: Error) => void>();

  constructor(port: number, apiKey: string, tenant: string) {
    this.#port = port;
    this.#headers = `host: 127.0.0.1\r\nx-api-key: ${apiKey}\r\nx-tenant-id: ${tenant}\r\n`;
  }

  /** @param body the same one is prepared once @returns the status @throws Error when there is no answer */
  async ask(method: string, path: string, body?: Buffer): Promise<number> {
    const request = body === undefined ? this.#head(method, path) : this.#whole(method, path, body);
    const connection = this.#free.pop() ?? (await this.#connect());
    return new Promise((resolve, reject) => {
      this.#lost.set(connection, reject);
      connection.send(request, (status) => {
        this.#lost.delete(connection);
        // Behind a refusal of the request itself the server closes.
        if (status === 400 || status === 413) this.#drop(connection);
        else this.#free.push(connection);
        resolve(status);
      });
    });
  }

  /** The same on a connection of its own: resolves when that has ended. 0: there was no answer */
  hold(method: string, path: string, body = ''): Promise<number> {
    const type = body === '' ? '' : 'content-type: application/json\r\n';
    return this.#sendHeld(
      this.#head(method, path, `connection: close\r\n${type}`, body.length) + body,
    );
  }

  /**
   * Without a key, from an address of this machine.
   *
   * @param paceMs after which the next byte of the body comes; absent: none does
   */
  stall(path: string, localAddress: string, paceMs?: number): Promise<number> {
    const head = `POST /api/v1${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10000\r\n\r\n`;
    return this.#sendHeld(head, localAddress, paceMs);
  }

  #sendHeld(bytes: string, localAddress = '127.0.0.1', paceMs?: number): Promise<number> {
    return new Promise((resolve) => {
      let status = 0;
      const pace = paceMs === undefined ? undefined : setInterval(() => socket.write(' '), paceMs);
      const socket = connect({ host: '127.0.0.1', port: this.#port, localAddress });
      this.#held.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        if (status === 0) status = Number(STATUS.exec(bytes.toString('latin1', 0, 16))?.[1] ?? 0);
      });
      socket.on('close', () => {
        clearInterval(pace);
        this.#held.delete(socket);
        resolve(status);
      });
      socket.write(bytes);
    });
  }

  /** Requests under way get no answer. */
  close(): void {
    for (const connection of this.#open) this.#drop(connection);
    for (const socket of this.#held) socket.destroy();
  }

  async #connect(): Promise<HttpConnection> {
    const connection: HttpConnection = await HttpConnection.open(this.#port, () =>
      this.#drop(connection),
    );
    this.#open.add(connection);
    return connection;
  }

  #drop(connection: HttpConnection): void {
    connection.close();
    this.#open.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
    this.#lost.get(connection)?.(new Error('the connection was closed'));
    this.#lost.delete(connection);
  }

  #whole(method: string, path: string, body: Buffer): Buffer {
    let whole = this.#prepared.get(body);
    if (whole === undefined) {
      const head = this.#head(method, path, 'content-type: application/json\r\n', body.length);
      whole = Buffer.concat([Buffer.from(head), body]);
      this.#prepared.set(body, whole);
    }
    return whole;
  }

  #head(method: string, path: string, more = '', length?: number): string {
    const size = length === undefined ? '' : `content-length: ${length}\r\n`;
    return `${method} /api/v1${path} HTTP/1.1\r\n${this.#headers}${more}${size}\r\n`;
  }
}
