/**
 * A server for the tests of an application: the real one, on a database that is gone when it stops. This is the only
 * part of the package that needs Node.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from '../client/client.js';
import { databaseIn, temporaryFolder } from './database.js';
import { findServer } from './find-server.js';

export interface StartServerOptions {
  /**
   * A Postgres on which a database is made for this server, by a user who may do so. Default: `DATABASE_URL`; without
   * it the server brings its own Postgres, which takes some seconds to be made.
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
  const databaseUrl = options.databaseUrl ?? process.env.DATABASE_URL;
  const database = databaseUrl ? await databaseIn(databaseUrl, program) : temporaryFolder();
  const apiKey = crypto.randomUUID();
  const child = spawn(process.execPath, [program, '--unsafe-database'], {
    env: { ...inherited(), ...DEFAULTS, ...database.env, ...options.env, ENGINE_API_KEY: apiKey },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const end = () => void child.kill('SIGKILL');
  process.once('exit', end);
  try {
    const url = await readyAt(child);
    let stopped: Promise<void> | undefined;
    const stop = async () => {
      process.off('exit', end);
      await ended(child, exited);
      await database.remove();
    };
    const client = new Client({ url, apiKey, tenant: options.tenant ?? 'test' });
    return {
      url,
      apiKey,
      client,
      stop: () => {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    process.off('exit', end);
    await ended(child, exited);
    await database.remove();
    throw error;
  }
}

/** One shard is started sooner than several, and any port is free. */
const DEFAULTS = { ENGINE_HTTP_ADDR: '127.0.0.1:0', ENGINE_SHARDS: '1', ENGINE_LOG_FORMAT: 'json' };

/** Without what would point the server elsewhere, or make it note its coverage. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:ENGINE_|PG|DATABASE_URL|NODE_TEST_CONTEXT|NODE_V8_COVERAGE)/.test(name),
  );
  return Object.fromEntries(kept);
}

const LINES_KEPT = 40;

/** Resolves with the address that the log names. */
function readyAt(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const fail = (why: string) => reject(new Error(`the server ${why}\n${lines.join('\n')}`));
    child.once('error', (error) => fail(`cannot be run: ${error.message}`));
    // `close` comes behind the last line of output, `exit` may come before it.
    child.once('close', (code, signal) => fail(`ended with ${code ?? signal} before it was ready`));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8');
      let rest = '';
      stream?.on('data', (text: string) => {
        const whole = (rest + text).split('\n');
        rest = whole.pop() ?? '';
        lines.push(...whole);
        lines.splice(0, lines.length - LINES_KEPT);
        const ready = whole.find((line) => line.includes('"msg":"ready"'));
        const url = /"url":"([^"]+)"/.exec(ready ?? '')?.[1];
        if (url !== undefined) resolve(url);
      });
    }
  });
}

/** A server that does not end in time has nothing that is worth waiting for. */
const STOP_PATIENCE_MS = 20_000;

async function ended(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const patience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
  child.kill('SIGTERM');
  await exited.catch(() => undefined);
  clearTimeout(patience);
}
