/** The handlers that the evaluator runs in place. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  BUILTIN_NAMES,
  type LogLevel,
  PURE_HANDLERS,
  type PureContext,
  type StepOutcome,
  sleepDuration,
} from '../../src/core/builtin.js';
import type { Scope } from '../../src/core/condition.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
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
    iteration: '',
    log: (level, line) => lines.push([level, line]),
  };
  const handler = PURE_HANDLERS.get(name);
  assert.ok(handler, name);
  return { outcome: handler(params, context), lines };
}

function success(output: JsonValue): StepOutcome {
  return { kind: 'success', output };
}

function failure(retryable: boolean, message: string, details?: JsonObject): StepOutcome {
  const base = { kind: 'failure', retryable, message } as const;
  return details === undefined ? base : { ...base, details };
}

test('noop answers an empty object whatever it is given', () => {
  for (const params of [null, {}, { a: 1 }, 'text', [1]]) {
    assert.deepEqual(run('noop', params).outcome, success({}));
  }
});

test('log answers its message unchanged and collects a line', () => {
  const message = { user: 'ada', tags: [1, null] };
  const { outcome, lines } = run('log', { message, level: 'warn' });
  assert.deepEqual(outcome, success({ message }));
  assert.deepEqual(lines, [['warn', message]]);
});

test('log without a message says so, and a message of null is kept', () => {
  for (const params of [null, {}, []]) {
    assert.deepEqual(run('log', params).outcome, success({ message: 'no message' }));
  }
  assert.deepEqual(run('log', { message: null }).outcome, success({ message: null }));
});

test('log takes debug, info and warn, and treats any other level as info', () => {
  const levelOf = (level: JsonValue) => run('log', { message: 'm', level }).lines[0]?.[0];
  assert.deepEqual(['debug', 'info', 'warn'].map(levelOf), ['debug', 'info', 'warn']);
  assert.deepEqual(['error', 'WARN', 3, null].map(levelOf), ['info', 'info', 'info', 'info']);
});

test('fail fails permanently with a default message', () => {
  for (const params of [null, {}, { message: null }]) {
    assert.deepEqual(run('fail', params).outcome, failure(false, 'forced failure'));
  }
});

test('fail is retryable only when told so', () => {
  const retryable = (value: JsonValue) => run('fail', { message: 'no', retryable: value }).outcome;
  assert.deepEqual(retryable(true), failure(true, 'no'));
  assert.deepEqual(retryable(false), failure(false, 'no'));
  assert.deepEqual(retryable('true'), failure(false, 'no'));
});

test('fail turns a message that is not text into its json', () => {
  assert.deepEqual(run('fail', { message: { a: 1 } }).outcome, failure(false, '{"a":1}'));
});

test('transform answers its parameters unchanged', (t) => {
  check(t, 100, fc.jsonValue(), (value) => {
    assert.deepEqual(run('transform', value as JsonValue).outcome, success(value as JsonValue));
  });
});

test('assert passes when its condition is true', () => {
  for (const condition of ['data.n == 5', 'status == ok', '{{ outputs.fetch.status == 200 }}']) {
    const output = { condition, passed: true };
    assert.deepEqual(run('assert', { condition }).outcome, success(output));
  }
});

test('assert fails permanently when its condition is false', () => {
  const { outcome } = run('assert', { condition: 'data.n == 6' });
  const expected = failure(false, 'assertion failed: data.n == 6', { condition: 'data.n == 6' });
  assert.deepEqual(outcome, expected);
});

test('assert fails with its own message when it has one', () => {
  const { outcome } = run('assert', { condition: 'data.missing', message: 'must be there' });
  assert.equal(outcome.kind === 'failure' && outcome.message, 'must be there');
});

test('assert judges a condition that a template turned into a value by its truth', () => {
  for (const condition of [true, 1, {}, [0]]) {
    assert.equal(run('assert', { condition }).outcome.kind, 'success');
  }
  for (const condition of [false, 0, null, []]) {
    assert.equal(run('assert', { condition }).outcome.kind, 'failure');
  }
});

test('assert fails permanently without a condition, and with one that does not parse', () => {
  assert.deepEqual(run('assert', {}).outcome, {
    ...failure(false, 'assert: condition is required'),
    code: 'invalid_params',
  });
  const condition = '((';
  const expected = failure(false, 'assertion failed: ((', { condition });
  assert.deepEqual(run('assert', { condition }).outcome, expected);
});

test('sleep lasts 100 ms unless told otherwise', () => {
  for (const params of [null, {}, { duration_ms: null }, 'text']) {
    assert.deepEqual(sleepDuration(params), { ok: true, ms: 100 });
  }
  assert.deepEqual(sleepDuration({ duration_ms: 0 }), { ok: true, ms: 0 });
  assert.deepEqual(sleepDuration({ duration_ms: 86_400_000 }), { ok: true, ms: 86_400_000 });
});

test('sleep refuses a duration that is not a whole number of milliseconds within a century', () => {
  for (const duration of [-1, 1.5, '100', true, {}, 1e300]) {
    assert.equal(sleepDuration({ duration_ms: duration }).ok, false, String(duration));
  }
});

test('parameters named like members of every object are not read from the prototype', () => {
  const params = JSON.parse('{"__proto__":{"message":"inherited","duration_ms":5}}') as JsonObject;
  assert.deepEqual(run('log', params).outcome, success({ message: 'no message' }));
  assert.deepEqual(sleepDuration(params), { ok: true, ms: 100 });
});

test('every handler gives an outcome for every parameter', (t) => {
  check(
    t,
    100,
    fc.tuple(fc.constantFrom(...PURE_HANDLERS.keys()), fc.jsonValue()),
    ([name, params]) => {
      assert.ok(['success', 'failure'].includes(run(name, params as JsonValue).outcome.kind));
    },
  );
});

test('the built-in names are those that are never given to a worker', () => {
  assert.deepEqual([...BUILTIN_NAMES].sort(), [
    'assert',
    'fail',
    'http_request',
    'log',
    'noop',
    'sleep',
    'transform',
    'wait_for_event',
  ]);
});
