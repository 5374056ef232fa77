/** The directory of a cluster, as commands are given it. */

import { Directory, DirectoryError } from '../src/cluster/directory.js';
import { CommandError, usageError } from './exit.js';
import type { Session } from './session.js';

const VARIABLE = 'ENGINE_CLUSTER_URL';

/** @throws CommandError when there is none, or none that this program knows */
export async function withDirectory<T>(
  { env }: Session,
  work: (directory: Directory) => Promise<T>,
): Promise<T> {
  const url = env[VARIABLE];
  if (url === undefined || url === '') {
    throw usageError('where the directory of the cluster is was not said', `Set ${VARIABLE}.`);
  }
  const directory = new Directory(url, 'cluster command');
  try {
    await directory.check();
    return await work(directory);
  } catch (error) {
    if (error instanceof DirectoryError) throw new CommandError('refused', error.message);
    throw error;
  } finally {
    await directory.close();
  }
}
