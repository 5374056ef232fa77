/**
 * A tenant is moved to another cell and back: what waits goes on there, and nothing happens twice. Whatever is killed
 * meanwhile, at whatever point: whoever runs the command again goes on, each row is in one cell, and what the tenant
 * was told is so, once.
 *
 * Cost: 60 s, since it moves tenants between engines that are killed.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Changes } from '../../../schema/change.js';
import type { Step } from '../../../src/cluster/move-plan.js';
import { Moves } from '../../../src/cluster/moves.js';
import { eventually, type Json, step } from '../../helpers/api.js';
import { cliWorld } from '../../helpers/cli.js';
import { expectStatus } from '../../helpers/client.js';
import { isDeep } from '../../helpers/depth.js';
import { type CellName, MOVE_POINTS, MOVE_STEPS, TwoCells } from '../../helpers/moving.js';
import { MovingLoad } from '../../helpers/moving-load.js';
import { canary, look, move as moveRelease } from '../../helpers/releases.js';
import { describeGuards } from './move-guards.js';
import { describeWork } from './move-work.js';

let cells: TwoCells;
before(async () => {
  // The short forms have a database for each cell; both cells may lie in one, too.
  cells = await TwoCells.start(isDeep ? 1 : 2);
});
after(() => cells?.stop());

test('instances that wait for workers, timers, signals, events and slots go on in the other cell', async () => {
  const name = 'acme & co';
  await cells.place(name, 'east');
  const east = cells.tenant('east', name);
  const west = cells.tenant('west', name);
  const waits = await east.sequence([step('a', 'acme.work'), step('b', 'noop')]);
  const waiting = await east.create(waits);
  const keyed = await east.create(waits, { idempotency_key: 'once' });
  const held = (await east.poll('acme.work', { limit: 1 }))[0]!;
  const slept = await east.run([step('nap', 'noop', { delay: { duration: 3_000 } })]);
  const event = await east.run([step('e', 'wait_for_event', { params: { name: 'paid' } })]);
  const gate = await east.run([step('g', 'noop', { wait_for_input: { prompt: 'go?' } })]);
  const slots = { concurrency_key: 'k', max_concurrency: 1 };
  const blocks = await east.sequence([step('s', 'acme.slot')]);
  const first = await east.create(blocks, slots);
  const second = await east.create(blocks, slots);
  await east.until(first, 'waiting');
  const release = await canary(east, 50);

  const { move } = await cells.move(name, 'west');
  assert.equal(move.state, 'done');
  assert.deepEqual(await cells.rows('east', name), {});
  assert.equal((await east.get(`/instances/${waiting}`)).status, 421);

  // The claim of before the move is still its worker's.
  await west.complete(held, { by: 'the first worker' });
  await west.complete(await west.task('acme.work'), { by: 'the second worker' });
  const again = await west.post<{ deduplicated: boolean }>(
    '/instances',
    west.creation(waits, { idempotency_key: 'once' }),
  );
  assert.equal(again.body.deduplicated, true);
  await west.post('/events', { event_name: 'paid', producer_event_id: 'e1' });
  await west.signal(gate, 'custom:human_input:g', { value: 'yes' });
  await west.complete(await west.task('acme.slot'));
  await west.complete(await west.task('acme.slot'));
  for (const id of [waiting, keyed, slept, event, gate, first, second]) {
    await west.until(id, 'completed');
  }
  assert.equal((await look(west, release)).state, 'canary');
  assert.equal((await moveRelease(west, release, 'promote')).state, 'promoted');
});

test('schedules fire once at each of their times, and cursors of the change feed go on', async () => {
  const name = 'ticking';
  await cells.place(name, 'east');
  const sequence = await cells.tenant('east', name).sequence([step('a', 'noop')]);
  const cron = { cron_expr: '* * * * * *', sequence_id: sequence, namespace: 'test' };
  expectStatus(await cells.tenant('east', name).post('/cron', { ...cron, tenant_id: name }), 201);
  const changes = async (cell: CellName, cursor = '') => {
    const query = cursor === '' ? '' : `&cursor=${cursor}`;
    const client = cells.tenant(cell, name);
    return expectStatus(await client.get<Changes>(`/changes?limit=1000${query}`), 200);
  };
  const seen: string[] = [];
  let cursor = '';
  const read = async (cell: CellName) => {
    const page = await changes(cell, cursor);
    cursor = page.next_cursor ?? cursor;
    for (const { id } of page.changes) seen.push(id);
  };
  for (const to of ['west', 'east', 'west'] as const) {
    const from = to === 'west' ? 'east' : 'west';
    const before = seen.length;
    await eventually(async () => {
      await read(from);
      assert.ok(seen.length > before, 'it fires');
    });
    await cells.move(name, to);
    await read(to);
  }
  await eventually(async () => {
    const before = seen.length;
    await read('west');
    assert.ok(seen.length > before, 'it still fires');
  });
  const all: string[] = [];
  for (let at = ''; ; ) {
    const page = await changes('west', at);
    for (const { id } of page.changes) all.push(id);
    if (!page.has_more) break;
    at = page.next_cursor!;
  }
  assert.deepEqual(seen, all.slice(0, seen.length), 'nothing was skipped or told twice');
  const { rows } = await cells.query<{ fires: number; instances: number }>(
    'west',
    `select count(distinct idempotency_key)::int as fires, count(*)::int as instances
         from west.instances where tenant_id = '${name}'`,
  );
  assert.equal(rows[0]?.fires, rows[0]?.instances);
});

test('keys of the tenant work in its new cell at once, and limits hold there', async () => {
  const name = 'keyed';
  await cells.place(name, 'east');
  await cells.tenant('east', name).sequence([step('a', 'noop')]);
  const minting = { tenant_id: name, name: 'k', capabilities: ['auditor'] };
  const { secret } = expectStatus(
    await cells.east.root.post<{ secret: string }>('/api-keys', minting),
    201,
  );
  const limits = { schedules_max: 7 };
  const set = await cells.east.root.put(`/tenants/${name}/limits`, limits);
  assert.equal(set.status, 200, set.text);
  const another = await cells.east.root.post<{ id: string; secret: string }>('/api-keys', minting);
  const { id: revoked, secret: revokedSecret } = expectStatus(another, 201);
  expectStatus(await cells.east.root.delete(`/api-keys/${revoked}`), 204);
  await cells.move(name, 'west');
  const key = cells.tenant('west', name).with({ apiKey: secret });
  expectStatus(await key.get('/changes'), 200);
  const revokedThere = cells.tenant('west', name).with({ apiKey: revokedSecret });
  expectStatus(await revokedThere.get('/changes'), 401);
  assert.deepEqual((await cells.west.root.get<object>(`/tenants/${name}/limits`)).body, set.body);

  // Whoever still brings a key to the old cell is led on, although that knows nothing of it any more.
  const ofOld = async () => {
    const old = cells.tenant('east', name).with({ apiKey: secret });
    const reply = await old.get<{ cell?: string }>('/changes');
    return [reply.status, reply.body.cell];
  };
  assert.deepEqual(await ofOld(), [421, 'west']);
  await cells.east.restart();
  assert.deepEqual(await ofOld(), [421, 'west']);
  await cells.move(name, 'east');
  expectStatus(await cells.tenant('east', name).with({ apiKey: secret }).get('/changes'), 200);
});

// ---------------------------------------------------------------- kills

const SOME = ['before the commit of the copy', 'behind switch'];

/** Of the command, in all databases of the server. */
const END_SESSIONS =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenants move'";

