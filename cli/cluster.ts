/** The directory of a cluster, as commands are given it. */

import { Directory, DirectoryError, makeDirectory } from '../src/cluster/directory.js';
import { databaseUrl } from '../src/server/config-values.js';
import { CLUSTER_VARIABLE } from './cluster-option.js';
import type { Given } from './command.js';
import { keyInFile } from './connection.js';
import { CommandError, usageError } from './exit.js';
import type { Session } from './session.js';

/** @returns undefined when none was named. @throws CommandError for one that is none, or that shows a password */
export function clusterUrl({ env }: Session, given?: Given): string | undefined {
  const named = given?.text('cluster');
  if (named !== undefined) return plainUrl(named, '--cluster');
  const url =
    env[CLUSTER_VARIABLE]?.trim() ||
    keyInFile(env[`${CLUSTER_VARIABLE}_FILE`], `${CLUSTER_VARIABLE}_FILE`)?.value;
  return url === undefined ? undefined : checkedUrl(url, CLUSTER_VARIABLE);
}

/** A URL in an option. @throws CommandError */
export function plainUrl(text: string, option: string): string {
  const url = checkedUrl(text, option);
  if (withoutPassword(url) === url) return url;
  throw usageError(
    `${option} shows a password to everybody who lists processes`,
    'Leave it out of the URL: Postgres takes it from the file that PGPASSFILE names, or from PGPASSWORD.',
  );
}

function checkedUrl(text: string, named: string): string {
  try {
    return databaseUrl(text, named) as string;
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

const withoutPassword = (url: string) =>
  url.replace(/^([a-z]+:\/\/[^:@/?]*):[^@/]*@/i, '$1@').replace(/([?&])password=[^&]*&?/gi, '$1');

/**
 * Gives the command the directory, and closes it afterwards.
 *
 * @param given the command's, when it takes `--cluster`
 * @param isMade the directory is made where it is missing
 * @throws CommandError when there is none, or none that this program knows
 */
export async function withDirectory<T>(
  session: Session,
  work: (directory: Directory) => Promise<T>,
  given?: Given,
  isMade = false,
): Promise<T> {
  const url = clusterUrl(session, given);
  if (url === undefined) {
    throw usageError(
      'where the directory of the cluster is was not said',
      `Set ${CLUSTER_VARIABLE}, or give --cluster URL.`,
    );
  }
  const directory = new Directory(url, 'cluster command');
  try {
    if (isMade) await makeDirectory(url);
    await directory.check();
    return await work(directory);
  } catch (error) {
    throw told(error);
  } finally {
    await directory.close();
  }
}

/** What a person can mend; everything else is a defect. */
function told(error: unknown): unknown {
  if (error instanceof DirectoryError) return new CommandError('refused', error.message);
  if (!(error instanceof Error) || error instanceof CommandError) return error;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string' && /^(28|42501)/.test(code)) {
    return new CommandError('forbidden', `the directory of the cluster: ${error.message}`);
  }
  const isAway = /^(E[A-Z]+|08...|3D000|53...|57P..)$/.test(String(code));
  return isAway || /connection|timeout|password|SSL/i.test(error.message)
    ? new CommandError('unreachable', `the directory of the cluster: ${error.message || code}`)
    : error;
}
