/**
 * The commands for cells and for where tenants live, against a directory of their own and without any
 * engine.
 *
 * Cost: 15 s, since each of its 80 commands is a process.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cell, TenantMove } from '../../schema/cell.js';
import { cliWorld } from '../helpers/cli.js';
import { useDirectory } from '../helpers/cluster.js';
import { column } from '../helpers/columns.js';

const { database, directory } = useDirectory();
/** Has no server: whatever asks one fails. */
const cli = cliWorld(() => ({ url: 'http://127.0.0.1:2', tenant: '' }));
const withUrl = () => ({ env: { ENGINE_CLUSTER_URL: database.connectionString } });
/** The words of a command, and what else stands on its line. */
const words = (text: string, more: readonly string[]) => [...text.split(' '), ...more];
const run = (text: string, ...more: string[]) => cli.run(words(text, more), withUrl());
const ok = (text: string, ...more: string[]) => cli.ok(words(text, more), withUrl());
const json = <T>(text: string, ...more: string[]) => cli.json<T>(words(text, more), withUrl());

/** Ends with this code, and says why. */
async function refused(code: number, said: RegExp, ...args: Parameters<typeof run>): Promise<void> {
  const { code: ended, err } = await run(...args);
  assert.equal(ended, code, err);
  assert.match(err, said);
}

const DATABASE = 'postgresql://engine@db:5432/app';

/** As engines do every few seconds. */
async function sayEngines(): Promise<void> {
  const says = { cell: 'east', version: '1.0.0', migration: 32, key_ids: ['k1'] } as const;
  const [owner, standby] = ['10.0.0.9:8080', '10.0.0.8:8080'] as const;
  await directory.report({ ...says, id: 'e1', address: owner, role: 'owner', lag_ms: 12 });
  await directory.report({ ...says, id: 'e2', address: standby, role: 'standby', lag_ms: null });
}

test('without a directory commands say where one would come from', async () => {
  const unsaid = await cli.run(['cells', 'list']);
  assert.equal(unsaid.code, 2);
  assert.match(unsaid.err, /Set ENGINE_CLUSTER_URL or use --cluster URL/);
  await refused(6, /no directory of a cluster: cells create makes it/, 'cells list');
  const away = await cli.run(['cells', 'list', '--cluster', 'postgresql://127.0.0.1:2/x']);
  assert.equal(away.code, 5);
  assert.match(away.err, /cluster directory: .*ECONNREFUSED/);
});

test('a cell is created with the directory, and says what comes next', async () => {
  const created = await run('cells create east --database', DATABASE, '--closed');
  assert.equal(created.code, 0, created.err);
  assert.equal(created.out, 'Cell east is closed.\n');
  assert.match(created.err, /ENGINE_DB_SCHEMA=east[\s\S]*cells open east/);
  const addresses = ['--engine', '10.0.0.1:8080', '--engine', '10.0.0.2:8080'];
  const west = await json<Cell>('cells create west --database', DATABASE, ...addresses);
  assert.deepEqual([west.name, west.state], ['west', 'open']);
  // The same shape as of the list.
  assert.deepEqual([west.engines, west.addresses], [[], ['10.0.0.1:8080', '10.0.0.2:8080']]);
  assert.deepEqual(west, await json('cells status west'));
  assert.deepEqual((await directory.cell('west'))?.engines, ['10.0.0.1:8080', '10.0.0.2:8080']);
  await refused(6, /cell west already exists/, 'cells create west --database', DATABASE);
});

test('names, addresses and URLs that are none are refused, and so are passwords', async () => {
  for (const [args, said] of [
    [['pg_x', '--database', DATABASE], /must be 1 to 63 of a-z/],
    [['north'], /--database is required/],
    [['north', '--database', 'mysql://x'], /--database begins with mysql/],
    [['north', '--database', 'postgresql://a:b@c/d'], /contains a password[\s\S]*PGPASSFILE/],
    [['north', '--database', DATABASE, '--engine', 'nowhere'], /host:port, not nowhere/],
    [['north', '--database', DATABASE, '--engine', '10.0.0.1:0'], /host:port, not 10/],
    [['north', '--database', DATABASE, '--engine', 'a;b:80'], /host:port, not a;b/],
  ] as const) {
    await refused(2, said, 'cells create', ...args);
  }
  const { code, err } = await cli.run(['cells', 'list', '--cluster', 'postgresql://a:b@c/d']);
  assert.equal(code, 2);
  assert.match(err, /--cluster contains a password/);
});

test('where a cell is found can be changed, and what is not given stays', async () => {
  const moved = await json<Cell>('cells set west --engine 10.0.0.3:8080');
  assert.deepEqual([moved.addresses, moved.database_url], [['10.0.0.3:8080'], DATABASE]);
  const url = 'postgresql://engine@other:5432/app';
  assert.equal(await ok('cells set west --database', url), 'Cell west was updated.\n');
  const { database_url, engines } = (await directory.cell('west')) ?? {};
  assert.deepEqual([database_url, engines], [url, ['10.0.0.3:8080']]);
  for (const [args, code, said] of [
    [['west'], 2, /nothing to change/],
    [['west', '--engine', 'a b:1'], 2, /host:port, not a b:1/],
    [['west', '--database', 'postgresql://a:b@c/d'], 2, /contains a password/],
    [['nowhere', '--database', DATABASE], 3, /no cell named nowhere/],
  ] as const) {
    await refused(code, said, 'cells set', ...args);
  }
});

