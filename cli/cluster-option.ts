/** The option for the directory of a cluster; a module of its own, since what uses the directory takes long to load. */

import type { Given, Option } from './command.js';
import type { Session } from './session.js';

export const CLUSTER_VARIABLE = 'ENGINE_CLUSTER_URL';

/** For every command that reads the directory. */
export const CLUSTER_OPTION: Option = {
  flags: '--cluster <url>',
  about: `Of the Postgres with the directory of the cluster; ${CLUSTER_VARIABLE}.`,
};

/** Whether a cluster is configured. */
export function isInCluster({ env }: Session, given: Given): boolean {
  const named = [env[CLUSTER_VARIABLE], env[`${CLUSTER_VARIABLE}_FILE`], given.text('cluster')];
  return named.some((text) => Boolean(text?.trim()));
}