const other = (cell: CellName): CellName => (cell === 'east' ? 'west' : 'east');

/** @returns when the rows of the tenant are in that cell and in no other */
async function expectOnlyIn(cell: CellName, tenant: string): Promise<void> {
  assert.deepEqual(await cells.rows(other(cell), tenant), {}, `rows of ${tenant} in two cells`);
  assert.equal((await cells.directory.placement(tenant))?.cell, cell);
}

/** Its tenant is at work, in that cell at first. */
async function loadOf(tenant: string, home: CellName): Promise<MovingLoad> {
  await cells.place(tenant, home);
  const load = new MovingLoad(cells, tenant, home);
  await load.start();
  return load;
}

/** Everything that was acknowledged is so, once. */
async function endOf(load: MovingLoad): Promise<void> {
  load.stopCreating();
  await load.end();
}

test('the command goes on where it was killed', async () => {
  const tenant = 'killed-command';
  let home: CellName = 'east';
  const load = await loadOf(tenant, home);
  for (const point of isDeep ? MOVE_POINTS : SOME) {
    const to = other(home);
    assert.ok(await cells.moveUntil(tenant, to, point), `it comes to ${point}`);
    const isOver = point === 'behind clear-source';
    if (!isOver) assert.equal((await cells.move(tenant, to)).move.state, 'done', point);
    home = to;
    await expectOnlyIn(home, tenant);
  }
  await endOf(load);
  assert.ok(load.turnedAway > 0);
});

