/** Whether an instance that waits for a person, or has had an answer, can go over to another version. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { replayToFrontier } from '../../src/core/continuity/frontier.js';
import { noop, planOf, work } from '../helpers/player.js';
import { recordLife } from '../helpers/recorder.js';

const gated = (id: string, wait_for_input: object = {}): Block =>
  ({ ...noop(id), wait_for_input }) as Block;

/** The verdict on a life of the first blocks in which people answered this, by block. */
function verdictOn(source: Block[], target: Block[], says: Readonly<Record<string, string>> = {}) {
  const life = recordLife(source, { turns: 5, says });
  assert.ok(life !== undefined, 'it has ended');
  const data = { sourceData: {}, targetData: {}, hasTransforms: false };
  const plans = { source: planOf(source), target: planOf(target), isSame: false };
  const asked = { ...plans, ...data, life, receipts: [] };
  return replayToFrontier(asked, { unpoliciedRetry: 'redispatch' });
}

const CHOICES = { choices: [{ label: 'Go', value: 'go' }] };

const CASES: readonly (readonly [
  title: string,
  source: Block[],
  target: Block[],
  says: Readonly<Record<string, string>>,
  reason: string | undefined,
])[] = [
  ['waits at the same gate', [gated('a')], [gated('a'), noop('b')], {}, undefined],
  ['waits at a gate that asks otherwise', [gated('a')], [gated('a', CHOICES)], {}, undefined],
  [
    'has had its answer, and waits at the next gate',
    [gated('a'), gated('b')],
    [gated('a'), gated('b'), noop('c')],
    { a: 'no' },
    undefined,
  ],
  [
    'has had an answer that the target does not offer',
    [gated('a'), gated('b')],
    [gated('a', CHOICES), gated('b')],
    { a: 'no' },
    'step a does not offer the answer no',
  ],
  ['would be asked before', [gated('a')], [gated('z'), gated('a')], {}, 'other steps come next'],
  [
    'would call a worker before',
    [gated('a')],
    [work('z'), gated('a')],
    {},
    'other steps come next',
  ],
];

for (const [title, source, target, says, reason] of CASES) {
  test(`an instance that ${title} ${reason === undefined ? 'passes' : 'does not pass'}`, () => {
    const expected = reason === undefined ? { passed: true } : { passed: false, reason };
    assert.deepEqual(verdictOn(source, target, says), expected);
  });
}
