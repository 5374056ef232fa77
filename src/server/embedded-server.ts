/**
 * One bundled Postgres server on one data folder: made, started, found again, stopped. It runs in a session of its own,
 * so that a terminal's interrupt does not reach it before the engine has drained. It survives its parent, so every
 * start looks for a server that still runs. Only one process at a time may use a folder, which the caller ensures.
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
  /** Exists. Has the database unless its user cannot enter, the password and the log. */
  readonly dataDir: string;
  readonly major: PostgresMajor;
  /** Server parameters; a server found running with others is restarted. */
  readonly settings: Readonly<Record<string, string>>;
  /** False, for tests: nothing is synced, and a crash of the machine may leave a broken database. */
  readonly isDurable: boolean;
  /** The port that must be used. Default: the last one when free, else any. */
  readonly port?: number;
  readonly log: DbLog;
  /** Ends the start, which rejects with the signal's reason after what it began is ended and removed. */
  readonly signal?: AbortSignal;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
  readonly cluster: string;
  /** For the database `postgres`, as superuser. */
  readonly connectionString: string;
}

/** What a start leaves behind for the next one. */
interface ServerNote {
  readonly pid: number;
  readonly port: number;
  readonly fingerprint: string;
}

const POLL_MS = 10;

/** Replaying the log after a crash comes before the first connection, and a disk may be slow. */
const READY_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** After a fast stop gets no end, an immediate one; after that only a kill is left. */
const STOP_PATIENCE_MS = { fast: 20_000, immediate: 10_000 } as const;

/** A port may be taken meanwhile, or the children of a killed server may still be stopping. */
const START_ATTEMPTS_MAX = 10;
const START_RETRY_MS = 300;

/** The server's answer to a password that is not the one it was made with. */
const WRONG_PASSWORD = '28P01';

/** The server's log is started anew beyond this; the one before it is kept. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Returns a server that accepts connections: the one that still runs, else a new one.
 * @throws EmbeddedPostgresError with why the server did not start, or the reason of the signal
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
      // It may be replaying its log, but not for ever.
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
 * Waits until the server has stopped. `fast` ends its sessions and writes a checkpoint; `immediate` is a crash from
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
  // A server works in its folder, also when that was renamed since it was started.
  if (processFolder(pid) === cluster || command.includes(cluster)) return pid;
  // The id belongs to a stranger by now. Postgres would take it for a server and refuse to start.
  // Another server is no clear case, and is left to Postgres to judge.
  if (!command.includes('postgres')) rmSync(file);
  return undefined;
}

/** The descriptor by which `initdb` reads the password, whose file it may be unable to walk to. */
const PASSWORD_INPUT = 3;

/** A half-made database is never seen under its name, so an interrupted start simply begins anew. */
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
 * Runs a program in a process group of its own, which an abort kills: `initdb` alone would leave a Postgres behind
 * that writes into a removed folder. @throws Error with what the program printed
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
      // It has ended by itself, and only its output is still being read.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  signal?.addEventListener('abort', end, { once: true });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8');
  });
  try {
    // Not at its exit: as long as one of the group lives, the pipe is open.
    const [code, death] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code !== 0) throw new Error(said.trim() || `it ended with ${code ?? death}`);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** Of what Postgres printed, the line that says what is wrong; the log file has the rest. */
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
      {
        ...layout.user,
        cwd,
        env: environment(),
        detached: true,
        stdio: ['ignore', log, log],
      },
    );
    // An executable that cannot be run has no process id, which is reported below.
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

/** Nothing of ours: variables such as PGPORT or a locale would change what the server does. */
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

/** The process is asked for as well: a port may be served by somebody else's Postgres. */
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
    // A wrong password does not become right. Everything else may be a server that is starting,
    // and the caller watches the process and the time.
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
    // Cut off by a crash: the server is then looked at as if it had been started by somebody else.
    return undefined;
  }
}

/** Returns the size of the log, which is where the output of the next start begins. */
function rotate(logFile: string): number {
  if (!existsSync(logFile)) return 0;
  const { size } = statSync(logFile);
  if (size <= LOG_BYTES_MAX) return size;
  renameSync(logFile, `${logFile}.1`);
  return 0;
}

/** The preferred port when nobody listens on it, else one that the system picks. */
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
