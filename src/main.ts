#!/usr/bin/env node
/** The first file of the server: nothing that an old Node cannot load comes before its version is known. */

import { requireNode } from './server/node-version.js';

requireNode();
const { runServer } = await import('./server/program.js');
await runServer(process.argv.slice(2));
