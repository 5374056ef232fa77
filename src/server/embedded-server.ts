/**
 * Creates, starts, finds and stops one bundled Postgres server on a data folder. It runs in its own session, so that
 * an interrupt from the terminal does not reach it before the engine has drained. It survives its parent, so every
 * start looks for a running server. Only one process at a time may use a folder, which the caller ensures.
 */

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { DbLog } from '../db/pool.js';
import {
  type DatabaseUser,
  EmbeddedPostgresError,
  handOver,
  type Layout,
  layOut,
  makePrivateFolder,
  type PostgresMajor,
  reason,
} from './embedded-files.js';
import { isAlive, processCommand, processFolder } from './process-lock.js';

export interface ServerOptions {
  /** An existing folder for password, log and database, unless the database's user cannot enter it. */
  readonly dataDir: string;
  readonly major: PostgresMajor;
  /** Server parameters; a running server with different ones is restarted. */
  readonly settings: Readonly<Record<string, string>>;
  /** False, for tests: nothing is synced, and a crash of the machine may corrupt the database. */
  readonly isDurable: boolean;
  /** A required port. Default: the last one if free, else any. */
  readonly port?: number;
  readonly log: DbLog;
  /** Cancels the start, which cleans up and rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
  readonly cluster: string;
  readonly connectionString: string;
}

interface ServerNote {
  readonly pid: number;
  readonly port: number;
  readonly fingerprint: string;
}

const POLL_MS = 10;
/** Crash recovery precedes the first connection, and a disk may be slow. */
const READY_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A fast stop is followed by an immediate one, then by a kill. */
const STOP_PATIENCE_MS = { fast: 20_000, immediate: 10_000 } as const;
/** Retries when the port was taken meanwhile, or children of a killed server are still stopping. */
const START_ATTEMPTS_MAX = 10;
const START_RETRY_MS = 300;
const WRONG_PASSWORD = '28P01';
/** A larger log is rotated; one old log is kept. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Returns a server that accepts connections: the running one, else a new one.
 * @throws EmbeddedPostgresError when the server does not start; the reason of the signal
 */
export async function ensureServer(options: ServerOptions): Promise<Server> {
  const { dataDir, settings, log, signal } = options;
  const layout = await layOut(dataDir, options.major, log);
  signal?.throwIfAborted();
  const passwordFile = path.join(dataDir, 'postgres.password');
  if (!existsSync(passwordFile)) {
    writeFileSync(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600 });
  }
  const password = readFileSync(passwordFile, 'utf8').trim();
  if (!existsSync(layout.cluster)) await initialise(layout, password, options);
  checkMajor(layout.cluster, options.major);

  const noteFile = path.join(dataDir, 'postgres.json');
  const note = readNote(noteFile);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([layout.native, settings]))
    .digest('hex');
  const runningPid = findPostmaster(layout.cluster);
  if (runningPid !== undefined) {
    const isSame = note?.pid === runningPid && note.fingerprint === fingerprint;
    if (isSame && (options.port ?? note.port) === note.port) {
      const server = describe(runningPid, note.port, layout.cluster, password);
      // The server may be in crash recovery; the wait is limited.
      if (await answers(server, CONNECT_TIMEOUT_MS, signal)) {
        log.info({ pid: server.pid, port: server.port }, 'found the embedded Postgres running');
        return server;
      }
    }
    await stopServer(runningPid);
    signal?.throwIfAborted();
  }
  const server = await start(options, layout, password, note?.port);
  const newNote: ServerNote = { pid: server.pid, port: server.port, fingerprint };
  writeFileSync(noteFile, JSON.stringify(newNote));
  return server;
}

/**
 * Waits until the server has stopped. `fast` ends its sessions and writes a checkpoint; `immediate` is a crash, from
 * which the next start recovers. Escalates when the server does not stop.
 */
export async function stopServer(pid: number, mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
  if (mode === 'fast' && (await signalAndWait(pid, 'SIGINT', STOP_PATIENCE_MS.fast))) return;
  if (await signalAndWait(pid, 'SIGQUIT', STOP_PATIENCE_MS.immediate)) return;
  await signalAndWait(pid, 'SIGKILL', STOP_PATIENCE_MS.immediate);
}

