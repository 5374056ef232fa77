/**
 * The software bill of materials, as CycloneDX, which `npm sbom` makes of the lock file: the packages that an installed
 * server may load, the optional ones included, and none that only building and testing take. Needs no registry.
 *
 * It is made of a manifest without what is for development: with `--omit dev` npm leaves out what both need.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const FLAGS = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
const MAX_BYTES = 64 * 1_024 * 1_024;

/**
 * @returns the text of the file, and the packages that it names
 * @throws Error with what npm said
 */
export function softwareBill(root) {
  const read = (file) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
  const { devDependencies: _, ...manifest } = read('package.json');
  const lock = read('package-lock.json');
  const { '': own, ...packages } = lock.packages;
  const { devDependencies: __, ...shipped } = own;
  const kept = Object.entries(packages).filter(([, { dev }]) => dev !== true);
  const parent = mkdtempSync(path.join(tmpdir(), 'sbom-'));
  try {
    // npm calls what it describes by the name of the folder.
    const folder = path.join(parent, manifest.name);
    mkdirSync(folder);
    const write = (file, value) => writeFileSync(path.join(folder, file), JSON.stringify(value));
    write('package.json', manifest);
    write('package-lock.json', {
      ...lock,
      packages: { '': shipped, ...Object.fromEntries(kept) },
    });
    const options = { cwd: folder, encoding: 'utf8', maxBuffer: MAX_BYTES };
    const { status, stdout, stderr, error } = spawnSync('npm', ['sbom', ...FLAGS], options);
    if (status !== 0) throw new Error(`npm sbom failed: ${error?.message ?? stderr}`);
    return { text: stdout, components: JSON.parse(stdout).components };
  } finally {
    rmSync(parent, { recursive: true });
  }
}
