/**
 * Cells: engines that share a database, each pair with a schema of its own. Their roles see no other schema than
 * their own, so that a statement that reached for another one would be refused.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { Info } from '../../schema/system.js';
import { ensureSchema } from '../../src/db/cell-schema.js';
import { inSchema } from '../../src/db/database-url.js';
import { expectSchema, MIGRATIONS_DIR, migrate, readMigrations } from '../../src/db/migrate.js';
import { LOAD_SQL } from '../../src/db/statements-of-loads.js';
import { type Api, eventually, startApi, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { startPostgres, type TestDatabase, type TestPostgres } from '../helpers/database.js';
import type { Engine } from '../helpers/engine.js';
import { parseExposition } from '../helpers/exposition.js';

const CELLS = ['east', 'west'] as const;
type Name = (typeof CELLS)[number];

interface Cell {
  readonly api: Api;
  readonly standby: Engine;
}

let postgres: TestPostgres;
let database: TestDatabase;
let admin: pg.Pool;
let cells: Readonly<Record<Name, Cell>>;

const urlAs = (role: string) =>
  Object.assign(new URL(database.connectionString), { username: role, password: 'secret' }).href;

const envOf = (schema: string) => ({
  ENGINE_DB_SCHEMA: schema,
  ENGINE_ROW_SECURITY: 'required',
  DATABASE_MIGRATION_URL: urlAs(`${schema}_owner`),
});

async function startCell(name: Name): Promise<Cell> {
  await admin.query(`
    create role ${name}_owner login password 'secret';
    create role ${name} login bypassrls password 'secret';
    grant engine_reader to ${name};
    grant create on database ${database.name} to ${name}_owner;
  `);
  const api = await startApi({
    database: { ...database, connectionString: urlAs(name) },
    env: envOf(name),
  });
  return { api, standby: await api.engine.beside({ waitFor: 'listening' }) };
}

before(async () => {
  postgres = await startPostgres();
  database = await postgres.createDatabase({ isMigrated: false });
  admin = new pg.Pool({ connectionString: database.connectionString, max: 2 });
  admin.on('error', () => undefined);
  await admin.query('create role engine_reader nologin; revoke all on schema public from public');
  const east = await startCell('east');
  cells = { east, west: await startCell('west') };
});

after(async () => {
  for (const { api, standby } of Object.values(cells ?? {})) {
    await standby.stop();
    await api.stop();
  }
  await admin?.end();
  await postgres?.stop();
});

/** What tenants of the same name do in both cells, with the same keys. */
async function doTheSame(tenant: Tenant): Promise<{ readonly ids: string[] }> {
  const sequence = await tenant.sequence([step('a', 'outside')], { name: 'order' });
  const body = { idempotency_key: 'the-same' };
  const ids = [await tenant.create(sequence, body), await tenant.create(sequence)];
  expectStatus(await tenant.post('/rate-limits', RATE_LIMIT), 200);
  return { ids };
}
