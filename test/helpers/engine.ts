/**
 * The real server as a child process, for tests that look at it from outside: started from the
 * build, found by the port that it logs, watched, killed. Whatever happens to the test process,
 * its servers end with it, unless it is itself ended by SIGKILL.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface EngineOptions {
  /** Absent: the embedded Postgres, for which `env` must name an ENGINE_DATA_DIR. */
  readonly databaseUrl?: string;
  /** The root key; the server is started with `--insecure-auth` when it is null. */
  readonly apiKey?: string | null;
  /** The folder of another checkout that is built, whose server is started instead of this one's. */
  readonly checkout?: string;
  /** Default: a free port outside of the range that outgoing connections are given. */
  readonly port?: number;
  /** More of the environment. Nothing named ENGINE_* is inherited from this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** How many files it may open. Default: as many as this process. */
  readonly descriptorsMax?: number;
  /** Flags of Node itself, such as those of its profiler. */
  readonly nodeArgs?: readonly string[];
  /** Default: a database without syncs is accepted, which those of tests are. */
  readonly args?: readonly string[];
  /** Default `ready`. A hot standby listens and is not ready. */
  readonly waitFor?: 'ready' | 'listening';
  /**
   * Whether the process notes its coverage when the tests run under it. Default false: it starts a
   * fifth slower, and nearly all that servers do is done by those that are covered, too.
   */
  readonly isCovered?: boolean;
  /** Default 10 min: a start is over a second of work, and twenty others may want the same cores. */
  readonly startTimeoutMs?: number;
}

export type ExitStatus = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** One line of the server's log. */
export interface LogLine {
  readonly msg?: string;
  readonly level?: number;
  readonly [field: string]: unknown;
}

/** One process. After a kill, `restart` gives the next one. */
export interface Engine {
  readonly pid: number;
  readonly port: number;
  /** `http://127.0.0.1:<port>`, without the prefix. */
  readonly url: string;
  readonly apiKey: string | null;
  readonly exited: Promise<ExitStatus>;
  isRunning(): boolean;
  /** The last lines of both output streams, as text. */
  output(): string;
  /** The last log lines; what is not JSON is left out. */
  logs(): readonly LogLine[];
  /** Only sends the signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal, SIGKILL by default, and waits for the exit. */
  kill(signal?: NodeJS.Signals): Promise<ExitStatus>;
  /** SIGTERM; SIGKILL when that has no effect in time. May be called again. */
  stop(): Promise<ExitStatus>;
  /** @throws Error when it exits or is not ready in time; the message ends with its output. */
  waitReady(timeoutMs?: number): Promise<void>;
  /** A new process with the same options, on the same port unless `changes` says otherwise. */
  restart(changes?: Partial<EngineOptions>): Promise<Engine>;
  /** The same on a port of its own, while this one goes on: on the same database it is a standby. */
  beside(changes?: Partial<EngineOptions>): Promise<Engine>;
}

export const DEFAULT_API_KEY = 'root-key-of-the-tests';

/** What `npm start` runs, and the same as modules: half as fast to start, with coverage by source. */
const BUNDLE = fileURLToPath(new URL('../../server/main.js', import.meta.url));
const BUNDLE_OF_CHECKOUT = 'dist/server/main.js';
const MODULES = fileURLToPath(new URL('../../src/main.js', import.meta.url));

const START_TIMEOUT_MS = 600_000;
/** The server promises to exit within 3 s of SIGTERM; a busy machine gets more. */
const STOP_PATIENCE_MS = 60_000;
const READY_POLL_MS = 25;
const READY_TIMEOUT_MS = 10_000;
const OUTPUT_LINES_MAX = 2_000;
/** How much of the output an error message quotes. */
const OUTPUT_LINES_QUOTED = 40;

/** Every child that has not exited. */
const children = new Set<ChildProcess>();
let isCleanupInstalled = false;

