/**
 * Brings the schema up to date: numbered SQL files, forward only, each in its own transaction and recorded
 * with its checksum. Concurrent starts wait for each other on an advisory lock. A database that a newer
 * program has migrated, or whose files were changed afterwards, is refused before anything is written. A
 * schema that Citus distributes gets no policies (docs/operate/citus.md).
 */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { packageFile } from '../base/package-files.js';
import { isDistributed } from './distributed.js';
import { withClient } from './pool.js';
import { statementsIn } from './sql-script.js';

export const MIGRATIONS_DIR = packageFile('src/db/migrations');

/** The database does not fit this program; the message has advice. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** Applied before ownership, even while another engine owns the database. */
export const OWNERSHIP_VERSION = 0;
/** The one-number advisory lock of the schema `public`. */
const MIGRATION_LOCK = 7_423_001_884;

/** Other schemas have their own lock, by their oid. */
const LOCK_OF_SCHEMA = `
select case nspname when 'public' then $1::bigint else $1::bigint # (oid::bigint << 32) end::text as key
from pg_namespace where nspname = current_schema()`;

/** Timeout of the wait for another migrating process; a large table may need minutes. */
const LOCK_TIMEOUT_MS = 600_000;

/**
 * Applies the missing files of `dir` up to the version `upTo`, and returns their names. Only the owner of
 * the database may go beyond `OWNERSHIP_VERSION`. All applied versions are checked, so that an old program
 * does not even become a standby.
 * @throws SchemaError when the database is newer than the files, or an applied file has changed.
 */
export async function migrate(
  connectionString: string,
  dir: string = MIGRATIONS_DIR,
  upTo: number = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const migrations = readMigrations(dir);
  return withClient(session(connectionString), (client) =>
    withMigrationLock(client, async () => {
      const applied = await readApplied(client);
      checkApplied(migrations, applied);
      const missing = migrations.slice(applied.length).filter(({ version }) => version <= upTo);
      const skipped = missing.length > 0 && (await isDistributed(client)) ? POLICIES : NOTHING;
      for (const migration of missing) await apply(client, migration, skipped);
      return missing.map(({ name }) => name);
    }),
  );
}

/** Restores a lost row of the lease at the epoch of the lanes, without an owner, valid for `ttlMs`. */
export async function restoreLease(connectionString: string, ttlMs: number): Promise<void> {
  await withClient(session(connectionString), (client) =>
    withMigrationLock(client, async () => {
      await client.query(
        `insert into engine_lease (id, epoch, owner, application_name, renewed_at, expires_at)
         select 1, coalesce(max(epoch), 0), '', '', now(),
           now() + $1::int * interval '1 millisecond'
         from lanes
         on conflict (id) do nothing`,
        [ttlMs],
      );
    }),
  );
}

/** @throws SchemaError unless the schema is the one that this program needs */
export async function expectSchema(
  connectionString: string,
  dir: string = MIGRATIONS_DIR,
): Promise<void> {
  const migrations = readMigrations(dir);
  const applied = await withClient(session(connectionString), readApplied);
  checkApplied(migrations, applied);
  if (applied.length === migrations.length) return;
  const has = applied.at(-1)?.name ?? 'empty';
  throw new SchemaError(
    `the database schema is ${has}, this program needs ${migrations.at(-1)?.name}; ` +
      'start once with ENGINE_RUN_MIGRATIONS=true to bring it up to date',
  );
}

/** Files `NNNN_name.sql` in the order of their versions. @throws SchemaError on a repeated version */
export function readMigrations(dir: string): Migration[] {
  const migrations = readdirSync(dir)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => readMigration(dir, file));
  const repeated = migrations.find(({ version }, at) => version === migrations[at - 1]?.version);
  if (repeated !== undefined) {
    throw new SchemaError(`two migrations have the number of ${repeated.name}`);
  }
  return migrations;
}

export function newestMigration(): number {
  return readMigrations(MIGRATIONS_DIR).at(-1)?.version ?? 0;
}

/** Normalizes line ends, so that checksums are the same on every system. */
function readMigration(dir: string, file: string): Migration {
  const sql = readFileSync(path.join(dir, file), 'utf8').replaceAll('\r\n', '\n');
  const checksum = createHash('sha256').update(sql).digest('hex');
  return { version: Number(file.slice(0, 4)), name: path.basename(file, '.sql'), sql, checksum };
}

type Applied = Pick<Migration, 'version' | 'name' | 'checksum'>;

/** The applied migrations must be the first ones of the files, unchanged. */
function checkApplied(migrations: readonly Migration[], applied: readonly Applied[]): void {
  const newest = migrations.at(-1);
  for (const [index, row] of applied.entries()) {
    const migration = migrations[index];
    if (row.version > (newest?.version ?? -1)) {
      throw new SchemaError(
        `the database is newer than this program: it has ${row.name}, ` +
          `this program knows up to ${newest?.name ?? 'nothing'}; start the newer program`,
      );
    }
    if (migration?.version !== row.version) {
      throw new SchemaError(
        `the database has ${row.name} where this program has ${migration?.name}; ` +
          'it belongs to another line of the program',
      );
    }
    if (migration.checksum !== row.checksum) {
      throw new SchemaError(
        `migration ${row.name} was changed after it had been applied; ` +
          'restore the file and put the change into a new one',
      );
    }
  }
}

async function readApplied(client: pg.ClientBase): Promise<Applied[]> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('schema_migrations') is not null as exists`,
  );
  if (rows[0]?.exists !== true) return [];
  const applied = await client.query<Applied>(
    'select version, name, checksum from schema_migrations order by version',
  );
  return applied.rows;
}

/** Matches statements that only create policies. */
const POLICIES = /\bcreate policy\b/;
const NOTHING = /(?!)/;

async function apply(client: pg.ClientBase, migration: Migration, skipped: RegExp): Promise<void> {
  await client.query('begin');
  try {
    await client.query('set local statement_timeout = 0');
    for (const text of statementsIn(migration.sql)) {
      // The extended protocol rejects a text with two statements.
      const query = { text, queryMode: 'extended' };
      if (!skipped.test(text)) await client.query(query);
    }
    await client.query(
      `insert into schema_migrations (version, name, checksum) values ($1::int, $2::text, $3::text)`,
      [migration.version, migration.name, migration.checksum],
    );
    await client.query('commit');
  } catch (error) {
    // A lost connection rolls back by itself; the first error is reported.
    await client.query('rollback').catch(() => undefined);
    const reason = error instanceof Error ? error.message : String(error);
    throw new SchemaError(`migration ${migration.name} failed: ${reason}`, { cause: error });
  }
}

async function withMigrationLock<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  const found = await client.query<{ key: string }>(LOCK_OF_SCHEMA, [MIGRATION_LOCK]);
  const key = [found.rows[0]!.key];
  // A session lock outlives the transaction; only the timeouts are local to it.
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await client.query('set local statement_timeout = 0');
    await client.query('select pg_advisory_lock($1::bigint)', key);
  } finally {
    await client.query('commit');
  }
  try {
    return await work();
  } finally {
    // A lost connection frees the lock.
    await client.query('select pg_advisory_unlock($1::bigint)', key).catch(() => {});
  }
}

function session(connectionString: string) {
  return { connectionString, applicationName: 'engine-migrate' };
}
