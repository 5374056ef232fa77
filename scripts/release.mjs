/**
 * `npm run release [-- --dry-run]`: what a release needs, in order: a clean tree with a version that has a
 * dated section in the changelog and no tag yet, then the packages of npm and Python, the bill of
 * materials and the image, then the tag. A dry run makes them, too, but no tag, and goes on where a
 * release would stop. Publishing is left to a person: the last lines say how.
 */

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { releaseProblems } from './lib/release-checks.mjs';
import { softwareBill } from './lib/sbom.mjs';

const isDry = process.argv.includes('--dry-run');
const { name, version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const tag = `v${version}`;
const OUTPUT = 'release';
const say = (line) => process.stdout.write(`[release] ${line}\n`);

const problems = releaseProblems({
  version,
  changelog: readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'),
  status: git('status', '--porcelain'),
  tags: git('tag', '--list').split('\n'),
});
for (const problem of problems) say(`not ready: ${problem}`);
if (problems.length > 0 && !isDry) process.exit(1);

await bootstrap();
const tarballs = [pack('.'), packClient()];
const wheel = buildWheel();
writeBill();
const image = buildImage();
if (isDry) {
  say(`skipped: the tag ${tag}, because this is a dry run`);
  process.exitCode = problems.length > 0 ? 1 : 0;
} else {
  git('tag', '--annotate', tag, '--message', `Release ${version}`);
  say(`tagged ${tag}`);
  say('to publish:');
  say(`  git push origin ${tag}`);
  for (const tarball of tarballs) say(`  npm publish ${tarball}`);
  if (wheel !== undefined) say(`  python3 -m twine upload ${wheel}`);
  if (image !== undefined) say(`  docker push ${image}, under the name that your registry wants`);
}

/** The path of the package that a folder holds, from the root. */
function pack(folder) {
  mkdirSync(path.join(root, OUTPUT), { recursive: true });
  const text = run('npm', [
    'pack',
    folder,
    '--json',
    '--ignore-scripts',
    '--pack-destination',
    OUTPUT,
  ]);
  const [{ filename, size, files }] = JSON.parse(text);
  const file = path.join(OUTPUT, filename);
  say(`package: ${file}, ${Math.round(size / 1_024)} KiB, ${files.length} files`);
  return file;
}

function packClient() {
  rmSync(path.join(root, 'client/dist'), { recursive: true, force: true });
  run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'client']);
  return pack('./client');
}

/**
 * The wheel of the Python client, built by what its pyproject.toml asks for; undefined where that cannot be had. From a
 * copy, so that nothing of the build is left in the checkout.
 */
function buildWheel() {
  const folder = mkdtempSync(path.join(tmpdir(), 'engine-wheel-'));
  try {
    const python = path.join(folder, 'venv/bin/python');
    const source = path.join(folder, 'source');
    const pip = ['-m', 'pip', '--disable-pip-version-check', '--quiet'];
    if (!works('python3', ['-m', 'venv', path.join(folder, 'venv')])) {
      return skipWheel('there is no Python with venv here');
    }
    cpSync(path.join(root, 'clients/python'), source, { recursive: true, filter: isNoCache });
    if (!works(python, [...pip, 'install', 'build'])) {
      return skipWheel('no registry of Python packages answers');
    }
    run(python, ['-m', 'build', '--wheel', '--outdir', path.join(folder, 'wheels'), source]);
    const [built] = readdirSync(path.join(folder, 'wheels'));
    const file = path.join(OUTPUT, built);
    copyFileSync(path.join(folder, 'wheels', built), path.join(root, file));
    say(`wheel: ${file}, ${Math.round(statSync(path.join(root, file)).size / 1_024)} KiB`);
    return file;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function skipWheel(why) {
  say(`skipped: the wheel of the Python client, because ${why}`);
}

function isNoCache(file) {
  return !/(?:__pycache__|\.(?:mypy|pytest|ruff)_cache)$/.test(file);
}

function works(program, args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** What is in it, for those who have to know whether a vulnerability concerns them. */
function writeBill() {
  const file = path.join(OUTPUT, `${name}-${version}.cdx.json`);
  const bill = softwareBill(root);
  writeFileSync(path.join(root, file), bill.text);
  say(`bill of materials: ${file}, ${bill.components.length} packages`);
}

/** The name of the image, or undefined where none can be built. */
function buildImage() {
  const answer = spawnSync('docker', ['info', '--format', '{{.ServerVersion}}'], {
    encoding: 'utf8',
  });
  if (answer.error !== undefined || answer.status !== 0) {
    say('skipped: the image, because no docker answers here');
    return undefined;
  }
  const wanted = `${name}:${version}`;
  run('docker', ['build', '--tag', wanted, '.']);
  say(`image: ${wanted}`);
  return wanted;
}

function git(...args) {
  return run('git', args).trim();
}

/** The standard output; the error stream is shown. Ends the release when the program fails. */
function run(program, args) {
  const { status, stdout, error } = spawnSync(program, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1_024 * 1_024,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status === 0) return stdout;
  say(`${program} ${args[0]} failed${error === undefined ? '' : `: ${error.message}`}`);
  process.exit(1);
}
