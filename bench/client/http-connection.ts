/**
 * A keep-alive HTTP/1.1 connection that costs next to nothing, because the load generator shares its cores with the
 * server: prepared request bytes, one read buffer, only status and content-length of a reply are parsed. One request at
 * a time.
 */

import { connect, type Socket } from 'node:net';

/** `body` is valid only during the call. */
export type OnReply = (status: number, body: Buffer) => void;

/** A reply of 50 claimed tasks fits, so that most replies are taken in by one read. */
const READ_BUFFER_BYTES = 64 * 1024;

const HEAD_END = '\r\n\r\n';
const STATUS_AT = 'HTTP/1.1 '.length;

export class HttpConnection {
  readonly #socket: Socket;
  readonly #onLost: (error: Error) => void;
  #onReply: OnReply | undefined;
  /** The beginning of a reply that is longer than a read. */
  #pending: Buffer | undefined;
  /** Bytes of the whole reply, once its head is there. */
  #replyBytes = 0;
  #headBytes = 0;
  #isClosed = false;

  private constructor(port: number, onLost: (error: Error) => void) {
    this.#onLost = onLost;
    this.#socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
        callback: (bytes, buffer) => {
          this.#take((buffer as Buffer).subarray(0, bytes));
          return true;
        },
      },
    });
    this.#socket.on('error', (error) => this.#lose(error));
    this.#socket.on('close', () => this.#lose(new Error('the server closed a connection')));
  }

  /**
   * @param onLost is called once when the connection breaks later, or a reply cannot be read
   * @throws Error when nothing listens on the port
   */
  static open(port: number, onLost: (error: Error) => void): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const connection = new HttpConnection(port, (error) => {
        reject(error);
        onLost(error);
      });
      connection.#socket.once('connect', () => resolve(connection));
    });
  }

  /** The next one may be sent from within `onReply`. */
  send(request: Buffer | string, onReply: OnReply): void {
    this.#onReply = onReply;
    this.#socket.write(request);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const bytes = this.#pending === undefined ? chunk : Buffer.concat([this.#pending, chunk]);
    const isWhole =
      (this.#replyBytes > 0 || this.#readHead(bytes)) && bytes.length >= this.#replyBytes;
    if (isWhole) this.#finish(bytes);
    // The read buffer is used again, so what has to wait is copied.
    else if (!this.#isClosed) this.#pending = bytes === chunk ? Buffer.from(chunk) : bytes;
  }

  #readHead(bytes: Buffer): boolean {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return false;
    const head = bytes.toString('latin1', 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length === null && bytes.length > end + HEAD_END.length) {
      this.#lose(new Error(`a reply without content-length: ${head}`));
      return false;
    }
    this.#headBytes = end + HEAD_END.length;
    this.#replyBytes = this.#headBytes + Number(length?.[1] ?? 0);
    return true;
  }

  #finish(bytes: Buffer): void {
    const onReply = this.#onReply;
    const body = bytes.subarray(this.#headBytes, this.#replyBytes);
    if (onReply === undefined || bytes.length > this.#replyBytes) {
      this.#lose(new Error('the server sent more than was asked for'));
      return;
    }
    const status =
      (bytes[STATUS_AT]! - 48) * 100 +
      (bytes[STATUS_AT + 1]! - 48) * 10 +
      bytes[STATUS_AT + 2]! -
      48;
    this.#onReply = undefined;
    this.#pending = undefined;
    this.#replyBytes = 0;
    onReply(status, body);
  }

  #lose(error: Error): void {
    if (this.#isClosed) return;
    this.close();
    this.#onLost(error);
  }
}
