/** The program: flags and environment, start, wait for a signal, stop. No logic. */

import { readFileSync } from 'node:fs';
import { type Config, readConfig, USAGE, unknownNames } from './config.js';
import { startEngine } from './engine.js';
import { greeting } from './greeting.js';
import { createLogger } from './log.js';
import { isForPeople, logOutput, outputPalette } from './log-output.js';
import { packageFile } from './package-files.js';
import { startRefusal } from './start-refusal.js';

const args = process.argv.slice(2);

if (args.includes('--help')) {
  process.stdout.write(`${USAGE}\n`);
} else if (args.includes('--version')) {
  process.stdout.write(`${packageVersion()}\n`);
} else {
  await run();
}

async function run(): Promise<void> {
  let config: Config | undefined;
  try {
    config = readConfig(process.env, args);
    const { logLevel, logFormat } = config;
    const log = createLogger(logLevel, 'front', logOutput(logFormat));
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
      onReady: (facts) => {
        if (isForPeople(logFormat)) process.stdout.write(greeting(facts, outputPalette()));
      },
    });
  } catch (error) {
    const refusal = startRefusal(error, config);
    if (refusal === undefined) throw error;
    process.stderr.write(`${refusal}\n`);
    process.exitCode = 1;
  }
  // Threads and sockets are closed by now; what a library left open must not hold the process.
  process.exit();
}

function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string })
    .version;
}
