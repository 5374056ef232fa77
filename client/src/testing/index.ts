/**
 * For the tests of an application: a real server on a temporary database, and runs of definitions without one. This is
 * the only part of the package that requires Node.
 */

import { Client } from '../client/client.js';
import { databaseIn, type ThrowAwayDatabase, temporaryFolder } from './database.js';
import { durationMs } from './duration.js';
import { findServer } from './find-server.js';
import { preparedFolder } from './prepared.js';
import { runServer, type ServerLog, type ServerProcess } from './server-process.js';

export {
  type DefinitionRun,
  type HandlerCall,
  type RunDefinitionOptions,
  type Runnable,
  run,
  type StubbedHandler,
} from './run.js';
export type { ServerLog } from './server-process.js';

export interface StartServerOptions {
  /**
   * A Postgres in which to create a database for this server, with a user who may create databases. Default:
   * `DATABASE_URL`; without it the server uses its own Postgres, with a copy of a database that is prepared by the
   * first start on this machine.
   */
  readonly databaseUrl?: string | undefined;
  /** Tenant of the client. Default: `test`. */
  readonly tenant?: string | undefined;
  /**
   * More environment variables of the server, such as `ENGINE_ALLOW_INTERNAL_URLS`. Those of this process are not
   * inherited.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * The log of the server, a line of JSON each: `inherit` writes it to stderr, a function receives each line. Default:
   * `silent`. The last lines are in the error if the server does not start or dies; for more of them set
   * `ENGINE_LOG_LEVEL` in `env`.
   */
  readonly log?: ServerLog | undefined;
  /** `manual`: time stands still until `advance`. Default: the time of the machine. */
  readonly clock?: 'manual' | undefined;
}

export interface TestServer {
  /** Without the API prefix. */
  readonly url: string;
  /** The root key. */
  readonly apiKey: string;
  readonly client: Client;
  /**
   * Moves the time of a server with a manual clock. Everything that becomes due meanwhile happens in order, each at its
   * time: timers, schedules, time limits, lost claims, webhooks, retention. A worker gets up to a second of real time for
   * each task before the time goes on.
   *
   * @param duration milliseconds, or text such as `90s`, `15m`, `2h`, `3d`, `500ms` or `P1DT12H`
   * @returns the new time
   * @throws Error without a manual clock, or if something due does not get done
   */
  advance(duration: number | string): Promise<Date>;
  /** The server's time. */
  now(): Date;
  /**
   * Stops the server and removes its data. May be called repeatedly.
   *
   * @throws Error with its last log lines if it has died before
   */
  stop(): Promise<void>;
}

/**
 * Starts a server and waits until it is ready. It stops with this process at the latest.
 *
 * @throws Error if the package `durable-workflow-engine` is not installed, or if the server does not start, with its
 * last log lines
 */
export async function startServer(options: StartServerOptions = {}): Promise<TestServer> {
  const program = findServer();
  const apiKey = crypto.randomUUID();
  const start = (database: ThrowAwayDatabase) =>
    startOn(database, () =>
      runServer(
        program,
        { ...database.env, ...options.env, ENGINE_API_KEY: apiKey },
        { isManual: options.clock === 'manual', log: options.log },
      ),
    );
  const databaseUrl = options.databaseUrl ?? process.env.DATABASE_URL;
  const { url, stop, advance } = databaseUrl
    ? await start(await databaseIn(databaseUrl, program))
    : await startOnOwn(program, start);
  const client = new Client({ url, apiKey, tenant: options.tenant ?? 'test' });
  const isManual = options.clock === 'manual';
  let time = isManual ? await advance(0) : undefined;
  return {
    ...{ url, apiKey, client, stop },
    advance: async (duration) => {
      const ms = durationMs(duration);
      if (!isManual) throw new Error("advance needs startServer({ clock: 'manual' })");
      time = await advance(ms);
      return new Date(time);
    },
    now: () => new Date(time ?? Date.now()),
  };
}

type Start = (database: ThrowAwayDatabase) => Promise<ServerProcess>;

/** Starts on a copy of the prepared database, or if that fails on a new one. */
async function startOnOwn(program: string, start: Start): Promise<ServerProcess> {
  const prepared = await preparedFolder(program);
  if (prepared === undefined) return start(temporaryFolder());
  try {
    return await start(prepared);
  } catch {
    // If the copy was the cause, this succeeds; otherwise it reports the same error.
    const server = await start(temporaryFolder());
    prepared.discard();
    return server;
  }
}

/** Starts the server and removes its database when it stops. */
async function startOn(
  database: ThrowAwayDatabase,
  run: () => Promise<ServerProcess>,
): Promise<ServerProcess> {
  try {
    const server = await run();
    let stopped: Promise<void> | undefined;
    const stop = () => server.stop().finally(() => database.remove());
    return {
      ...server,
      stop: () => {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    await database.remove();
    throw error;
  }
}
