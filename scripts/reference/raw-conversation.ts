/** Sends a row of the corpus of raw requests to a server, and tells the conversation in its words. */

import type { HttpHandler } from '../../src/http/server.js';
import { Client, type Reply } from '../../test/helpers/raw-client.js';
import { LATER, type RawRequest } from './raw-corpus.js';

const PROBE = '/probe';
/** Nothing is awaited so long by a server that does what the row says. */
const GIVEN_UP_MS = 8_000;

export class Conversations {
  /** What the handler was called for and what nobody has been told yet. */
  #unanswered: string[] = [];
  #held: (() => void)[] = [];

  /** Answers with what it was asked. */
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
    if (path === LATER) this.#held.push(reply);
    else reply();
  };

  /** @param expected its answer, which says how long to listen */
  async hold({ sent, isEnded }: RawRequest, expected: string, port: number): Promise<string> {
    this.#unanswered = [];
    this.#held = [];
    const client = await Client.open(port);
    const giveUp = setTimeout(() => client.close(), GIVEN_UP_MS);
    for (const piece of sent) await client.sendAlone(Buffer.from(piece, 'latin1'));
    if (isEnded) client.finish();
    this.#answerHeld();
    const parts = expected.split(', ');
    const lastPart = parts.findIndex((part) => /^(open|closed|waits)/.test(part));
    const isHead = sent.join('').startsWith('HEAD');
    const told: string[] = [];
    const listen = async (count: number) => {
      while (told.length < count) {
        const reply = await client.reply(isHead && told.length === 0 ? 'HEAD' : 'GET');
        told.push(this.#tell(reply, isHead && told.length === 0));
      }
    };
    let end = parts[lastPart] === 'waits' ? 'waits' : 'closed';
    try {
      await listen(lastPart);
      if (parts[lastPart] !== 'closed' && !isEnded) {
        client.send(`GET ${PROBE} HTTP/1.1\r\nHost: h\r\n\r\n`);
      }
      if (parts[lastPart] === 'waits') client.finish();
      for (;;) {
        await listen(told.length + 1);
        if (told.at(-1) !== `200 GET ${PROBE}`) continue;
        told.pop();
        end = 'open';
        break;
      }
    } catch {
      // It is closed, and everything was told.
    }
    clearTimeout(giveUp);
    client.close();
    return [...told, end, ...this.#unanswered.map((each) => `unanswered ${each}`)].join(', ');
  }

  #answerHeld(): void {
    for (const reply of this.#held) reply();
    this.#held = [];
  }

  #tell({ status, headers, body }: Reply, isHead: boolean): string {
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
