/** The server as a program: flags, environment, start, signals, stop, and the messages of a failed start. */

import pg from 'pg';
import { ConfigError } from '../base/config-error.js';
import { createLogger } from '../base/log.js';
import { isForPeople, logOutput, outputPalette } from '../base/log-output.js';
import type { Palette } from '../base/log-text.js';
import { packageVersion } from '../base/package-files.js';
import { databaseRefusal } from '../db/database-refusal.js';
import { SchemaError } from '../db/migrate.js';
import { type Config, readConfig, unknownNames, weakSettings } from './config.js';
import { USAGE } from './config-help.js';
import { EmbeddedPostgresError } from './embedded-files.js';
import { startEngine } from './engine.js';
import type { ReadyFacts } from './startup.js';

/** Options for a server that is part of another program. */
export interface ServerOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Called once the server is ready, instead of printing the startup banner. */
  readonly onReady?: (facts: ReadyFacts) => void;
}

/** Runs the server until it is stopped, and ends the process. @param args flags */
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
    if (config.manualClock && process.send === undefined) {
      throw new ConfigError(
        '--manual-clock needs a parent process with a channel to move the time: see docs/testing.md',
      );
    }
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
    // Handled again, so that a repeated signal does not cut the stop short.
    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    process.exitCode = await startEngine({
      config,
      log,
      version: packageVersion(),
      signal: stopped.signal,
      onReady: (facts) => {
        if (onReady !== undefined) onReady(facts);
        else if (isForPeople(logFormat))
          process.stdout.write(startupBanner(facts, outputPalette()));
      },
    });
  } catch (error) {
    const refusal = startRefusal(error, config);
    if (refusal === undefined) throw error;
    process.stderr.write(`${refusal.trim().replace(/\s*\n\s*/g, '; ')}\n`);
    process.exitCode = 1;
  }
  // Threads and sockets are closed by now; handles left by libraries must not keep the process alive.
  process.exit();
}

/** Each line begins with its subject; lines to copy stand alone. */
function startupBanner(facts: ReadyFacts, paint: Palette): string {
  const { url, database, keyFile, insecureAuth, hasDashboard } = facts;
  const key = keyFile === undefined ? '' : `-H "x-api-key: $(cat '${keyFile}')" \\\n    `;
  const rows: readonly (readonly [string, string])[] = [
    ['Ready', paint.bold(paint.green(url))],
    ...(hasDashboard ? [['Dashboard', `${url}/ui`] as const] : []),
    ['API', `${url}/swagger-ui`],
    ...(database === undefined ? [] : [['Database', database] as const]),
    ...(keyFile === undefined ? [] : [['Root key', keyFile] as const]),
    ...(insecureAuth ? [['Keys', paint.yellow('none is checked (--insecure-auth)')] as const] : []),
    ['Stop', 'Ctrl-C'],
  ];
  const table = rows.map(([name, text]) => `  ${paint.dim(name.padEnd(NAME_WIDTH))}${text}`);
  const call = `  curl -s ${key}-H 'x-tenant-id: demo' ${url}/api/v1/instances`;
  return `\n${table.join('\n')}\n\n  ${paint.dim('Try:')}\n${call}\n\n`;
}

const NAME_WIDTH = 11;

/** The message of a failure that the operator can fix; undefined: a defect, shown with its stack. */
function startRefusal(error: unknown, config: Config | undefined): string | undefined {
  // The same message as for missing rights elsewhere, instead of naming the migration.
  if (error instanceof SchemaError && isMissingRight(error.cause)) {
    return databaseRefusal(config?.databaseUrl ?? '', error.cause).message;
  }
  if (MENDABLE.some((type) => error instanceof type)) return (error as Error).message;
  if (!(error instanceof Error) || config === undefined) return undefined;
  const { code = '', path } = error as NodeJS.ErrnoException;
  if (path?.startsWith(config.dataDir)) return fileRefusal(code, path, config.dataDir);
  if (error instanceof pg.DatabaseError || CONNECTION_LOST.test(code)) {
    return databaseRefusal(config.databaseUrl ?? '', error).message;
  }
  return undefined;
}

const MENDABLE = [ConfigError, SchemaError, EmbeddedPostgresError];

const isMissingRight = (cause: unknown): cause is pg.DatabaseError =>
  cause instanceof pg.DatabaseError && cause.code === '42501';

/** During the migration; before that the engine waits for the database. */
const CONNECTION_LOST = /^(?:ECONN[A-Z]+|EPIPE|ETIMEDOUT|EHOSTUNREACH)$/;
const NO_RIGHT = 'this user may not write there';
const IN_THE_WAY = 'a file is in the way of a folder, or a folder in the way of a file';

const FILE_REASONS: Readonly<Record<string, string>> = {
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EEXIST: IN_THE_WAY,
  ENOTDIR: IN_THE_WAY,
  EISDIR: IN_THE_WAY,
  ENOENT: 'no folder can be made there',
};

function fileRefusal(code: string, path: string, dataDir: string): string {
  const why = FILE_REASONS[code] ?? code;
  const place = path === dataDir ? dataDir : `${path} in the data folder ${dataDir}`;
  return `cannot use ${place}: ${why} (${code}); mend that, or set ENGINE_DATA_DIR to another folder`;
}

/**
 * V8 from 12.9 on (Node 24) may give a JSON member the name of another object's member: a name that ends in a
 * backslash is confused with one that has an escape in the same position, whichever was parsed first, also across
 * tenants. There is no workaround (docs/operate/deploy.md#the-version-of-node).
 */
export function keepsMemberNames(): boolean {
  JSON.parse('{"probe":0,"\\\\":1}');
  return '\n' in JSON.parse('{"probe":0,"\\n":1}');
}
