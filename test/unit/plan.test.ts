/** Compiling definitions: the checks on whole trees, the flat form, and what is only warned of. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { BLOCKS_MAX, DEPTH_MAX } from '../../schema/blocks.js';
import { compilePlan } from '../../src/core/plan.js';
import { forEach, loop, noop, parallel, planOf, race, tryCatch, work } from '../helpers/player.js';

function refusal(blocks: Block[]): string {
  const compiled = compilePlan({ id: 's', blocks });
  return compiled.ok ? '' : compiled.message;
}

function nested(depth: number): Block {
  let block = noop('leaf');
  for (let i = 1; i < depth; i += 1) block = parallel(`p${i}`, [block]);
  return block;
}

describe('what is refused', () => {
  test('an id that is used twice, anywhere in the tree', () => {
    assert.match(refusal([noop('a'), noop('a')]), /block id a is not unique/);
    assert.match(refusal([parallel('p', [noop('a')], [loop('a', 'x', 1, [noop('b')])])]), /id a/);
  });

  test(`nesting deeper than ${DEPTH_MAX}`, () => {
    assert.equal(refusal([nested(DEPTH_MAX)]), '');
    assert.match(refusal([nested(DEPTH_MAX + 1)]), /deeper than 64/);
  });

  test(`more than ${BLOCKS_MAX} blocks`, () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => noop(`s${i}`));
    assert.equal(refusal(many(BLOCKS_MAX)), '');
    assert.match(refusal([parallel('p', many(BLOCKS_MAX))]), /at most 5000 blocks/);
  });

  test('an output_schema that nothing would check', () => {
    assert.match(refusal([work('a', { output_schema: {} })]), /output_schema/);
  });
});

describe('the plan', () => {
  test('is flat and in pre-order, and knows parents, lists, depths and subtrees', () => {
    const plan = planOf([
      noop('a'),
      tryCatch('t', [noop('b'), parallel('p', [noop('c')], [noop('d')])], [noop('e')]),
      noop('f'),
    ]);
    assert.deepEqual(
      plan.nodes.map(({ id, parent, branch, position, depth, end }) =>
        [id, parent, branch, position, depth, end].join(' '),
      ),
      [
        'a -1 0 0 1 1',
        't -1 0 1 1 7',
        'b 1 0 0 2 3',
        'p 1 0 1 2 6',
        'c 3 0 0 3 5',
        'd 3 1 0 3 6',
        'e 1 1 0 2 7',
        'f -1 0 2 1 8',
      ],
    );
    assert.deepEqual(plan.roots, [0, 1, 7]);
    assert.deepEqual(plan.nodes[1]!.lists, [[2, 3], [6], []]);
    assert.equal(plan.indexOf.get('p'), 3);
  });

  test('knows the loops around each node', () => {
    const plan = planOf([loop('l', 'x', 1, [forEach('f', 'xs', [noop('a')])]), noop('b')]);
    assert.deepEqual(
      plan.nodes.map(({ loops, items }) => [loops, items]),
      [
        [[], -1],
        [[0], -1],
        [[0, 1], 1],
        [[], -1],
      ],
    );
  });

  test('says whether it is made of steps only, and whether any has an effect', () => {
    const facts = (blocks: Block[]) => {
      const { isStepOnly, hasEffects } = planOf(blocks);
      return [isStepOnly, hasEffects];
    };
    assert.deepEqual(facts([noop('a')]), [true, false]);
    assert.deepEqual(facts([work('a')]), [true, true]);
    assert.deepEqual(facts([race('r', [noop('a')])]), [false, false]);
  });

  test('fills in the defaults', () => {
    const [a, f] = planOf([
      work('a', { retry: { max_attempts: 2 } }),
      forEach('f', 'xs', [noop('b')]),
    ]).nodes;
    assert.ok(a?.type === 'step' && f?.type === 'for_each');
    assert.equal(a.retry?.initial_backoff, 1_000);
    assert.equal(a.retry?.max_backoff, 60_000);
    assert.equal(a.retry?.backoff_multiplier, 2);
    assert.equal(f.itemVar, 'item');
    assert.equal(f.maxIterations, 1_000);
  });

  test('null means absent', () => {
    const fields = { params: null, delay: null, retry: null, timeout: null, when: null };
    const [a] = planOf([work('a', fields)]).nodes;
    assert.ok(a?.type === 'step');
    const seen = [a.delay, a.retry, a.timeoutMs, a.when];
    assert.deepEqual(seen, [undefined, undefined, null, undefined]);
  });
});

describe('outputRefs', () => {
  const step = (fields: object): Block => ({ ...work('x'), ...fields }) as Block;
  const cases: [string, Block, string[] | 'all'][] = [
    ['no expression', noop('x'), []],
    ['params', step({ params: { p: '{{ outputs.a.n }}' } }), ['a']],
    ['when', step({ when: 'outputs.a.n > 1 && steps.b' }), ['a', 'b']],
    ['all outputs', step({ params: { p: '{{ outputs }}' } }), 'all'],
    ['a loop condition', loop('x', 'outputs.a.more', 5, [noop('y')]), ['a']],
    ['a collection', forEach('x', '{{ outputs.a.list }}', [noop('y')]), ['a']],
    ['retry_if', step({ retry: { max_attempts: 2, retry_if: 'outputs.a' } }), ['a']],
    ['assert', step({ handler: 'assert', params: { condition: 'outputs.a.ok' } }), ['a']],
    [
      'assert on text that is only known later',
      step({ handler: 'assert', params: { condition: '{{ data.c }} == 1' } }),
      'all',
    ],
  ];
  for (const [title, block, expected] of cases) {
    test(`of ${title}`, () => {
      const { outputRefs } = planOf([block]);
      assert.deepEqual(outputRefs === 'all' ? 'all' : [...outputRefs], expected);
    });
  }
});
