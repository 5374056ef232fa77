/**
 * Whatever is killed while a tenant is moved, at whatever point: whoever runs the command again goes on, each row
 * is in one cell, and what the tenant was told is so, once.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Step } from '../../../src/cluster/move-plan.js';
import { isDeep } from '../../helpers/depth.js';
import { type CellName, TwoCells } from '../../helpers/moving.js';
import { MovingLoad } from '../../helpers/moving-load.js';

let cells: TwoCells;
before(async () => {
  cells = await TwoCells.start(2);
});
after(() => cells?.stop());

const STEPS: readonly Step[] = [
  'hold-target',
  'hold-source',
  'copy',
  'switch',
  'admit-target',
  'depart-source',
  'clear-source',
];
const POINTS = [
  ...STEPS.flatMap((step) => [`before ${step}`, `behind ${step}`]),
  'between tables',
  'before the commit of the copy',
];
const SOME = ['behind hold-source', 'before the commit of the copy', 'behind switch'];

const other = (cell: CellName): CellName => (cell === 'east' ? 'west' : 'east');

async function expectOnlyIn(cell: CellName, tenant: string): Promise<void> {
  assert.deepEqual(await cells.rows(other(cell), tenant), {}, `rows of ${tenant} in two cells`);
  assert.equal((await cells.directory.placement(tenant))?.cell, cell);
}

test('the command goes on where it was killed', async () => {
  const tenant = 'killed-command';
  let home: CellName = 'east';
  await cells.place(tenant, home);
  const load = new MovingLoad(cells, tenant, home);
  await load.start();
  for (const point of isDeep ? POINTS : SOME) {
    const to = other(home);
    assert.ok(await cells.moveUntil(tenant, to, point), `it comes to ${point}`);
    const { move } = await cells.move(tenant, to);
    assert.equal(move.state, 'done', point);
    home = to;
    await expectOnlyIn(home, tenant);
  }
  load.stopCreating();
  await load.end();
  assert.ok(load.turnedAway > 0);
});

test('the move goes on when an engine is killed', async () => {
  const tenant = 'killed-engines';
  let home: CellName = 'east';
  await cells.place(tenant, home);
  const load = new MovingLoad(cells, tenant, home);
  await load.start();
  const steps: readonly Step[] = isDeep
    ? [...STEPS, 'await-source', 'await-target', 'await-admission']
    : ['await-source', 'await-target', 'await-admission'];
  for (const step of steps) {
    for (const victim of isDeep ? (['source', 'target'] as const) : (['target'] as const)) {
      const to = other(home);
      const killed = victim === 'source' ? home : to;
      let restarting: Promise<void> | undefined;
      const { move } = await cells.move(tenant, to, {
        onStep: (at) => {
          if (at === step) restarting ??= cells.api(killed).restart();
        },
      });
      await restarting;
      assert.equal(move.state, 'done');
      home = to;
      await expectOnlyIn(home, tenant);
    }
  }
  load.stopCreating();
  await load.end();
});

test('a move that is given up leaves the tenant where it was', async () => {
  const tenant = 'given-up';
  await cells.place(tenant, 'east');
  const load = new MovingLoad(cells, tenant, 'east');
  await load.start();
  const points = isDeep
    ? POINTS.slice(0, POINTS.indexOf('behind switch'))
    : ['behind hold-source', 'behind copy'];
  for (const point of points) {
    assert.ok(await cells.moveUntil(tenant, 'west', point), `it comes to ${point}`);
    assert.equal((await cells.giveUp(tenant)).state, 'given_up');
    await expectOnlyIn('east', tenant);
  }
  // It can be moved all the same.
  assert.equal((await cells.move(tenant, 'west')).move.state, 'done');
  await expectOnlyIn('west', tenant);
  load.stopCreating();
  await load.end();
});
