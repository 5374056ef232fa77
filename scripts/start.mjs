/**
 * `npm start`: install and build when needed, then the server in this same process, so that signals
 * and exit codes are its own. Flags after `--` reach it as they are.
 */

import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();
await import('../dist/server/main.js');
