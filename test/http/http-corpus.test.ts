/**
 * The corpus of raw requests on both backends: each row has the answer that it tells, nothing is served
 * behind a refusal, and nothing is served without being told.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Conversations } from '../../scripts/reference/raw-conversation.js';
import {
  MAX_BODY_BYTES,
  RAW_REQUESTS,
  type RawRequest,
} from '../../scripts/reference/raw-corpus.js';
import { LIMITS } from '../../src/base/limits.js';
import { type HttpServer, startHttpServer } from '../../src/http/server.js';
import { BACKENDS } from '../helpers/backends.js';

const BEHIND = 'GET /behind HTTP/1.1\r\nHost: h\r\n\r\n';
const GROUPS = [...new Set(RAW_REQUESTS.map(({ group }) => group))];

for (const backend of BACKENDS) {
  describe(`raw requests to the ${backend} backend`, () => {
    const conversations = new Conversations();
    let server: HttpServer;

    before(async () => {
      server = await startHttpServer(
        backend,
        {
          host: '127.0.0.1',
          port: 0,
          maxBodyBytes: MAX_BODY_BYTES,
          maxHeaderBytes: LIMITS.headerBytesMax,
          corsOrigins: [],
          newRequestId: () => 'id',
          // Long enough for pieces that arrive one by one, and short for those that never come.
          bodyIdleTimeoutMs: 500,
          log: { info() {}, warn() {}, error() {} },
        },
        conversations.handler,
      );
    });
    after(() => server.close());

    const answerOf = (row: RawRequest) =>
      (backend === 'uws' ? row.uws?.answer : undefined) ?? row.answer;

    test('ambiguous HTTP requests are refused, and nothing after them on the connection is served', async () => {
      const refused = RAW_REQUESTS.filter((row) => /^[45]\d\d [^,]*, closed$/.test(answerOf(row)));
      assert.ok(refused.length > 300, `only ${refused.length} are refused`);
      const served: string[] = [];
      for (const row of refused) {
        const sent = [...row.sent.slice(0, -1), `${row.sent.at(-1)}${BEHIND}`];
        const told = await conversations.hold({ ...row, sent }, 'closed', server.port);
        if (/200|unanswered/.test(told)) served.push(`${row.group}: ${row.name}: ${told}`);
      }
      assert.deepEqual(served, []);
    });

    for (const group of GROUPS) {
      test(`${group} are answered as documented`, async () => {
        const seen: Record<string, string> = {};
        const documented: Record<string, string> = {};
        for (const row of RAW_REQUESTS.filter((each) => each.group === group)) {
          const answer = answerOf(row);
          documented[row.name] = answer;
          seen[row.name] = await conversations.hold(row, answer, server.port);
        }
        assert.deepEqual(seen, documented);
      });
    }
  });
}
