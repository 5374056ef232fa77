/**
 * uWebSockets.js needs the C library of Debian 13. Where it does not load, the tests of its backend run in a folder
 * that holds no more than that library, this Node and the tests. The library comes from the mirror that this machine
 * installs its own packages from.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { BACKENDS } from '../helpers/backends.js';
import { ROOT } from '../helpers/docs.js';

const run = promisify(execFile);

const SUITE = 'trixie';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6'];
const FILES = ['http-server', 'http-corpus'].map((name) => `/app/dist/test/http/${name}.test.js`);

const DOWNLOAD_MS = 120_000;
const TESTS_MS = 900_000;

test('the tests of HTTP pass with uWebSockets.js on the C library of Debian 13', async (t) => {
  if (BACKENDS.includes('uws')) return t.skip('uWebSockets.js loads: its tests ran here');
  if (process.getuid?.() !== 0) return t.skip('only root can change the root folder');
  const mirror = mirrorOf();
  if (mirror === undefined) return t.skip('no source of packages of Debian');
  const folder = mkdtempSync(path.join(tmpdir(), 'other-libc-'));
  try {
    const isInstalled = await installLibraries(folder, mirror).then(
      () => true,
      (error: Error) => t.diagnostic(error.message),
    );
    if (isInstalled !== true) return t.skip('the packages of Debian 13 could not be fetched');
    await installTests(folder);
    // Of the environment nothing is passed on: it names files outside, and this test runner.
    const node = [folder, '/usr/bin/node', '--test', '--test-reporter=spec', ...FILES];
    const ended = run('chroot', node, { env: { PATH: '/usr/sbin:/usr/bin' }, timeout: TESTS_MS });
    const { stdout } = await ended.catch((error: Error & { stdout?: string }) =>
      assert.fail(`${error.message}\n${error.stdout}`),
    );
    assert.match(stdout, /the uws backend/);
    assert.match(stdout, /raw requests to the uws backend/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Where apt gets the release of this machine from; undefined unless that is Debian. */
function mirrorOf(): string | undefined {
  if (!existsSync('/etc/os-release') || !existsSync(KEYRING)) return undefined;
  const codename = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  if (codename === undefined) return undefined;
  const files = [
    '/etc/apt/sources.list',
    ...filesIn('/etc/apt/sources.list.d', /\.(list|sources)$/),
  ];
  for (const file of files.filter((each) => existsSync(each))) {
    const text = readFileSync(file, 'utf8').replace(/^#.*\n/gm, '');
    const line = new RegExp(`^deb (?:\\[.*?\\] )?(\\S+) ${codename} `, 'm').exec(text)?.[1];
    if (line !== undefined) return line;
    for (const source of text.split(/\n\n+/)) {
      if (!new RegExp(`^Suites:.*\\b${codename}(?:\\s|$)`, 'm').test(source)) continue;
      const uri = /^URIs: *(\S+)/m.exec(source)?.[1];
      if (uri !== undefined) return uri;
    }
  }
  return undefined;
}

function filesIn(folder: string, name: RegExp): string[] {
  const names = existsSync(folder) ? readdirSync(folder).filter((each) => name.test(each)) : [];
  return names.map((each) => path.join(folder, each));
}

/** @throws Error when they cannot be downloaded */
async function installLibraries(folder: string, mirror: string): Promise<void> {
  const apt = path.join(folder, 'apt');
  for (const name of ['apt/lists/partial', 'apt/cache/archives/partial', 'usr/lib', 'usr/lib64']) {
    mkdirSync(path.join(folder, name), { recursive: true });
  }
  for (const name of ['lib', 'lib64']) symlinkSync(`usr/${name}`, path.join(folder, name));
  const sources = path.join(apt, 'sources.list');
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${mirror} ${SUITE} main\n`);
  const options = {
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Dir::State::status': '/dev/null',
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'Dir::State::lists': path.join(apt, 'lists'),
    'Dir::Cache': path.join(apt, 'cache'),
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const get = (...words: string[]) =>
    run('apt-get', ['-qq', ...flags, ...words], { cwd: apt, timeout: DOWNLOAD_MS });
  await get('update');
  await get('download', ...PACKAGES);
  for (const file of filesIn(apt, /\.deb$/)) await run('dpkg-deb', ['-x', file, folder]);
  rmSync(apt, { recursive: true });
}

/** This Node, and what was built here. */
async function installTests(folder: string): Promise<void> {
  for (const name of ['app', 'dev', 'proc', 'tmp', 'usr/bin']) {
    mkdirSync(path.join(folder, name), { recursive: true });
  }
  writeFileSync(path.join(folder, 'dev/null'), '');
  cpSync(realpathSync(process.execPath), path.join(folder, 'usr/bin/node'));
  const from = ['package.json', 'node_modules', 'dist'].map((name) => path.join(ROOT, name));
  await run('cp', ['-a', ...from, path.join(folder, 'app')]);
}
