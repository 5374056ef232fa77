/** Built-in handlers: their parameters, the outcomes of handlers, and answers to `http_request`. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { BuiltinName } from '../../schema/handlers.js';
import { checkParams } from '../../schema/params-check.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { sleepDuration } from '../../src/core/builtin.js';
import { describeThrown, readOutcome, thrownOutcome } from '../../src/handlers/handler-outcome.js';
import { parseHttpParams } from '../../src/handlers/http-params.js';
import { outcomeOfAnswer, type ResponseHeaders } from '../../src/handlers/http-request.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
  fc.constantFrom<JsonValue[]>(0, -1, 1.5, 100, 86_400_001, 4e12, '', 'post', 'http://x', null, {}),
);
const params = fc.dictionary(
  fc.constantFrom('duration_ms', 'url', 'method', 'headers', 'body', 'timeout_ms', 'condition'),
  value,
) as fc.Arbitrary<JsonObject>;

const isFatal = (handler: BuiltinName, given: JsonObject) =>
  checkParams(handler, given).some((problem) => problem.isFatal);

test('what refuses the parameters of a definition is what fails every such step', (t) => {
  check(t, byDepth(2_000, 20_000), params, (given) => {
    assert.equal(isFatal('sleep', given), !sleepDuration(given).ok);
    assert.equal(isFatal('http_request', given), !parseHttpParams(given).ok);
    assert.equal(isFatal('assert', given), given.condition === undefined);
    for (const handler of ['noop', 'log', 'fail', 'transform'] as const) {
      assert.equal(isFatal(handler, given), false);
    }
  });
});

test('a template stands for any value, and text with braces that are not closed for itself', () => {
  const problems = (duration: string) => checkParams('sleep', { duration_ms: duration }).length;
  assert.deepEqual([problems('{{ data.ms }}'), problems('1{{ data.zeros }}')], [0, 0]);
  assert.equal(problems('{{ data.ms'), 1);
});

const throwing = (what: string): never => {
  throw new TypeError(what);
};

const cyclic = () => {
  const value: { a: unknown[] } = { a: [] };
  value.a.push(value);
  return value;
};

const nested = (levels: number) => {
  let value: unknown = 1;
  for (let i = 0; i < levels; i += 1) value = [value];
  return value;
};

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

const withGetter = (get: () => unknown, key = 'a') =>
  Object.defineProperty({}, key, { get, enumerable: true });

const failed = (details: unknown) => ({ kind: 'failure', message: 'm', details });

const endless = () => new Proxy([], { get: (_, key) => (key === 'length' ? 2 ** 53 : 0) });

/** What can be read once only. */
const changing = () => {
  let reads = 0;
  return withGetter(() => (reads++ === 0 ? 1 : undefined));
};

const IS_LARGE = /more than 10 MiB in its output/;
const IS_DEEP = /a cycle or more than 256 levels in its output/;

const THROWN: readonly (readonly [what: string, thrown: unknown, reason: RegExp])[] = [
  ['an Error', new TypeError('secret'), /^h threw TypeError; see the log$/],
  ['undefined', undefined, /^h threw a value of type undefined/],
  ['a text', 'secret', /threw a value of type string/],
  ['a frozen object', Object.freeze({ message: 'secret' }), /threw a value of type object/],
  ['what is no text', { toString: () => throwing('text') }, /a value of type object/],
  ['a dead Error', new Proxy(new Error(), { get: () => throwing('get') }), /of type object/],
  ['an unnamed Error', Object.assign(new Error(), { name: { x: 1 } }), /threw an error; see/],
];

/** What is no outcome. */
const GIVEN: readonly (readonly [what: string, given: () => unknown, reason: RegExp])[] = [
  ['a number', () => 7, /^h gave no usable outcome: it is a number$/],
  ['undefined', () => undefined, /it is undefined/],
  ['an outcome of no kind', () => ({ kind: 'maybe' }), /neither a success nor a failure/],
  ['an outcome that throws', () => withGetter(() => throwing('k'), 'kind'), /threw TypeError/],
  ['a failure without a message', () => ({ kind: 'failure' }), /a failure without a message/],
  ['a failure with cyclic details', () => failed(cyclic()), /a cycle or .* in its details/],
  ['a failure whose details are a list', () => failed([]), /its details are not an object/],
];

