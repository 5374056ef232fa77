/**
 * A Postgres is killed in the middle of a move: that of the source, that of the target, or that of the directory,
 * each of which is a server of its own. Whoever runs the command again goes on.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { step } from '../helpers/api.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { byDepth } from '../helpers/depth.js';
import { type CellName, MOVE_POINTS, TwoCells } from '../helpers/moving.js';
import { MovingLoad } from '../helpers/moving-load.js';

type Place = CellName | 'directory';

/** What is acknowledged is to outlive the processes. */
const settings = { synchronous_commit: 'on' };

let servers: Record<Place, TestPostgres>;
let cells: TwoCells;
before(async () => {
  const [east, west, directory] = await Promise.all([
    startPostgres({ settings }),
    startPostgres({ settings }),
    startPostgres({ settings }),
  ]);
  servers = { east, west, directory };
  const databaseOf = (server: TestPostgres) => server.createDatabase({ isMigrated: false });
  cells = await TwoCells.on({
    east: await databaseOf(east),
    west: await databaseOf(west),
    directory: await databaseOf(directory),
  });
});
after(async () => {
  await cells?.stop();
  for (const server of Object.values(servers ?? {})) await server.stop();
});

const other = (cell: CellName): CellName => (cell === 'east' ? 'west' : 'east');

/** Moves the tenant there, while one server is killed at that point and comes back. */
async function moveWhileKilling(
  tenant: string,
  to: CellName,
  victim: Place,
  point: string,
): Promise<void> {
  let killed = 0;
  const at = (reached: string) => {
    if (reached !== point || killed > 0) return;
    killed += 1;
    servers[victim].kill();
  };
  const what = `${victim} ${point}`;
  await cells.move(tenant, to, { at }).catch(() => undefined);
  assert.equal(killed, 1, `it comes there: ${what}`);
  await servers[victim].restart();
  // Behind the last step it has ended, whatever becomes of the command.
  const underWay = await cells.directory.moves({ limit: 1, isUnderWay: true });
  if (underWay.length > 0) assert.equal((await cells.move(tenant, to)).move.state, 'done', what);
  assert.equal((await cells.directory.placement(tenant))?.cell, to, what);
  assert.deepEqual(await cells.rows(other(to), tenant), {}, `rows in two cells: ${what}`);
}

const POINTS = byDepth<readonly string[]>(
  ['before the commit of the copy', 'behind switch'],
  MOVE_POINTS,
);

test('what was acknowledged is so, once, whichever database is killed while the tenant is moved', async () => {
  const tenant = 'busy';
  let home: CellName = 'east';
  await cells.place(tenant, home);
  const load = new MovingLoad(cells, tenant, home);
  await load.start();
  for (const point of POINTS) {
    for (const role of ['source', 'target', 'directory'] as const) {
      const to = other(home);
      const victim = { source: home, target: to, directory: 'directory' as const }[role];
      await moveWhileKilling(tenant, to, victim, point);
      home = to;
    }
  }
  load.stopCreating();
  await load.end();
  assert.ok(load.turnedAway > 0);
  assert.deepEqual(await cells.rows(other(home), tenant), {});
});

test('every row of a tenant that waits is there once, as it was, whichever database is killed', async () => {
  const name = 'waiting';
  let home: CellName = 'east';
  await cells.place(name, home);
  const tenant = cells.tenant(home, name);
  const gate = await tenant.sequence([step('g', 'noop', { wait_for_input: { prompt: 'go?' } })]);
  const work = await tenant.sequence([step('a', 'noop'), step('w', 'nobody.works')]);
  for (let n = 0; n < 50; n++) await tenant.create(n % 2 === 0 ? gate : work);
  const listed = await tenant.get<{ id: string }[]>('/instances?limit=100');
  for (const { id } of listed.body) await tenant.until(id, 'waiting');
  const tallies = async () => {
    // What is counted of the minutes is written behind what is waited for.
    const { activity: _, ...others } = await cells.tallies(home, name);
    return others;
  };
  const before = await tallies();
  assert.equal(before.instances?.rows, 50, JSON.stringify(before));
  for (const victim of ['east', 'west', 'directory'] as const) {
    const to = other(home);
    await moveWhileKilling(name, to, victim, 'before the commit of the copy');
    home = to;
    assert.deepEqual(await tallies(), before, victim);
  }
});
