/**
 * The API under requests that are made of its own description: `FUZZ_SEED=7 npm test -- fuzz` runs
 * one seed again, `npm run fuzz -- --requests 200000` more of them. The checks themselves are shown
 * to find what they look for.
 *
 * Cost: 35 s, since 3,000 requests are made, and each answer is held against the document.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { loadUws } from '../../src/http/server-uws.js';
import { type Draft, draftOf } from '../fuzz/arbitrary.js';
import { type Purpose, problemOf } from '../fuzz/checks.js';
import { type FuzzReport, fuzz, hasSucceeded } from '../fuzz/fuzzer.js';
import { violationsOf } from '../fuzz/hostile.js';
import { KnownIds } from '../fuzz/known.js';
import { BACKENDS, type Backend, startFuzzedServer, WATCH } from '../fuzz/server.js';
import type { Api } from '../helpers/api.js';
import { conforms, OPERATIONS, type Operation, type Schema } from '../helpers/contract.js';
import { byDepth } from '../helpers/depth.js';

/** The short form takes the one that servers take. */
const TRIED = byDepth<readonly Backend[]>(
  ['auto'],
  BACKENDS.filter((one) => one === 'node' || (one === 'uws' && loadUws().ok)),
);
/** Of each backend: in the long form 200,000 for all that load here. */
const REQUESTS = byDepth(3_000, 200_000 / TRIED.length);
/** One that does not change: other ones are for `npm run fuzz`, which takes a new one each time. */
const SEED = 1;
/** By chance some operation may only ever be asked for what does not exist. */
const REACHED_MIN = 0.92;

for (const backend of TRIED)
  describe(`the API under fire, backend ${backend}`, () => {
    let api: Api | undefined;
    let report: FuzzReport;

    before(async () => {
      const seed = Number(process.env.FUZZ_SEED ?? SEED);
      process.stdout.write(`FUZZ_SEED=${seed}\n`);
      api = await startFuzzedServer(backend);
      report = await fuzz(api, { requests: REQUESTS, seed });
    });
    after(() => api?.stop());

    test(`${REQUESTS} requests meet no server error, no hang and no answer beside the document`, () => {
      const found = report.failures.map(({ problem, exchange }) => `${problem}\n${exchange}`);
      assert.equal(found.length, 0, found.join('\n\n'));
      assert.equal(report.sent, REQUESTS);
    });

    test('they reach every operation, and most of them with success', () => {
      const reached = OPERATIONS.filter(({ id }) => report.byOperation.has(id));
      assert.equal(reached.length, OPERATIONS.length);
      const failed = OPERATIONS.filter(({ id }) => !hasSucceeded(report.byOperation.get(id)));
      const failedMax = OPERATIONS.length * (1 - REACHED_MIN);
      assert.ok(failed.length <= failedMax, failed.map(({ id }) => id).join(' '));
    });
  });

describe('the checks', () => {
  const headers = {
    'x-request-id': 'a',
    'content-type': 'application/json',
    'x-error-code': 'ENG_VALIDATION',
  };
  const problem = (purpose: Purpose, status: number, text: string) =>
    problemOf({
      purpose,
      operation: operationOf('instancesList'),
      method: 'GET',
      path: '/instances',
      answer: { status, headers, text },
    });

  test('find what must not be answered', () => {
    const refusal = '{"error":"invalid argument: limit must be >= 0"}';
    const trace = '{"error":"at Object.<anonymous> (/home/x/main.js:1:1)"}';
    const sql = '{"error":"select id from instances where"}';
    const answers: readonly (readonly [Purpose, number, string, RegExp])[] = [
      ['hostile', 500, '{"error":"internal error"}', /server error/],
      ['hostile', 503, '{"error":"overloaded"}', /server error/],
      ['hostile', 418, '{}', /not described/],
      ['valid', 200, '[{}]', /the body/],
      ['valid', 200, 'no JSON', /the body/],
      ['valid', 400, refusal, /valid input was refused/],
      ['negative', 200, '[]', /was accepted/],
      ['negative', 400, trace, /internals/],
      ['negative', 400, sql, /internals/],
      ['unauthenticated', 200, '[]', /must be 401/],
    ];
    for (const [purpose, status, text, found] of answers) {
      assert.match(problem(purpose, status, text) ?? '', found);
    }
  });

  test('hear of a prototype that was changed, and of nothing else', () => {
    const run = (script: string) =>
      spawnSync(process.execPath, [`--import=${WATCH}`, '--eval', script], { encoding: 'utf8' });
    assert.match(run('Object.prototype.polluted = 1').stderr, /a prototype was changed/);
    assert.match(run('Array.prototype.push = () => 0').stderr, /a prototype was changed/);
    assert.equal(run('JSON.parse(`{"__proto__":1}`)').stderr, '');
  });

  test('let pass what may be answered', () => {
    assert.equal(problem('valid', 200, '[]'), undefined);
    assert.equal(problem('negative', 400, '{"error":"invalid argument"}'), undefined);
  });
});

describe('generated requests', () => {
  const withBody = OPERATIONS.filter(({ body }) => body !== undefined);
  const samples = new Map(withBody.map((operation) => [operation, sample(operation)]));

  test('have bodies that the document allows', () => {
    for (const [{ id, body }, drafts] of samples) {
      for (const draft of drafts) {
        if (draft.body === undefined) continue;
        assert.ok(
          conforms(body?.schema as Schema, draft.body),
          `${id} ${JSON.stringify(draft.body)}`,
        );
      }
    }
  });

  test('break one rule at a time, and every sort of rule', () => {
    const sorts = new Set<string>();
    for (const [{ body }, drafts] of samples) {
      for (const draft of drafts) {
        if (draft.body === undefined) continue;
        for (const { what } of violationsOf(body?.schema as Schema, draft.body)) {
          sorts.add(what.split(': ').at(-1) ?? '');
        }
      }
    }
    assert.deepEqual([...sorts].sort(), [
      ...['blank', 'missing', 'no such word', 'of a wrong format', 'of a wrong type'],
      ...['too few items', 'too large', 'too long', 'too many items', 'too small'],
    ]);
  });
});

function operationOf(id: string): Operation {
  const found = OPERATIONS.find((operation) => operation.id === id);
  assert.ok(found, `no operation ${id}`);
  return found;
}

function sample(operation: Operation): Draft[] {
  const known = new KnownIds();
  const drafts = fc.sample(draftOf(operation), { numRuns: byDepth(20, 40), seed: 1 });
  return drafts.map((draft) => known.fill(draft, 'tenant'));
}
