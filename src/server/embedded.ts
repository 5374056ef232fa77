/**
 * The bundled Postgres of the default set-up: one engine, one data folder, one server. Refuses a second engine on the
 * folder, restarts a crashed server on the same port, and stops it with the engine. When the engine is killed, the
 * server continues, and the next engine finds it.
 */

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_SCHEMA } from '../db/database-url.js';
import { EmbeddedPostgresError } from './embedded-files.js';
import { ensureRoles, type RoleUrls } from './embedded-roles.js';
import { ensureServer, type Server, type ServerOptions, stopServer } from './embedded-server.js';
import { isAlive, type ProcessLock, tryProcessLock } from './process-lock.js';

/** `dataDir` is created when missing. Defaults: `major` 18, `isDurable` true. */
export interface EmbeddedOptions
  extends Pick<ServerOptions, 'dataDir' | 'log' | 'signal'>,
    Partial<Pick<ServerOptions, 'major' | 'isDurable'>> {
  readonly schema?: string;
}

export interface EmbeddedPostgres {
  /** For the database `postgres`, as superuser; stays valid when the server is restarted. */
  readonly connectionString: string;
  /** URLs of roles with minimal rights; they stay valid, too. */
  readonly roles: RoleUrls;
  readonly location: string;
  readonly port: number;
  /** Stops the server with a checkpoint and releases the data folder. Idempotent. */
  stop(): Promise<void>;
}

const WATCH_MS = 500;

const UNSAFE_SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
};

/** Small and durable, for a laptop. */
const SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '128MB',
  // Creating a segment takes tens of milliseconds, recycling none. The upper limit suits small disks.
  min_wal_size: '256MB',
  max_wal_size: '512MB',
  wal_compression: 'on',
  // Lanes, reads, lease and some manual sessions. A lower limit makes take-overs fail.
  max_connections: '60',
  // Statements are short: compiling or parallelising them costs more.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  random_page_cost: '1.1',
  // Queue-like tables fill with dead rows within seconds.
  autovacuum_naptime: '15s',
  log_checkpoints: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/**
 * Starts the embedded Postgres on a data folder, or takes over the server of a killed engine. The first start creates
 * the database, which takes a second or two.
 * @throws EmbeddedPostgresError when another engine uses the folder, or Postgres cannot run
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log, major = 18, isDurable = true, schema = DEFAULT_SCHEMA, signal } = options;
  const dataDir = path.resolve(options.dataDir);
  mkdirSync(dataDir, { recursive: true });
  const lock = takeFolder(dataDir);
  const settings = isDurable ? SETTINGS : { ...SETTINGS, ...UNSAFE_SETTINGS };
  const serverOptions: ServerOptions = { dataDir, major, settings, isDurable, log };
  try {
    const server = await ensureServer(signal ? { ...serverOptions, signal } : serverOptions);
    const embedded = keep(server, { ...serverOptions, port: server.port }, lock);
    try {
      return { ...embedded, roles: await ensureRoles(server.connectionString, schema) };
    } catch (error) {
      await embedded.stop();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

function takeFolder(dataDir: string): ProcessLock {
  const lock = tryProcessLock(path.join(dataDir, 'engine.lock'));
  if ('release' in lock) return lock;
  throw new EmbeddedPostgresError(
    `the data folder ${dataDir} is in use by another engine, process ${lock.heldBy.pid}; ` +
      'stop it first, or give this one its own ENGINE_DATA_DIR. ' +
      'Several engines can share a database that is named by DATABASE_URL',
  );
}

function keep(
  first: Server,
  options: ServerOptions,
  lock: ProcessLock,
): Omit<EmbeddedPostgres, 'roles'> {
  const { log } = options;
  let server = first;
  let restart: Promise<void> = Promise.resolve();
  let isRestarting = false;
  let stopped: Promise<void> | undefined;

  const bringBack = async (): Promise<void> => {
    log.error({ pid: server.pid }, 'the embedded Postgres died: starting it again');
    try {
      server = await ensureServer(options);
    } catch (error) {
      log.error({ err: error }, 'the embedded Postgres does not start; trying again');
    } finally {
      isRestarting = false;
    }
  };
  const watch = setInterval(() => {
    if (isRestarting || isAlive(server.pid)) return;
    isRestarting = true;
    restart = bringBack();
  }, WATCH_MS).unref();

  const stop = async (): Promise<void> => {
    clearInterval(watch);
    await restart;
    if (isAlive(server.pid)) await stopServer(server.pid);
    lock.release();
  };
  return {
    connectionString: first.connectionString,
    location: first.cluster,
    port: first.port,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
