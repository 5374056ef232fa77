/** What the workflow sees of an answer to `http_request`, and whether and when it is asked again. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../src/core/json.js';
import { outcomeOfAnswer, type ResponseHeaders } from '../../src/handlers/http-answer.js';

const NOW = Date.UTC(2031, 2, 10, 12);
const DAY_MS = 86_400_000;

function seenOf(body: string, headers: ResponseHeaders): JsonObject {
  const outcome = outcomeOfAnswer(200, headers, body, NOW);
  assert.ok(outcome.kind === 'success');
  return outcome.output as JsonObject;
}

test('headers are seen by names in lower case, and what came several times is joined', () => {
  const headers = { 'x-one': '1', 'set-cookie': ['a=1', 'b=2'], gone: undefined };
  assert.deepEqual(seenOf('text', headers), {
    status: 200,
    headers: { 'x-one': '1', 'set-cookie': 'a=1, b=2' },
    body: 'text',
  });
});

describe('json is the value of a body that says that it is JSON and can be kept unchanged', () => {
  const cases: [string, string, string, unknown][] = [
    ['the plain type', 'application/json', '{"a":[1]}', { a: [1] }],
    ['with a character set', 'application/json; charset=utf-8', 'null', null],
    ['a type that ends in +json', 'application/problem+json', '{"title":"no"}', { title: 'no' }],
    ['in capitals', 'Application/JSON', '1', 1],
    ['another type', 'text/plain', '{"a":1}', undefined],
    ['a type that only begins like it', 'application/jsonlines', '1', undefined],
    ['what does not parse', 'application/json', '{"a":', undefined],
    ['nothing', 'application/json', '', undefined],
    ['a number beyond 2^53', 'application/json', '{"id":9007199254740993}', undefined],
    ['a character that no row can hold', 'application/json', '"\\u0000"', undefined],
    ['too deep a nesting', 'application/json', '['.repeat(300) + ']'.repeat(300), undefined],
    ['more than 1 MiB', 'application/json', `"${'x'.repeat(1024 * 1024)}"`, undefined],
  ];
  for (const [title, type, body, json] of cases) {
    test(title, () => {
      const seen = seenOf(body, { 'content-type': type });
      assert.deepEqual([seen.json, 'json' in seen], [json, json !== undefined]);
      assert.equal(seen.body, body);
    });
  }
});

test('408, 425, 429 and 5xx can be tried again, other 4xx cannot', () => {
  for (const status of [400, 404, 409, 422, 408, 425, 429, 500, 503]) {
    const outcome = outcomeOfAnswer(status, {}, 'text', NOW);
    assert.ok(outcome.kind === 'failure');
    assert.equal(outcome.retryable, [408, 425, 429].includes(status) || status >= 500, `${status}`);
    assert.deepEqual(outcome.details, { status, headers: {}, body: 'text' });
  }
});

test('Retry-After is the least wait: seconds or a date, a day at most', () => {
  const cases: [string, number | undefined][] = [
    ['7', 7_000],
    ['0', undefined],
    ['Mon, 10 Mar 2031 12:00:30 GMT', 30_000],
    ['Mon, 10 Mar 2031 11:00:00 GMT', undefined],
    ['soon', undefined],
    ['9999999', DAY_MS],
  ];
  for (const [text, wait] of cases) {
    const outcome = outcomeOfAnswer(429, { 'retry-after': text }, '', NOW);
    assert.ok(outcome.kind === 'failure');
    assert.equal(outcome.retryAfterMs, wait, text);
  }
  const refused = outcomeOfAnswer(400, { 'retry-after': '7' }, '', NOW);
  assert.equal('retryAfterMs' in refused, false);
});