/**
 * Starts the server and waits until it is ready.
 * @throws Error when it exits or does not get ready in time; the message ends with its output.
 */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const deadline = performance.now() + (options.startTimeoutMs ?? START_TIMEOUT_MS);
  const child = launch(options, options.port ?? (await freePort()));
  const output = collect(child);
  const exited = once(child, 'exit').then(([code, signal]): ExitStatus => ({ code, signal }));
  try {
    const port = await listeningPort(child, output, deadline);
    const engine = describe(options, child, port, exited, output);
    if (options.waitFor !== 'listening') await engine.waitReady(deadline - performance.now());
    return engine;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

/**
 * Below 32,768, where systems begin to number outgoing connections: while a server is down, the
 * attempts of its clients could otherwise be given its own port, and keep it from coming back.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

interface Output {
  readonly lines: string[];
  onLine(listener: (line: string) => void): void;
}

function launch(options: EngineOptions, port: number): ChildProcess {
  installCleanup();
  const { apiKey = DEFAULT_API_KEY, args = ['--unsafe-database'] } = options;
  const flags = apiKey === null ? ['--insecure-auth', ...args] : args;
  const [command, ...given] = limited(options.descriptorsMax, [
    process.execPath,
    ...(options.nodeArgs ?? []),
    entryOf(options),
    ...flags,
  ]);
  const child = spawn(command as string, given, {
    env: {
      ...inheritedEnvironment(),
      // What is absent would be inherited.
      ...(options.isCovered ? {} : { NODE_V8_COVERAGE: '' }),
      ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
      ...(apiKey === null ? {} : { ENGINE_API_KEY: apiKey }),
      ENGINE_HTTP_ADDR: `127.0.0.1:${port}`,
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  child.once('error', () => children.delete(child));
  return child;
}

/** A process can lower its own limit only, and Node has no call for that. */
function limited(descriptors: number | undefined, command: readonly string[]): readonly string[] {
  if (descriptors === undefined) return command;
  return ['/bin/sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh', ...command];
}

function entryOf({ checkout, isCovered }: EngineOptions): string {
  if (checkout !== undefined) return path.resolve(checkout, BUNDLE_OF_CHECKOUT);
  return isCovered ? MODULES : BUNDLE;
}

/** Without what would point the server elsewhere, or tell it that it is itself a test. */
function inheritedEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(ENGINE_|PG|DATABASE_URL$|NODE_TEST_CONTEXT$)/.test(name),
  );
  return Object.fromEntries(kept);
}

function installCleanup(): void {
  if (isCleanupInstalled) return;
  isCleanupInstalled = true;
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.on('exit', killAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // A death by signal runs no 'exit' listener, neither ours nor those of others who clean up.
    process.once(signal, () => {
      if (process.listenerCount(signal) === 0) process.exit(128 + constants.signals[signal]);
    });
  }
}

function collect(child: ChildProcess): Output {
  const lines: string[] = [];
  const listeners: ((line: string) => void)[] = [];
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      if (lines.length > OUTPUT_LINES_MAX) lines.shift();
      for (const listener of listeners) listener(line);
    });
  }
  return { lines, onLine: (listener) => listeners.push(listener) };
}

/** Resolves with the port of the log line `listening`. */
function listeningPort(child: ChildProcess, output: Output, deadline: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      clearTimeout(timer);
      reject(new Error(`the server ${reason}\n${quote(output.lines)}`));
    };
    const timer = setTimeout(
      () => fail('did not listen in time'),
      Math.max(0, deadline - performance.now()),
    );
    child.once('error', (error) => fail(`cannot be run: ${error.message}`));
    // `close` comes after the last line of output, `exit` may come before it.
    child.once('close', (code, signal) => fail(`exited with ${code ?? signal}`));
    output.onLine((line) => {
      const log = parseLine(line);
      if (log?.msg !== 'listening' || typeof log.port !== 'number') return;
      clearTimeout(timer);
      resolve(log.port);
    });
  });
}

function describe(
  options: EngineOptions,
  child: ChildProcess,
  port: number,
  exited: Promise<ExitStatus>,
  output: Output,
): Engine {
  const url = `http://127.0.0.1:${port}`;
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => {
    child.kill(signal);
    return exited;
  };
  const stop = async (): Promise<ExitStatus> => {
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
    try {
      return await kill('SIGTERM');
    } finally {
      clearTimeout(patience);
    }
  };
  const waitReady = async (timeoutMs = START_TIMEOUT_MS): Promise<void> => {
    const giveUpAt = performance.now() + timeoutMs;
    while (!(await answersReady(url))) {
      if (!isRunning() || performance.now() > giveUpAt) {
        const reason = isRunning() ? 'is not ready in time' : 'exited';
        throw new Error(`the server ${reason}\n${quote(output.lines)}`);
      }
      await wait(READY_POLL_MS);
    }
  };
  return {
    pid: child.pid!,
    port,
    url,
    apiKey: options.apiKey === undefined ? DEFAULT_API_KEY : options.apiKey,
    exited,
    isRunning,
    output: () => output.lines.join('\n'),
    logs: () => output.lines.map(parseLine).filter((line) => line !== undefined),
    signal: (signal) => void child.kill(signal),
    kill,
    stop,
    waitReady,
    restart: async (changes = {}) => {
      await exited;
      return startEngine({ ...options, port, ...changes });
    },
    beside: async (changes = {}) => startEngine({ ...options, port: await freePort(), ...changes }),
  };
}

/** Nobody who listens, or no answer in time, is not ready either, which is all that is asked. */
function answersReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { agent: false, timeout: READY_TIMEOUT_MS } as const;
    const request = get(`${url}/health/ready`, options, (reply) => {
      reply.resume().once('close', () => resolve(reply.statusCode === 200));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(false));
  });
}

function parseLine(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    // A line that a kill cut off.
    return undefined;
  }
}

const quote = (lines: readonly string[]): string => lines.slice(-OUTPUT_LINES_QUOTED).join('\n');
