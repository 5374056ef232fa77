#!/usr/bin/env node
/**
 * The entry point of `durable-workflow-engine`. Starting the server does not load the command line, and the command
 * line does not load the server.
 */

import { requireNode } from '../src/server/node-version.js';

requireNode();
const [first = '', ...rest] = process.argv.slice(2);
if (first === 'start') {
  const { runServer } = await import('../src/server/program.js');
  await runServer(rest);
} else if (/^--(?:insecure-auth|unsafe-database)/.test(first)) {
  // The program used to have no commands: units and scripts that start a server without one keep working.
  process.stderr.write(
    `durable-workflow-engine ${first}: use durable-workflow-engine start ${first}\n`,
  );
  const { runServer } = await import('../src/server/program.js');
  await runServer([first, ...rest]);
} else {
  const { runCommandLine } = await import('./program.js');
  await runCommandLine([first, ...rest].filter((_, at) => at > 0 || first !== ''));
}
