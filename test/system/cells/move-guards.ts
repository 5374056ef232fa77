/** What a move may not do, whoever runs it and when: delete rows of others, leave some behind, make a tenant wait. */

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type pg from 'pg';
import { STORE } from '../../../actors/shard/store.js';
import { connectCommand } from '../../../src/cluster/command-sessions.js';
import { MoveError } from '../../../src/cluster/move-plan.js';
import { deleteRows } from '../../../src/cluster/move-rows.js';
import { tenantTables } from '../../../src/cluster/tenant-rows.js';
import { inSchema } from '../../../src/db/database-url.js';
import { eventually, step, type Tenant } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import type { CellName, TwoCells } from '../../helpers/moving.js';

const TABLES = tenantTables(STORE);

let cells: TwoCells;

/** Where nothing listens. */
const LOST = 'postgresql://127.0.0.1:1/lost';

async function placed(name: string, cell: CellName = 'east'): Promise<Tenant> {
  await cells.place(name, cell);
  return cells.tenant(cell, name);
}

/** A session as that of the command, in the cell. */
async function withSession<T>(cell: CellName, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { connectionString } = cells.api(cell).database;
  const client = await connectCommand({ connectionString: inSchema(connectionString, cell) });
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const isServed = (tenant: Tenant) =>
  eventually(async () => expectStatus(await tenant.get('/instances'), 200));

export function describeGuards(cellsOf: () => TwoCells): void {
  before(() => {
    cells = cellsOf();
  });

  test('a command that was left behind deletes nothing of a tenant that has come back', async () => {
    const name = 'back-again';
    const east = await placed(name);
    await east.sequence([step('a', 'noop')]);
    const { move } = await cells.move(name, 'west');
    await cells.move(name, 'east');
    const rows = await cells.rows('east', name);
    assert.equal(rows.sequences, 1);
    for (const state of ['left', 'arriving'] as const) {
      const deletion = { tenant: name, move: move.id, state };
      await withSession('east', (client) =>
        assert.rejects(deleteRows(client, TABLES, deletion), MoveError),
      );
    }
    assert.deepEqual(await cells.rows('east', name), rows);
  });

  test('rows that somebody else deletes meanwhile do not end the deletion of the others', async () => {
    const name = 'deleted-by-two';
    const east = await placed(name);
    for (let n = 0; n < 5; n++) await east.sequence([step(`a${n}`, 'noop')]);
    assert.ok(await cells.moveUntil(name, 'west', 'before clear-source'));
    const [move] = await cells.directory.moves({ limit: 1, isUnderWay: true });
    const deletion = { tenant: name, move: move!.id, state: 'left' as const };
    await withSession('east', async (other) => {
      await other.query('begin');
      await other.query(
        `delete from sequences where ctid = any(array(
         select ctid from sequences where tenant_id = $1 limit 2))`,
        [name],
      );
      await withSession('east', async (client) => {
        const deleted = deleteRows(client, TABLES, deletion, 2);
        await eventually(async () => {
          // Within a transaction it would show the same activity each time.
          await other.query('select pg_stat_clear_snapshot()');
          const { rows } = await other.query(
            "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%doomed%'",
          );
          assert.equal(rows.length, 1);
        });
        await other.query('commit');
        await deleted;
      });
    });
    assert.deepEqual(await cells.rows('east', name), {});
    assert.equal((await cells.move(name, 'west')).move.state, 'done');
  });

  test('behind the switch the tenant is let in although the database that it has left is lost', async () => {
    const name = 'source-lost';
    await placed(name);
    assert.ok(await cells.moveUntil(name, 'west', 'behind switch'));
    await assert.rejects(cells.move(name, 'west', { sourceUrl: LOST }), { code: 'ECONNREFUSED' });
    await isServed(cells.tenant('west', name));
    assert.equal((await cells.move(name, 'west')).move.state, 'done');
  });

  test('a slug that a trigger of another tenant has there makes it refuse before the tenant waits', async () => {
    const name = 'same-slug';
    const trigger = async (tenant: Tenant) => {
      const body = {
        tenant_id: tenant.name,
        namespace: 'test',
        slug: 'in',
        sequence_name: 'takes',
      };
      expectStatus(await tenant.post('/triggers', body), 201);
    };
    const east = await placed(name);
    const other = await placed('slug-owner', 'west');
    for (const tenant of [east, other]) {
      await tenant.sequence([step('a', 'noop')], { name: 'takes' });
      await trigger(tenant);
    }
    await assert.rejects(cells.move(name, 'west'), /triggers of others with these slugs: in/);
    assert.equal((await east.get('/instances')).status, 200);
    await cells.noteGivenUp(name);
    assert.equal((await cells.move(name, 'west')).move.state, 'given_up');

    // One that was made in the last moment is named, and the move can be given up.
    expectStatus(await other.delete('/triggers/in'), 204);
    assert.ok(await cells.moveUntil(name, 'west', 'behind suspend-source'));
    await trigger(other);
    await assert.rejects(cells.move(name, 'west'), {
      name: 'MoveError',
      message: /cell west does not take the rows of triggers: .*; give the move up/,
    });
    await cells.noteGivenUp(name);
    assert.equal((await cells.move(name, 'west')).move.state, 'given_up');
    await isServed(east);
  });

  test('a program that does not know the tables of the cells moves nothing, and can give up', async () => {
    const name = 'from-the-past';
    const east = await placed(name);
    const newer = (cell: CellName) =>
      cells.query(
        cell,
        `insert into ${cell}.schema_migrations
       select 9999, '9999_future', checksum, applied_at from ${cell}.schema_migrations limit 1`,
      );
    await newer('east');
    await newer('west');
    await assert.rejects(
      cells.move(name, 'west'),
      /migration 9999, this program \d+: use the program/,
    );
    assert.equal((await east.get('/instances')).status, 200);
    await cells.noteGivenUp(name);
    assert.equal((await cells.move(name, 'west')).move.state, 'given_up');
    for (const cell of ['east', 'west'] as const) {
      await cells.query(cell, `delete from ${cell}.schema_migrations where version = 9999`);
    }
  });
}
