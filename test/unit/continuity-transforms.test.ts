/** What transforms are accepted, and what they make of a checkpoint. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  applyTransforms,
  PATH_BYTES_MAX,
  type Transform,
} from '../../src/core/continuity/transforms.js';
import type { JsonValue } from '../../src/core/json.js';
import { takenTransforms } from '../helpers/continuity-bodies.js';

const copy = (from_path: string, to_path: string) => ({ transform: 'copy', from_path, to_path });
const move = (from_path: string, to_path: string) => ({ transform: 'move', from_path, to_path });
const drop = (from_path: string) => ({ transform: 'drop', from_path });

function parsed(...transforms: JsonValue[]): readonly Transform[] {
  const result = takenTransforms(transforms);
  assert.ok(result.ok, result.ok ? '' : result.message);
  return result.value;
}

/** The message of a refusal, whether at the reading or at the applying. */
function refusal(transforms: JsonValue, data: JsonValue = {}): string {
  const result = takenTransforms(transforms);
  if (!result.ok) return result.message;
  const applied = applyTransforms(data, result.value);
  assert.ok(!applied.ok);
  return applied.message;
}

function apply(data: JsonValue, ...transforms: JsonValue[]): JsonValue {
  const before = structuredClone(data);
  const result = applyTransforms(data, parsed(...transforms));
  assert.ok(result.ok, result.ok ? '' : result.message);
  assert.deepEqual(data, before);
  return result.value;
}

test('copy keeps the source, move removes it, drop removes only that field', () => {
  const data = { a: { x: 1, y: 2 }, b: 3 };
  assert.deepEqual(apply(data, copy('a.x', 'c')), { ...data, c: 1 });
  assert.deepEqual(apply(data, move('a.x', 'c')), { a: { y: 2 }, b: 3, c: 1 });
  assert.deepEqual(apply(data, drop('a.x')), { a: { y: 2 }, b: 3 });
});

test('each transform works on the result of the one before it', () => {
  const data = { a: 1 };
  assert.deepEqual(apply(data, move('a', 'b'), copy('b', 'c.d'), drop('b')), { c: { d: 1 } });
  assert.match(refusal([move('a', 'b'), drop('a')], data), /^transforms\[1\]\.from_path /);
});

test('missing parents of a destination are created, what stands there is replaced', () => {
  assert.deepEqual(apply({ a: 1, b: { c: 2 } }, copy('a', 'b.c'), copy('a', 'x.y.z')), {
    a: 1,
    b: { c: 1 },
    x: { y: { z: 1 } },
  });
});

test('a value can move to a place below where it was', () => {
  assert.deepEqual(apply({ a: { x: 1 } }, move('a', 'a.b')), { a: { b: { x: 1 } } });
});

test('null is a value like any other', () => {
  assert.deepEqual(apply({ a: null }, copy('a', 'b'), move('a', 'c.d')), {
    b: null,
    c: { d: null },
  });
});

test('a copy is not the value that it was copied from', () => {
  assert.deepEqual(apply({ a: { x: 1 } }, copy('a', 'b'), drop('b.x')), { a: { x: 1 }, b: {} });
});

test('keys that name members of every object are ordinary keys', () => {
  const data = JSON.parse('{"__proto__":{"constructor":1},"a":2}') as JsonValue;
  const result = apply(data, copy('__proto__.constructor', 'b.__proto__.polluted'));
  const seen = JSON.stringify(result);
  assert.equal(seen, '{"__proto__":{"constructor":1},"a":2,"b":{"__proto__":{"polluted":1}}}');
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  for (const inherited of ['constructor', 'constructor.name', '__proto__', 'a.length']) {
    assert.match(refusal([drop(inherited)], { a: 'text' }), /^transforms\[0\]\.from_path /);
  }
});

test('a source that does not exist is refused, and so is a way through something else', () => {
  const data = { list: [{ x: 1 }], text: 'x', nothing: null };
  assert.match(refusal([copy('nowhere', 'b')], data), /^transforms\[0\]\.from_path does not exist/);
  for (const path of ['list.0', 'list.0.x', 'text.0', 'nothing.x']) {
    assert.match(refusal([copy(path, 'b')], data), /^transforms\[0\]\.from_path leads through/);
    assert.match(refusal([copy('text', path)], data), /^transforms\[0\]\.to_path leads through/);
  }
  assert.match(refusal([drop('a')], [1]), /^transforms\[0\]\.from_path leads through/);
});

