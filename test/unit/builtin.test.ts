/** The handlers that the evaluator runs in place. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { LogLevel, PureContext, StepOutcome } from '../../src/core/builtin.js';
import { BUILTIN_NAMES, PURE_HANDLERS, sleepDuration } from '../../src/core/builtin.js';
import type { Scope } from '../../src/core/expression/scope.js';
import { check } from '../helpers/properties.js';

const SCOPE: Scope = {
  data: { n: 5, status: 'ok', list: [] },
  config: {},
  outputs: {
    get: (blockId) => (blockId === 'fetch' ? { status: 200 } : undefined),
    all: () => ({ fetch: { status: 200 } }),
  },
  runtime: {},
  instanceId: '00000000-0000-7000-8000-000000000000',
  now: 0,
  random: () => 0.5,
};

function run(
  name: string,
  params: JsonValue,
): { outcome: StepOutcome; lines: [LogLevel, JsonValue][] } {
  const lines: [LogLevel, JsonValue][] = [];
  const context: PureContext = {
    scope: SCOPE,
    log: (level, line) => lines.push([level, line]),
  };
  const handler = PURE_HANDLERS.get(name);
  assert.ok(handler, name);
  return { outcome: handler(params, context), lines };
}

const success = (output: JsonValue): StepOutcome => ({ kind: 'success', output });

function failure(retryable: boolean, message: string, details?: JsonObject): StepOutcome {
  const base = { kind: 'failure', retryable, message } as const;
  return details === undefined ? base : { ...base, details };
}

const NO_MESSAGE = success({ message: 'no message' });
const broken = (retryable: JsonValue) => ({ message: 'no', retryable });
const cases: readonly (readonly [string, string, readonly JsonValue[], StepOutcome])[] = [
  ['noop answers an empty object', 'noop', [null, {}, { a: 1 }, 'text', [1]], success({})],
  ['log without a message says so', 'log', [null, {}, []], NO_MESSAGE],
  ['log keeps a message of null', 'log', [{ message: null }], success({ message: null })],
  ['fail is permanent', 'fail', [null, {}, { message: null }], failure(false, 'forced failure')],
  ['fail is retryable when told so', 'fail', [broken(true)], failure(true, 'no')],
  ['and for no other value', 'fail', [false, 'true', 1].map(broken), failure(false, 'no')],
  ['fail tells a value as JSON', 'fail', [{ message: { a: 1 } }], failure(false, '{"a":1}')],
];
for (const [title, name, given, outcome] of cases) {
  test(title, () => {
    for (const params of given) assert.deepEqual(run(name, params).outcome, outcome);
  });
}

test('log answers its message and collects a line of debug, info or warn', () => {
  const message = { user: 'ada', tags: [1, null] };
  const { outcome, lines } = run('log', { message, level: 'warn' });
  assert.deepEqual([outcome, lines], [success({ message }), [['warn', message]]]);
  const levelOf = (level: JsonValue) => run('log', { message: 'm', level }).lines[0]?.[0];
  assert.deepEqual(['debug', 'info', 'warn'].map(levelOf), ['debug', 'info', 'warn']);
  assert.deepEqual(['error', 'WARN', 3, null].map(levelOf), ['info', 'info', 'info', 'info']);
});

test('transform answers its parameters unchanged', (t) => {
  check(t, 100, fc.jsonValue(), (value) => {
    assert.deepEqual(run('transform', value as JsonValue).outcome, success(value as JsonValue));
  });
});

test('assert passes when its condition is true, else it fails permanently', () => {
  for (const condition of ['data.n == 5', 'status == ok', '{{ outputs.fetch.status == 200 }}']) {
    assert.deepEqual(run('assert', { condition }).outcome, success({ condition, passed: true }));
  }
  for (const condition of ['data.n == 6', '((']) {
    const expected = failure(false, `assertion failed: ${condition}`, { condition });
    assert.deepEqual(run('assert', { condition }).outcome, expected);
    const { outcome } = run('assert', { condition, message: 'must hold' });
    assert.equal(outcome.kind === 'failure' && outcome.message, 'must hold');
  }
  const missing = { ...failure(false, 'assert: condition is required'), code: 'invalid_params' };
  assert.deepEqual(run('assert', {}).outcome, missing);
});

test('assert judges a condition that a template turned into a value by its truth', () => {
  for (const condition of [true, 1, {}, [0]]) {
    assert.equal(run('assert', { condition }).outcome.kind, 'success');
  }
  for (const condition of [false, 0, null, []]) {
    assert.equal(run('assert', { condition }).outcome.kind, 'failure');
  }
});

test('sleep lasts 100 ms unless told otherwise', () => {
  for (const params of [null, {}, { duration_ms: null }, 'text']) {
    assert.deepEqual(sleepDuration(params), { ok: true, value: 100 });
  }
  assert.deepEqual(sleepDuration({ duration_ms: 0 }), { ok: true, value: 0 });
  assert.deepEqual(sleepDuration({ duration_ms: 86_400_000 }), { ok: true, value: 86_400_000 });
});

test('sleep refuses a duration that is not a whole number of milliseconds within a century', () => {
  for (const duration of [-1, 1.5, '100', true, {}, 1e300]) {
    assert.equal(sleepDuration({ duration_ms: duration }).ok, false, String(duration));
  }
});

test('parameters named like members of every object are not read from the prototype', () => {
  const params = JSON.parse('{"__proto__":{"message":"inherited","duration_ms":5}}') as JsonObject;
  assert.deepEqual(run('log', params).outcome, success({ message: 'no message' }));
  assert.deepEqual(sleepDuration(params), { ok: true, value: 100 });
});

test('every handler gives an outcome for every parameter', (t) => {
  const cases = fc.tuple(fc.constantFrom(...PURE_HANDLERS.keys()), fc.jsonValue());
  check(t, 100, cases, ([name, params]) => {
    assert.ok(['success', 'failure'].includes(run(name, params as JsonValue).outcome.kind));
  });
});

test('the built-in names are those that are never given to a worker', () => {
  const names = 'assert fail http_request log noop sleep transform wait_for_event';
  assert.deepEqual([...BUILTIN_NAMES].sort(), names.split(' '));
});
