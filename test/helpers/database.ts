/**
 * Databases for tests, each cloned from a migrated template in some tens of milliseconds. They live
 * on one Postgres that all test files of a checkout share, without syncs, found again by later runs
 * and after crashed ones; `npm test` ends it. TEST_DATABASE_URL, the superuser's URL of any
 * Postgres from 15 on, is used instead when it is set.
 */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { MIGRATIONS_DIR, migrate, readMigrations } from '../../src/db/migrate.js';
import { createPool, type PoolOptions, READER_ROLE } from '../../src/db/pool.js';
import { prepareRowSecurity } from '../../src/db/row-security.js';
import type { PostgresMajor } from '../../src/server/embedded-files.js';
import type { Server, ServerOptions } from '../../src/server/embedded-server.js';
import { ensureServer, findPostmaster, stopServer } from '../../src/server/embedded-server.js';
import { isAlive, tryProcessLock } from '../../src/server/process-lock.js';
import { signalTree } from './process-tree.js';
import { standIn } from './stand-in.js';

export interface TestDatabase {
  readonly name: string;
  /** As superuser. */
  readonly connectionString: string;
  /** Removes the database; sessions that are still open end. */
  drop(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Default true. False: an empty database. */
  readonly isMigrated?: boolean;
}

export interface TestPostgres {
  readonly pid: number;
  /** As superuser, for the database `postgres`. */
  readonly connectionString: string;
  createDatabase(options?: TestDatabaseOptions): Promise<TestDatabase>;
  /** Starts it again as the standby of nobody, which has what it had and takes no writes. */
  demote(): Promise<void>;
  /**
   * Another server, which was its standby until now, and was promoted though this one goes on: both say that they are
   * the primary, and the other one is on the next timeline. Sessions of this one end.
   */
  fork(): Promise<TestPostgres>;
  /** SIGKILL to all of its processes. */
  kill(): void;
  /** Starts it again after that, on the same port. */
  restart(): Promise<void>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

/** Losing everything with the machine is fine, and commits cost nothing. */
const FAST_SETTINGS: Readonly<Record<string, string>> = {
  ...{ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' },
  ...{ jit: 'off', max_parallel_workers_per_gather: '0', timezone: 'UTC', log_timezone: 'UTC' },
};

const silent = () => undefined;
const SILENT_LOG = { info: silent, warn: silent, error: silent };

/** Names the lock under which the template is made. */
const TEMPLATE_LOCK = 5_318_008;

const LOCK_POLL_MS = 20;
/** A database that is there answers sooner. */
const REACH_MS = 10_000;

let sharedUrl: Promise<string> | undefined;
let databaseCount = 0;

/** A database of one's own, gone with `drop`. The first call of a checkout starts the server. */
export async function createTestDatabase(options?: TestDatabaseOptions): Promise<TestDatabase> {
  sharedUrl ??= process.env.TEST_DATABASE_URL
    ? Promise.resolve(process.env.TEST_DATABASE_URL)
    : startShared();
  return cloneDatabase(await sharedUrl, options);
}

/** A database and a session of the superuser, which the hooks of a test file make, prepare and end. */
export function useSession(prepare?: () => Promise<void>) {
  const made: { database?: TestDatabase; client?: pg.Client } = {};
  before(async () => {
    made.database = await createTestDatabase();
    made.client = new pg.Client(made.database.connectionString);
    await made.client.connect();
    await prepare?.();
  });
  after(async () => {
    await made.client?.end();
    await made.database?.drop();
  });
  return { database: standIn(() => made.database), client: standIn(() => made.client) };
}

/** The same with a pool as the product makes it; `prepare` may be given what it needs to be filled by. */
export function usePool(
  prepare?: (connectionString: string) => Promise<void>,
  options: Partial<PoolOptions> = {},
) {
  const made: { database?: TestDatabase; pool?: pg.Pool } = {};
  before(async () => {
    made.database = await createTestDatabase();
    const { connectionString } = made.database;
    const own = { applicationName: 'test', connectionsMax: 2, onError: () => undefined };
    made.pool = createPool({ ...own, connectionString, ...options });
    await prepare?.(connectionString);
  });
  after(async () => {
    await made.pool?.end();
    await made.database?.drop();
  });
  return { database: standIn(() => made.database), pool: standIn(() => made.pool) };
}

/** A server of one's own, for tests that stop it, or need another version than 18. */
export async function startPostgres(
  options: {
    readonly major?: PostgresMajor;
    /** Instead of those that make tests fast. */
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestPostgres> {
  return servedFrom(newFolder(), options.major ?? 18, { ...FAST_SETTINGS, ...options.settings });
}

/**
 * A new folder among the temporary files. Others may enter it, because under root Postgres and proxies run
 * as other users. The caller removes it.
 */
export function newFolder(name = 'engine-test'): string {
  const folder = mkdtempSync(path.join(tmpdir(), `${name}-`));
  chmodSync(folder, 0o755);
  return folder;
}

async function servedFrom(
  dataDir: string,
  major: PostgresMajor,
  settings: ServerOptions['settings'],
): Promise<TestPostgres> {
  const serverOptions = { ...fastOptions(dataDir), major, settings };
  let server = await ensureServer(serverOptions);
  const again = async () => {
    server = await ensureServer({ ...serverOptions, port: server.port });
  };
  const remove = () => {
    for (const it of [server.cluster, dataDir]) rmSync(it, { recursive: true, force: true });
  };
  // It would outlive a run that is interrupted.
  const abandon = () => {
    signalTree(server.pid, 'SIGKILL');
    remove();
  };
  process.once('exit', abandon);
  const stayStandby = (cluster: string) => writeFileSync(path.join(cluster, 'standby.signal'), '');
  return {
    get pid() {
      return server.pid;
    },
    connectionString: server.connectionString,
    createDatabase: (databaseOptions) => cloneDatabase(server.connectionString, databaseOptions),
    demote: async () => {
      await stopServer(server.pid);
      stayStandby(server.cluster);
      await again();
    },
    fork: async () => {
      const folder = newFolder();
      await stopServer(server.pid);
      // With the owners of its files.
      execFileSync('cp', ['-a', `${dataDir}/.`, folder]);
      await again();
      stayStandby(path.join(folder, path.relative(dataDir, server.cluster)));
      const forked = await servedFrom(folder, major, settings);
      await withAdmin(forked.connectionString, (admin) => admin.query('select pg_promote()'));
      return forked;
    },
    kill: () => signalTree(server.pid, 'SIGKILL'),
    restart: again,
    stop: async () => {
      await stopServer(server.pid, 'immediate');
      process.off('exit', abandon);
      remove();
    },
  };
}

/** One sentence and the end of this process where TEST_DATABASE_URL leads to no database. */
export async function requireReachable(): Promise<void> {
  const connectionString = process.env.TEST_DATABASE_URL;
  if (!connectionString) return;
  try {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: REACH_MS });
    await client.connect();
    await client.end();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    console.error(`TEST_DATABASE_URL leads to no Postgres that lets us in: ${message || code}`);
    process.exit(1);
  }
}

/** Ends the shared server unless another test process still has a database there. */
export async function stopSharedServer(): Promise<void> {
  const dataDir = sharedFolder();
  if (!existsSync(dataDir)) return;
  await withLock(dataDir, async () => {
    const marker = path.join(dataDir, 'postgres.location');
    const cluster = existsSync(marker)
      ? readFileSync(marker, 'utf8').trim()
      : path.join(realpathSync(dataDir), 'postgres');
    if (findPostmaster(cluster) === undefined) return;
    const { connectionString, pid } = await ensureServer(fastOptions(dataDir));
    const names = await withAdmin(connectionString, listTestDatabases);
    const creators = names.map(creator).filter((it) => it !== process.pid);
    // What is left in it is dropped at its next start.
    if (!creators.some(isAlive)) await stopServer(pid);
  });
}

async function startShared(): Promise<string> {
  const dataDir = sharedFolder();
  mkdirSync(dataDir, { recursive: true, mode: 0o755 });
  // The name can be guessed, and the folder for temporary files belongs to everybody.
  if (statSync(dataDir).uid !== process.getuid?.()) {
    throw new Error(`${dataDir} belongs to somebody else; remove it`);
  }
  return withLock(dataDir, async () => {
    const server = await ensureServer(fastOptions(dataDir));
    await dropAbandoned(server);
    return server.connectionString;
  });
}

/** One folder for each checkout and user. */
function sharedFolder(): string {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const key = createHash('sha256').update(`${root}\0${process.getuid?.()}`).digest('hex');
  return path.join(tmpdir(), `engine-tests-${key.slice(0, 12)}`);
}

function fastOptions(dataDir: string): ServerOptions {
  return { dataDir, major: 18, settings: FAST_SETTINGS, isDurable: false, log: SILENT_LOG };
}

/** Test files start at the same time, and only one of them may look after the server. */
async function withLock<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const file = path.join(dataDir, 'start.lock');
  for (;;) {
    const lock = tryProcessLock(file);
    if ('release' in lock) {
      try {
        return await work();
      } finally {
        lock.release();
      }
    }
    await wait(LOCK_POLL_MS);
  }
}

/** Runs that were killed left their databases, and older checkouts their templates. */
async function dropAbandoned(server: Server): Promise<void> {
  await withAdmin(server.connectionString, async (admin) => {
    const { rows } = await admin.query<{ datname: string }>(
      `select datname from pg_database where datname like 'template\\_%' and datname <> $1`,
      [templateName()],
    );
    const abandoned = (await listTestDatabases(admin)).filter((name) => !isAlive(creator(name)));
    const sessions = await admin.query<{ pid: number }>(
      'select pid from pg_stat_activity where datname = any($1)',
      [abandoned],
    );
    // A test that was killed may have left one stopped, for which every `drop` would wait.
    for (const { pid } of sessions.rows) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
    for (const name of [...rows.map(({ datname }) => datname), ...abandoned]) {
      await admin.query(`drop database if exists ${name} with (force)`);
    }
  });
}

async function listTestDatabases(admin: pg.Client): Promise<string[]> {
  const { rows } = await admin.query<{ datname: string }>(
    `select datname from pg_database where datname like 'test\\_%'`,
  );
  return rows.map(({ datname }) => datname);
}

/** The process that made a database, from its name `test_<process id>_<number>`. */
const creator = (name: string) => Number(name.split('_')[1]);

async function cloneDatabase(
  adminUrl: string,
  { isMigrated = true }: TestDatabaseOptions = {},
): Promise<TestDatabase> {
  const template = isMigrated ? await ensureTemplate(adminUrl) : 'template0';
  databaseCount += 1;
  const name = `test_${process.pid}_${databaseCount}`;
  await withAdmin(adminUrl, async (admin) => {
    // With TEST_DATABASE_URL a killed run may have left one of that name.
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.query(`create database ${name} template ${template}`);
  });
  return {
    name,
    connectionString: urlOf(adminUrl, name),
    drop: () =>
      withAdmin(adminUrl, async (admin) => {
        await admin.query(`drop database if exists ${name} with (force)`);
      }),
  };
}

/** The template gets its name when it is complete: an interrupted run leaves nothing half-made. */
async function ensureTemplate(adminUrl: string): Promise<string> {
  const name = templateName();
  await withAdmin(adminUrl, async (admin) => {
    await admin.query('select pg_advisory_lock($1::bigint)', [TEMPLATE_LOCK]);
    const { rowCount } = await admin.query('select from pg_database where datname = $1', [name]);
    if (rowCount !== 0) return;
    const draft = `draft_${name}`;
    await admin.query(`drop database if exists ${draft} with (force)`);
    await admin.query(`create database ${draft} template template0`);
    await migrate(urlOf(adminUrl, draft));
    await admin.query(`
      do $$ begin
        if not exists (select from pg_roles where rolname = '${READER_ROLE}') then
          create role ${READER_ROLE} nologin;
        end if;
      end $$`);
    const connectionString = urlOf(adminUrl, draft);
    // As at the start of an engine, which would take its time for each database.
    await prepareRowSecurity({
      store: STORE,
      mode: 'required',
      connectionString,
      ownerUrl: connectionString,
    });
    await admin.query(`alter database ${draft} rename to ${name}`);
  });
  return name;
}

function templateName(): string {
  const hash = createHash('sha256');
  for (const { checksum } of readMigrations(MIGRATIONS_DIR)) hash.update(checksum);
  return `template_${hash.digest('hex').slice(0, 16)}`;
}

function urlOf(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/** A session of the superuser for as long as the work takes. */
export async function withAdmin<T>(
  url: string,
  work: (admin: pg.Client) => Promise<T>,
): Promise<T> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}
