/** Checks of the database, if it is reachable: version, settings, schema, rights and disk space. */

import { statfsSync } from 'node:fs';
import {
  lackingReplication,
  REPLICATION_FACTS,
  type Replication,
} from '../../src/db/connection-check.js';
import { databaseRefusal } from '../../src/db/database-refusal.js';
import { isDistributed } from '../../src/db/distributed.js';
import { expectSchema, SchemaError } from '../../src/db/migrate.js';
import { createClient } from '../../src/db/pool.js';
import { durationText } from '../table.js';
import { type Check, check, ok } from './check.js';

const VERSION_MIN = 15;
const CONNECT_MS = 5_000;
const LONG_TRANSACTION_MS = 5 * 60_000;
const CONNECTIONS_SHARE_MAX = 0.8;
const CLOCK_MS_MAX = 1_000;
const DEAD_SHARE_MAX = 0.5;
const DEAD_ROWS_MIN = 100_000;
/** As docs/operate/sizing.md recommends. */
const WAL_BYTES_MIN = 2 ** 30;

const FACTS = `
select current_setting('server_version_num')::int / 10000 as version,
  current_setting('server_version') as version_text,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('wal_level') as wal_level,
  ${REPLICATION_FACTS},
  pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as is_read_only,
  (select setting::bigint * 1048576 from pg_settings where name = 'max_wal_size')::float8 as wal_bytes,
  current_setting('max_connections')::int as connections_max,
  (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as connections,
  pg_database_size(current_database())::float8 as bytes,
  extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
  coalesce((select max(extract(epoch from clock_timestamp() - xact_start))
    from pg_stat_activity where backend_type = 'client backend' and xact_start is not null), 0)::float8 * 1000
    as oldest_transaction_ms,
  case when pg_has_role('pg_read_all_settings', 'member') then current_setting('data_directory') end as folder,
  to_regclass('instances') is not null and has_table_privilege(to_regclass('instances'), 'select, insert, update, delete')
    as may_write`;

const DEAD_ROWS = `
select relname as name, n_dead_tup::float8 as dead, n_live_tup::float8 as live
from pg_stat_user_tables where schemaname = current_schema() order by n_dead_tup desc limit 1`;

interface Facts extends Replication {
  readonly version: number;
  readonly version_text: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly wal_level: string;
  readonly is_read_only: boolean;
  readonly wal_bytes: number;
  readonly connections_max: number;
  readonly connections: number;
  readonly bytes: number;
  readonly now_ms: number;
  readonly oldest_transaction_ms: number;
  readonly folder: string | null;
  readonly may_write: boolean;
}

interface DeadRows {
  readonly name: string;
  readonly dead: number;
  readonly live: number;
}

