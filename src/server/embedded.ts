/**
 * The bundled Postgres of the default set-up: one engine, one data folder, one server. Refuses a second engine on the
 * folder, restarts a server that died on the same port, and stops it with the engine. When the engine is killed
 * instead, the server goes on and is found by the next one.
 */

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_SCHEMA } from '../db/database-url.js';
import { EmbeddedPostgresError } from './embedded-files.js';
import { ensureRoles, type RoleUrls } from './embedded-roles.js';
import { ensureServer, type Server, type ServerOptions, stopServer } from './embedded-server.js';
import { isAlive, type ProcessLock, tryProcessLock } from './process-lock.js';

/** `dataDir` is made when missing. `major` is 18 and `isDurable` true unless they are set. */
export interface EmbeddedOptions
  extends Pick<ServerOptions, 'dataDir' | 'log' | 'signal'>,
    Partial<Pick<ServerOptions, 'major' | 'isDurable'>> {
  /** Where the tables of the engine lie; default public. */
  readonly schema?: string;
}

export interface EmbeddedPostgres {
  /** As superuser, for the database `postgres`; stays valid when the server is brought back. */
  readonly connectionString: string;
  /** As the roles with no more rights than they need; they stay valid, too. */
  readonly roles: RoleUrls;
  readonly location: string;
  readonly port: number;
  /** Ends the server with a checkpoint and gives the data folder up. May be called again. */
  stop(): Promise<void>;
}

const WATCH_MS = 500;

/** A commit waits for no disk. */
const UNSAFE_SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
};

/** Small, durable, without surprises: a newcomer's laptop is where it runs. */
const SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '128MB',
  // Making a segment takes tens of milliseconds, recycling none. The upper bound suits small disks.
  min_wal_size: '256MB',
  max_wal_size: '512MB',
  wal_compression: 'on',
  // Lanes, reads, lease and some sessions of the curious. Fewer make take-overs fail.
  max_connections: '60',
  // Our statements are short: compiling them, or spreading them over processes, costs more.
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
 * Starts the embedded Postgres on a data folder, or takes over the one that a killed engine left.
 * The first start makes the database, which takes a second or two.
 * @throws EmbeddedPostgresError when another engine has the folder, or Postgres cannot run.
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
