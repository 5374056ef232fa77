/**
 * A Postgres, and in it a database with the documented roles and a clock that can be set, with the engine that owns
 * it. Standbys may be started beside it, one of which becomes the owner.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { packageFile } from '../../../src/base/package-files.js';
import { type Tenant, tenantThrough } from '../../helpers/api.js';
import { type Client, createClient } from '../../helpers/client.js';
import { startPostgres, type TestPostgres } from '../../helpers/database.js';
import { shadowClock } from '../../helpers/database-clock.js';
import { type Engine, startEngine } from '../../helpers/engine.js';

/** As `docs/operate/roles.md` shows them. */
const ROLES = /```sql\n([\s\S]*?)```/.exec(
  readFileSync(packageFile('docs/operate/roles.md'), 'utf8'),
)?.[1];

/** A request that waits for the database is answered in the end. */
const TIMEOUT_MS = 60_000;

interface Given {
  readonly postgres: TestPostgres;
  /** As superuser. */
  readonly admin: pg.Client;
  readonly setClock: (aheadMs: number) => Promise<void>;
  readonly engineUrl: string;
  readonly ownerUrl: string;
}

export class DatabaseWorld {
  /** The owner; replaced by a test that has it replaced. */
  engine: Engine;
  readonly given: Given;
  readonly #engines: Engine[];
  readonly #clients: Pick<Client, 'close'>[] = [];
  #isDatabaseThere = true;

  private constructor(engine: Engine, given: Given) {
    this.engine = engine;
    this.given = given;
    this.#engines = [engine];
  }

  static async start(): Promise<DatabaseWorld> {
    const postgres = await startPostgres();
    const database = await postgres.createDatabase({ isMigrated: false });
    const admin = new pg.Client(database.connectionString);
    await admin.connect();
    assert.ok(ROLES !== undefined);
    await admin.query(ROLES);
    const setClock = await shadowClock(admin);
    const as = (username: string, password: string) =>
      Object.assign(new URL(database.connectionString), { username, password }).href;
    const engineUrl = as('engine', 'PASSWORD_OF_ENGINE');
    const ownerUrl = as('engine_owner', 'PASSWORD_OF_OWNER');
    const engine = await startEngine({
      databaseUrl: engineUrl,
      env: {
        ENGINE_SHARDS: '2',
        DATABASE_MIGRATION_URL: ownerUrl,
        ENGINE_ROW_SECURITY: 'required',
      },
    });
    return new DatabaseWorld(engine, { postgres, admin, setClock, engineUrl, ownerUrl });
  }

  /** The tenant as this engine serves it, by default the present owner. */
  tenant(name: string, engine = this.engine): Tenant {
    const tenant = tenantThrough(engine.url, name);
    this.#clients.push(tenant);
    return tenant;
  }

  /** Connections of their own to the present owner, without the contract of replies. */
  client(tenant: string, connections: number): Client {
    const { url, apiKey } = this.engine;
    const client = createClient({ url, apiKey, tenant, connections, timeoutMs: TIMEOUT_MS });
    this.#clients.push(client);
    return client;
  }

  /** Another engine, which is not waited for. */
  async beside(): Promise<Engine> {
    const engine = await this.engine.beside({ waitFor: 'listening' });
    this.#engines.push(engine);
    return engine;
  }

  /** The owner is killed and comes back. */
  async restart(): Promise<void> {
    await this.engine.kill();
    this.engine = await this.engine.restart();
    this.#engines.push(this.engine);
  }

  async stopDatabase(): Promise<void> {
    if (!this.#isDatabaseThere) return;
    this.#isDatabaseThere = false;
    await this.given.admin.end();
    await this.given.postgres.stop();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    for (const engine of this.#engines) await engine.kill();
    await this.stopDatabase();
  }
}

/** The messages of its log so far. */
export const told = (engine: Engine) => engine.logs().map(({ msg }) => msg);

/** The role may change rows and no tables, make no roles, and reach neither files nor programs. */
export async function cannotChangeTables(client: pg.Client, table: string): Promise<void> {
  for (const statement of [
    `drop table ${table}`,
    `alter table ${table} add column extra int`,
    `truncate ${table}`,
    'create table extra (id int)',
    'create role extra',
    "select pg_read_file('postmaster.pid')",
    "copy (select 1) to program 'cat'",
  ]) {
    await assert.rejects(client.query(statement), { code: '42501' }, statement);
  }
}
