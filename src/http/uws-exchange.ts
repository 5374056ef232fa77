/** Writes responses with uWebSockets.js, whose response object must not be used after an abort. */

import type { HttpResponse as UwsResponse } from 'uWebSockets.js';
import { Exchange } from './exchange.js';
import { typeOf } from './reply.js';
import type { BodyReader } from './request-body.js';
import type { RequestHead } from './request-head.js';
import type { HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

/** Only a larger write overflows the cork and shows whether the socket is full. */
const CORK_BYTES = 16 * 1024;
/**
 * The size of stream writes: enough to overflow the cork, and so little that the part a full socket refused is sent
 * once the socket reports room again, long before it is empty.
 */
const PIECE_BYTES = 32 * 1024;
const EVENT_STREAM = 'text/event-stream';
/** The bytes sent in small events before one is padded, to see if the client reads. */
const UNMEASURED_BYTES_MAX = 64 * 1024;
const EVENT_FILLER = Buffer.from(`:${' '.repeat(CORK_BYTES)}\n`);

export class UwsExchange extends Exchange {
  readonly #res: UwsResponse;
  /** Chunks of a stream that wait to fill a piece, or for room in the socket. */
  #waiting: Buffer[] | undefined;
  #waitingBytes = 0;
  #unmeasuredBytes = 0;
  #isEventStream = false;
  #isFull = false;
  #isWatching = false;
  #isLost = false;

  constructor(transport: Transport, head: RequestHead, res: UwsResponse) {
    super(transport, head);
    this.#res = res;
  }

  /** True after a chunked body: the parser is lenient with chunks, and mistakes trailers for a request. */
  get isLast(): boolean {
    return this.head.contentLength === undefined;
  }

  /** Takes the body in a later turn of the event loop: not at all if more data arrived with its end. */
  takeLast(reader: BodyReader, lent: Buffer): void {
    const chunk = Buffer.from(lent);
    setImmediate(() => reader.push(chunk, true));
  }

  protected override get mustClose(): boolean {
    return this.isLast || super.mustClose;
  }

  lose(): void {
    this.#isLost = true;
    this.abort();
  }

  /**
   * A refusal is sent in a later turn of the event loop: until then uWebSockets.js serves no later request. After a
   * response it serves all requests that arrived in the same packet.
   */
  protected sendReply(reply: HttpReply): void {
    if (!this.isRefused) {
      this.#send(reply);
      return;
    }
    setImmediate(() => {
      if (!this.#isLost) this.#send(reply);
    });
  }

  #send(reply: HttpReply): void {
    const res = this.#res;
    const { status, body } = reply;
    const { mustClose } = this;
    // Headers may follow the status in its text: one native call instead of one per header.
    const text = this.headOf(reply, typeOf(reply));
    res.cork(() => {
      res.writeStatus(text);
      if (status === 204 || status === 304) {
        this.#endWithoutLength();
      } else if (this.head.method === 'HEAD') {
        res.endWithoutBody(body === undefined ? 0 : Buffer.byteLength(body), mustClose);
      } else {
        res.end(body ?? '', mustClose);
      }
    });
  }

  /** The library cannot close a connection without a length; the header asks the client to. */
  #endWithoutLength(): void {
    if (this.mustClose) this.#res.writeHeader('Connection', 'close');
    this.#res.endWithoutBody();
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean): void {
    const res = this.#res;
    this.#isEventStream = head.contentType.startsWith(EVENT_STREAM);
    const text = this.headOf(head, head.contentType);
    res.cork(() => {
      res.writeStatus(text);
      if (isWhole) this.#endWithoutLength();
      else if (this.mustClose) res.writeHeader('Connection', 'close');
    });
  }

  protected writeChunk(chunk: string | Buffer): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.#waiting ??= [];
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isFull) this.#flush();
    return !this.#isFull;
  }

  protected endStream(): void {
    const res = this.#res;
    res.cork(() => {
      for (const bytes of this.#waiting ?? []) res.write(bytes);
      // With the flag to close, uWebSockets.js would write a header into the middle of the body.
      res.end();
    });
  }

  protected destroy(): void {
    this.#res.close();
  }

  /** Writes pieces until the socket is full, or too little is left for one. */
  #flush(): void {
    const bytesMin = this.#isEventStream ? 1 : PIECE_BYTES;
    while (!this.#isFull && this.#waitingBytes >= bytesMin) {
      if (!this.#write(this.#takePiece())) {
        this.#isFull = true;
        this.#watch();
      }
    }
  }

  #takePiece(): Buffer {
    const waiting = this.#waiting ?? [];
    const [first] = waiting;
    const all = first !== undefined && waiting.length === 1 ? first : Buffer.concat(waiting);
    const piece = all.subarray(0, PIECE_BYTES);
    this.#waiting = all.length > PIECE_BYTES ? [all.subarray(PIECE_BYTES)] : [];
    this.#waitingBytes -= piece.length;
    return piece;
  }

  /** False if the socket did not accept all of it at once. */
  #write(piece: Buffer): boolean {
    let bytes = piece;
    if (piece.length <= CORK_BYTES) {
      this.#unmeasuredBytes += piece.length;
      if (this.#unmeasuredBytes > UNMEASURED_BYTES_MAX) {
        this.#unmeasuredBytes = 0;
        bytes = Buffer.concat([piece, EVENT_FILLER]);
      }
    }
    let hasRoom = true;
    this.#res.cork(() => {
      hasRoom = this.#res.write(bytes);
    });
    return hasRoom;
  }

  /**
   * Once registered, only this handler sends the data that the socket refused: an empty cork makes uWebSockets.js
   * send it, and a further event follows while some is left.
   */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#res.onWritable(() => {
      this.#res.cork(() => {});
      if (!this.#isFull) return true;
      this.#isFull = false;
      this.#flush();
      if (!this.#isFull) this.drained();
      return true;
    });
  }
}
