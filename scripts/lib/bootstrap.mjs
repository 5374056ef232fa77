/**
 * From whatever state a checkout is in to installed packages and a current build, in some tens of milliseconds when
 * nothing has to be done. Plain Node without dependencies, since it runs before there are any.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { requireNode } from '../../src/server/node-version.js';
import { tryProcessLock } from '../../src/server/process-lock.js';
import { DASHBOARD, hashOf, isCurrent, SERVER } from './targets.mjs';

requireNode();
export const root = path.resolve(import.meta.dirname, '../..');
const LOCK = path.join(root, 'dist/.bootstrap-lock');

/**
 * Installs and builds what is missing or out of date; another process that wants the same waits. Ends the process when
 * a step fails, which has said why. Without the dashboard it serves where its types are being written.
 */
export async function bootstrap({ withUi = true } = {}) {
  const outdated = () => (withUi ? [SERVER, DASHBOARD] : [SERVER]).filter((it) => !isCurrent(it));
  if (isInstalled() && outdated().length === 0) return;
  mkdirSync(path.dirname(LOCK), { recursive: true });
  let lock = tryProcessLock(LOCK);
  if ('heldBy' in lock) say(`waiting for process ${lock.heldBy.pid}, which installs or builds`);
  for (; 'heldBy' in lock; lock = tryProcessLock(LOCK)) await wait(100);
  if (!isInstalled()) await install();
  for (const target of outdated()) {
    say(`building ${target.name}`);
    // Taken before compiling: a file saved meanwhile makes the next start build again.
    const hash = hashOf(target);
    // The compiler writes files also of sources with errors, which the stamp of before is not about.
    rmSync(target.stamp, { force: true });
    await target.build((...args) => run(process.execPath, args));
    writeFileSync(target.stamp, hash);
  }
  lock.release();
}

/** Whether the packages are those of the lock file, by the list that npm writes beside them in the end. */
function isInstalled() {
  const packagesOf = (file) => JSON.parse(readFileSync(path.join(root, file), 'utf8')).packages;
  const list = 'node_modules/.package-lock.json';
  const installed = existsSync(path.join(root, list)) ? packagesOf(list) : {};
  return Object.entries(packagesOf('package-lock.json')).every(
    ([place, { optional, integrity }]) => optional || installed[place]?.integrity === integrity,
  );
}

async function install() {
  // npm would follow a link and empty the folder of another checkout.
  const packages = lstatSync(path.join(root, 'node_modules'), { throwIfNoEntry: false });
  if (packages?.isSymbolicLink()) throw new Error('node_modules is a link to other packages');
  say('installing packages');
  // With NODE_ENV=production the compiler would be left out.
  await run('npm', ['ci', '--no-audit', '--no-fund', '--include=dev', '--include=optional']);
}

/** Signals are passed on, so that ending a start leaves no compiler and no npm behind. */
async function run(command, args) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  const passOn = (signal) => child.kill(signal);
  process.on('SIGTERM', passOn).on('SIGINT', passOn);
  const [code, signal] = await once(child, 'close');
  process.off('SIGTERM', passOn).off('SIGINT', passOn);
  if (code === 0) return;
  say(`${path.basename(args[0])} ended with ${code ?? signal}, see above`);
  process.exit(code ?? 128 + constants.signals[signal]);
}

const say = (message) => process.stderr.write(`[setup] ${message}\n`);
