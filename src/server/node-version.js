/**
 * Whether this Node can run the program. Plain JavaScript without imports, because it must load on any
 * Node, before packages are installed and before a module that needs a newer one is looked at.
 */

/** As `engines` in package.json. */
const MAJOR_MIN = 20;
const MINOR_MIN = 11;

/** Ends the process with one line when its Node is too old. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > MAJOR_MIN || (major === MAJOR_MIN && minor >= MINOR_MIN)) return;
  process.stderr.write(
    `Node ${process.versions.node} is too old: install Node ${MAJOR_MIN}.${MINOR_MIN} or later ` +
      '(node --version shows which one runs)\n',
  );
  process.exit(1);
}
