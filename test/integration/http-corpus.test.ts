/**
 * The corpus of raw requests on both backends: each row has the answer that it tells, nothing is served
 * behind a refusal, and nothing is served without being told.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type HttpServer, startHttpServer } from '../../src/http/server.js';
import { LIMITS } from '../../src/limits.js';
import { BACKENDS } from '../helpers/backends.js';
import { Conversations } from '../helpers/raw-conversation.js';
import { MAX_BODY_BYTES, RAW_REQUESTS } from '../helpers/raw-requests.js';

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

    for (const group of GROUPS) {
      test(`${group} are answered as documented`, async () => {
        const seen: Record<string, string> = {};
        const documented: Record<string, string> = {};
        for (const row of RAW_REQUESTS.filter((each) => each.group === group)) {
          const answer = (backend === 'uws' ? row.uws?.answer : undefined) ?? row.answer;
          documented[row.name] = answer;
          seen[row.name] = await conversations.hold(row, answer, server.port);
        }
        assert.deepEqual(seen, documented);
      });
    }
  });
}