test('the move goes on when an engine is killed', async () => {
  const tenant = 'killed-engines';
  let home: CellName = 'east';
  const load = await loadOf(tenant, home);
  const steps: readonly Step[] = isDeep
    ? [...MOVE_STEPS, 'await-source', 'await-target', 'await-admission']
    : ['await-target'];
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
  await endOf(load);
});

test('the command ends with what became of its databases, and goes on when it is run again', async () => {
  const tenant = 'lost-sessions';
  const load = await loadOf(tenant, 'east');
  let home: CellName = 'east';
  for (const point of isDeep ? MOVE_POINTS : ['before the commit of the copy']) {
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
  await endOf(load);
});

test('a move that is given up leaves the tenant where it was', async () => {
  const tenant = 'given-up';
  const load = await loadOf(tenant, 'east');
  const points = isDeep
    ? MOVE_POINTS.slice(0, MOVE_POINTS.indexOf('behind switch'))
    : ['behind copy'];
  for (const point of points) {
    assert.ok(await cells.moveUntil(tenant, 'west', point), `it comes to ${point}`);
    assert.equal((await cells.giveUp(tenant)).state, 'given_up');
    await expectOnlyIn('east', tenant);
  }
  // It can be moved all the same.
  assert.equal((await cells.move(tenant, 'west')).move.state, 'done');
  await expectOnlyIn('west', tenant);
  await endOf(load);
});

test('the command moves a tenant, goes on with what was cut off, and takes a move back', async () => {
  const cli = cliWorld(() => ({ url: 'http://127.0.0.1:2', tenant: '' }));
  const env = { ENGINE_CLUSTER_URL: cells.directoryUrl };
  const run = (...args: string[]) => cli.run(['tenants', 'move', ...args], { env });
  const tenant = 'by command';
  await cells.place(tenant, 'east');
  await cells.tenant('east', tenant).sequence([step('a', 'noop')]);

  assert.match((await run(tenant)).err, /--to is required/);
  assert.equal((await run(tenant, '--to', 'east')).out, 'by command is in cell east.\n');
  assert.match((await run(tenant, '--to', 'north')).err, /there is no cell north/);
  assert.match((await run('nobody', '--to', 'west')).err, /is in no cell yet/);
  assert.match((await run(tenant, '--give-up')).err, /is not being moved/);

  assert.ok(await cells.moveUntil(tenant, 'west', 'behind copy'));
  assert.match((await run(tenant, '--to', 'north')).err, /is already being moved to west/);
  const back = await run(tenant, '--give-up');
  assert.deepEqual([back.code, back.out], [0, 'by command stays in cell east.\n'], back.err);
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
    await cells.directory.report({ ...engine, ...says! });
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

describe('what is under way when a tenant is moved', () => describeWork(() => cells));

describe('a move', () => describeGuards(() => cells));
