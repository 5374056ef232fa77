/**
 * The software bill of materials, as CycloneDX, which `npm sbom` makes of the lock file: the packages that an installed
 * server may load, the optional ones included, what the built dashboard has taken in, and none that only building and
 * testing take. Needs no registry.
 *
 * It is made of a manifest without what is for development: with `--omit dev` npm leaves out what both need.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundledFolders } from './ui.mjs';

const FLAGS = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
const MAX_BYTES = 64 * 1_024 * 1_024;

/**
 * @returns the text of the file, and the packages that it names
 * @throws Error with what npm said
 */
export function softwareBill(root) {
  const read = (file) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
  const { devDependencies: _, ...manifest } = read('package.json');
  const bundled = bundledFolders();
  const lock = read('package-lock.json');
  const { '': own, ...packages } = lock.packages;
  const { devDependencies: __, ...shipped } = own;
  const kept = {
    ...Object.fromEntries(Object.entries(packages).filter(([, { dev }]) => dev !== true)),
    ...Object.fromEntries(bundled.map((folder) => [folder, alone(packages[folder], bundled)])),
  };
  const dependencies = { ...shipped.dependencies, ...versionsOf(bundled, packages) };
  const parent = mkdtempSync(path.join(tmpdir(), 'sbom-'));
  try {
    // npm calls what it describes by the name of the folder.
    const folder = path.join(parent, manifest.name);
    mkdirSync(folder);
    const write = (file, value) => writeFileSync(path.join(folder, file), JSON.stringify(value));
    write('package.json', { ...manifest, dependencies });
    write('package-lock.json', {
      ...lock,
      packages: { '': { ...shipped, dependencies }, ...kept },
    });
    const options = { cwd: folder, encoding: 'utf8', maxBuffer: MAX_BYTES };
    const { status, stdout, stderr, error } = spawnSync('npm', ['sbom', ...FLAGS], options);
    if (status !== 0) throw new Error(`npm sbom failed: ${error?.message ?? stderr}`);
    return { text: stdout, components: JSON.parse(stdout).components };
  } finally {
    rmSync(parent, { recursive: true });
  }
}

/** A package of which code was taken. Of what it needs, only what was taken as well has to be there. */
function alone({ version, resolved, integrity, license, dependencies = {} }, bundled) {
  const names = new Set(bundled.map(nameIn));
  const needed = Object.entries(dependencies).filter(([name]) => names.has(name));
  return { version, resolved, integrity, license, dependencies: Object.fromEntries(needed) };
}

/** Those at the top; one within another package is found by what that needs. */
const versionsOf = (folders, packages) =>
  Object.fromEntries(
    folders
      .filter((folder) => folder === `node_modules/${nameIn(folder)}`)
      .map((folder) => [nameIn(folder), packages[folder].version]),
  );

const nameIn = (folder) =>
  folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
