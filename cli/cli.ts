#!/usr/bin/env node
/**
 * The command `durable-workflow-engine`. It starts the server without loading anything of the command line, and the
 * command line without loading anything of the server.
 */

import { requireNode } from '../src/server/node-version.js';

requireNode();
const [first = '', ...rest] = process.argv.slice(2);
if (first === 'start') {
  const { runServer } = await import('../src/server/program.js');
  await runServer(rest);
} else if (/^--(?:insecure-auth|unsafe-database)/.test(first)) {
  // What the command was before it had others: units and scripts that start a server so go on working.
  process.stderr.write(
    `durable-workflow-engine ${first}: say durable-workflow-engine start ${first}\n`,
  );
  const { runServer } = await import('../src/server/program.js');
  await runServer([first, ...rest]);
} else {
  const { runCommandLine } = await import('./program.js');
  await runCommandLine([first, ...rest].filter((_, at) => at > 0 || first !== ''));
}
