/**
 * JSON texts: the entry check, parsing in pieces, sections and items, and sizes.
 *
 * Cost: 3 s, since its properties parse thousands of texts.
 */

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { bytesBeyond, checkSize } from '../../actors/instance/memory.js';
import { rawSections, rawSectionsOfItems } from '../../actors/instance/raw-sections.js';
import type { JsonValue } from '../../src/base/json.js';
import type { JsonLimits } from '../../src/base/json-guard.js';
import { BODY_JSON_LIMITS, decodeUtf8, parseJson } from '../../src/base/json-guard.js';
import { listIn } from '../../src/base/json-members.js';
import { END, isBlank, JsonTokens } from '../../src/base/json-text.js';
import { cutJson } from '../../src/http/json-cut.js';
import { keepsMemberNames } from '../../src/server/program.js';
import { cpuMsOf } from '../helpers/cpu-time.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

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

test('a NUL character is refused with its path, however it is written', () => {
  const escaped = problemOf('{"context":{"data":{"items":["ok","a\\u0000b"]}}}');
  assert.equal(escaped.kind, 'nul');
  assert.match(escaped.message, /context\.data\.items\[1\]/);
  assert.equal(problemOf('{"a":"\0"}').kind, 'nul');
  assert.equal(problemOf('{"a\\u0000":1}').kind, 'nul');
  // An escaped backslash before u0000 is none.
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
  assert.ok(parseJson(nested(256)).ok);
  for (const levels of [257, 1_000_000]) assert.equal(problemOf(nested(levels)).kind, 'depth');
  assert.equal(problemOf(`${'{"a":'.repeat(257)}1${'}'.repeat(257)}`).kind, 'depth');
  // Brackets inside strings and side by side do not count.
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

test('long keys and deep paths are cut in messages', () => {
  const key = '😀'.repeat(500);
  const message = problemOf(`{"${key}":${'['.repeat(40)}1e999${']'.repeat(40)}}`).message;
  assert.ok(message.length < 400, `${message.length}`);
  assert.ok((message as string & { isWellFormed(): boolean }).isWellFormed());
});

test('an exponent that gives infinity or zero, and a number of over 400 characters, is refused', () => {
  const tokens = ['1e400', '-1E400', '1e-400', '123.5e309', '1e+999'];
  for (const token of [...tokens, `0.${'1'.repeat(399)}`]) {
    assert.equal(problemOf(`{"n":${token}}`).kind, 'number', token);
  }
  assert.deepEqual(parsedOf('[1e300,0e5,0.0e-999,-0,1.5E-7]'), [1e300, 0, 0, -0, 1.5e-7]);
  assert.ok(parseJson(`[0.${'1'.repeat(398)}]`).ok);
  // Text that only looks like such a number is kept.
  const value = { a: 'see: 12345678901234567890', b: '1e999', c: 'x,1e999,' };
  assert.deepEqual(parsedOf(JSON.stringify(value)), value);
});

test('__proto__ becomes an own property and no prototype changes', () => {
  const value = parsedOf('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}') as object;
  assert.ok(Object.hasOwn(value, '__proto__'));
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('bytes that are not UTF-8 have no text', () => {
  assert.equal(decodeUtf8(Buffer.from('{"a":"é😀"}')), '{"a":"é😀"}');
  for (const bytes of ['22ff22', 'eda0bd', 'c080']) {
    assert.equal(decodeUtf8(Buffer.from(bytes, 'hex')), undefined, bytes);
  }
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
  for (const text of texts) assert.ok(cpuMsOf(() => parseJson(text)) < 4_000, text.slice(0, 20));
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
    ['{"a"\n:1,"a"\t:":"}', 'a', /top level/],
    [`{${many},"k1":0}`, 'k1', /top level/],
  ] as const) {
    const problem = bodyProblemOf(text);
    assert.equal(problem?.kind, 'name', text);
    assert.ok(problem.message.includes(JSON.stringify(JSON.parse(`"${name}"`))), problem.message);
    assert.match(problem.message, place);
  }
  const timed = '{"at":"12:30:00","a":"\\":","b" :"a :"}';
  const apart = [timed, '{"a":{"a":1},"b":{"a":":"}}', '[{"a":1},{"a":2}]', `{${many}}`];
  for (const text of [...apart, '{"a":"\\"a\\":1,","b":"a"}']) {
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

/** What the entry check promises to keep: well-formed text without NUL, numbers of JSON. */
const safeString = fc
  .string({ unit: 'binary' })
  .filter((text) => !text.includes('\0') && Buffer.from(text).toString() === text);
const safeNumber = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
);

const isRefusedInteger = (number: number): boolean =>
  Number.isInteger(number) && /^-?\d+$/.test(`${number}`) && Math.abs(number) > 2 ** 53;

const safeJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    safeNumber.filter((number) => !isRefusedInteger(number)),
    safeString,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(safeString, tie('value'), { maxKeys: 5 }),
  ),
})).value;

