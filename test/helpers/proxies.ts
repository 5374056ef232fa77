/**
 * Real nginx and HAProxy in front of engines, set up as docs/operate says: the configuration is taken from
 * there, and only its addresses become those of the test. A machine without the programs has no such tests.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newFolder } from './database.js';
import { hasProgram, page, ROOT } from './docs.js';
import { freePort } from './engine.js';

export const PROXY_KINDS = ['nginx', 'haproxy'] as const;
export type ProxyKind = (typeof PROXY_KINDS)[number];

export const isInstalled = (kind: ProxyKind): boolean => hasProgram(kind, SYSTEM_FOLDERS);

/** Not in the PATH of everybody. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/local/sbin'];

export interface RunningProxy {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** Where the engines are: one, and for HAProxy perhaps a second one. */
export type Behind = { readonly ports: readonly [number, number?] };

/** How long it may take to open its port. */
const START_TIMEOUT_MS = 60_000;

export async function startProxy(kind: ProxyKind, behind: Behind): Promise<RunningProxy> {
  const folder = newFolder(kind);
  const port = await freePort();
  return runProxy(kind, port, ARGS[kind](folder, port, behind), folder);
}

/**
 * Runs the program until `stop`, which removes the folder as well.
 *
 * @param port which it opens when it is up
 */
export async function runProxy(
  kind: ProxyKind,
  port: number,
  args: readonly string[],
  folder: string,
): Promise<RunningProxy> {
  const PATH = [process.env.PATH, ...SYSTEM_FOLDERS].join(path.delimiter);
  const child = spawn(kind, args, {
    env: { ...process.env, PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killed = () => void child.kill('SIGKILL');
  process.once('exit', killed);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output = (output + text).slice(-4_000);
    });
  }
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill(kind === 'nginx' ? 'SIGTERM' : 'SIGINT');
    await exited;
    process.removeListener('exit', killed);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await untilOpen(port, child);
  } catch (cause) {
    await stop();
    throw new Error(`${kind} does not start\n${output}`, { cause });
  }
  return { pid: child.pid as number, port, url: `http://127.0.0.1:${port}`, stop };
}

/** What nginx keeps in folders of its own, which not everybody may make. */
function nginxFolders(folder: string): string {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => {
      mkdirSync(path.join(folder, name), { recursive: true });
      return `${name}_temp_path ${path.join(folder, name)};`;
    })
    .join(' ');
}

const ARGS: Record<ProxyKind, (folder: string, port: number, behind: Behind) => string[]> = {
  nginx: (folder, port, { ports: [engine] }) => {
    const sample = page('docs/operate/proxies.md').fences.find(({ text }) =>
      text.startsWith('upstream engine {'),
    );
    // All but the certificate, which is the same whatever is behind.
    const site = edited((sample?.text ?? '').replace(/^ *ssl_.*\n/gm, ''), [
      ['server 127.0.0.1:8080;', `server 127.0.0.1:${engine};`],
      ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
    ]);
    const file = path.join(folder, 'nginx.conf');
    writeFileSync(
      file,
      `daemon off; pid ${folder}/pid; error_log stderr;
       events {} http { access_log off; ${nginxFolders(folder)}\n${site}}`,
    );
    return ['-p', folder, '-c', file];
  },
  haproxy: (folder, port, { ports: [engine, standby = 9] }) => {
    const sample = readFileSync(path.join(ROOT, 'docs/operate/haproxy.cfg'), 'utf8');
    const file = path.join(folder, 'haproxy.cfg');
    writeFileSync(
      file,
      edited(sample, [
        ['bind :8090', `bind 127.0.0.1:${port}`],
        ['engine:8080', `127.0.0.1:${engine}`],
        ['engine-b:8080', `127.0.0.1:${standby}`],
      ]),
    );
    return ['-db', '-f', file];
  },
};

/** @throws Error when a text is not there: the documented configuration has changed */
function edited(text: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((all, [from, to]) => {
    if (!all.includes(from)) throw new Error(`the configuration has no "${from}":\n${all}`);
    return all.replace(from, () => to);
  }, text);
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (child.exitCode === null && performance.now() < deadline) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await pause(20);
  }
  throw new Error('its port does not open');
}

/**
 * The answer with all of its body, over a connection of its own: one that nobody reads stays open, and one that is
 * kept for the next request may be closed by the proxy just then.
 */
export async function fetchWhole(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string> | undefined), connection: 'close' };
  const reply = await fetch(url, { ...init, headers });
  const body = await reply.arrayBuffer();
  const { status } = reply;
  return new Response(body.byteLength === 0 ? null : body, { status, headers: reply.headers });
}
