/**
 * A real server for the tests of an application, on a temporary database. This is the only part of the package that
 * requires Node.
 */

import { Client } from '../client/client.js';
import { databaseIn, type ThrowAwayDatabase, temporaryFolder } from './database.js';
import { findServer } from './find-server.js';
import { preparedFolder } from './prepared.js';
import { runServer, type ServerProcess } from './server-process.js';

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
}

export interface TestServer {
  /** Without the API prefix. */
  readonly url: string;
  /** The root key. */
  readonly apiKey: string;
  readonly client: Client;
  /** Stops the server and removes its data. May be called repeatedly. */
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
      runServer(program, { ...database.env, ...options.env, ENGINE_API_KEY: apiKey }),
    );
  const databaseUrl = options.databaseUrl ?? process.env.DATABASE_URL;
  const { url, stop } = databaseUrl
    ? await start(await databaseIn(databaseUrl, program))
    : await startOnOwn(program, start);
  const client = new Client({ url, apiKey, tenant: options.tenant ?? 'test' });
  return { url, apiKey, client, stop };
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
    const stop = () => server.stop().then(() => database.remove());
    return {
      url: server.url,
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
