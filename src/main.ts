/** The program: flags and environment, start, wait for a signal, stop. No logic. */

import { readFileSync } from 'node:fs';
import { ConfigError, readConfig, USAGE, unknownNames } from './config.js';
import { EmbeddedPostgresError } from './db/embedded-files.js';
import { SchemaError } from './db/migrate.js';
import { startEngine } from './engine.js';
import { createLogger } from './log.js';
import { packageFile } from './package-files.js';

const args = process.argv.slice(2);

if (args.includes('--help')) {
  process.stdout.write(`${USAGE}\n`);
} else if (args.includes('--version')) {
  process.stdout.write(`${packageVersion()}\n`);
} else {
  await run();
}

async function run(): Promise<void> {
  try {
    const config = readConfig(process.env, args);
    const log = createLogger(config.logLevel, 'front');
    const unknown = unknownNames(process.env);
    if (unknown.length > 0) log.warn({ unknown }, 'environment variables that mean nothing here');
    const stopped = new AbortController();
    const onSignal = () => stopped.abort();
    // A signal that is repeated must not cut the stop short.
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    process.exitCode = await startEngine({
      config,
      log,
      version: packageVersion(),
      signal: stopped.signal,
    });
  } catch (error) {
    if (!isExpected(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
  // Threads and sockets are closed by now; what a library left open must not hold the process.
  process.exit();
}

/** Errors that the operator can mend and whose message says how: no stack. */
function isExpected(error: unknown): error is Error {
  return (
    error instanceof ConfigError ||
    error instanceof SchemaError ||
    error instanceof EmbeddedPostgresError ||
    ['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')
  );
}

function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string })
    .version;
}
