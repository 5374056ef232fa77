/** Replays of runs with children: what one came to counts for that sequence, version and input alone. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { ChildEnd } from '../../src/core/progress.js';
import { replay } from '../../src/core/releases/replay.js';
import { noop, planOf, work } from '../helpers/player.js';
import { type RecorderOptions, record } from '../helpers/recorder.js';

const child = (more: object = {}): Block =>
  ({ type: 'sub_sequence', id: 'child', sequence_name: 'other', ...more }) as Block;
const seen = (params: object): Block =>
  ({ type: 'step', id: 'seen', handler: 'transform', params }) as Block;

function compare(candidate: Block[], baseline: Block[], options: RecorderOptions = {}) {
  const run = record(baseline, options);
  const all = { unpoliciedRetry: 'redispatch' } as const;
  return replay(planOf(candidate), planOf(baseline), run, all).kind;
}

const BASELINE = [work('before'), child({ input: { n: '{{ data.n }}' } }), noop('after')];

test('the definition that a run with a child had matches', () => {
  assert.equal(compare(BASELINE, BASELINE, { data: { n: 1 } }), 'match');
});

test('so does that of a run whose child failed', () => {
  const end = { kind: 'failed', code: 'child_failed', message: 'no' } as const;
  assert.equal(compare(BASELINE, BASELINE, { data: { n: 1 }, child: () => end }), 'match');
});

test('a later block sees what the recorded child gave', () => {
  const end: ChildEnd = { kind: 'completed', output: [{ output: { go: true } }] };
  const blocks = [child(), { ...noop('after'), when: 'outputs.child.0.output.go' } as Block];
  const run = record(blocks, { child: () => end });
  assert.deepEqual(
    run.outputs.map(({ block_id }) => block_id),
    ['child', 'after'],
  );
  assert.equal(compare(blocks, blocks, { child: () => end }), 'match');
});

for (const [what, more] of [
  ['another sequence', { sequence_name: 'third', input: { n: '{{ data.n }}' } }],
  ['another version', { version: 2, input: { n: '{{ data.n }}' } }],
  ['another input', { input: { n: '{{ data.n }}', more: true } }],
] as const) {
  test(`the recorded child is no evidence for ${what}`, () => {
    const candidate = [work('before'), child(more), noop('after')];
    assert.equal(compare(candidate, BASELINE, { data: { n: 1 } }), 'inconclusive');
  });
}

test('nor is it where an earlier block gives the child other data by now', () => {
  const baseline = [seen({ n: 1 }), child({ input: { n: '{{ outputs.seen.n }}' } })];
  const candidate = [seen({ n: 2 }), child({ input: { n: '{{ outputs.seen.n }}' } })];
  assert.equal(compare(baseline, baseline), 'match');
  assert.equal(compare(candidate, baseline), 'inconclusive');
  const moved = [child({ input: { n: '{{ outputs.seen.n }}' } }), seen({ n: 1 })];
  assert.equal(compare(moved, baseline), 'inconclusive');
});
