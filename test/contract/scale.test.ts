/** docs/scale.md says what its model works out, and the model says what its parts are worth. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { ASSUMPTIONS } from '../../bench/scale-model/assumptions.js';
import { createDraws } from '../../bench/scale-model/draws.js';
import { unavailability } from '../../bench/scale-model/failures.js';
import { moves } from '../../bench/scale-model/moves.js';
import { scalePage } from '../../bench/scale-model/page.js';
import { cellsOfBuckets, fullest, place, sizesOf } from '../../bench/scale-model/placement.js';
import { PROCESS_CONNECTIONS } from '../../src/cluster/directory.js';
import { anchorsOf, linksOf, page, ROOT } from '../helpers/docs.js';

const DOCS = path.join(ROOT, 'docs');
const CELLS = 20;
const TENANTS = 2_000;

describe('docs/scale.md', () => {
  test('has the tables of its model: npm run bench -- report', () => {
    const { file, text } = scalePage(DOCS);
    // Not `equal`, which would print all of it.
    assert.ok(readFileSync(file, 'utf8') === text, 'docs/scale.md is old');
  });

  test('says of each assumption where it was measured, in a place that there is', () => {
    for (const { what, from } of Object.values(ASSUMPTIONS)) {
      assert.match(from, /^(?:assumed|chosen|counted|measured|configured)/, what);
      for (const target of linksOf({ ...page('docs/scale.md'), prose: from })) {
        const [place = '', anchor = ''] = target.split('#');
        const file = path.join('docs', place === '' ? 'scale.md' : place);
        assert.ok(anchor === '' || anchorsOf(page(file)).has(anchor), target);
      }
    }
  });
});

describe('the model of many cells', () => {
  const buckets = cellsOfBuckets(CELLS);
  const fleetOf = (seed: number, byHand: number) =>
    place(sizesOf(createDraws(seed), TENANTS, 2.5), buckets, CELLS, byHand);

  test('counts what a directory takes of connections', () => {
    assert.equal(ASSUMPTIONS.directoryConnections.value, PROCESS_CONNECTIONS);
  });

  test('draws the same numbers from the same seed, with the mean and the spread that are asked for', () => {
    const drawn = (seed: number) => {
      const draws = createDraws(seed);
      return Array.from({ length: 20_000 }, () => [draws.normal(), draws.poisson(3)] as const);
    };
    const first = drawn(7);
    assert.deepEqual(drawn(7), first);
    assert.notDeepEqual(drawn(8), first);
    const mean = (values: readonly number[]) =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const normals = first.map(([normal]) => normal);
    const counts = first.map(([, count]) => count);
    assert.ok(Math.abs(mean(normals)) < 0.05);
    assert.ok(Math.abs(mean(normals.map((value) => value ** 2)) - 1) < 0.05);
    assert.ok(Math.abs(mean(counts) - 3) < 0.1);
    assert.ok(Math.abs(mean(counts.map((value) => (value - 3) ** 2)) - 3) < 0.2);
  });

  test('loses no load by placing tenants, and lies the more even the more are placed by hand', () => {
    const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
    const fleets = [0, 100, TENANTS].map((byHand) => fleetOf(1, byHand));
    for (const { sizes, loads } of fleets) assert.ok(Math.abs(sum(sizes) - sum(loads)) < 1e-6);
    const [byHash, some, all] = fleets.map(fullest);
    assert.ok(byHash! > some! && some! > all! && all! < 1.01);
  });

  test('moves tenants until the bound holds, and the more of them the tighter it is', () => {
    const [tight, wide] = [1.05, 1.5].map((bound) => {
      const fleet = fleetOf(2, 0);
      const moved = moves(fleet, buckets, createDraws(2, 1), bound);
      assert.equal(moved.daysAbove, 0);
      assert.ok(fullest(fleet) <= bound);
      return moved;
    });
    assert.ok(tight!.atFirst + tight!.perDay > wide!.atFirst + wide!.perDay);
  });

  test('gives a cell the same mean unavailability however many share a Postgres', () => {
    for (const perServer of [1, 10]) {
      const { mean, expected, servers, shareOfOne } = unavailability(
        createDraws(3),
        100,
        perServer,
      );
      assert.ok(Math.abs(mean / expected - 1) < 0.15, `${mean} beside ${expected}`);
      assert.deepEqual([servers, shareOfOne], [100 / perServer, perServer / 100]);
    }
  });
});
