/**
 * `node scripts/run.mjs examples/demo.js [flags]`: install and build when needed, then the named
 * file of the build in this process, which sees its own path and flags as `process.argv`.
 */

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, root } from './lib/bootstrap.mjs';

const [name] = process.argv.splice(2, 1);
if (name === undefined) {
  process.stderr.write('usage: node scripts/run.mjs <file under dist> [flags]\n');
  process.exit(2);
}
await bootstrap();
const file = path.join(root, 'dist', name);
process.argv[1] = file;
await import(pathToFileURL(file).href);
