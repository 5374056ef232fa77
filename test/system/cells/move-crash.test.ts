/**
 * Whatever is killed while a tenant is moved, at whatever point: whoever runs the command again goes on, each row
 * is in one cell, and what the tenant was told is so, once.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Step } from '../../../src/cluster/move-plan.js';
import { Moves } from '../../../src/cluster/moves.js';
import { eventually, type Json, step } from '../../helpers/api.js';
import { cliWorld } from '../../helpers/cli.js';
import { isDeep } from '../../helpers/depth.js';
import { type CellName, MOVE_POINTS, MOVE_STEPS, TwoCells } from '../../helpers/moving.js';
import { MovingLoad } from '../../helpers/moving-load.js';

let cells: TwoCells;
before(async () => {
  cells = await TwoCells.start(isDeep ? 2 : 1);
});
after(() => cells?.stop());

const SOME = ['behind hold-source', 'before the commit of the copy', 'behind switch'];

/** Of the command, in all databases of the server. */
const END_SESSIONS =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenants move'";

const other = (cell: CellName): CellName => (cell === 'east' ? 'west' : 'east');

/** @returns when the rows of the tenant are in that cell and in no other */
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
  for (const point of isDeep ? MOVE_POINTS : SOME) {
    const to = other(home);
    assert.ok(await cells.moveUntil(tenant, to, point), `it comes to ${point}`);
    const isOver = point === 'behind clear-source';
    if (!isOver) assert.equal((await cells.move(tenant, to)).move.state, 'done', point);
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
    ? [...MOVE_STEPS, 'await-source', 'await-target', 'await-admission']
    : ['await-source', 'await-target', 'await-admission'];
  for (const killedAt of steps) {
    for (const victim of isDeep ? (['source', 'target'] as const) : (['target'] as const)) {
      const to = other(home);
      const killed = victim === 'source' ? home : to;
      let restarting: Promise<void> | undefined;
      const { move } = await cells.move(tenant, to, {
        onStep: (at) => {
          if (at === killedAt) restarting ??= cells.api(killed).restart();
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

test('the command ends with what became of its databases, and goes on when it is run again', async () => {
  const tenant = 'lost-sessions';
  await cells.place(tenant, 'east');
  const load = new MovingLoad(cells, tenant, 'east');
  await load.start();
  let home: CellName = 'east';
  for (const point of isDeep ? MOVE_POINTS : ['between tables', 'before the commit of the copy']) {
    const to = other(home);
    let isCut = false;
    const at = (reached: string) => {
      if (reached !== point || isCut) return;
      isCut = true;
      void cells.query('west', END_SESSIONS).catch(() => undefined);
    };
    // Whether it notices in time is a matter of chance.
    await cells.move(tenant, to, { at }).catch(() => undefined);
    await eventually(async () => {
      const placed = (await cells.directory.placement(tenant))?.cell;
      const [move] = await cells.directory.moves({ limit: 1 });
      if (move?.ended_at === null) await cells.move(tenant, to);
      assert.equal((await cells.directory.placement(tenant))?.cell, to, placed);
    });
    home = to;
    await expectOnlyIn(home, tenant);
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
    ? MOVE_POINTS.slice(0, MOVE_POINTS.indexOf('behind switch'))
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

test('the command moves a tenant, goes on with what was cut off, and takes a move back', async () => {
  const cli = cliWorld(() => ({ url: 'http://127.0.0.1:2', tenant: '' }));
  const env = { ENGINE_CLUSTER_URL: cells.directoryUrl };
  const run = (...args: string[]) => cli.run(['tenants', 'move', ...args], { env });
  const tenant = 'by command';
  await cells.place(tenant, 'east');
  await cells.tenant('east', tenant).sequence([step('a', 'noop')]);

  assert.match((await run(tenant)).err, /--to is missing/);
  assert.equal((await run(tenant, '--to', 'east')).out, 'by command lives in east.\n');
  assert.match((await run(tenant, '--to', 'north')).err, /there is no cell north/);
  assert.match((await run('nobody', '--to', 'west')).err, /lives in no cell yet/);
  assert.match((await run(tenant, '--give-up')).err, /is not being moved/);

  assert.ok(await cells.moveUntil(tenant, 'west', 'behind copy'));
  assert.match((await run(tenant, '--to', 'north')).err, /is being moved to west already/);
  const back = await run(tenant, '--give-up');
  assert.deepEqual([back.code, back.out], [0, 'by command stays in east.\n'], back.err);
  await expectOnlyIn('east', tenant);

  assert.ok(await cells.moveUntil(tenant, 'west', 'behind switch'));
  assert.match((await run(tenant, '--give-up')).err, /too late/);
  const done = await run(tenant, '--json');
  assert.equal(done.code, 0, done.err);
  const { state, rows } = JSON.parse(done.out) as { state: string; rows: Json };
  assert.equal(state, 'done');
  assert.equal((rows.sequences as Json).rows, 1);
  await expectOnlyIn('west', tenant);
});

test('rows that no move has brought make it refuse, and nothing of them is touched', async () => {
  const tenant = 'in-two-cells';
  await cells.place(tenant, 'east');
  await cells.tenant('east', tenant).sequence([step('a', 'noop')]);
  await cells.query(
    'west',
    `insert into west.tenant_limits (tenant_id, limits, set_at) values ('${tenant}', '{}', now())`,
  );
  await assert.rejects(cells.move(tenant, 'west'), /has rows of tenant .* in tenant_limits/);
  assert.deepEqual(await cells.rows('west', tenant), { tenant_limits: 1 });
  await cells.query('west', `delete from west.tenant_limits where tenant_id = '${tenant}'`);
  assert.equal((await cells.move(tenant, 'west')).move.state, 'done');
});

test('cells that differ in their keys or their tables make it refuse before anything is changed', async () => {
  const told = await cells.directory.engines();
  const traits = told.map(({ migration, key_ids }) => ({ migration, key_ids }));
  assert.deepEqual(traits[0], traits[1], 'engines say what they have');
  const { migration = 0, key_ids: [own = ''] = [] } = traits[0] ?? {};
  const tenant = 'unlike';
  await cells.place(tenant, 'east');
  const refused = async (cell: string, says: (typeof traits)[0], why: RegExp) => {
    const { database_url } = (await cells.directory.cell('west'))!;
    await cells.directory.createCell({ name: cell, database_url, engines: [], state: 'closed' });
    const engine = {
      id: cell,
      cell,
      address: 'a:1',
      role: 'owner',
      version: '1',
      lag_ms: 0,
    } as const;
    await cells.directory.say({ ...engine, ...says! });
    const moves = await Moves.open(cells.directoryUrl);
    try {
      await assert.rejects(moves.begin(tenant, cell), why);
    } finally {
      await moves.close();
    }
  };
  await refused('keyless', { migration, key_ids: [] }, /keyless does not have the encryption key/);
  await refused('rekeyed', { migration, key_ids: ['other'] }, /encryption key of cell east/);
  await refused('newer', { migration: migration + 1, key_ids: [own] }, /newer has \d+: upgrade/);
  assert.deepEqual(await cells.directory.moves({ limit: 1, isUnderWay: true }), []);
});