test('cells open and close, and the list says who serves them', async () => {
  assert.equal(await ok('cells open east'), 'Cell east is open.\n');
  assert.equal(await ok('cells close east'), 'Cell east is closed.\n');
  const { state, engines } = await json<Cell>('cells open east');
  assert.deepEqual([state, engines], ['open', []]);
  assert.equal((await run('cells open nowhere')).code, 3);
  await sayEngines();
  const list = await ok('cells list');
  assert.match(list, /^east +open +10\.0\.0\.9:8080 +1 +0 +0 +12ms +1\.0\.0$/m);
  assert.match(list, /^west +open +none +0/m);
  assert.deepEqual(column(await json<Cell[]>('cells list'), 'name'), ['east', 'west']);
});

test('the status of a cell has its engines, and says when no engine serves it', async () => {
  await sayEngines();
  const east = await ok('cells status east');
  assert.match(east, /^east: open, 0 tenants, 0 moves under way\n {2}postgresql:\/\/engine@db/);
  assert.match(east, /^ {2}owner 10\.0\.0\.9:8080, 1\.0\.0, lag 12ms, last seen /m);
  assert.match(await ok('cells status'), /^west: [\s\S]*no engine serves it$/m);
  assert.equal((await json<Cell>('cells status east')).engines.length, 2);
  assert.equal((await run('cells status nowhere')).code, 3);
});

test('a tenant is placed by hand, and not where another cell has it', async () => {
  assert.equal(await ok('tenants place acme --cell west'), 'acme is in cell west.\n');
  assert.equal(await ok('tenants place acme --cell west'), 'acme is in cell west.\n');
  await refused(
    6,
    /already in cell west[\s\S]*tenants move acme --to east/,
    'tenants place acme --cell east',
  );
  assert.equal((await run('tenants place other --cell nowhere')).code, 3);
  for (const name of ['', '  ', 'n'.repeat(256)]) {
    assert.equal((await run('tenants place', name, '--cell', 'west')).code, 2);
  }
  const placed = await json<{ placed_by: string }>('tenants place', 'b & c', '--cell', 'west');
  assert.equal(placed.placed_by, 'hand');
});

test('tenants of a cluster are listed with their cells, or those of one', async () => {
  assert.match(
    await ok('tenants list'),
    /^TENANT +CELL +HOW +SINCE\nacme +west +assigned manually/,
  );
  assert.deepEqual(await json('tenants list --cell east'), []);
  const many = Array.from({ length: 2_100 }, (_, at) => `many-${String(at).padStart(4, '0')}`);
  await directory.settle(many, 'east', 'found');
  assert.equal((await json<unknown[]>('tenants list --all')).length, 2_102);
  assert.equal((await json<unknown[]>('tenants list --cell east')).length, 50);
  const cut = await cli.run(['tenants', 'list', '--limit', '2050', '--json'], withUrl());
  assert.equal((JSON.parse(cut.out) as unknown[]).length, 2_050);
  assert.match(cut.err, /There are more\. Use --limit 4100 or --all/);
  await directory.transaction(async (client) => {
    await client.query("delete from cluster.placements where cell = 'east'");
  });
});

test('moves are listed, newest first, or those that have not ended', async () => {
  await directory.transaction((client) =>
    client.query(
      `insert into cluster.moves (id, tenant_id, from_cell, to_cell, state, error, ended_at) values
       ('0190b5c0-0000-7000-8000-000000000001', 'gone', 'east', 'west', 'given_up', 'away', now()),
       ('0190b5c0-0000-7000-8000-000000000002', 'going', 'west', 'east', 'copying', null, null)`,
    ),
  );
  const list = await ok('cells moves');
  assert.match(
    list,
    /^TENANT +FROM +TO +STATE +STARTED +ENDED +ERROR\ngoing +west +east +copying .* -/,
  );
  assert.match(list, /^gone +east +west +given_up .* away$/m);
  const underWay = await json<TenantMove[]>('cells moves --under-way');
  assert.deepEqual(column(underWay, 'tenant_id'), ['going']);
  await directory.transaction((client) => client.query('delete from cluster.moves'));
});

test('draining prints the commands that move the tenants, as a shell takes them', async () => {
  const drained = await run('cells drain west');
  assert.equal(drained.code, 0, drained.err);
  assert.match(drained.out, /^Cell west is draining; 2 tenants left\.$/m);
  assert.match(drained.out, /tenants move acme --to east$/m);
  assert.match(drained.out, /tenants move 'b & c' --to east$/m);
  assert.deepEqual(await json('cells drain west --to east'), {
    cell: 'west',
    state: 'draining',
    tenants: [
      { tenant_id: 'acme', to: 'east' },
      { tenant_id: 'b & c', to: 'east' },
    ],
  });
  await refused(8, /2 tenants are still in west/, 'cells drain west --wait --timeout 1500ms');
  await ok('cells close east');
  await refused(6, /no other cell is open/, 'cells drain west');
  assert.equal((await run('cells drain west --to west')).code, 2);
});

test('a cell is removed once it is empty, and only when somebody agrees', async () => {
  assert.equal((await run('cells remove west')).code, 2);
  await refused(6, /west stays: it has tenants/, 'cells remove west --yes');
  await sayEngines();
  const served = await run('cells remove east --yes');
  assert.match(served.err, /east stays: one of its engines was seen recently/);
  await directory.forgetEngine('e1');
  await directory.forgetEngine('e2');
  assert.match(await ok('cells remove east --yes'), /^Cell east was removed; its schema/);
  assert.equal((await run('cells remove east --yes')).code, 3);
  await directory.transaction(async (client) => {
    await client.query('delete from cluster.placements');
  });
  assert.deepEqual(await json('cells remove west --yes'), { removed: 'west' });
});
