/** Two runs of a sequence, block by block. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BlockOutput, TreeNode } from 'durable-workflow-engine-client';
import { outlineOf } from '../src/flow/outline.ts';
import { comparedBlocks } from '../src/pages/instance/run-differences.ts';

const step = (id: string) => ({ type: 'step' as const, id, handler: 'noop' });
const OUTLINE = outlineOf({ blocks: ['load', 'price', 'charge', 'ship'].map(step) } as never);

const START = '2026-01-01T00:00:00.000Z';
const END = '2026-01-01T00:00:02.000Z';

type Given = Readonly<Record<string, readonly [state: TreeNode['state'], output?: unknown]>>;

function runOf(given: Given) {
  const rows = Object.entries(given);
  const tree = rows.map(([block_id, [state]]) => ({
    ...{ block_id, state, started_at: START, completed_at: state === 'failed' ? null : END },
  }));
  const outputs = rows.flatMap(([block_id, [, output]]) =>
    output === undefined ? [] : [{ block_id, output }],
  );
  return { tree: tree as TreeNode[], outputs: outputs as BlockOutput[] };
}

const GOOD = runOf({
  load: ['completed', { order: 'o-1', lines: [{ sku: 'a' }] }],
  price: ['completed', { total: 5 }],
  charge: ['completed', { receipt: 'r' }],
  ship: ['completed'],
});

test('other values of the same shape are told, but the first difference is one of shape or state', () => {
  const own = runOf({
    load: ['completed', { order: 'o-2', lines: [{ sku: 'b' }, { sku: 'c' }] }],
    price: ['completed', { total: '5' }],
    charge: ['failed'],
  });
  const rows = comparedBlocks(OUTLINE, GOOD, own);
  assert.deepEqual(
    rows.map(({ id, difference, isFirst }) => [id, difference, isFirst]),
    [
      ['load', 'values', false],
      ['price', 'shape', true],
      ['charge', 'state', false],
      ['ship', 'state', false],
    ],
  );
  const [load, , charge, ship] = rows;
  assert.deepEqual([load?.own?.durationMs, charge?.own?.durationMs], [2_000, undefined]);
  assert.equal(ship?.own, undefined);
});

test('runs that differ in values only have their first difference there, and equal runs have none', () => {
  const alike = runOf({ load: ['completed', { n: 1 }], price: ['completed', { total: 6 }] });
  const other = runOf({ load: ['completed', { n: 1 }], price: ['completed', { total: 7 }] });
  const firsts = (rows: ReturnType<typeof comparedBlocks>) =>
    rows.filter(({ isFirst }) => isFirst).map(({ id }) => id);
  assert.deepEqual(firsts(comparedBlocks(OUTLINE, alike, other)), ['price']);
  assert.deepEqual(firsts(comparedBlocks(OUTLINE, GOOD, GOOD)), []);
});
