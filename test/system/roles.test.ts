/** Roles of the database with no more rights than they need: as documented, and of the embedded server. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { ensureRoles } from '../../src/db/embedded-roles.js';
import { prepareRowSecurity } from '../../src/db/row-security.js';
import { packageFile } from '../../src/package-files.js';
import { startApi, step } from '../helpers/api.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';

/** What Postgres answers who lacks a right. */
const FORBIDDEN = { code: '42501' };

let postgres: TestPostgres | undefined;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres?.stop());

async function withSession<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe('the documented grants', () => {
  const statements = /```sql\n([\s\S]*?)```/.exec(
    readFileSync(packageFile('docs/operate/roles.md'), 'utf8'),
  )?.[1];

  test('a server makes its tables, works and is killed and replaced with nothing but these rights', async () => {
    assert.ok(postgres !== undefined && statements !== undefined);
    const database = await postgres.createDatabase({ isMigrated: false });
    await withSession(database.connectionString, (client) => client.query(statements));
    const as = (role: string, password: string) => {
      const url = new URL(database.connectionString);
      return Object.assign(url, { username: role, password }).href;
    };
    const engineUrl = as('engine', 'PASSWORD_OF_ENGINE');
    const ownerUrl = as('engine_owner', 'PASSWORD_OF_OWNER');
    const api = await startApi({
      database: { ...database, connectionString: engineUrl },
      env: { DATABASE_MIGRATION_URL: ownerUrl, ENGINE_ROW_SECURITY: 'required' },
    });
    try {
      const tenant = api.tenant();
      const id = await tenant.run([step('a', 'outside')]);
      const task = await tenant.task('outside');
      await api.restart('SIGKILL');
      await tenant.complete(task, { done: true });
      await tenant.until(id, 'completed');
      assert.equal((await tenant.tasks('outside')).length, 1);
      const sessions = await withSession(database.connectionString, (client) =>
        client.query<{ rolname: string; rolsuper: boolean }>(
          `select distinct rolname, rolsuper from pg_stat_activity join pg_roles on rolname = usename
           where datname = current_database() and application_name like 'engine-%'`,
        ),
      );
      assert.deepEqual(sessions.rows, [{ rolname: 'engine', rolsuper: false }]);
      await withSession(engineUrl, (client) => cannotChangeTables(client, 'instances'));
      await expectNoWallWithout(database.connectionString, engineUrl, ownerUrl);
    } finally {
      await api.stop();
    }
  });
});

describe('the roles of the embedded server', () => {
  test('tables of an older folder change hands with their rows, and later ones are usable', async () => {
    assert.ok(postgres !== undefined);
    const { connectionString, drop } = await postgres.createDatabase({ isMigrated: false });
    await withSession(connectionString, (client) =>
      client.query('create table older (id int primary key); insert into older values (1)'),
    );
    const urls = await ensureRoles(connectionString);
    assert.deepEqual(await ensureRoles(connectionString), urls);
    await withSession(urls.owner, (client) =>
      client.query('alter table older add column more int; create table later (id int)'),
    );
    await withSession(urls.engine, async (client) => {
      await client.query('insert into later values (1); update older set more = 2');
      const { rows } = await client.query('select id, more from older');
      assert.deepEqual(rows, [{ id: 1, more: 2 }]);
      await cannotChangeTables(client, 'older');
      await cannotChangeTables(client, 'later');
    });
    await drop();
  });
});

/** Without what it takes the wall comes down, since the engine could not copy rows in. */
async function expectNoWallWithout(
  superuserUrl: string,
  connectionString: string,
  ownerUrl: string,
): Promise<void> {
  const states = () =>
    withSession(superuserUrl, async (client) => {
      const { rows } = await client.query<{ on: boolean }>(
        "select distinct relrowsecurity as on from pg_class where relname in ('instances', 'signals')",
      );
      return rows.map((row) => row.on);
    });
  assert.deepEqual(await states(), [true]);
  await withSession(superuserUrl, (client) => client.query('alter role engine nobypassrls'));
  const options = { mode: 'auto', connectionString } as const;
  await assert.rejects(prepareRowSecurity({ ...options, ownerUrl: undefined }), /BYPASSRLS/);
  assert.match(String(await prepareRowSecurity({ ...options, ownerUrl })), /BYPASSRLS/);
  assert.deepEqual(await states(), [false]);
  const required = prepareRowSecurity({ ...options, mode: 'required', ownerUrl });
  await assert.rejects(required, /ENGINE_ROW_SECURITY is required/);
}

async function cannotChangeTables(client: pg.Client, table: string): Promise<void> {
  for (const statement of [
    `drop table ${table}`,
    `alter table ${table} add column extra int`,
    `truncate ${table}`,
    'create table extra (id int)',
    'create role extra',
    "select pg_read_file('postmaster.pid')",
    "copy (select 1) to program 'cat'",
  ]) {
    await assert.rejects(client.query(statement), FORBIDDEN, statement);
  }
}
