/** How an answer leaves on node:http. */

import type { ServerResponse } from 'node:http';
import { Exchange } from './exchange.js';
import { type HeaderList, NO_HEADERS, typeHeaders, typeOf } from './reply.js';
import type { RequestHead } from './request-head.js';
import type { HttpReply, HttpStreamHead } from './server.js';
import type { Transport } from './transport.js';

export class NodeExchange extends Exchange {
  readonly #res: ServerResponse;
  readonly #onRefused: () => void;

  /** @param onRefused called when a refusal leaves behind which nothing is served */
  constructor(transport: Transport, head: RequestHead, res: ServerResponse, onRefused: () => void) {
    super(transport, head);
    this.#res = res;
    this.#onRefused = onRefused;
  }

  protected sendReply(reply: HttpReply): void {
    if (this.#res.headersSent) {
      this.#res.end();
      return;
    }
    this.#writeReplyHead(reply);
    this.#res.end(this.head.method === 'HEAD' ? undefined : reply.body);
  }

  protected override sendEarly(reply: HttpReply): void {
    this.#writeReplyHead(reply);
    // The length is in the head, so the client has a whole answer.
    this.#res.write(this.head.method === 'HEAD' ? '' : (reply.body ?? ''));
  }

  protected sendStreamHead(head: HttpStreamHead, isWhole: boolean): void {
    this.#res.writeHead(head.status, this.#flatHeaders(head.contentType, head.headers));
    if (isWhole) this.#res.end();
    else this.#res.on('drain', () => this.drained());
  }

  protected writeChunk(chunk: string | Buffer): boolean {
    return this.#res.write(chunk);
  }

  protected endStream(): void {
    this.#res.end();
  }

  protected destroy(): void {
    this.#res.destroy();
  }

  #writeReplyHead(reply: HttpReply): void {
    const { status, body } = reply;
    if (this.isRefused) this.#onRefused();
    const flat = this.#flatHeaders(typeOf(reply), reply.headers);
    if (status !== 204 && status !== 304) {
      flat.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)));
    }
    this.#res.writeHead(status, flat);
  }

  #flatHeaders(contentType: string | undefined, headers: HeaderList = NO_HEADERS): string[] {
    const flat = ['x-request-id', this.head.requestId];
    for (const list of [typeHeaders(contentType), headers, this.corsHeaders]) {
      for (const [name, value] of list) flat.push(name, value);
    }
    if (this.mustClose) flat.push('connection', 'close');
    return flat;
  }
}
