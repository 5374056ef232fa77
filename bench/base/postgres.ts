/** The Postgres of a run: its own server with real syncs, in a folder that is removed afterwards. */

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import { createClient } from '../../src/db/pool.js';
import { ensureServer, stopServer } from '../../src/server/embedded-server.js';
import { isAlive } from '../../src/server/process-lock.js';
import type { Options } from '../options.js';

export interface BenchPostgres {
  readonly pid: number;
  readonly version: string;
  /** As superuser, for the database that the caller makes others from. */
  readonly admin: pg.Client;
  /** @returns its connection string */
  createDatabase(name: string): Promise<string>;
  /** Before a measured run, so that none of them pays for the pages of the one before. */
  checkpoint(): Promise<void>;
  /** Off, where a vacuum that happens to fall into one run would be counted as its cost. */
  setAutovacuum(isOn: boolean): Promise<void>;
  stop(): Promise<void>;
}

/** What production is advised to have, where it differs from the embedded default: the log's size. */
const SETTINGS: Readonly<Record<string, string>> = {
  synchronous_commit: 'on',
  full_page_writes: 'on',
  wal_compression: 'on',
  min_wal_size: '2GB',
  max_wal_size: '4GB',
  shared_buffers: '256MB',
  max_connections: '60',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  random_page_cost: '1.1',
  autovacuum_naptime: '15s',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/** The type numbers of tmpfs and ramfs, from the kernel's list of magic numbers. */
const MEMORY_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/** Every segment costs tens of milliseconds when it is first made: 2 GB outlast a run. */
const WAL_SEGMENTS = 128;

const silent = () => undefined;

/** @throws EmbeddedPostgresError when it does not start */
export async function startPostgres(
  { dataParent, isDurable }: Options,
  say: (text: string) => void,
): Promise<BenchPostgres> {
  const dataDir = mkdtempSync(path.join(dataParent ?? tmpdir(), 'engine-bench-'));
  // Others may enter it, because under root Postgres runs as another user.
  chmodSync(dataDir, 0o755);
  const remove = () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  const server = await ensureServer({
    dataDir,
    major: 18,
    settings: { ...SETTINGS, fsync: isDurable ? 'on' : 'off' },
    isDurable,
    log: { info: silent, warn: silent, error: silent },
  }).catch((error: unknown) => {
    remove();
    throw error;
  });
  // An interrupted run leaves neither the server nor its folder.
  const onExit = () => {
    if (isAlive(server.pid)) process.kill(server.pid, 'SIGQUIT');
    remove();
  };
  process.once('exit', onExit);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  const admin = await connect(server.connectionString);
  if (isDurable) await makeSegments(admin, WAL_SEGMENTS);
  const { rows } = await admin.query<{ version: string }>(
    `select current_setting('server_version') as version`,
  );
  const { version } = rows[0]!;
  say(`Postgres ${version}, fsync ${isDurable ? 'on' : 'off: these numbers measure nothing'}`);
  if (MEMORY_FILE_SYSTEMS.has(statfsSync(server.cluster).type)) {
    say('The database is in memory, where syncs are free: give --data-dir a folder on a disk.');
  }
  return {
    pid: server.pid,
    version,
    admin,
    async createDatabase(name) {
      await admin.query(`create database ${name}`);
      const url = new URL(server.connectionString);
      url.pathname = `/${name}`;
      return url.href;
    },
    async checkpoint() {
      await admin.query('checkpoint');
    },
    async setAutovacuum(isOn) {
      await admin.query(`alter system set autovacuum = ${isOn ? 'on' : 'off'}`);
      await admin.query('select pg_reload_conf()');
    },
    async stop() {
      process.removeListener('exit', onExit);
      await admin.end();
      await stopServer(server.pid);
      remove();
    },
  };
}

/** A connected client of the bench itself. */
export async function connect(connectionString: string): Promise<pg.Client> {
  const client = createClient({
    connectionString,
    applicationName: 'bench',
    statementTimeoutMs: 0,
    // A snapshot is held for minutes.
    idleInTransactionTimeoutMs: 0,
  });
  client.on('error', silent);
  await client.connect();
  return client;
}

/** A checkpoint renames the segments behind it for later use, up to min_wal_size. */
async function makeSegments(client: pg.Client, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    await client.query(`select pg_logical_emit_message(false, 'bench', 'x'), pg_switch_wal()`);
  }
  await client.query('checkpoint');
}
