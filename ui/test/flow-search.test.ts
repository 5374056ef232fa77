/** Finding blocks in a graph, and the titles that stay while it is scrolled. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawingOf, HEADER_HEIGHT, openToDepth } from '../src/flow/layout.ts';
import { outlineOf } from '../src/flow/outline.ts';
import { nextFound, pathsFound } from '../src/flow/search.ts';
import { stickyHeads } from '../src/flow/sticky.ts';
import { step } from './flow-samples.ts';

const OUTLINE = outlineOf({
  blocks: [
    step('charge_card'),
    {
      type: 'for_each',
      id: 'items',
      collection: 'data.items',
      body: [{ type: 'parallel', id: 'both', branches: [[step('Charge')], [step('mail')]] }],
    },
  ],
});

test('blocks are found by a part of their id, handler or kind, in document order', () => {
  assert.deepEqual(pathsFound(OUTLINE, ' MAIL '), ['items/both/mail']);
  const charging = ['charge_card', 'items/both/Charge', 'items/both/mail'];
  assert.deepEqual(pathsFound(OUTLINE, 'charge'), charging);
  assert.deepEqual(pathsFound(OUTLINE, 'parallel'), ['items/both']);
  assert.deepEqual(pathsFound(OUTLINE, ' '), []);
});

test('the search goes around the ends', () => {
  assert.deepEqual([nextFound(undefined, 3, 1), nextFound(2, 3, 1)], [0, 0]);
  assert.deepEqual([nextFound(undefined, 3, -1), nextFound(0, 3, -1)], [2, 2]);
});

test('at depth 1 all groups are closed, and each further level opens one more', () => {
  assert.deepEqual([...openToDepth(OUTLINE, 1)], []);
  assert.deepEqual([...openToDepth(OUTLINE, 2)], ['items']);
  assert.deepEqual([...openToDepth(OUTLINE, Number.POSITIVE_INFINITY)], ['items', 'items/both']);
});

test('the titles of open groups stay at the top, inner ones below outer ones, until the group ends', () => {
  const drawing = drawingOf(OUTLINE, openToDepth(OUTLINE, Number.POSITIVE_INFINITY));
  const inner = drawing.nodes.find(({ path }) => path === 'items/both')!;
  const headsAt = (y: number) =>
    stickyHeads(drawing, { x: 0, y, width: 800, height: 400 }).map(({ path }) => path);
  assert.deepEqual(headsAt(0), []);
  assert.deepEqual(headsAt(inner.y - 1), ['items', 'items/both']);
  assert.deepEqual(headsAt(inner.y + inner.height - HEADER_HEIGHT), ['items']);
  assert.deepEqual(headsAt(drawing.height), []);
  assert.deepEqual(stickyHeads(drawing, { x: 5_000, y: inner.y, width: 800, height: 400 }), []);
});
