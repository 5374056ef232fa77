/**
 * A real proxy in front of the cells of a test, set up and kept up to date by `cells proxy-config --watch`, as an
 * operator runs it: nothing of what it writes is changed but where nginx keeps its temporary files.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { CLI } from './cli.js';
import { newFolder } from './database.js';
import { freePort } from './engine.js';
import type { ProxyKind, RunningProxy } from './proxies.js';
import { nginxFolders, runProxy } from './proxies.js';

export interface CellProxy extends RunningProxy {
  /** With the files that were written. */
  readonly folder: string;
  /** HAProxy's runtime socket. */
  readonly socket: string;
  /** The command goes no further, and the proxy stays as it is. */
  freeze(): void;
  thaw(): void;
}

export async function startCellProxy(
  kind: ProxyKind,
  { clusterUrl }: { readonly clusterUrl: string },
): Promise<CellProxy> {
  const home = newFolder(kind);
  const folder = path.join(home, 'written');
  const socket = path.join(home, 'runtime.sock');
  const port = await freePort();
  const run = RUNS[kind](home, folder);
  const listen = `127.0.0.1:${port}`;
  const given = ['--for', kind, '--out', folder, '--listen', listen, '--watch', '--json'];
  if (kind === 'haproxy') given.push('--apply', socket);
  const args = [CLI, 'cells', 'proxy-config', ...given, '--reload', run.reload];
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
    run.prepare();
    const proxy = await runProxy(kind, port, run.args, home);
    // Until it has looked, it takes standbys for owners.
    while (kind === 'haproxy' && /,INI,/.test(await runtime({ socket }, 'show stat'))) {
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

interface Run {
  readonly args: readonly string[];
  /** For the shell, when files have to be read anew. */
  readonly reload: string;
  prepare(): void;
}

const RUNS: Record<ProxyKind, (home: string, folder: string) => Run> = {
  haproxy: (home, folder) => ({
    args: ['-W', '-db', '-p', `${home}/haproxy.pid`, '-f', `${folder}/haproxy.cfg`],
    reload: `kill -USR2 $(cat ${home}/haproxy.pid)`,
    prepare: () => undefined,
  }),
  nginx: (home, folder) => {
    const run = path.join(home, 'run');
    mkdirSync(run);
    const script = `sed 's|^http {$|http { ${nginxFolders(run)}|' ${folder}/nginx.conf >${run}/nginx.conf &&
      cp ${folder}/*.map ${run}/`;
    writeFileSync(path.join(home, 'take.sh'), script);
    const settings = `daemon off; pid ${home}/nginx.pid; error_log stderr;`;
    return {
      args: ['-c', `${run}/nginx.conf`, '-g', settings],
      reload: `sh ${home}/take.sh && kill -HUP $(cat ${home}/nginx.pid)`,
      prepare: () => {
        const script = path.join(home, 'take.sh');
        const { status, stderr } = spawnSync('sh', [script], { encoding: 'utf8' });
        if (status !== 0) throw new Error(stderr);
      },
    };
  },
};
