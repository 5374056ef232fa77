/**
 * A Postgres server of one's own that can be crashed: durable settings, one port for its whole
 * life, so that the address which the engine was given stays right.
 */

import { rmSync } from 'node:fs';
import { ensureServer, type ServerOptions, stopServer } from '../../src/server/embedded-server.js';
import { newFolder } from '../helpers/database.js';
import { signalTree } from '../helpers/process-tree.js';

export interface CrashablePostgres {
  readonly url: string;
  /** `immediate`: every session ends at once, and the next start recovers from the log. */
  crash(): Promise<void>;
  /** Starts it again; resolves when it accepts connections. */
  start(): Promise<void>;
  /** To all its processes, such as SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** What an acknowledged commit rests on is on, as in production. */
const SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  min_wal_size: '256MB',
  max_wal_size: '512MB',
  max_connections: '60',
  timezone: 'UTC',
};

export async function startCrashablePostgres(): Promise<CrashablePostgres> {
  const dataDir = newFolder();
  const log = { info: ignore, warn: ignore, error: ignore };
  const options: ServerOptions = { dataDir, major: 18, settings: SETTINGS, isDurable: true, log };
  let server = await ensureServer(options);
  // It runs in a session of its own and would outlive a test that is interrupted.
  const endWithProcess = () => {
    try {
      process.kill(server.pid, 'SIGQUIT');
    } catch {
      // It is down already.
    }
    removeData();
  };
  // The folder is elsewhere when its user cannot enter ours. A dying server may still write there.
  const removeData = () => {
    for (const folder of [server.cluster, dataDir]) {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    }
  };
  process.once('exit', endWithProcess);
  return {
    url: server.connectionString,
    crash: () => stopServer(server.pid, 'immediate'),
    async start() {
      server = await ensureServer({ ...options, port: server.port });
    },
    signal: (signal) => signalTree(server.pid, signal),
    async remove() {
      process.removeListener('exit', endWithProcess);
      await stopServer(server.pid);
      removeData();
    },
  };
}

function ignore(): void {}
