/** Sends a row of the corpus of raw requests to a server, and writes the conversation in its notation. */

import type { HttpHandler } from '../../src/http/server.js';
import { Client, type Reply } from '../../test/helpers/raw-client.js';
import { LATER, type RawRequest } from './raw-corpus.js';

const PROBE = '/probe';
/** Far longer than any row takes. */
const GIVEN_UP_MS = 8_000;

export class Conversations {
  /** Requests served by the handler, without a response so far. */
  #unanswered: string[] = [];
  #delayed: (() => void)[] = [];

  /** Echoes the request. */
  readonly handler: HttpHandler = (request, exchange) => {
    const { method, path, query } = request;
    const mark = query === '' ? '' : '?';
    const body =
      request.body.length > 0 ? ` ${JSON.stringify(request.body.toString('latin1'))}` : '';
    const tenant = request.header('x-tenant-id');
    const whose = tenant === undefined ? '' : ` of ${JSON.stringify(tenant)}`;
    const served = `${method} ${path}${mark}${query}${whose}${body}`;
    this.#unanswered.push(served);
    const reply = () => exchange.reply({ status: 200, body: JSON.stringify({ served }) });
    if (path === LATER) this.#delayed.push(reply);
    else reply();
  };

  /** @param expected the conversation, which decides how many responses to wait for */
  async hold({ sent, isEnded }: RawRequest, expected: string, port: number): Promise<string> {
    this.#unanswered = [];
    this.#delayed = [];
    const client = await Client.open(port);
    const giveUp = setTimeout(() => client.close(), GIVEN_UP_MS);
    for (const piece of sent) await client.sendAlone(Buffer.from(piece, 'latin1'));
    if (isEnded) client.finish();
    this.#answerDelayed();
    const parts = expected.split(', ');
    const lastPart = parts.findIndex((part) => /^(open|closed|waits)/.test(part));
    const isHead = sent.join('').startsWith('HEAD');
    const replies: string[] = [];
    const receive = async (count: number) => {
      while (replies.length < count) {
        const reply = await client.reply(isHead && replies.length === 0 ? 'HEAD' : 'GET');
        replies.push(this.#textOf(reply, isHead && replies.length === 0));
      }
    };
    let end = parts[lastPart] === 'waits' ? 'waits' : 'closed';
    try {
      await receive(lastPart);
      if (parts[lastPart] !== 'closed' && !isEnded) {
        client.send(`GET ${PROBE} HTTP/1.1\r\nHost: h\r\n\r\n`);
      }
      if (parts[lastPart] === 'waits') client.finish();
      for (;;) {
        await receive(replies.length + 1);
        if (replies.at(-1) !== `200 GET ${PROBE}`) continue;
        replies.pop();
        end = 'open';
        break;
      }
    } catch {
      // The connection is closed.
    }
    clearTimeout(giveUp);
    client.close();
    return [...replies, end, ...this.#unanswered.map((each) => `unanswered ${each}`)].join(', ');
  }

  #answerDelayed(): void {
    for (const reply of this.#delayed) reply();
    this.#delayed = [];
  }

  #textOf({ status, headers, body }: Reply, isHead: boolean): string {
    const code = headers['x-error-code'];
    if (status === 100) return '100';
    if (code !== undefined) {
      return typeof JSON.parse(body).error === 'string' && headers['x-request-id'] !== undefined
        ? `${status} ${code}`
        : `${status} ${code} without its body`;
    }
    if (isHead) {
      this.#unanswered = this.#unanswered.filter((each) => !each.startsWith('HEAD '));
      return `${status} HEAD`;
    }
    if (headers['content-type'] !== 'application/json') return `${status} bare`;
    if (status !== 200) return String(status);
    const { served } = JSON.parse(body);
    this.#unanswered.splice(this.#unanswered.indexOf(served), 1);
    return `200 ${served}`;
  }
}