/** Reads only. */
export async function databaseChecks(connectionString: string): Promise<Check[]> {
  const client = createClient({
    connectionString,
    connectTimeoutMs: CONNECT_MS,
    statementTimeoutMs: CONNECT_MS,
    applicationName: 'durable-workflow-engine doctor',
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<Facts>(FACTS);
    const dead = await client.query<DeadRows>(DEAD_ROWS);
    const [facts] = rows as [Facts];
    return [
      ...databaseFindings(facts, Date.now(), dead.rows[0]),
      await schemaCheck(connectionString),
      ...((await isDistributed(client)) ? distributedFindings(facts) : []),
      ...roomChecks(facts),
    ];
  } catch (error) {
    return [
      check(
        'bad',
        'database',
        databaseRefusal(connectionString, error as Error).message,
        'docs/operate/troubleshooting.md.',
      ),
    ];
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** @param here Unix milliseconds on this machine */
export function databaseFindings(facts: Facts, here: number, dead: DeadRows | undefined): Check[] {
  const found: Check[] = [];
  const bad = (about: string, what: string, todo: string) =>
    found.push(check('bad', about, what, todo));
  const warn = (about: string, what: string, todo: string) =>
    found.push(check('warn', about, what, todo));
  if (facts.version < VERSION_MIN)
    bad('database', `Postgres ${facts.version_text}`, `Use ${VERSION_MIN} or later.`);
  else found.push(ok('database', `Postgres ${facts.version_text}, ${gibibytes(facts.bytes)}`));
  if (facts.is_read_only) bad('database', 'read-only', 'Set DATABASE_URL to the primary server.');
  for (const name of ['fsync', 'full_page_writes'] as const) {
    if (facts[name] !== 'on')
      bad(
        'durability',
        `${name} is ${facts[name]}`,
        `Set ${name} = on; otherwise a crash loses acknowledged writes.`,
      );
  }
  const lacking = lackingReplication(facts);
  const { replicas } = facts;
  if (lacking === undefined && replicas === 0) {
    bad(
      'replication',
      'synchronous, but no replica is connected: commits wait',
      'Restore a replica: docs/operate/availability.md.',
    );
  } else if (lacking === undefined) {
    found.push(ok('replication', `synchronous, ${replicas} connected`));
  } else if (replicas > 0) {
    warn(
      'replication',
      `${lacking}; ${replicas} connected`,
      'Make it synchronous; otherwise a failover loses acknowledged writes: docs/operate/availability.md.',
    );
  }
  if (facts.commit === 'off') {
    warn(
      'durability',
      'synchronous_commit is off for this role',
      'Set it to on: the engine sets it for its own writes only.',
    );
  }
  if (!facts.may_write && !facts.is_read_only) {
    warn(
      'rights',
      "this role may not change the engine's rows",
      "Grant the rights in docs/operate/roles.md, or use the engine's role.",
    );
  }
  const share = facts.connections / facts.connections_max;
  const used = `${facts.connections} of ${facts.connections_max} connections`;
  if (share > CONNECTIONS_SHARE_MAX)
    warn('connections', used, 'Increase max_connections, or connect fewer clients.');
  else found.push(ok('connections', used));
  const clockMs = here - facts.now_ms;
  if (Math.abs(clockMs) > CLOCK_MS_MAX) {
    warn(
      'clock',
      `the database's clock differs from this machine's by ${durationText(Math.abs(clockMs))}`,
      'Synchronize both with NTP.',
    );
  }
  if (facts.oldest_transaction_ms > LONG_TRANSACTION_MS) {
    warn(
      'sessions',
      `a transaction has been open for ${durationText(facts.oldest_transaction_ms)}`,
      'End it (pg_stat_activity): dead rows cannot be removed while it is open.',
    );
  }
  if (dead !== undefined && dead.dead > DEAD_ROWS_MIN && dead.dead > dead.live * DEAD_SHARE_MAX) {
    warn(
      'vacuum',
      `${Math.round(dead.dead)} dead rows in ${dead.name}`,
      'Find what blocks autovacuum: long transactions or replication slots.',
    );
  }
  if (facts.wal_bytes < WAL_BYTES_MIN) {
    warn(
      'settings',
      `max_wal_size is ${gibibytes(facts.wal_bytes)}`,
      'Set it to 4GB or more under high load: docs/operate/sizing.md.',
    );
  }
  return found;
}

/** For a schema that Citus distributes. */
export function distributedFindings({ wal_level }: Pick<Facts, 'wal_level'>): Check[] {
  const found = ok('citus', 'distributes the schema; row-level security is off');
  if (wal_level === 'logical') return [found];
  const todo =
    'Set wal_level = logical on every node; otherwise cells cannot be moved to another node.';
  return [found, check('warn', 'citus', `wal_level is ${wal_level}`, todo)];
}

async function schemaCheck(connectionString: string): Promise<Check> {
  try {
    await expectSchema(connectionString);
    return ok('schema', 'matches this version');
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return check(
      'warn',
      'schema',
      error.message,
      'See docs/operate/upgrade.md for the order of an upgrade.',
    );
  }
}

// ---------------------------------------------------------------- disk space

const FREE_SHARE_MIN = 0.1;
const FREE_BYTES_MIN = 2 * 2 ** 30;

function roomChecks({ folder }: Facts): Check[] {
  return folder === null ? [] : diskChecks(folder);
}

/** Disk space of a folder on this machine; empty if it is on another one. */
export function diskChecks(folder: string): Check[] {
  try {
    const { bsize, bavail, blocks } = statfsSync(folder);
    return [diskFinding(folder, bavail * bsize, blocks * bsize)];
  } catch {
    // The database is on another machine, or its folder is not accessible.
    return [];
  }
}

export function diskFinding(folder: string, freeBytes: number, bytes: number): Check {
  const found = `${gibibytes(freeBytes)} of ${gibibytes(bytes)} free under ${folder}`;
  if (freeBytes > FREE_BYTES_MIN && freeBytes > bytes * FREE_SHARE_MIN) return ok('disk', found);
  return check(
    'warn',
    'disk',
    found,
    'Free disk space: the engine stops writing when the disk is full, without losing data.',
  );
}

const gibibytes = (bytes: number) =>
  bytes < 2 ** 30 ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
