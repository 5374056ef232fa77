/** What each kind of block is drawn as, and the lists that it holds. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block, TreeNode } from 'durable-workflow-engine-client';
import { LOOKS, type Look } from '../src/flow/kinds.ts';
import { type OutlineBlock, outlineOf } from '../src/flow/outline.ts';
import { EVERY_KIND, OUTLINE, step, treeOf } from './flow-samples.ts';

/** A kind that is added to the engine does not compile here until it is drawn. */
const DRAWN_AS: Readonly<Record<Block['type'], Look>> = {
  step: 'step',
  parallel: 'parallel',
  race: 'race',
  router: 'router',
  try_catch: 'try_catch',
  loop: 'loop',
  for_each: 'for_each',
  sub_sequence: 'sub_sequence',
  cancellation_scope: 'cancellation_scope',
  saga: 'saga',
  ab_split: 'ab_split',
  a_b_split: 'ab_split',
};

/** Of each block of the sample: its look, its detail, and its slots with what they hold. */
const DRAWN: Readonly<Record<string, string>> = {
  charge: 'step: charge_card',
  ask_provider: 'http_request: GET https://pay.example/v1',
  approve: 'approval: Pay it?',
  cool_down: 'sleep: 1 m',
  await_payment: 'wait_for_event: payment',
  invoice: 'sub_sequence: billing v2',
  prepare: 'parallel: runs all branches | branch 1: pick pack | branch 2: label | branch 3:',
  fastest: 'race: the first branch to finish wins | branch 1: courier | branch 2: post',
  by_amount:
    'router: runs the first matching route | amount > 1000: review | amount > 100: note | else:',
  checkout: 'ab_split: picks one variant by weight | old · 75 %: old_page | new · 25 %: new_page',
  guarded:
    'try_catch: catch runs only if try fails | try: reserve | catch (fallback): release | finally: report',
  trip:
    'saga: compensates completed steps on failure | flight: book_flight | ' +
    'undo flight (fallback): cancel_flight | hotel: book_hotel | ' +
    'undo hotel (fallback): cancel_hotel | mail: send_mail',
  poll: 'loop: while status == open | body: check',
  items: 'for_each: item of order.items | body: retry_item',
  cleanup: 'cancellation_scope: protected from cancellation | body: close_books',
};

function drawn({ look, detail, slots }: OutlineBlock): string {
  const parts = slots.map(({ label, isFallback, blocks }) =>
    [`${label}${isFallback ? ' (fallback)' : ''}:`, ...blocks.map(({ id }) => id)].join(' '),
  );
  return [`${look}: ${detail}`, ...parts].join(' | ');
}

for (const [id, expected] of Object.entries(DRAWN)) {
  test(`${expected.slice(0, expected.indexOf(':'))} is outlined with all that it holds`, () => {
    assert.equal(drawn(OUTLINE.byPath.get(id)!), expected);
  });
}

test('the sample has every kind of block and every look', () => {
  const looks = new Set([...OUTLINE.byPath.values()].map(({ look }) => look));
  assert.deepEqual([...looks].sort(), LOOKS.filter((look) => look !== 'unknown').toSorted());
  for (const look of Object.values(DRAWN_AS)) assert.ok(looks.has(look), look);
});

test('a split by its other word is the same split', () => {
  const variants = [
    { name: 'a', weight: 1, blocks: [step('one')] },
    { name: 'b', weight: 2, blocks: [step('two')] },
  ];
  const { blocks } = outlineOf({ blocks: [{ type: 'a_b_split', id: 'split', variants }] });
  assert.equal(
    drawn(blocks[0]!),
    'ab_split: picks one variant by weight | a · 33.3 %: one | b · 66.7 %: two',
  );
});

test('a kind that this page does not know is a block with its name', () => {
  const { blocks } = outlineOf({ blocks: [{ type: 'teleport', id: 'x' } as unknown as Block] });
  assert.equal(drawn(blocks[0]!), 'unknown: teleport');
});

test('a race that wants a success says so', () => {
  const race: Block = { type: 'race', id: 'r', semantics: 'first_to_succeed', branches: [[]] };
  const { blocks } = outlineOf({ blocks: [race] });
  assert.equal(blocks[0]!.detail, 'the first branch to succeed wins');
});

test('paths are the ids around a block, and loops around it are known', () => {
  const ship = OUTLINE.byPath.get('items/retry_item/ship');
  assert.deepEqual(ship?.repeats, ['items', 'items/retry_item']);
  assert.equal(ship?.depth, 2);
  assert.equal(OUTLINE.pathOf.get('ship'), 'items/retry_item/ship');
  assert.equal(OUTLINE.byPath.get('items')?.size, 2);
});

test('hooks are groups behind the blocks, and take no id from them', () => {
  const definition = { ...EVERY_KIND, on_failure: [{ id: 'charge', handler: 'log' }] };
  const outline = outlineOf(definition);
  assert.deepEqual(
    outline.hooks.map(({ id, detail }) => `${id}: ${detail}`),
    ['on_failure: after a failure', 'on_cancel: after a cancel'],
  );
  assert.equal(outline.pathOf.get('charge'), 'charge');
  assert.equal(outline.byPath.get('@on_failure/charge')?.detail, 'log');
});

test('blocks that only the tree of an instance has were injected, and stand last', () => {
  const injected = (id: string, more: Partial<TreeNode>): TreeNode => ({
    ...treeOf(OUTLINE)[0]!,
    ...{ id: `node-${id}`, block_id: id },
    ...more,
  });
  const outline = outlineOf(EVERY_KIND, [
    ...treeOf(OUTLINE),
    injected('refund', { block_type: 'parallel' }),
    injected('money', { parent_id: 'node-refund', branch_index: 0 }),
    injected('letter', { parent_id: 'node-refund', branch_index: 1 }),
  ]);
  const last = outline.blocks.at(-1)!;
  assert.equal(drawn(last), 'parallel:  | list 1: money | list 2: letter');
  assert.ok(last.isInjected && outline.byPath.get('refund/letter')?.isInjected);
  assert.ok(!outline.blocks[0]!.isInjected);
});
