/** Laws of the semantic diff, on pairs of random definitions whose blocks have the same ids. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { JsonValue } from '../../src/core/json.js';
import { type ReleaseSide, semanticDiff } from '../../src/core/releases/diff.js';
import { type DiffCategory, SEVERITIES } from '../../src/core/releases/diff-entry.js';
import { listsOf, trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const RUNS = byDepth(125, 500);

const schemas: fc.Arbitrary<Pick<ReleaseSide, 'input_schema'>> = fc.constantFrom(
  {},
  { input_schema: null },
  { input_schema: { required: ['n'] } },
  { input_schema: { type: 'object' } },
);
const side: fc.Arbitrary<ReleaseSide> = fc
  .record({ tree: trees({}), schema: schemas })
  .map(({ tree, schema }) => ({ blocks: tree.blocks, ...schema }));
const pair = fc.tuple(side, side);

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** The same JSON with the keys of every object the other way round. */
function turned<T>(value: T): T {
  const turn = (json: JsonValue): JsonValue => {
    if (typeof json !== 'object' || json === null) return json;
    if (Array.isArray(json)) return json.map(turn);
    const members = Object.entries(json).map(([key, inner]) => [key, turn(inner)] as const);
    return Object.fromEntries(members.reverse());
  };
  return turn(value as JsonValue) as T;
}

/** Without what is the default. */
function textOf(blocks: readonly Block[]): string {
  return JSON.stringify(blocks, (_, value) =>
    value === 'first_to_resolve' || value === 'item' ? undefined : value,
  );
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

function idsOf(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => [block.id, ...idsOf(listsOf(block).flat())]);
}

/** The blocks that have an entry of this category, in the order of the entries. */
function named({ entries }: ReturnType<typeof semanticDiff>, category: DiffCategory): string[] {
  return entries.flatMap((entry) => (entry.category === category ? [entry.block_id ?? '-'] : []));
}

test('equal definitions do not differ, whatever the order of their keys', (t) => {
  check(t, RUNS, side, (one) => {
    assert.deepEqual(semanticDiff(one, turned(one)).entries, []);
  });
});

test('the diff changes neither definition, and is the same every time', (t) => {
  check(t, RUNS, pair, ([one, other]) => {
    const found = semanticDiff(frozen(one), frozen(other));
    assert.deepEqual(semanticDiff(turned(one), copyOf(other)), found);
    assert.deepEqual(copyOf(found), found);
  });
});

test('different definitions differ, and the first entry is as severe as any', (t) => {
  check(t, RUNS, pair, ([one, other]) => {
    const { entries, max_severity } = semanticDiff(one, other);
    if (entries.length === 0) assert.equal(textOf(one.blocks), textOf(other.blocks));
    assert.equal(entries[0]?.severity, max_severity);
    const ranks = entries.map(({ severity }) => SEVERITIES.indexOf(severity));
    assert.deepEqual(
      ranks,
      ranks.toSorted((a, b) => b - a),
    );
  });
});

test('what one direction adds, the other removes', (t) => {
  check(t, RUNS, pair, ([one, other]) => {
    const there = semanticDiff(one, other);
    const back = semanticDiff(other, one);
    const added = named(there, 'block_added').sort();
    assert.deepEqual(added, named(back, 'block_removed').sort());
    const old = new Set(idsOf(one.blocks));
    assert.deepEqual(
      added,
      idsOf(other.blocks)
        .filter((id) => !old.has(id))
        .sort(),
    );
    for (const category of ['block_type_changed', 'handler_changed', 'blocks_reordered'] as const) {
      assert.deepEqual(named(there, category).sort(), named(back, category).sort());
    }
  });
});
