/**
 * A real HAProxy in front of the cells of a test, set up and kept up to date by `cells proxy-config --watch`, as an
 * operator runs it: nothing of what it writes is changed.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { CLI } from './cli.js';
import { newFolder } from './database.js';
import { freePort } from './engine.js';
import { type RunningProxy, runProxy } from './proxies.js';

export interface CellProxy extends RunningProxy {
  /** With the files that were written. */
  readonly folder: string;
  /** HAProxy's runtime socket. */
  readonly socket: string;
  /** The command goes no further, and the proxy stays as it is. */
  freeze(): void;
  thaw(): void;
}

export async function startCellProxy({
  clusterUrl,
}: {
  readonly clusterUrl: string;
}): Promise<CellProxy> {
  const home = newFolder('haproxy');
  const folder = path.join(home, 'written');
  const socket = path.join(home, 'runtime.sock');
  const port = await freePort();
  const listen = `127.0.0.1:${port}`;
  const given = ['--out', folder, '--listen', listen, '--watch', '--json', '--apply', socket];
  const pidFile = `${home}/haproxy.pid`;
  const reload = `kill -USR2 $(cat ${pidFile})`;
  const args = [CLI, 'cells', 'proxy-config', ...given, '--reload', reload];
  const command = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', HOME: home, ENGINE_CLUSTER_URL: clusterUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killed = () => void command.kill('SIGKILL');
  process.once('exit', killed);
  let output = '';
  createInterface({ input: command.stderr }).on('line', (line) => {
    output += `${line}\n`;
  });
  const lines = createInterface({ input: command.stdout }).on('line', (line) => {
    output += `${line}\n`;
  });
  const stopCommand = async () => {
    process.removeListener('exit', killed);
    await ended(command);
  };
  try {
    await Promise.race([once(lines, 'line'), once(command, 'exit').then(() => fail(output))]);
    const config = `${folder}/haproxy.cfg`;
    const proxy = await runProxy('haproxy', port, ['-W', '-db', '-p', pidFile, '-f', config], home);
    // Until it has looked, it takes standbys for owners.
    while (/,INI,/.test(await runtime({ socket }, 'show stat'))) {
      await pause(20);
    }
    return {
      ...proxy,
      folder,
      socket,
      freeze: () => void command.kill('SIGSTOP'),
      thaw: () => void command.kill('SIGCONT'),
      stop: async () => {
        await stopCommand();
        await proxy.stop();
      },
    };
  } catch (error) {
    await stopCommand();
    throw error;
  }
}

/** What HAProxy answers to a command at its runtime socket. */
export function runtime({ socket }: Pick<CellProxy, 'socket'>, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = connect(socket);
    let answer = '';
    connection.on('data', (text) => {
      answer += text;
    });
    connection.once('end', () => resolve(answer)).once('error', reject);
    connection.write(`${command}\n`);
  });
}

function fail(output: string): never {
  throw new Error(`cells proxy-config ended\n${output}`);
}

async function ended(command: ChildProcess): Promise<void> {
  if (command.exitCode !== null || command.signalCode !== null) return;
  const exited = once(command, 'exit');
  command.kill('SIGCONT');
  command.kill('SIGINT');
  await exited;
}
