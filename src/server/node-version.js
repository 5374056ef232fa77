/**
 * Checks the version of Node. Plain JavaScript without imports, because it must load on any Node, before packages are
 * installed and before modules that need a newer one.
 */

/** Matches `engines` in package.json. */
const MAJOR_MIN = 20;
const MINOR_MIN = 12;

export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > MAJOR_MIN || (major === MAJOR_MIN && minor >= MINOR_MIN)) return;
  process.stderr.write(
    `Node ${process.versions.node} is too old: install Node ${MAJOR_MIN}.${MINOR_MIN} or later ` +
      '(node --version shows which one runs)\n',
  );
  process.exit(1);
}
