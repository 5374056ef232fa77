/**
 * A server for the tests of an application: the real one, on a database that is gone when it stops. This is the only
 * part of the package that needs Node.
 */

import { Client } from '../client/client.js';
import { databaseIn, type ThrowAwayDatabase, temporaryFolder } from './database.js';
import { findServer } from './find-server.js';
import { preparedFolder } from './prepared.js';
import { runServer, type ServerProcess } from './server-process.js';

export interface StartServerOptions {
  /**
   * A Postgres on which a database is made for this server, by a user who may do so. Default: `DATABASE_URL`; without
   * it the server brings its own Postgres, with a copy of a database that the first start on this machine has made.
   */
  readonly databaseUrl?: string | undefined;
  /** Of the client. Default: `test`. */
  readonly tenant?: string | undefined;
  /** More of the server's environment, such as `ENGINE_ALLOW_INTERNAL_URLS`. None of this process named so is inherited. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface TestServer {
  /** Without the prefix of the API. */
  readonly url: string;
  /** The root key. */
  readonly apiKey: string;
  readonly client: Client;
  /** Ends the server and removes its data. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts a server and waits until it is ready. It ends with this process at the latest.
 *
 * @throws Error when the package `durable-workflow-engine` is not installed, or the server does not start: with its
 *   last lines
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

/** On a copy of the prepared database; where that is of no use, on one that is made anew. */
async function startOnOwn(program: string, start: Start): Promise<ServerProcess> {
  const prepared = await preparedFolder(program);
  if (prepared === undefined) return start(temporaryFolder());
  try {
    return await start(prepared);
  } catch {
    // If the copy is to blame this works; if it is not, this says the same.
    const server = await start(temporaryFolder());
    prepared.discard();
    return server;
  }
}

/** Whose database goes with it. */
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
