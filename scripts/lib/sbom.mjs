/**
 * The software bill of materials, as CycloneDX, which `npm sbom` makes of the lock file: the packages that an installed
 * server may load, the optional ones included, and none that only building and testing take. Needs no registry.
 */

import { spawnSync } from 'node:child_process';

/**
 * @returns the text of the file, and the packages that it names
 * @throws Error with what npm said
 */
export function softwareBill(root) {
  const { status, stdout, stderr, error } = spawnSync(
    'npm',
    [
      'sbom',
      '--sbom-format',
      'cyclonedx',
      '--sbom-type',
      'application',
      '--omit',
      'dev',
      '--package-lock-only',
    ],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1_024 * 1_024 },
  );
  if (status !== 0) throw new Error(`npm sbom failed: ${error?.message ?? stderr}`);
  return { text: stdout, components: JSON.parse(stdout).components };
}