/** Outputs that are no JSON that can be stored. */
const OUTPUTS: readonly (readonly [what: string, output: () => unknown, reason: RegExp])[] = [
  ['100 MB of text', () => 'x'.repeat(100_000_000), IS_LARGE],
  ['a long list', () => Array(3_000_000).fill(12_345), IS_LARGE],
  ['a key of 100 MB', () => ({ ['k'.repeat(100_000_000)]: 1 }), IS_LARGE],
  ['an endless array', endless, IS_LARGE],
  ['what contains itself', cyclic, IS_DEEP],
  ['257 levels', () => nested(257), IS_DEEP],
  ['undefined', () => undefined, /output is undefined/],
  ['undefined inside', () => ({ a: [1, undefined] }), /output\.a\.1 is undefined/],
  ['a function', () => ({ f: () => 1 }), /output\.f is a function/],
  ['a symbol', () => [Symbol('s')], /output\.0 is a symbol/],
  ['a BigInt', () => ({ n: 1n }), /output\.n is a bigint/],
  ['NaN', () => ({ n: Number.NaN }), /output\.n is NaN/],
  ['Infinity', () => Number.NEGATIVE_INFINITY, /output is -Infinity/],
  ['a Date', () => ({ at: new Date(0) }), /output\.at is an object of a class/],
  ['another prototype', () => Object.create({ inherited: 1 }), /output is an object of a class/],
  ['half a surrogate pair', () => ({ t: 'a\ud83d' }), /output\.t holds half of a surrogate/],
  ['half of one in a key', () => ({ '\udc00': 1 }), /output\.\ufffd holds half of a surrogate/],
  ['NUL', () => ['\0'], /output\.0 holds the character U\+0000/],
  ['a getter that throws', () => withGetter(() => throwing('g')), /reading it threw TypeErr/],
  ['a toJSON', () => ({ toJSON: () => throwing('toJSON') }), /output\.toJSON is a function/],
  ['a dead proxy', () => new Proxy({}, { ownKeys: () => throwing('o') }), /it threw TypeErr/],
  ['a proxy that was revoked', () => ({ proxy: revoked() }), /reading it threw TypeError/],
];

/** Odd ones that are stored all the same. */
const STORED: readonly (readonly [what: string, output: () => unknown, stored: string])[] = [
  ['__proto__ as a key', () => JSON.parse('{"__proto__":{"x":1}}'), '{"__proto__":{"x":1}}'],
  ['a proxy of plain data', () => new Proxy({ a: [1] }, {}), '{"a":[1]}'],
  ['a getter', () => withGetter(() => 1), '{"a":1}'],
  ['an object that changes when it is read again', changing, '{"a":1}'],
  ['one without a prototype', () => Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ['256 levels', () => nested(256), `${'['.repeat(256)}1${']'.repeat(256)}`],
];

function assertCrashed(outcome: ReturnType<typeof readOutcome>, reason: RegExp): void {
  assert.ok(outcome.kind === 'failure');
  assert.deepEqual([outcome.retryable, outcome.code], [false, 'handler_crashed']);
  assert.match(outcome.message, reason);
}

describe('for good fails the step whose handler', () => {
  for (const [what, thrown, reason] of THROWN) {
    test(`threw ${what}`, () => {
      assertCrashed(thrownOutcome('h', thrown), reason);
      assert.equal(typeof describeThrown(thrown), 'string');
    });
  }
  for (const [what, given, reason] of GIVEN) {
    test(`gave ${what}`, () => assertCrashed(readOutcome('h', given()), reason));
  }
  for (const [what, output, reason] of OUTPUTS) {
    test(`gave ${what} as its output`, () =>
      assertCrashed(readOutcome('h', { kind: 'success', output: output() }), reason));
  }
});

for (const [what, output, stored] of STORED) {
  test(`an output is stored that is ${what}`, () => {
    const outcome = readOutcome('h', { kind: 'success', output: output() });
    assert.ok(outcome.kind === 'success');
    assert.equal(JSON.stringify(outcome.output), stored);
  });
}

test('a failure keeps what it says of itself, as text that every row can hold', () => {
  const message = `a\0b\ud83d${'x'.repeat(10_000)}`;
  const given = { kind: 'failure', message, retryable: true, details: { a: 1 }, code: 'timeout' };
  const outcome = readOutcome('h', given);
  assert.ok(outcome.kind === 'failure');
  assert.match(outcome.message, /^a\ufffdb\ufffdx+…$/);
  assert.deepEqual([outcome.retryable, outcome.details, outcome.code], [true, { a: 1 }, 'timeout']);
  assert.match(describeThrown(new Error('secret')), /Error: secret\n\s+at /);
});

const NOW = Date.UTC(2031, 2, 10, 12);
const DAY_MS = 86_400_000;

function seenOf(body: string, headers: ResponseHeaders): JsonObject {
  const outcome = outcomeOfAnswer(200, headers, { text: body }, NOW);
  assert.ok(outcome.kind === 'success');
  return outcome.output as JsonObject;
}

test('headers are seen by names in lower case, and what came several times is joined', () => {
  const headers = { 'x-one': '1', 'set-cookie': ['a=1', 'b=2'], gone: undefined };
  const shown = { 'x-one': '1', 'set-cookie': 'a=1, b=2' };
  assert.deepEqual(seenOf('text', headers), { status: 200, headers: shown, body: 'text' });
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

test('Retry-After is the least wait: seconds or a date, a day at most', () => {
  const cases: [string, number | undefined][] = [
    ['7', 7_000],
    ['0', 0],
    ['Mon, 10 Mar 2031 12:00:30 GMT', 30_000],
    ['Mon, 10 Mar 2031 11:00:00 GMT', 0],
    ['soon', undefined],
    ['9999999', DAY_MS],
  ];
  for (const [text, wait] of cases) {
    const outcome = outcomeOfAnswer(429, { 'retry-after': text }, { text: '' }, NOW);
    assert.ok(outcome.kind === 'failure');
    assert.equal(outcome.retryAfterMs, wait, text);
  }
  assert.equal(
    'retryAfterMs' in outcomeOfAnswer(400, { 'retry-after': '7' }, { text: '' }, NOW),
    false,
  );
});