test('any value that can be stored survives bytes, text and parsing unchanged', (t) => {
  check(t, byDepth(600, 2_000), fc.tuple(safeJson, fc.constantFrom(0, 2)), ([value, indent]) => {
    const text = decodeUtf8(Buffer.from(JSON.stringify(value, undefined, indent)));
    const result = parseJson(text ?? '');
    assert.ok(result.ok, result.ok ? '' : result.problem.message);
    // Compared as text: a dictionary of the generator may have no prototype.
    assert.equal(JSON.stringify(result.value), JSON.stringify(value));
  });
});

test('on random JSON the guard and JSON.parse agree about validity', (t) => {
  const cases = fc.tuple(fc.json({ noUnicodeString: false }), fc.nat(), fc.string());
  check(t, 2_000, cases, ([json, at, noise]) => {
    const cut = at % (json.length + 1);
    for (const text of [json, json.slice(0, cut) + noise + json.slice(cut)]) {
      const result = parseJson(text);
      const isRefusal = !result.ok && result.problem.kind !== 'syntax';
      assert.ok(isRefusal || result.ok === isJson(text), text);
    }
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const LIMITS: JsonLimits = { ...BODY_JSON_LIMITS, maxDepth: 5, maxValues: 40 };

function inPieces(text: string, limits: JsonLimits | undefined, runLength?: number) {
  const pieces = cutJson(text, limits, runLength);
  for (let yields = 0; ; yields += 1) {
    const { done, value } = pieces.next();
    if (done === true) return { ...value, yields };
  }
}

/** Compared as text: order counts, and so do members that only look like properties. */
const textOf = (value: unknown): string => JSON.stringify(value);

const letters = `abc"10é ${keepsMemberNames() ? '\\' : ''}`;
const key = fc.constantFrom(...letters, ':{', '__proto__', '😀');
const text = fc.oneof(key, fc.constantFrom(',', '[]', ']', '{"a":1}', '\u0000', '\ud800'));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'large', withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1.5, 1e300, 2 ** 53 + 2),
    text,
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(key, tie('value'), { maxKeys: 6 }),
  ),
}));
const noise = fc.constantFrom(
  '',
  ...['"', ',', ':', '[', ']', '{', '}', ' ', '\n', '0', '1e999', 'x', '"a":1,', '"a":', '[],'],
  ...['\\u0000', '\\', '-', 'null', ',,', '9007199254740993', '{"a":[1,2]}', '\ufeff'],
);

test('a text that is cut anywhere gives what the whole text gives, or is refused with it', (t) => {
  const gap = fc.constantFrom(undefined, 1, '\t', ' \n\r');
  const cases = fc.tuple(value, gap, fc.nat(), noise, fc.nat(3), fc.integer({ min: 1, max: 40 }));
  check(t, byDepth(3_000, 20_000), cases, ([json, indent, place, sign, left, runLength]) => {
    const plain = JSON.stringify(json, undefined, indent);
    const at = place % (plain.length + 1);
    for (const given of [plain, plain.slice(0, at) + sign + plain.slice(at + left)]) {
      // The count is only for long texts where the whole is parsed.
      for (const limits of [LIMITS, { ...LIMITS, maxValues: 100_000 }]) {
        const whole = parseJson(given, limits);
        const pieces = inPieces(given, limits, runLength);
        assert.equal(pieces.ok, whole.ok, given);
        if (pieces.ok && whole.ok) assert.equal(textOf(pieces.value), textOf(whole.value), given);
      }
      const lenient = inPieces(given, undefined, runLength);
      const expected = isJson(given) ? textOf(JSON.parse(given)) : undefined;
      assert.equal(lenient.ok ? textOf(lenient.value) : undefined, expected, given);
    }
  });
});

