/** Starts and stops the process of a server. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

export interface ServerProcess {
  /** Without the API prefix. */
  readonly url: string;
  /** Stops it and resolves when it has exited. May be called repeatedly. */
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
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [program, 'start', '--unsafe-database'], {
    env: { ...inherited(), ...DEFAULTS, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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
  try {
    const url = await readyAt(child);
    release(child);
    return { url, stop };
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

/** Resolves with the address in the log. */
function readyAt(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const fail = (why: string) => reject(new Error(`the server ${why}\n${lines.join('\n')}`));
    child.once('error', (error) => fail(`cannot be run: ${error.message}`));
    // `close` comes after the last line of output, `exit` may come before it.
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

/** A test that forgets to stop the server must not keep the process alive. */
function release(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref();
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
