/** Comparing definitions beside everything else: large ones in a thread of their own, and bounded. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { SemanticDiff } from '../../schema/release.js';
import { COMPARISONS_MAX, Comparisons, IN_PLACE_MAX } from '../../src/comparisons.js';
import { EngineError } from '../../src/errors.js';
import { noop } from '../helpers/player.js';

let comparisons: Comparisons;

before(() => {
  comparisons = new Comparisons();
});
after(() => comparisons.stop());

const definition = (id: string, padding = 0) =>
  JSON.stringify({ blocks: [noop(id), { ...noop('pad'), params: { text: 'x'.repeat(padding) } }] });
const small = { baseline: definition('a'), candidate: definition('b') };
const large = { baseline: definition('a', IN_PLACE_MAX), candidate: definition('b', IN_PLACE_MAX) };

function hasCode(code: string) {
  return (error: unknown) => error instanceof EngineError && error.code === code;
}

describe('comparisons', () => {
  test('find the same in place and in the thread', async () => {
    const inPlace = await comparisons.compare(small);
    assert.equal(await comparisons.compare(large), inPlace);
    const { entries } = JSON.parse(inPlace) as SemanticDiff;
    assert.deepEqual(
      entries.map(({ category, block_id }) => `${category} ${block_id}`),
      ['block_added b', 'block_removed a'],
    );
  });

  test('are refused beyond a bound, and taken again later', async () => {
    const taken = Array.from({ length: COMPARISONS_MAX }, () => comparisons.compare(large));
    await assert.rejects(comparisons.compare(large), hasCode('ENG_OVERLOADED'));
    assert.ok(await comparisons.compare(small), 'what is small needs no thread');
    await Promise.all(taken);
    assert.ok(await comparisons.compare(large));
  });

  test('are given up when the engine stops', async () => {
    const stopping = new Comparisons();
    const given = stopping.compare(large);
    const refused = assert.rejects(given, hasCode('ENG_STOPPING'));
    await stopping.stop();
    await refused;
    await assert.rejects(stopping.compare(large), hasCode('ENG_STOPPING'));
  });
});
