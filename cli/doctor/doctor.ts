/**
 * `doctor`: checks everything that is reachable from here and reports the state of each part and what to do. It changes
 * nothing. The database is checked if DATABASE_URL is set, the directory of a cluster if ENGINE_CLUSTER_URL is.
 */

import path from 'node:path';
import { EngineError } from '../../client/src/index.js';
import { DEFAULT_SCHEMA, inSchema } from '../../src/db/database-url.js';
import { isOwnMachine } from '../../src/http/insecure-guard.js';
import { schemaName } from '../../src/server/config-values.js';
import { EXIT, type ExitCode } from '../exit.js';
import type { Session } from '../session.js';
import { memberText, type Tone, toned } from '../table.js';
import { type Check, check, type Health } from './check.js';
import { clusterChecks } from './cluster-checks.js';
import { databaseChecks, diskChecks } from './database-checks.js';
import {
  fleetChecks,
  keyFindings,
  loadCheck,
  permissionCheck,
  reachChecks,
} from './server-checks.js';

const TONES: Readonly<Record<Health, Tone>> = {
  ok: 'good',
  warn: 'busy',
  bad: 'bad',
  unknown: 'quiet',
};

/** @returns 0 if nothing is bad, 5 if the server does not answer, else 1 */
export async function doctor(session: Session): Promise<ExitCode> {
  const { out } = session;
  const checks: Check[] = [];
  const add = (found: readonly Check[]) => {
    checks.push(...found);
    if (!out.isJson)
      for (const line of found.flatMap((one) => linesOf(session, one))) out.line(line);
  };
  const reached = await reachChecks(session);
  add(reached);
  const isReached = reached.length > 1;
  if (isReached) {
    add([...keyFindings(session.connection), await permissionCheck(session)]);
    for (const look of [fleetChecks, loadCheck]) add(await unlessRefused(session, look));
  }
  add(await storageChecks(session));
  add(await clusterChecks(session));
  if (out.isJson) out.json(checks);
  if (!isReached) return EXIT.unreachable;
  return checks.some(({ health }) => health === 'bad') ? EXIT.failed : EXIT.ok;
}

/** Missing rights are reported once, by the check of permissions. */
async function unlessRefused(
  session: Session,
  look: (session: Session) => Promise<Check[]>,
): Promise<Check[]> {
  if (session.connection.tenant === undefined) return [];
  try {
    return await look(session);
  } catch (error) {
    if (error instanceof EngineError) return [];
    throw error;
  }
}

async function storageChecks({ env, connection }: Session): Promise<Check[]> {
  const { DATABASE_URL, ENGINE_DB_SCHEMA, ENGINE_DATA_DIR = 'data' } = env;
  if (DATABASE_URL !== undefined) {
    const schema = schemaName(ENGINE_DB_SCHEMA, 'ENGINE_DB_SCHEMA') ?? DEFAULT_SCHEMA;
    return databaseChecks(inSchema(DATABASE_URL, schema));
  }
  const unseen = check(
    'unknown',
    'database',
    'not checked',
    'Set DATABASE_URL as for the server to check its version, settings, schema and rights.',
  );
  const isHere = isOwnMachine(new URL(connection.url).hostname);
  return [unseen, ...(isHere ? diskChecks(path.resolve(ENGINE_DATA_DIR)) : [])];
}

/** The finding, with what to do below it. */
function linesOf({ out }: Session, { health, about, found, todo }: Check): string[] {
  const head = `${toned(health.padEnd(7), TONES[health], out.paint)} ${about.padEnd(12)}`;
  const line = `${head} ${memberText(found)}`;
  return todo === undefined || health === 'ok'
    ? [line]
    : [line, `${' '.repeat(HEAD_CELLS)}${out.paint.dim(todo)}`];
}

/** Width of the columns before the finding. */
const HEAD_CELLS = 21;
