/**
 * Runs of random definitions, recorded in the real evaluator, prove their own definition right: they
 * replay as matches, whatever their steps came to and whenever.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/core/json.js';
import type { RecordedRun } from '../../src/core/releases/recording.js';
import { replay } from '../../src/core/releases/replay.js';
import { contexts, type Tree, time, trees, values } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { planOf } from '../helpers/player.js';
import { check } from '../helpers/properties.js';
import { record } from '../helpers/recorder.js';

interface Life {
  readonly tree: Tree;
  readonly data: JsonObject;
  readonly merges: { readonly after: number; readonly values: JsonObject }[];
  readonly unpoliciedRetry: 'redispatch' | 'fail';
}

const lives: fc.Arbitrary<Life> = fc
  .record({
    tree: trees({}),
    data: contexts,
    merges: fc.array(fc.record({ after: time, values }), { maxLength: 3 }),
    unpoliciedRetry: fc.constantFrom('redispatch', 'fail'),
  })
  .map((life) => {
    life.merges.sort((a, b) => a.after - b.after);
    // Through JSON, as all of it comes: records of fast-check may have no prototype.
    return JSON.parse(JSON.stringify(life)) as Life;
  });

function recorded({ tree, ...options }: Life): RecordedRun {
  return record(tree.blocks, {
    ...options,
    answer({ blockId, iteration, attempt }) {
      const answers = tree.answers[blockId] ?? [];
      const passes = iteration.split('.').reduce((sum, counter) => sum + Number(counter), 0);
      const answer = answers[(passes + attempt) % Math.max(1, answers.length)] ?? {};
      return attempt < TRIES_MAX ? answer : { ...answer, kind: 'success' };
    },
  });
}

/** Tries from this number on succeed, so that every life comes to an end. */
const TRIES_MAX = 5;

test('a run replays as a match with the definition that it had', (t) => {
  check(t, byDepth(150, 600), lives, (life) => {
    const { blocks } = life.tree;
    const verdict = replay(planOf(blocks), planOf(blocks), recorded(life), life);
    assert.deepEqual(verdict, { kind: 'match' });
  });
});

test('a step that nobody recorded is never proven right', (t) => {
  const handler = fc.constantFrom('noop', 'work', 'http_request', 'sleep');
  check(t, byDepth(100, 300), fc.tuple(lives, handler, fc.boolean()), ([life, name, isLast]) => {
    const { blocks } = life.tree;
    const added: Block = { type: 'step', id: 'added', handler: name, timeout: 5 };
    const run = recorded(life);
    const changed = isLast ? [...blocks, added] : [added, ...blocks];
    const verdict = replay(planOf(changed), planOf(blocks), run, life);
    // The steps before it may fail in the replay as they did, so that it is not reached.
    if (isLast && run.state === 'failed') return;
    assert.ok(verdict.kind === 'divergence', verdict.kind);
    assert.deepEqual(verdict.divergence.blocks_added, ['added']);
  });
});

test('a replay leaves what was recorded as it is', (t) => {
  check(t, 100, lives, (life) => {
    const { blocks } = life.tree;
    const run = recorded(life);
    const before = JSON.stringify(run);
    replay(planOf(blocks), planOf(blocks), run, life);
    assert.equal(JSON.stringify(run), before);
  });
});
