/**
 * Checks the database connection at a start: waits until the database is available, checks its version and
 * its durability, and creates what ownership needs. A wrong name or password fails at once. Whether
 * acknowledged commits are on a replica, the settings of Postgres decide: the engine reports what is missing,
 * and can refuse to start (docs/operate/availability.md).
 */

import { setTimeout as pause } from 'node:timers/promises';
import { ConfigError } from '../base/config-error.js';
import { databaseRefusal } from './database-refusal.js';
import { type EngineSchema, ensureSchema } from './engine-schema.js';
import { MIGRATIONS_DIR, migrate, OWNERSHIP_VERSION, SchemaError } from './migrate.js';
import { type DbLog, withClient } from './pool.js';
import { isUnavailable } from './trouble.js';

export interface ConnectionCheck {
  readonly connectionString: string;
  readonly ownerUrl: string;
  readonly schema: EngineSchema;
  readonly isUnsafeAccepted: boolean;
  readonly synchronous: SynchronousMode;
  readonly log: DbLog;
  readonly signal: AbortSignal;
  readonly onUnavailable: (error: unknown, attempts: number) => void;
}

/** The oldest Postgres that the tests run against. */
const POSTGRES_VERSION_MIN = 15;
/** Settings without which a crash of the server's machine loses committed data. */
const DURABLE_SETTINGS = ['fsync', 'full_page_writes'] as const;
const RETRY_MS = 500;

/** @throws ConfigError or SchemaError with advice */
export async function checkConnection(options: ConnectionCheck): Promise<void> {
  const { connectionString, ownerUrl, schema, signal, onUnavailable, log } = options;
  for (let attempts = 1; !signal.aborted; attempts++) {
    let isOwner = false;
    try {
      const unreplicated = await checkServer(options);
      isOwner = ownerUrl !== connectionString;
      await ensureSchema(connectionString, ownerUrl, schema);
      await migrate(ownerUrl, MIGRATIONS_DIR, OWNERSHIP_VERSION);
      if (unreplicated !== undefined) {
        log.warn(
          { lacking: unreplicated },
          'replication is not synchronous: a fail-over loses the last acknowledged commits',
        );
      }
      return;
    } catch (error) {
      if (error instanceof ConfigError || error instanceof SchemaError) throw error;
      if (!isUnavailable(error)) {
        throw isOwner
          ? databaseRefusal(ownerUrl, error as Error, 'DATABASE_MIGRATION_URL')
          : databaseRefusal(connectionString, error as Error);
      }
      onUnavailable(error, attempts);
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

interface Server extends Replication {
  readonly version: string;
  readonly off: readonly string[];
  readonly encoding: string;
  /** A primary may be read-only by default. */
  readonly read_only: string;
}

/**
 * @returns as `judgeReplication`
 * @throws ConfigError when the server is too old, cannot store every text, is read-only, or may lose
 *   committed data, unless that is accepted
 */
async function checkServer({
  connectionString,
  isUnsafeAccepted,
  synchronous,
}: ConnectionCheck): Promise<string | undefined> {
  const options = { connectionString, applicationName: 'engine start' };
  const { rows } = await withClient(options, (client) =>
    client.query<Server>(
      `select current_setting('server_version_num') as version, array(
         select name from unnest($1::text[]) as name where current_setting(name) = 'off') as off,
         current_setting('server_encoding') as encoding,
         current_setting('default_transaction_read_only') as read_only,
         ${REPLICATION_FACTS}`,
      [DURABLE_SETTINGS],
    ),
  );
  const server = rows[0]!;
  const { off, encoding } = server;
  const version = Number(server.version);
  if (version < POSTGRES_VERSION_MIN * 10_000) {
    throw new ConfigError(
      `DATABASE_URL names a Postgres ${Math.floor(version / 10_000)}; ` +
        `this program needs ${POSTGRES_VERSION_MIN} or later`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new ConfigError(
      `the database of DATABASE_URL has the encoding ${encoding}, and cannot hold every text; ` +
        'make one with UTF8 (createdb --encoding=UTF8 --template=template0), and name that',
    );
  }
  if (server.read_only === 'on') {
    throw new ConfigError(
      'the database of DATABASE_URL is read-only, by default_transaction_read_only; where nobody has moved it ' +
        'elsewhere, reset that for the server, the database and the role',
    );
  }
  if (off.length > 0 && !isUnsafeAccepted) {
    throw new ConfigError(
      `the Postgres of DATABASE_URL has ${off.join(' and ')} off, and would lose what was ` +
        'acknowledged when its machine dies; turn that on, or start with --unsafe-database',
    );
  }
  return judgeReplication(server, synchronous);
}

/** `auto`: checked if there are replicas. `required`: the engine does not start without. */
export type SynchronousMode = 'auto' | 'required' | 'off';

export interface Replication {
  readonly names: string;
  readonly commit: string;
  readonly replicas: number;
}

/** Columns of a select. A role with few rights sees only that replicas exist. */
export const REPLICATION_FACTS = `
  current_setting('synchronous_standby_names') as names,
  current_setting('synchronous_commit') as commit,
  (select count(*) from pg_stat_replication)::int as replicas`;

/** Waits for the local disk only. The writer replaces `off`, and keeps this value. */
const LOCAL = 'local';

export function lackingReplication({ names, commit, replicas }: Replication): string | undefined {
  if (names === '' && replicas === 0) return 'there is no replica';
  if (names === '') return 'synchronous_standby_names is empty';
  if (commit === LOCAL) return 'synchronous_commit is local for the role of the engine';
  return undefined;
}

/** The reason for a warning. @throws ConfigError when replication is required and missing */
function judgeReplication(found: Replication, mode: SynchronousMode): string | undefined {
  const lacking = lackingReplication(found);
  if (lacking !== undefined && mode === 'required') {
    throw new ConfigError(
      `ENGINE_DB_SYNCHRONOUS is required, and replication is not synchronous: ${lacking}; ` +
        'docs/operate/availability.md has the settings',
    );
  }
  return mode === 'auto' && found.replicas > 0 ? lacking : undefined;
}