test('whatever a long text is made of, it is cut in pieces that are not much longer than a run', () => {
  const run = 100;
  const wide = Array.from({ length: 1_000 }, (_, at) => at);
  const deep = (levels: number): unknown =>
    levels === 0 ? [] : ['x'.repeat(90), deep(levels - 1), 1];
  for (const given of [
    wide,
    Object.fromEntries(wide.map((at) => [`k${at}`, at])),
    { a: [{ b: { c: wide } }] },
    wide.map((at) => ({ a: [at] })),
    deep(100),
  ]) {
    const json = JSON.stringify(given);
    const parse = mock.method(JSON, 'parse');
    const result = inPieces(json, { ...BODY_JSON_LIMITS }, run);
    const longest = Math.max(...parse.mock.calls.map(({ arguments: [piece] }) => piece.length));
    parse.mock.restore();
    const name = json.slice(0, 40);
    assert.ok(result.ok && result.yields >= Math.floor(json.length / (3 * run)), name);
    assert.ok(longest <= 3 * run, `${name}: ${longest}`);
  }
});

type Step = 'next' | 'nextMark' | 'nextDivider' | 'nextBracket';

/** The tokens of a text, and whether nothing but white space is between them. */
function tokensOf(text: string, step: Step): { tokens: string[]; isApart: boolean } {
  const reader = new JsonTokens(text);
  const tokens: string[] = [];
  let isApart = true;
  let { end } = reader;
  while (reader[step]() !== END) {
    isApart &&= isBlank(text, end, reader.start);
    ({ end } = reader);
    tokens.push(text.slice(reader.start, end));
  }
  return { tokens, isApart: isApart && isBlank(text, end, text.length) };
}

/** What each way to go on stops at. */
const STOPS: readonly (readonly [Step, RegExp])[] = [
  ['nextMark', /^["[\]{},:]/],
  ['nextDivider', /^[[\]{},:]/],
  ['nextBracket', /^[[\]{}]/],
];

test('a text is its tokens and white space, and each way to go on stops at its own', (t) => {
  const gap = fc.constantFrom(undefined, 1, '\t', ' \n\r');
  check(t, 300, fc.tuple(value, gap), ([json, indent]) => {
    const text = JSON.stringify(json, undefined, indent);
    const { tokens, isApart } = tokensOf(text, 'next');
    assert.ok(isApart, text);
    assert.equal(tokens.join(''), JSON.stringify(JSON.parse(text)));
    for (const token of tokens) assert.ok(token.length === 1 || isJson(token), token);
    for (const [step, stop] of STOPS) {
      const expected = tokens.filter((token) => stop.test(token));
      assert.deepEqual(tokensOf(text, step).tokens, expected, step);
    }
  });
});

test('what is no JSON has tokens, too', () => {
  for (const [text, ...expected] of [
    ['', ...[]],
    ['1\u00a02 x', '1\u00a02', 'x'],
    ['"a', '"a'],
    ['["\\"]', '[', '"\\"]'],
    ['"a\\\\""b\\""', '"a\\\\"', '"b\\""'],
    ['\ufeff{}', '\ufeff', '{', '}'],
    ['\u013a,\u0422', '\u013a', ',', '\u0422'],
  ]) {
    assert.deepEqual(tokensOf(text!, 'next').tokens, expected, text);
  }
});

const itemsOf = (text: string): unknown[] | undefined =>
  listIn(text, 'list')?.items.map(([from, to]) => JSON.parse(text.slice(from, to)));

test('every item of any list is found where it stands', (t) => {
  const inner = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 });
  const space = fc.constantFrom(undefined, 1, '\t', ' \n\r');
  const cases = fc.tuple(fc.array(fc.jsonValue()), inner, inner, space);
  check(t, 300, cases, ([list, a, b, gap]) => {
    const text = JSON.stringify({ ...a, list, ...b, list_: [1] }, undefined, gap);
    const expected = JSON.parse(text).list;
    assert.deepEqual(itemsOf(text), Array.isArray(expected) ? expected : undefined);
    const spans = listIn(text, 'list');
    if (spans === undefined) return;
    const [start, end] = spans.list;
    const rest = JSON.parse(`${text.slice(0, start)}null${text.slice(end)}`);
    assert.deepEqual(rest, { ...JSON.parse(text), list: null });
  });
});

