/**
 * Finds requests on connections beyond the bounds. The library does not report the connection of a request, but calls
 * the handlers that were set when it was opened: when it closes before a request has come, and behind a request
 * without a body.
 */

import type { HttpRequest as UwsRequest, HttpResponse as UwsResponse } from 'uWebSockets.js';
import type { EngineError } from '../base/errors.js';
import { addressKey } from './address-census.js';
import type { Connections, SpareConnection } from './connections.js';

export const addressOf = (res: UwsResponse): string =>
  addressKey(Buffer.from(res.getRemoteAddress()));

export class UwsSpares {
  readonly #connections: Connections;
  /** Connections that close without a place to give back. */
  #placeless = 0;
  #asked: { spare: SpareConnection | undefined } | undefined;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  hold(res: UwsResponse, address: string, refusal: EngineError): void {
    const close = () => {
      this.#placeless += 1;
      res.close();
    };
    const { spare: spares } = this.#connections;
    const spare: SpareConnection = { address, refusal, close };
    const leave = () => {
      if (spares.letGo(spare)) this.#placeless += 1;
    };
    res.onAborted(leave);
    res.onData(() => {
      if (this.#asked !== undefined) this.#asked.spare = spare;
      leave();
    });
    spares.hold(spare);
  }

  /** A connection has closed, it is unknown which. */
  closed(): void {
    if (this.#placeless > 0) this.#placeless -= 1;
    else this.#connections.left();
  }

  /**
   * Called before anything is set for the request.
   *
   * @returns undefined: it has a place; else an object that has the answer in a later turn of the event loop. With a
   * body nothing would be called: the spare connections of its address are closed, and so perhaps this one.
   */
  asked(
    res: UwsResponse,
    req: UwsRequest,
  ): { readonly spare: SpareConnection | undefined } | 'closed' | undefined {
    const { spare: spares } = this.#connections;
    if (spares.count === 0) return undefined;
    const address = addressOf(res);
    if (spares.countOf(address) === 0) return undefined;
    if (req.getHeader('content-length') === '' && req.getHeader('transfer-encoding') === '') {
      this.#asked = { spare: undefined };
      return this.#asked;
    }
    spares.closeAll(address);
    return res.getRemoteAddress().byteLength === 0 ? 'closed' : undefined;
  }
}
