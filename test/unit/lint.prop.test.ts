/**
 * Laws of what is told of definitions, over right ones and over what became of them when somebody put
 * anything anywhere: nothing throws, what is accepted compiles, and right definitions have no errors.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { Finding } from '../../schema/finding.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { compilePlan } from '../../src/core/plan.js';
import { judgeDefinition } from '../../src/definition.js';
import { trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const validators = createValidators();
const KINDS = {
  step: 4,
  parallel: 2,
  race: 2,
  router: 2,
  try_catch: 2,
  loop: 2,
  for_each: 2,
} as const;

/** The trees leave out the address that an `http_request` has to have. */
function sequenceOf(blocks: readonly Block[]): JsonObject {
  const addressed = JSON.parse(JSON.stringify(blocks), (_, value) =>
    value?.handler === 'http_request'
      ? { ...value, params: { ...value.params, url: 'http://x' } }
      : value,
  );
  return { tenant_id: 't', namespace: 'n', name: 'x', version: 1, blocks: addressed };
}

interface Told {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/** As a request does it. */
function judge(body: JsonValue): Told {
  const checked = validators.validateBody('sequences.create', body);
  if (checked.ok) return judgeDefinition('sequences.create', checked.value);
  const shape = validators.describeBody('sequences.create', body);
  assert.notEqual(shape.found.length, 0);
  const judged = judgeDefinition('sequences.create', body, { shape });
  assert.notEqual(judged.errors.length, 0);
  assert.ok(judged.refusal().message.length > 10);
  return judged;
}

/** Every place in a value, by the keys that lead there. */
function placesIn(value: JsonValue, path: readonly string[] = []): string[][] {
  const here = path.length === 0 ? [] : [[...path]];
  if (typeof value !== 'object' || value === null) return here;
  return Object.entries(value).reduce<string[][]>(
    (all, [key, inner]) => all.concat(placesIn(inner, [...path, key])),
    here,
  );
}

function put(body: JsonValue, path: readonly string[], value: JsonValue): void {
  let at = body as Record<string, JsonValue>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string, JsonValue>;
  at[path.at(-1)!] = value;
}

const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>,
  fc.constantFrom<JsonValue[]>(
    '{{ outputs.s.x | uper }}',
    '{{ item[0] }}',
    'length(x) == y',
    'outputs.nothing && steps.a',
    'a == b.c',
    '{{',
    'sleep',
    'http_request',
    'for_each',
    'step',
    {},
    [],
    [{ type: 'loop', id: 'x' }],
    { type: 'step', id: 'inner', handler: 'assert' },
    { max_attempts: 1, timout: 2 },
  ),
);

test('a right definition has no errors, and hears the same again', (t) => {
  check(t, byDepth(100, 1_000), trees(KINDS), ({ blocks }) => {
    const body = sequenceOf(blocks);
    const { errors, warnings } = judge(body);
    assert.deepEqual(errors, []);
    assert.deepEqual(judge(body).warnings, warnings);
  });
});

test('whatever is put anywhere, an answer is found, and what is accepted compiles', (t) => {
  const changes = fc.array(fc.tuple(fc.nat(), odd), { minLength: 1, maxLength: 4 });
  check(t, byDepth(1_000, 20_000), fc.tuple(trees(KINDS), changes), ([{ blocks }, puts]) => {
    const body = sequenceOf(blocks);
    for (const [place, value] of puts) {
      const places = placesIn(body.blocks as JsonValue, ['blocks']);
      put(body, places[place % places.length]!, structuredClone(value));
    }
    const { errors, warnings } = judge(body);
    for (const { path, message } of [...errors, ...warnings]) {
      assert.ok(path.length < 5_000 && message.length < 10_000);
    }
    if (errors.length > 0) return;
    const compiled = compilePlan(
      { id: 's', blocks: body.blocks as unknown as Block[] },
      () => () => undefined,
    );
    assert.ok(compiled.ok, compiled.ok ? '' : compiled.message);
  });
});

test('steps of a saga that are nothing of the kind are named', () => {
  const body = { ...sequenceOf([]), blocks: [{ type: 'saga', id: 's', steps: [null, 1, {}] }] };
  const paths = judge(body).errors.map(({ path }) => path);
  assert.ok(paths.includes('blocks[0].steps[0]'), paths.join());
});
