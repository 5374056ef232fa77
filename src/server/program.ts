/** The server as a program: flags and environment, start, wait for a signal, stop. No logic. */

import { createLogger } from '../base/log.js';
import { isForPeople, logOutput, outputPalette } from '../base/log-output.js';
import { packageVersion } from '../base/package-files.js';
import { type Config, readConfig, USAGE, unknownNames, weakSettings } from './config.js';
import { startEngine } from './engine.js';
import { greeting, type ReadyFacts } from './greeting.js';
import { keepsMemberNames } from './parser-defect.js';
import { startRefusal } from './start-refusal.js';

/** What is different where the server is a part of something else. */
export interface ServerOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Called once it serves, in place of the greeting. */
  readonly onReady?: (facts: ReadyFacts) => void;
}

/**
 * Runs the server until it is stopped, and ends the process.
 * @param args its flags
 */
export async function runServer(
  args: readonly string[],
  options: ServerOptions = {},
): Promise<void> {
  if (args.includes('--help')) process.stdout.write(`${USAGE}\n`);
  else if (args.includes('--version')) process.stdout.write(`${packageVersion()}\n`);
  else await run(args, options);
}

async function run(
  args: readonly string[],
  { env = process.env, onReady }: ServerOptions,
): Promise<never> {
  let config: Config | undefined;
  try {
    config = readConfig(env, args);
    const { logLevel, logFormat, dbSchema } = config;
    const log = createLogger(logLevel, 'front', logOutput(logFormat), dbSchema);
    const unknown = unknownNames(env);
    if (unknown.length > 0) log.warn({ unknown }, 'environment variables that mean nothing here');
    for (const weak of weakSettings(config)) log.warn(weak, 'a secret can be guessed');
    if (!keepsMemberNames()) {
      log.warn(
        { node: process.version },
        'this version of Node may change names of members of JSON that have a backslash: use Node 22',
      );
    }
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
        if (onReady !== undefined) onReady(facts);
        else if (isForPeople(logFormat)) process.stdout.write(greeting(facts, outputPalette()));
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