test('what is no list in an object has no items', () => {
  const texts = ['[]', '1', '{}', '{"list":{"a":[1]}}', '{"a":{"list":[1]}}', '{"list":"[1]"}'];
  for (const text of texts) assert.equal(itemsOf(text), undefined, text);
  assert.deepEqual(itemsOf(' {"list":[1],"li\\u0073t" : [ 2 , "],}" ] } '), [2, '],}']);
});

const bytesOf = (value: JsonValue) => Buffer.byteLength(JSON.stringify(value));

test('the quick look never lets a value pass that is larger as JSON', (t) => {
  const cases = fc.tuple(fc.jsonValue({ stringUnit: 'binary' }), fc.nat({ max: 400 }));
  check(t, byDepth(500, 20_000), cases, ([given, max]) => {
    const bytes = bytesOf(given as JsonValue);
    assert.equal(bytesBeyond(given as JsonValue, max), bytes > max ? bytes : undefined);
  });
});

test('what takes most bytes for its length is measured to the byte', () => {
  for (const value of ['\u0001'.repeat(50), '\ud800'.repeat(50), [-1.234567890123456e-300], {}]) {
    const bytes = bytesOf(value);
    assert.equal(bytesBeyond(value, bytes), undefined);
    assert.equal(bytesBeyond(value, bytes - 1), bytes);
  }
  const refused = { message: /^payload too large: the thing is 7 bytes, the limit is 6$/ };
  assert.throws(() => checkSize('the thing is', 'large', 6), refused);
});

const NONE = { data: undefined, config: undefined, metadata: undefined };

/** The body of a creation, and what is taken out of it. */
const BODIES: readonly (readonly [string, ReturnType<typeof rawSections>])[] = [
  ['{}', NONE],
  ['{"sequence_id":"s","priority":null,"timeout":1.5e3}', NONE],
  ['{"metadata":{"a":"}\\"{"},"x":[1,{"data":2}]}', { ...NONE, metadata: '{"a":"}\\"{"}' }],
  [
    '{"context":{"data":{"a":[1,[]]},"config":{}}}',
    { ...NONE, data: '{"a":[1,[]]}', config: '{}' },
  ],
  ['{"context":{"other":{"data":1},"data":{"__proto__":1}}}', { ...NONE, data: '{"__proto__":1}' }],
  ['{"context":null,"metadata":null}', { ...NONE, metadata: 'null' }],
  // The last one counts, as a whole.
  [
    '{"context":{"data":{"a":1},"config":{"b":1}},"context":{"data":{"c":1}}}',
    { ...NONE, data: '{"c":1}' },
  ],
  ['{"metadata":{"a":1},"metadata":{"b":1}}', { ...NONE, metadata: '{"b":1}' }],
  // A name may be written otherwise, and space is not kept.
  ['{"meta\\u0064ata":{"a":1}}', undefined],
  ['{ "metadata":{}}', undefined],
  ['{"metadata":{"a": 1}}', undefined],
  ['{"context":{"data":{}} }', undefined],
  ['{"sequence_id": "s","metadata":{}}', undefined],
];

test('sections of a compact body are taken as they came, of any other one not', () => {
  for (const [text, expected] of BODIES) {
    assert.deepEqual(rawSections(text), expected, text);
    const items = rawSectionsOfItems(`{"n":[],"instances":[${text},${text}]}`);
    assert.deepEqual(items, expected === undefined ? [] : [expected, expected], text);
  }
  assert.deepEqual(rawSectionsOfItems('{"instances":[{}],"instances":[]}'), []);
});

test('what is taken is the value of the section, whatever is in it', (t) => {
  const object = fc.dictionary(fc.string(), fc.jsonValue());
  const cases = fc.tuple(object, object, object, fc.jsonValue());
  check(t, 100, cases, ([data, config, metadata, other]) => {
    const body = { other, metadata, context: { other, data, config } };
    const texts = rawSections(JSON.stringify(body))!;
    const taken = [texts.data, texts.config, texts.metadata].map((text) => JSON.parse(text!));
    assert.deepEqual(taken, JSON.parse(JSON.stringify([data, config, metadata])));
  });
});
