/**
 * Exchanges that last: a stream, or a poll that waits. They end with the key that they were opened
 * with, since a revocation that leaves them open would be none; and when their tenant leaves the cell.
 */

import type { HttpBodyStream, HttpExchange, HttpReply } from './server.js';
import { NO_STREAM } from './transport.js';

/**
 * The same exchange, which counts as aborted from the moment that it may not last any longer: a stream ends
 * there, and what was not answered yet is answered with the refusal.
 *
 * @param whenOver calls what it is given once, with the refusal; returns what makes it forget
 */
export function endWith(
  exchange: HttpExchange,
  whenOver: (end: (refusal: HttpReply) => void) => () => void,
): HttpExchange {
  const listeners: (() => void)[] = [];
  let body: HttpBodyStream | undefined;
  let isCut = false;
  const cut = (refusal: HttpReply) => {
    isCut = true;
    if (body === undefined) exchange.reply(refusal);
    else body.end();
    for (const listener of listeners) listener();
  };
  const release = whenOver(cut);
  exchange.onAbort(release);
  return {
    get aborted() {
      return isCut || exchange.aborted;
    },
    onAbort: (listener) => {
      if (isCut) listener();
      else {
        listeners.push(listener);
        exchange.onAbort(listener);
      }
    },
    reply: (reply) => {
      if (isCut) return;
      release();
      exchange.reply(reply);
    },
    stream: (head) => {
      if (isCut) return NO_STREAM;
      const opened = exchange.stream(head);
      body = opened;
      return {
        write: (chunk) => !isCut && opened.write(chunk),
        onDrain: (listener) => opened.onDrain(listener),
        end: () => {
          release();
          if (!isCut) opened.end();
        },
      };
    },
  };
}