export function findPostmaster(cluster: string): number | undefined {
  const file = path.join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  if (!isAlive(pid)) return undefined;
  const command = processCommand(pid) ?? '';
  // The working directory of a server is its folder, even after the folder was renamed.
  if (processFolder(pid) === cluster || command.includes(cluster)) return pid;
  // Another program has the process id, and Postgres would mistake it for a server and refuse to start. The case of
  // another Postgres is left to Postgres.
  if (!command.includes('postgres')) rmSync(file);
  return undefined;
}

/** The descriptor from which `initdb` reads the password, since its user may be unable to open the file. */
const PASSWORD_INPUT = 3;

/** Initialises under another name and renames at the end, so that an interrupted start can be repeated. */
async function initialise(
  layout: Layout,
  password: string,
  { isDurable, signal }: ServerOptions,
): Promise<void> {
  const { cluster, user, native } = layout;
  const draft = `${cluster}.new`;
  const passwordFile = `${draft}.password`;
  makePrivateFolder(draft, user);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const passwordInput = openSync(passwordFile, 'r');
  try {
    if (user.uid !== undefined) chownSync(passwordFile, user.uid, user.gid);
    const { cwd, folder } = handOver(layout, draft);
    const flags = [
      `--pgdata=${folder}`,
      `--pwfile=/dev/fd/${PASSWORD_INPUT}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--no-locale',
      '--data-checksums',
      '--no-instructions',
      ...(isDurable ? [] : ['--no-sync']),
    ];
    const options = { user, cwd, input: passwordInput };
    await runGroup(path.join(native, 'bin/initdb'), flags, options, signal);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    signal?.throwIfAborted();
    throw new EmbeddedPostgresError(`initdb failed: ${complaintIn(reason(error))}`, {
      cause: error,
    });
  } finally {
    closeSync(passwordInput);
    rmSync(passwordFile, { force: true });
  }
  renameSync(draft, cluster);
}

/**
 * Runs a program in its own process group, which an abort kills: killing only `initdb` would leave a Postgres that
 * writes into a removed folder. @throws Error with the program's error output
 */
async function runGroup(
  program: string,
  flags: readonly string[],
  {
    input,
    user,
    cwd,
  }: { readonly user: DatabaseUser; readonly cwd: string; readonly input: number },
  signal: AbortSignal | undefined,
): Promise<void> {
  const child = spawn(program, flags, {
    ...user,
    cwd,
    env: environment(),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', input],
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      // The program has ended; only its output is still being read.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  signal?.addEventListener('abort', end, { once: true });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8');
  });
  try {
    // `close` instead of `exit`: the pipe is open while any process of the group lives.
    const [code, death] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code !== 0) throw new Error(said.trim() || `it ended with ${code ?? death}`);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** The line of Postgres's output with the error; the log file has the rest. */
function complaintIn(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const grave = lines.filter((line) => /\b(?:FATAL|PANIC|error):/.test(line));
  return (grave.at(-1) ?? lines.at(-1) ?? 'it said nothing').trim();
}

function checkMajor(cluster: string, major: PostgresMajor): void {
  let found: string;
  try {
    found = readFileSync(path.join(cluster, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    throw new EmbeddedPostgresError(
      `the folder ${cluster} is no database that this user can read: ${(error as Error).message}; ` +
        'start as the user who made it, or remove it to start with an empty database',
      { cause: error },
    );
  }
  if (found === String(major)) return;
  throw new EmbeddedPostgresError(
    `the database in ${cluster} was made by Postgres ${found}, this program brings ${major}; ` +
      'dump and restore it, or set DATABASE_URL',
  );
}

async function start(
  options: ServerOptions,
  layout: Layout,
  password: string,
  lastPort: number | undefined,
): Promise<Server> {
  const logFile = path.join(options.dataDir, 'postgres.log');
  let port = options.port ?? (await freePort(lastPort));
  for (let attempt = 1; ; attempt += 1) {
    const logStart = rotate(logFile);
    const pid = spawnServer(layout, port, options.settings, logFile);
    const server = describe(pid, port, layout.cluster, password);
    const isServing = await answers(server, READY_TIMEOUT_MS, options.signal);
    if (options.signal?.aborted) {
      await stopServer(pid);
      throw options.signal.reason;
    }
    if (isServing) return server;
    const output = readFileSync(logFile).subarray(logStart).toString('utf8').trim();
    const mayPass = /already in use|in use by|pre-existing shared memory|already exists/.test(
      output,
    );
    if (!mayPass || attempt === START_ATTEMPTS_MAX) {
      if (isAlive(pid)) await stopServer(pid);
      throw new EmbeddedPostgresError(
        `the embedded Postgres did not start: ${complaintIn(output)}; more is in ${logFile}`,
      );
    }
    await wait(START_RETRY_MS);
    port = options.port ?? (await freePort(undefined));
  }
}

function spawnServer(
  layout: Layout,
  port: number,
  settings: Readonly<Record<string, string>>,
  logFile: string,
): number {
  const parameters = Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: String(port),
    ...settings,
  });
  const { cwd, folder } = handOver(layout, layout.cluster);
  const log = openSync(logFile, 'a', 0o600);
  try {
    const child = spawn(
      path.join(layout.native, 'bin/postgres'),
      ['-D', folder, ...parameters.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      { ...layout.user, cwd, env: environment(), detached: true, stdio: ['ignore', log, log] },
    );
    // Without a process id the executable cannot be run, which is reported below.
    child.on('error', () => undefined);
    child.unref();
    if (child.pid === undefined) {
      throw new EmbeddedPostgresError(`cannot run ${path.join(layout.native, 'bin/postgres')}`);
    }
    return child.pid;
  } finally {
    closeSync(log);
  }
}

/** Excludes variables of this process: PGPORT or a locale would change the server. */
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
}

function describe(pid: number, port: number, cluster: string, password: string): Server {
  const connectionString = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  return { pid, port, cluster, connectionString };
}

/** Tries to connect until it works; false when the process ends, or time or patience do before. */
async function answers(server: Server, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs;
  while (isAlive(server.pid) && performance.now() < giveUpAt && !signal?.aborted) {
    const answer = await askServer(server);
    if (answer !== 'not yet') return answer === 'serving';
    await wait(POLL_MS);
  }
  return false;
}

/** Compares the process id, too: another Postgres may serve the port. */
async function askServer(server: Server): Promise<'serving' | 'not yet' | 'stranger'> {
  const client = new pg.Client({
    connectionString: server.connectionString,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: string }>(
      "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid",
    );
    return Number(rows[0]?.pid) === server.pid ? 'serving' : 'stranger';
  } catch (error) {
    // A wrong password is permanent. After other errors the server may still be starting; the caller checks the
    // process and the time.
    return (error as { code?: string }).code === WRONG_PASSWORD ? 'stranger' : 'not yet';
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function signalAndWait(
  pid: number,
  signal: NodeJS.Signals,
  timeoutMs: number,
): Promise<boolean> {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
  const giveUpAt = performance.now() + timeoutMs;
  while (isAlive(pid)) {
    if (performance.now() > giveUpAt) return false;
    await wait(POLL_MS);
  }
  return true;
}

function readNote(file: string): ServerNote | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ServerNote;
  } catch {
    // Truncated by a crash: the server is treated as an unknown one.
    return undefined;
  }
}

/** @returns the size of the log, where the output of the next start begins */
function rotate(logFile: string): number {
  if (!existsSync(logFile)) return 0;
  const { size } = statSync(logFile);
  if (size <= LOG_BYTES_MAX) return size;
  renameSync(logFile, `${logFile}.1`);
  return 0;
}

async function freePort(preferred: number | undefined): Promise<number> {
  const port = preferred === undefined ? undefined : await tryListen(preferred);
  return port ?? (await tryListen(0)) ?? Promise.reject(new Error('no free port'));
}

function tryListen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(undefined));
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}