test('at most 128 transforms', () => {
  const many = Array.from({ length: 129 }, (_, i) => copy('a', `b${i}`));
  assert.equal(refusal(many), 'transforms must have at most 128 items');
  assert.equal(parsed(...many.slice(1)).length, 128);
});

test('only version 1 and the three operations are known', () => {
  assert.equal(refusal([{ ...drop('a'), version: 2 }]), 'transforms[0].version must be 1');
  assert.deepEqual(parsed({ ...drop('a'), version: 1 }), parsed(drop('a')));
  assert.match(refusal([drop('a'), { transform: 'rename', from_path: 'a' }]), /^transforms\[1\]\./);
  assert.equal(refusal([{ from_path: 'a' }]), 'transforms[0].transform is required');
  assert.equal(refusal([[]]), 'transforms[0] must be an object');
  assert.equal(refusal({}), 'transforms must be an array');
});

test('paths have 1 to 1,024 bytes in at most 32 segments of 1 to 128 bytes', () => {
  const wide = Array.from({ length: 8 }, () => 'é'.repeat(63)).join('.');
  assert.ok(Buffer.byteLength(wide) <= PATH_BYTES_MAX);
  for (const path of ['a', 'a'.repeat(128), wide, Array(32).fill('a').join('.')]) {
    assert.equal(parsed(drop(path)).length, 1, path);
  }
  const wrong = ['', '.', 'a.', '.a', 'a..b', 'é'.repeat(65), Array(33).fill('a').join('.')];
  for (const path of [...wrong, `${wide}.${'a'.repeat(128)}`]) {
    assert.match(refusal([drop(path)]), /^transforms\[0\]\.from_path must /, path);
    assert.match(refusal([copy('a', path)]), /^transforms\[0\]\.to_path must /, path);
  }
});

test('the longest path has exactly 1,024 bytes', () => {
  const path = [...Array<string>(7).fill('a'.repeat(128)), 'b'.repeat(121)].join('.');
  assert.equal(path.length, PATH_BYTES_MAX);
  assert.equal(parsed(drop(path)).length, 1);
  const seen = refusal([drop(`${path}b`)]);
  assert.match(seen, /^transforms\[0\]\.from_path must have 1 to 1024 bytes/);
});

test('a copy needs a destination of its own, a drop has none', () => {
  const seen = refusal([{ transform: 'copy', from_path: 'a' }]);
  assert.equal(seen, 'transforms[0].to_path is required');
  assert.equal(
    refusal([copy('a', 'c'), drop('a'), move('b', 'c')]),
    'transforms[2].to_path is also the destination of transforms[0]',
  );
  assert.equal(
    refusal([{ ...drop('a'), to_path: 'b' }]),
    'transforms[0].to_path must be empty for a drop',
  );
  assert.deepEqual(parsed({ ...drop('a'), to_path: '' }), parsed(drop('a')));
});

test('copies that double the data again and again end at a bound', () => {
  const doubling = Array.from({ length: 128 }, (_, i) => copy('a', `a.b${i}`));
  const seen = refusal(doubling, { a: { text: 'x'.repeat(1_000) } });
  assert.match(seen, /^transforms\[\d+\] would make more /);
});

test('a copy counts together with the data that it is added to', () => {
  const data = { a: 'x'.repeat(9 * 1_024 * 1_024) };
  assert.match(refusal([copy('a', 'b')], data), /^transforms\[0\] would make more /);
  assert.deepEqual(apply(data, move('a', 'b')), { b: data.a });
});

test('a result that nests too deeply to be stored is refused', () => {
  let deep: JsonValue = 1;
  for (let i = 0; i < 230; i += 1) deep = { n: deep };
  const to = Array(30).fill('x').join('.');
  assert.match(refusal([copy('deep', to)], { deep }), /nest deeper than 256/);
});
