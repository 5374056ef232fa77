/** A Redis of a turn's own, if the system has one: every write is synced before it is answered. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../test/helpers/engine.js';

const START_MS = 10_000;

export interface Redis {
  readonly port: number;
  stop(): Promise<void>;
}

/** @returns undefined when the system has none */
export function redisVersion(): string | undefined {
  const { stdout, status } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return status === 0 ? /v=(\S+)/.exec(stdout)?.[1] : undefined;
}

/** @param parent folder in which its files are, on the same disk as those of Postgres */
export async function startRedis(parent: string): Promise<Redis> {
  const port = await freePort();
  const folder = path.join(parent, `redis-${port}`);
  mkdirSync(folder, { recursive: true });
  const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...settings],
    { stdio: 'ignore' },
  );
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const stop = async () => {
    process.removeListener('exit', kill);
    if (child.exitCode === null && child.signalCode === null) {
      kill();
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  for (const giveUpAt = performance.now() + START_MS; !(await answers(port)); await pause(20)) {
    if (child.exitCode === null && performance.now() < giveUpAt) continue;
    await stop();
    throw new Error('redis-server does not start');
  }
  return { port, stop };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
