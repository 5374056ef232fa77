/** Where tenants go that nobody placed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allBuckets, BUCKETS, bucketOf, cellOfBucket } from '../../src/cluster/routing.js';

const buckets = allBuckets();
const cellsOf = (cells: readonly string[]) => buckets.map((bucket) => cellOfBucket(bucket, cells));

test('the bucket of a tenant is what anybody can take from its SHA-256', () => {
  // printf acme | sha256sum | cut -c1-3
  assert.equal(bucketOf('acme'), '822');
  assert.equal(new Set(buckets).size, BUCKETS);
  assert.ok(buckets.includes('000') && buckets.includes('fff'));
});

test('without a cell that takes new tenants there is none to go to', () => {
  assert.equal(cellOfBucket('000', []), undefined);
});

test('the order of cells does not matter', () => {
  assert.deepEqual(cellsOf(['east', 'west', 'north']), cellsOf(['north', 'east', 'west']));
});

test('cells get about the same share', () => {
  const cells = ['east', 'west', 'north', 'south'];
  const chosen = cellsOf(cells);
  for (const cell of cells) {
    const share = chosen.filter((one) => one === cell).length / BUCKETS;
    assert.ok(share > 0.2 && share < 0.3, `${cell} has ${share}`);
  }
});

test('a cell that comes takes buckets, and changes no others', () => {
  const before = cellsOf(['east', 'west', 'north']);
  const after = cellsOf(['east', 'west', 'north', 'south']);
  for (const [at, cell] of after.entries()) {
    if (cell !== 'south') assert.equal(cell, before[at]);
  }
});
