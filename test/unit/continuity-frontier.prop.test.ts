/**
 * Lives of random definitions, recorded in the real evaluator and left in the middle: with the
 * definition that they have they replay to where they stand, wherever that is.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import { type FrontierVerdict, replayToFrontier } from '../../src/core/continuity/frontier.js';
import type { JsonObject } from '../../src/core/json.js';
import type { RecordedLife } from '../../src/core/releases/recording.js';
import { contexts, type Tree, time, trees, values } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { planOf } from '../helpers/player.js';
import { check, isWholeRun } from '../helpers/properties.js';
import { recordLife } from '../helpers/recorder.js';

interface Life {
  readonly tree: Tree;
  readonly data: JsonObject;
  readonly merges: { readonly after: number; readonly values: JsonObject }[];
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly turns: number;
}

const lives: fc.Arbitrary<Life> = fc
  .record({
    tree: trees({}),
    data: contexts,
    merges: fc.array(fc.record({ after: time, values }), { maxLength: 3 }),
    unpoliciedRetry: fc.constantFrom('redispatch', 'fail'),
    turns: fc.integer({ min: 0, max: 12 }),
  })
  .map((life) => {
    life.merges.sort((a, b) => a.after - b.after);
    // Through JSON, as all of it comes: records of fast-check may have no prototype.
    return JSON.parse(JSON.stringify(life)) as Life;
  });

function recorded({ tree, ...options }: Life): RecordedLife | undefined {
  return recordLife(tree.blocks, {
    ...options,
    answer({ blockId, iteration, attempt }) {
      const answers = tree.answers[blockId] ?? [];
      const passes = iteration.split('.').reduce((sum, counter) => sum + Number(counter), 0);
      return answers[(passes + attempt) % Math.max(1, answers.length)] ?? {};
    },
  });
}

function judge(
  life: RecordedLife,
  source: Block[],
  target: Block[],
  { unpoliciedRetry }: Life,
  isSame: boolean,
): FrontierVerdict {
  return replayToFrontier(
    {
      source: planOf(source),
      target: planOf(target),
      isSame,
      life,
      sourceData: life.data,
      targetData: life.data,
      hasTransforms: false,
      receipts: [],
    },
    { unpoliciedRetry },
  );
}

test('with the definition that it has, an instance replays at any frontier', (t) => {
  let replayed = 0;
  check(t, byDepth(200, 600), lives, (asked) => {
    const life = recorded(asked);
    if (life === undefined) return;
    replayed += life.outputs.length > 0 ? 1 : 0;
    const { blocks } = asked.tree;
    // Also where it is not known that nothing differs, and the place has to be reached.
    for (const isSame of [true, false]) {
      assert.deepEqual(judge(life, blocks, blocks, asked, isSame), { passed: true });
    }
  });
  if (isWholeRun)
    assert.ok(replayed > byDepth(20, 100), `only ${replayed} lives had come to anything`);
});

test('a step that nobody recorded is never passed by', (t) => {
  const handler = fc.constantFrom('noop', 'work', 'http_request', 'sleep');
  check(t, byDepth(100, 300), fc.tuple(lives, handler), ([asked, name]) => {
    const life = recorded(asked);
    if (life === undefined || life.outputs.length === 0) return;
    const { blocks } = asked.tree;
    const added: Block = { type: 'step', id: 'added', handler: name };
    assert.equal(judge(life, blocks, [added, ...blocks], asked, false).passed, false);
  });
});

test('a replay leaves what was recorded as it is', (t) => {
  check(t, 100, lives, (asked) => {
    const life = recorded(asked);
    if (life === undefined) return;
    const { blocks } = asked.tree;
    const before = JSON.stringify(life);
    judge(life, blocks, blocks, asked, false);
    assert.equal(JSON.stringify(life), before);
  });
});
