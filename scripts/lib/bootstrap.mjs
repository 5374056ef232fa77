/**
 * From whatever state a checkout is in to installed packages and a current build. Plain Node
 * without dependencies, since it runs before there are any. When nothing has to be done it costs
 * some tens of milliseconds: each step is guarded by a stamp that holds a hash of its inputs.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../src/node-version.js';
import { bundleServer } from './bundle.mjs';
import { withLock } from './lock.mjs';

requireNode();

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const dist = path.join(root, 'dist');
const server = path.join(dist, 'server');
const packages = path.join(root, 'node_modules');
const installStamp = path.join(packages, '.install-stamp');
const buildStamp = path.join(dist, '.build-stamp');
const uiStamp = path.join(dist, '.ui-stamp');
const SOURCE_FOLDERS = [
  'src',
  'actors',
  'schema',
  'bench',
  'test',
  'examples',
  'scripts/reference',
  'client/src',
  'cli',
];
/** What the dashboard is made of. */
const UI_FOLDERS = ['ui', 'client/src'];

/**
 * Installs and builds what is missing or out of date; two calls at once do the work once.
 * @param options.withUi false where the dashboard may not compile yet: its types are being written
 */
export async function bootstrap({ withUi = true } = {}) {
  const isBuilt = () => isServerBuilt() && (!withUi || isUiBuilt());
  if (isInstalled() && isBuilt()) return;
  try {
    await withLock(
      path.join(dist, '.bootstrap-lock'),
      async () => {
        if (!isInstalled()) await install();
        if (!isBuilt()) await build(withUi);
      },
      (pid) => say(`waiting for process ${pid}, which is installing or building`),
    );
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(error.exitCode);
  }
}

/** A step failed and has told why by itself: no stack is needed. */
class SetupError extends Error {
  exitCode = 1;
}

function isInstalled() {
  if (!existsSync(installStamp)) return adoptInstallation();
  return readFileSync(installStamp, 'utf8') === lockHash();
}

/**
 * Packages that somebody installed by hand have no stamp. They are taken as they are when the list
 * that npm keeps beside them agrees with the lock file.
 */
function adoptInstallation() {
  const installedList = path.join(root, 'node_modules/.package-lock.json');
  if (!existsSync(installedList)) return false;
  const installed = JSON.parse(readFileSync(installedList, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages;
  for (const [place, entry] of Object.entries(wanted)) {
    if (place === '' || entry.optional) continue;
    if (installed[place]?.integrity !== entry.integrity) return false;
  }
  writeFileSync(installStamp, lockHash());
  return true;
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(path.join(root, 'package-lock.json')))
    .digest('hex');
}

/** The compiler is a development dependency, so NODE_ENV=production must not leave it out. */
async function install() {
  // npm would follow the link and empty the folder of another checkout.
  if (lstatSync(packages, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new SetupError('node_modules is a link, and its packages are not those of the lock file');
  }
  say('installing packages');
  const flags = ['ci', '--no-audit', '--no-fund', '--include=dev', '--include=optional'];
  // Under npm its own script is used, so that the same npm does the work.
  const npm = process.env.npm_execpath;
  const isNpm = npm !== undefined && path.basename(npm) === 'npm-cli.js';
  const [command, args] = isNpm ? [process.execPath, [npm, ...flags]] : ['npm', flags];
  await run(command, args, 'npm ci failed, see above');
  writeFileSync(installStamp, lockHash());
}

const isServerBuilt = () => isCurrent(buildStamp, sourceHash());
const isUiBuilt = () => isCurrent(uiStamp, uiHash());

const isCurrent = (stamp, hash) => existsSync(stamp) && readFileSync(stamp, 'utf8') === hash;

async function build(withUi) {
  const startedAt = Date.now();
  // Taken before compiling: a file saved meanwhile makes the next start build again.
  const hash = sourceHash();
  const ui = uiHash();
  say('building');
  if (!isCurrent(buildStamp, hash)) await buildServer(hash);
  if (withUi && !isCurrent(uiStamp, ui)) await buildUi(ui);
  say(`built in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

async function buildServer(hash) {
  await compile();
  if (missingOutputs().length > 0) {
    // Outputs were removed by hand, and the compiler's notes say that they are current.
    rmSync(path.join(dist, '.tsbuildinfo'), { force: true });
    await compile();
  }
  removeOrphans();
  rmSync(server, { recursive: true, force: true });
  await bundleServer(dist);
  writeFileSync(buildStamp, hash);
}

async function buildUi(hash) {
  const env = { ...process.env, NODE_ENV: 'production' };
  const script = path.join(root, 'scripts/lib/ui.mjs');
  await compile('ui');
  await run(process.execPath, [script], 'the build of the dashboard failed', env);
  writeFileSync(uiStamp, hash);
}

async function compile(project = '.') {
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [compiler, '-p', path.join(root, project)], 'the build failed');
}

const sourceHash = () =>
  hashOf([...sources(), 'tsconfig.json', 'package.json', 'scripts/lib/bundle.mjs']);

const uiHash = () =>
  hashOf([...UI_FOLDERS.flatMap((folder) => list(folder)).sort(), 'scripts/lib/ui.mjs']);

function hashOf(files) {
  const hash = createHash('sha256').update(lockHash());
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(path.join(root, file)));
  return hash.digest('hex');
}

/** Every file under the source folders, relative to the root, in a stable order. */
function sources() {
  return SOURCE_FOLDERS.flatMap((folder) => list(folder, /\.[jt]s$/)).sort();
}

function list(folder, named = /./) {
  const full = path.join(root, folder);
  if (!existsSync(full)) return [];
  return readdirSync(full, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && named.test(entry.name))
    .map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name)));
}

const outputOf = (source) => path.join(dist, source.replace(/\.ts$/, '.js'));

function missingOutputs() {
  return sources().filter((file) => !file.endsWith('.d.ts') && !existsSync(outputOf(file)));
}

/** The output of a source that is gone would still be imported, or run as a test. */
function removeOrphans() {
  const current = new Set(sources().map(outputOf));
  for (const folder of SOURCE_FOLDERS) {
    const full = path.join(dist, folder);
    if (!existsSync(full)) continue;
    for (const entry of readdirSync(full, { withFileTypes: true, recursive: true })) {
      const file = path.join(entry.parentPath ?? entry.path, entry.name);
      if (!entry.isFile() || !/\.(js|js\.map|sql)$/.test(file)) continue;
      if (!current.has(file.replace(/\.map$/, ''))) rmSync(file);
    }
  }
}

/** Signals are passed on, so that who ends a start does not leave a compiler or an npm behind. */
async function run(command, args, complaint, env = process.env) {
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 2, 2] });
  let signalled;
  const passOn = (signal) => {
    signalled = signal;
    child.kill(signal);
  };
  for (const signal of PASSED_ON) process.on(signal, passOn);
  const [code, signal] = await once(child, 'close').catch((error) => [error.message]);
  for (const name of PASSED_ON) process.off(name, passOn);
  if (code === 0 && signalled === undefined) return;
  const reason = typeof code === 'number' ? `exit code ${code}` : (code ?? signal);
  const failure = new SetupError(`${complaint} (${signalled ?? reason})`);
  if (signalled !== undefined) failure.exitCode = 128 + constants.signals[signalled];
  throw failure;
}

const PASSED_ON = ['SIGTERM', 'SIGINT'];

/** Progress goes to the error stream: what a script prints on its own stays alone on the other. */
function say(message) {
  process.stderr.write(`[setup] ${message}\n`);
}
