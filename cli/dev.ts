/**
 * `dev`: a development server with an embedded database and without keys, and a folder of definitions that are applied
 * whenever they change. The server runs in this process, so that one Ctrl-C stops both.
 */

import { existsSync, statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, EngineError } from '../client/src/index.js';
import { runServer } from '../src/server/program.js';
import type { Given } from './command.js';
import { appliedLines, tellFindings } from './commands/sequences.js';
import {
  applyDefinition,
  DefinitionError,
  definitionFiles,
  type InFile,
  readDefinitions,
} from './definitions.js';
import { CommandError, type ExitCode, usageError } from './exit.js';
import { timeOfDay } from './follow.js';
import { isModule } from './modules.js';
import type { Output } from './output.js';
import type { Session } from './session.js';

const FOLDER_DEFAULT = 'sequences';
const TENANT_DEFAULT = 'demo';
/** Polled, which works on every platform and mount; some hundred files cost less than a millisecond each time. */
const LOOK_MS = 250;

/** @throws CommandError; the process ends with the server */
export async function dev(session: Session, given: Given): Promise<ExitCode | undefined> {
  const { out, env, options } = session;
  const named = given.args[0] as string | undefined;
  const folder = named ?? FOLDER_DEFAULT;
  if (named !== undefined && !statSync(named, { throwIfNoEntry: false })?.isDirectory()) {
    throw usageError(`${named} is not a folder`);
  }
  const port = given.count('port') ?? portOf(env.ENGINE_HTTP_ADDR);
  const tenant = options.tenant ?? env.ENGINE_TENANT ?? TENANT_DEFAULT;
  const dataDir = given.text('data-dir');
  // DATABASE_URL is meant for another server, so it is not used.
  const { DATABASE_URL, DATABASE_MIGRATION_URL, ...rest } = process.env;
  if (DATABASE_URL !== undefined)
    out.note('DATABASE_URL is ignored: dev uses its own embedded database.');
  const ready = new Promise<string>((resolve) => {
    void runServer(['--insecure-auth'], {
      env: {
        ENGINE_LOG_LEVEL: 'warn',
        ...rest,
        ENGINE_HTTP_ADDR: `127.0.0.1:${port}`,
        ...(dataDir === undefined ? {} : { ENGINE_DATA_DIR: dataDir }),
      },
      onReady: ({ url }) => resolve(url),
    });
  });
  const url = await ready;
  greet(out, url, tenant, folder);
  const client = new Client({ url, tenant });
  for (const seen: Seen = new Map(); ; await pause(LOOK_MS)) await look(client, out, folder, seen);
}

const portOf = (address: string | undefined) => address?.split(':').at(-1) ?? '8080';

function greet(out: Output, url: string, tenant: string, folder: string): void {
  const { paint } = out;
  const rows = [
    ['Dashboard', paint.bold(paint.green(`${url}/ui/t/${encodeURIComponent(tenant)}/`))],
    ['API', `${url}/api/v1`],
    ['Key', paint.yellow('not required; only connections from this machine are accepted')],
    ['Tenant', tenant],
    [
      'Sequences',
      existsSync(folder)
        ? `${folder} (applied on change)`
        : `${folder} (applied once you create it)`,
    ],
    ['Stop', 'Ctrl-C'],
  ];
  const lines = rows.map(([name = '', text = '']) => `  ${paint.dim(name.padEnd(11))}${text}`);
  const calls = [
    `export ENGINE_URL=${url} ENGINE_TENANT=${tenant}`,
    'npx durable-workflow-engine instances list',
  ];
  out.line(
    `\n${lines.join('\n')}\n\n  ${paint.dim('In another terminal:')}\n${calls.map((call) => `  ${call}`).join('\n')}\n`,
  );
}

// ---------------------------------------------------------------- the folder

/** Size and time of each file when it was last read. */
type Seen = Map<string, string>;

/** Applies files that have changed since the last poll. A failure is reported once, until the file changes again. */
async function look(client: Client, out: Output, folder: string, seen: Seen): Promise<void> {
  const files = existsSync(folder) ? definitionFiles([folder]) : [];
  // A module may import any other one.
  const ofModules = files.filter(isModule).map(markOf).join();
  for (const file of files) {
    const mark = isModule(file) ? ofModules : markOf(file);
    if (mark === undefined || seen.get(file) === mark) continue;
    seen.set(file, mark);
    await applyFile(client, out, file);
  }
  for (const file of seen.keys()) {
    if (files.includes(file)) continue;
    seen.delete(file);
    out.line(`${stamp(out)} ${file} was deleted; its published definitions remain`);
  }
}

function markOf(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.mtimeMs} ${found.size} ${found.ino}`;
}

async function applyFile(client: Client, out: Output, file: string): Promise<void> {
  try {
    for (const found of await readDefinitions(file)) await applyOne(client, out, found);
  } catch (error) {
    if (!(error instanceof CommandError) && !(error instanceof EngineError)) throw error;
    out.line(`${stamp(out)} ${out.paint.red(error.message)}`);
  }
}

async function applyOne(client: Client, out: Output, found: InFile): Promise<void> {
  try {
    const applied = await applyDefinition(client, found, { isRaised: true });
    const [first = '', ...rest] = appliedLines(applied);
    out.line(`${stamp(out)} ${first} (${found.file})`);
    for (const line of rest) out.line(`         ${line}`);
    tellFindings(out, [], applied.warnings);
  } catch (error) {
    if (!(error instanceof DefinitionError)) throw error;
    out.line(
      `${stamp(out)} ${out.paint.red(`${found.definition.name} is not valid`)} (${found.file})`,
    );
    tellFindings(out, error.errors, error.warnings);
  }
}

const stamp = (out: Output) => out.paint.dim(timeOfDay(new Date(out.place.now)));
