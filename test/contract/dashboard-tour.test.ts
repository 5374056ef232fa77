/** The tour of the dashboard shows every picture of it, in light and dark. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pictures, TOUR, tourText } from '../helpers/dashboard-tour.js';

const tour = readFileSync(TOUR, 'utf8');

test('every picture of the dashboard is shown once, in both themes', () => {
  const shown = [...tour.matchAll(/images\/dashboard\/([\w-]+)\.webp/g)].map(([, name]) => name);
  assert.deepEqual(shown.toSorted(), pictures().toSorted());
  const names = new Set(pictures().map((name) => name.replace(/-(?:light|dark)$/, '')));
  const both = [...names].flatMap((name) => [`${name}-dark`, `${name}-light`]);
  assert.deepEqual(both.toSorted(), pictures().toSorted());
});

test('the tour is what the pages and their captions make it', () => {
  assert.equal(tour, tourText());
});
