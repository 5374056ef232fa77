/** The entry check on JSON texts: what it refuses and how it says where, and what it must keep. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BODY_JSON_LIMITS, decodeUtf8, parseJson } from '../../src/core/json-guard.js';
import { cpuMsOf } from '../helpers/cpu-time.js';

function problemOf(text: string) {
  const result = parseJson(text);
  assert.equal(result.ok, false, `accepted ${text.slice(0, 80)}`);
  return result.problem;
}

function parsedOf(text: string) {
  const result = parseJson(text);
  assert.ok(result.ok, result.ok ? '' : result.problem.message);
  return result.value;
}

test('an ordinary body is parsed as JSON.parse does', () => {
  const text = '{"a":[1,-2.5e3,true,null,"x\\n\\u00e9"],"b":{"c":"550e8400-e29b"}} ';
  assert.deepEqual(parsedOf(text), JSON.parse(text));
});

test('a NUL character is refused with its path, however it is written', () => {
  const escaped = problemOf('{"context":{"data":{"items":["ok","a\\u0000b"]}}}');
  assert.equal(escaped.kind, 'nul');
  assert.match(escaped.message, /context\.data\.items\[1\]/);
  assert.equal(problemOf('{"a":"\0"}').kind, 'nul');
  assert.equal(problemOf('{"a\\u0000":1}').kind, 'nul');
});

test('an escaped backslash before u0000 is no NUL', () => {
  assert.deepEqual(parsedOf('{"a":"\\\\u0000"}'), { a: '\\u0000' });
  assert.deepEqual(parsedOf('{"a":"\\\\\\\\u0000"}'), { a: '\\\\u0000' });
  assert.equal(problemOf('{"a":"\\\\\\u0000"}').kind, 'nul');
});

test('half a surrogate pair is refused, a whole one is kept', () => {
  assert.deepEqual(parsedOf('["\\ud83d\\ude00","😀"]'), ['😀', '😀']);
  const lone = ['"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"\\ude00\\ud83d"', '"\\uD83D\\\\ude00"'];
  for (const text of [...lone, '"\ud83d"', '"\ude00"']) {
    assert.equal(problemOf(`{"a":[${text}]}`).kind, 'surrogate', text);
  }
  assert.match(problemOf('{"a":["x\ud83d"]}').message, /at a\[0\] \(character 8\)/);
});

test('nesting is accepted to 256 levels and refused beyond, without overflow at a million', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  assert.ok(parseJson(nested(255)).ok);
  assert.ok(parseJson(nested(256)).ok);
  for (const levels of [257, 5_000, 1_000_000]) {
    assert.equal(problemOf(nested(levels)).kind, 'depth', `${levels}`);
  }
  assert.equal(problemOf(`${'{"a":'.repeat(257)}1${'}'.repeat(257)}`).kind, 'depth');
});

test('brackets inside strings and side by side do not count as nesting', () => {
  assert.ok(parseJson(JSON.stringify({ a: '[{'.repeat(1_000) })).ok);
  assert.ok(parseJson(JSON.stringify(Array.from({ length: 1_000 }, () => [{}]))).ok);
});

test('integers beyond 2^53 are refused with their path, up to 2^53 they are kept', () => {
  const problem = problemOf('{"context":{"data":{"id":9007199254740993}}}');
  assert.equal(problem.kind, 'number');
  assert.match(problem.message, /9007199254740993.*context\.data\.id/);
  assert.equal(problemOf('[-9007199254740993]').kind, 'number');
  assert.equal(problemOf('9007199254740993').kind, 'number');
  assert.equal(problemOf('[1, 2 ,\n12345678901234567890]').kind, 'number');
  assert.deepEqual(parsedOf('[9007199254740992,-9007199254740991]'), [2 ** 53, -(2 ** 53) + 1]);
  const seen = parsedOf('[0.12345678901234566,1234567.8901234567]');
  assert.deepEqual(seen, [0.12345678901234566, 1234567.8901234567]);
});

test('an exponent that gives infinity or zero is refused, others are kept', () => {
  for (const token of ['1e400', '-1E400', '1e-400', '123.5e309', '1e+999']) {
    assert.equal(problemOf(`{"n":${token}}`).kind, 'number', token);
  }
  assert.deepEqual(parsedOf('[1e300,0e5,0.0e-999,-0,1.5E-7]'), [1e300, 0, 0, -0, 1.5e-7]);
});

test('a number of more than 400 characters is refused', () => {
  assert.ok(parseJson(`[0.${'1'.repeat(398)}]`).ok);
  assert.equal(problemOf(`[0.${'1'.repeat(399)}]`).kind, 'number');
});

test('text that only looks like a dangerous number inside a string is kept', () => {
  const value = { a: 'see: 12345678901234567890', b: '1e999', c: 'x,1e999,' };
  assert.deepEqual(parsedOf(JSON.stringify(value)), value);
});

test('__proto__ becomes an own property and no prototype changes', () => {
  const value = parsedOf('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}') as object;
  assert.ok(Object.hasOwn(value, '__proto__'));
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('text that is not JSON is refused as syntax', () => {
  for (const text of [
    '',
    '{',
    '{"a"}',
    '[1,]',
    '{"a":01}',
    "{'a':1}",
    'nul',
    '"a',
    '"a\\',
    '1 2',
  ]) {
    assert.equal(problemOf(text).kind, 'syntax', text);
  }
});

test('long keys and deep paths are cut in messages', () => {
  const key = '😀'.repeat(500);
  const message = problemOf(`{"${key}":${'['.repeat(40)}1e999${']'.repeat(40)}}`).message;
  assert.ok(message.length < 400, `${message.length}`);
  assert.ok((message as string & { isWellFormed(): boolean }).isWellFormed());
});

test('bytes that are not UTF-8 have no text', () => {
  assert.equal(decodeUtf8(Buffer.from('{"a":"é😀"}')), '{"a":"é😀"}');
  assert.equal(decodeUtf8(Buffer.from([0x22, 0xff, 0x22])), undefined);
  assert.equal(decodeUtf8(Buffer.from([0xed, 0xa0, 0xbd])), undefined);
  assert.equal(decodeUtf8(Buffer.from([0xc0, 0x80])), undefined);
});

test('a megabyte of adversarial text is judged within seconds of work', () => {
  const million = 1_000_000;
  const texts = [
    '"\\'.repeat(million / 2),
    ' 1'.repeat(million / 2),
    `[${'111111111111111,'.repeat(million / 16)}1]`,
    `{"a":"${'\\u0001'.repeat(million / 6)}"}`,
    '{"a":'.repeat(million / 5),
    ',-1.'.repeat(million / 4),
    '1'.repeat(million),
  ];
  for (const text of texts) {
    assert.ok(cpuMsOf(() => parseJson(text)) < 4_000, text.slice(0, 20));
  }
});

function bodyProblemOf(text: string) {
  const result = parseJson(text, BODY_JSON_LIMITS);
  return result.ok ? undefined : result.problem;
}

test('two members of one name in a body are refused with the name, however it is written', () => {
  const many = Array.from({ length: 40 }, (_, at) => `"k${at}":{"k1":1}`).join();
  for (const [text, name, place] of [
    ['{"a":1,"a":2}', 'a', /at the top level \(character 7\)/],
    ['{"a" : 1 , "b":{}, "a":[]}', 'a', /top level/],
    ['{"o":[{"x":1},{"x":1,"\\u0078":2}]}', 'x', /at o\[1\]/],
    ['{"a\\"b":1,"a\\u0022b":":"}', 'a\\"b', /top level/],
    ['{"__proto__":1,"__proto__":2}', '__proto__', /top level/],
    ['{"1":1,"1":2}', '1', /top level/],
    [`{${many},"k1":0}`, 'k1', /top level/],
  ] as const) {
    const problem = bodyProblemOf(text);
    assert.equal(problem?.kind, 'name', text);
    assert.ok(problem.message.includes(JSON.stringify(JSON.parse(`"${name}"`))), problem.message);
    assert.match(problem.message, place);
  }
  for (const text of [
    '{"a":{"a":1},"b":{"a":":"}}',
    '[{"a":1},{"a":2}]',
    '{"a":"\\"a\\":1,","b":"a"}',
    `{${many}}`,
  ]) {
    assert.equal(bodyProblemOf(text), undefined, text);
  }
});

test('a body may have half a million values and names, whatever its bytes', () => {
  const list = (count: number, item: string) => `[${Array(count).fill(item).join()}]`;
  assert.equal(bodyProblemOf(list(499_999, '[]')), undefined);
  assert.equal(bodyProblemOf(JSON.stringify(list(600_000, '[]'))), undefined);
  for (const text of [list(500_000, '[]'), list(500_000, '",,,"'), list(170_000, '{"a":1}')]) {
    const problem = bodyProblemOf(text);
    assert.equal(problem?.kind, 'values');
    assert.match(problem.message, /more than 500000 values/);
  }
});
