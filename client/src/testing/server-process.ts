/** Starts and stops the process of a server. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

/** What happens to each line of the server's log. */
export type ServerLog = 'silent' | 'inherit' | ((line: string) => void);

export interface ServerOptions {
  /** The time stands still until it is moved. */
  readonly isManual?: boolean;
  /** Default: silent. */
  readonly log?: ServerLog | undefined;
}

export interface ServerProcess {
  /** Without the API prefix. */
  readonly url: string;
  /** Moves the time of a server with a manual clock. @returns the new time in Unix milliseconds */
  advance(ms: number): Promise<number>;
  /**
   * Stops it and resolves when it has exited. May be called repeatedly.
   *
   * @throws Error with its last log lines if it has died before
   */
  stop(): Promise<void>;
}

/**
 * Resolves when the server is ready. The child does not keep this process alive, and stops with it.
 *
 * @param program entry point of the server
 * @param env variables in addition to the defaults
 * @throws Error with its last log lines if it does not start; it has exited by then
 */
export async function runServer(
  program: string,
  env: Readonly<Record<string, string>>,
  { isManual = false, log = 'silent' }: ServerOptions = {},
): Promise<ServerProcess> {
  const flags = ['--unsafe-database', ...(isManual ? ['--manual-clock'] : [])];
  const child = spawn(process.execPath, [program, 'start', ...flags], {
    env: { ...inherited(), ...DEFAULTS, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(isManual ? (['ipc'] as const) : [])],
  });
  const lines = new LastLines(child, log);
  const exited = once(child, 'exit').catch(() => undefined);
  // Stopped gracefully without waiting, so that the Postgres it started is stopped, too.
  const end = () => void child.kill('SIGTERM');
  process.once('exit', end);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    process.off('exit', end);
    stopped ??= ended(child, exited);
    return stopped;
  };
  const stopReady = async () => {
    const died = stopped === undefined ? (child.exitCode ?? child.signalCode) : null;
    await stop();
    if (died !== null) throw lines.errorOf(`the server ended with ${died} before it was stopped`);
  };
  try {
    const url = await readyAt(child, lines);
    release(child);
    return { url, stop: stopReady, advance: (ms) => advance(child, lines, ms) };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Any free port; one shard starts faster than several; lanes are not measured. */
const DEFAULTS = {
  ENGINE_HTTP_ADDR: '127.0.0.1:0',
  ENGINE_SHARDS: '1',
  ENGINE_WRITER_LANES: '1',
  ENGINE_LOG_FORMAT: 'json',
};

/** Without variables that would configure the server or record its coverage. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:ENGINE_|PG|DATABASE_|NODE_TEST_CONTEXT|NODE_V8_COVERAGE)/.test(name),
  );
  return Object.fromEntries(kept);
}

const LINES_KEPT = 40;

/** The end of the server's log, for errors. */
class LastLines {
  readonly #kept: string[] = [];
  readonly #listeners: ((line: string) => void)[] = [(line) => this.#keep(line)];

  constructor({ stdout, stderr }: ChildProcess, log: ServerLog) {
    if (log !== 'silent') this.onLine(log === 'inherit' ? writeLine : log);
    for (const stream of [stdout, stderr]) {
      stream?.setEncoding('utf8');
      let rest = '';
      stream?.on('data', (text: string) => {
        const whole = (rest + text).split('\n');
        rest = whole.pop() ?? '';
        for (const line of whole) for (const listener of this.#listeners) listener(line);
      });
    }
  }

  onLine(listener: (line: string) => void): void {
    this.#listeners.push(listener);
  }

  errorOf(what: string): Error {
    return new Error([what, ...this.#kept].join('\n'));
  }

  #keep(line: string): void {
    this.#kept.push(line);
    if (this.#kept.length > LINES_KEPT) this.#kept.shift();
  }
}

const writeLine = (line: string) => void process.stderr.write(`${line}\n`);

/** Resolves with the address in the log. */
function readyAt(child: ChildProcess, lines: LastLines): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(lines.errorOf(`the server ${why}`));
    child.once('error', (error) => fail(`cannot be run: ${error.message}`));
    // `close` comes after the last line of output, `exit` may come before it.
    child.once('close', (code, signal) => fail(`ended with ${code ?? signal} before it was ready`));
    lines.onLine((line) => {
      const url = line.includes('"msg":"ready"') ? /"url":"([^"]+)"/.exec(line)?.[1] : undefined;
      if (url !== undefined) resolve(url);
    });
  });
}

/** A test that forgets to stop the server must not keep the process alive. */
function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref();
}

/** The orders of this process; see `src/server/manual-time.ts`. */
let orders = 0;

/** @throws Error if the server does not get done what is due, or ends */
async function advance(child: ChildProcess, lines: LastLines, advanceMs: number): Promise<number> {
  orders += 1;
  const order = orders;
  child.channel?.ref();
  child.ref();
  try {
    return await new Promise((resolve, reject) => {
      const onMessage = (answer: { order: number; now: number; error?: string }) => {
        if (answer.order !== order) return;
        settle();
        if (answer.error === undefined) resolve(answer.now);
        else reject(new Error(answer.error));
      };
      const onEnd = () => {
        settle();
        reject(lines.errorOf('the server has ended'));
      };
      const settle = () => child.off('message', onMessage).off('close', onEnd);
      child.on('message', onMessage).once('close', onEnd);
      child.send({ order, advanceMs }, (error) => error && onEnd());
    });
  } finally {
    child.channel?.unref();
    child.unref();
  }
}

/** After this time the server is killed. */
const STOP_PATIENCE_MS = 20_000;

async function ended(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const patience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
  child.ref();
  child.kill('SIGTERM');
  await exited;
  clearTimeout(patience);
}
