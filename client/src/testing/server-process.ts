/** The process of a server: started, waited for, ended. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

export interface ServerProcess {
  /** Without the prefix of the API. */
  readonly url: string;
  /** Ends it, and resolves when it is gone. May be called again. */
  stop(): Promise<void>;
}

/**
 * Resolves when the server is ready. It keeps no process alive that has nothing else to do, and ends with it.
 *
 * @param program of the server
 * @param env what it is told beside the defaults
 * @throws Error with its last lines when it does not start; it is gone then
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
  // In the orderly way, without anybody to wait for it: the Postgres that it started goes with it.
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

/** Any port is free, one shard is started sooner than several, and lanes are not measured. */
const DEFAULTS = {
  ENGINE_HTTP_ADDR: '127.0.0.1:0',
  ENGINE_SHARDS: '1',
  ENGINE_WRITER_LANES: '1',
  ENGINE_LOG_FORMAT: 'json',
};

/** Without what would point the server elsewhere, or make it note its coverage. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:ENGINE_|PG|DATABASE_|NODE_TEST_CONTEXT|NODE_V8_COVERAGE)/.test(name),
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

/** Whoever forgets to stop it has failed a test, and would else wait for ever for the end of its process. */
function release(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref();
}

/** A server that does not end in time has nothing that is worth waiting for. */
const STOP_PATIENCE_MS = 20_000;

async function ended(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  const patience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
  child.ref();
  child.kill('SIGTERM');
  await exited;
  clearTimeout(patience);
}
