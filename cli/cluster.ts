/** Gives commands access to the directory of a cluster. */

import { Directory, DirectoryError, makeDirectory } from '../src/cluster/directory.js';
import { databaseUrl } from '../src/server/config-values.js';
import { CLUSTER_VARIABLE } from './cluster-option.js';
import type { Given } from './command.js';
import { keyInFile } from './connection.js';
import { CommandError, usageError } from './exit.js';
import type { Session } from './session.js';

/** @returns undefined if no cluster is configured. @throws CommandError for an invalid URL, or one with a password */
export function clusterUrl({ env }: Session, given?: Given): string | undefined {
  const named = given?.text('cluster');
  if (named !== undefined) return plainUrl(named, '--cluster');
  const url =
    env[CLUSTER_VARIABLE]?.trim() ||
    keyInFile(env[`${CLUSTER_VARIABLE}_FILE`], `${CLUSTER_VARIABLE}_FILE`)?.value;
  return url === undefined ? undefined : checkedUrl(url, CLUSTER_VARIABLE);
}

/** A URL from an option. @throws CommandError */
export function plainUrl(text: string, option: string): string {
  const url = checkedUrl(text, option);
  if (withoutPassword(url) === url) return url;
  throw usageError(
    `${option} contains a password, which everybody who lists processes can see`,
    'Remove it from the URL and set PGPASSFILE or PGPASSWORD instead.',
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
 * Runs the work with the directory, and closes the directory afterwards.
 *
 * @param given of a command that has the option `--cluster`
 * @param isMade creates the directory if it is missing
 * @throws CommandError if there is none, or one of an unknown version
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
      'no cluster directory is configured',
      `Set ${CLUSTER_VARIABLE} or use --cluster URL.`,
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

/** Errors that the user can fix become a CommandError; all others are defects. */
function told(error: unknown): unknown {
  if (error instanceof DirectoryError) return new CommandError('refused', error.message);
  if (!(error instanceof Error) || error instanceof CommandError) return error;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string' && /^(28|42501)/.test(code)) {
    return new CommandError('forbidden', `cluster directory: ${error.message}`);
  }
  const isAway = /^(E[A-Z]+|08...|3D000|53...|57P..)$/.test(String(code));
  return isAway || /connection|timeout|password|SSL/i.test(error.message)
    ? new CommandError('unreachable', `cluster directory: ${error.message || code}`)
    : error;
}
