/** How commands are told where the directory of a cluster is; apart from what asks it, which takes long to load. */

import type { Given, Option } from './command.js';
import type { Session } from './session.js';

export const CLUSTER_VARIABLE = 'ENGINE_CLUSTER_URL';

/** Of each command that asks the directory. */
export const CLUSTER_OPTION: Option = {
  flags: '--cluster <url>',
  about: `Of the Postgres with the directory of the cluster; ${CLUSTER_VARIABLE}.`,
};

/** Whether there is one, as far as anybody has said. */
export function isInCluster({ env }: Session, given: Given): boolean {
  const named = [env[CLUSTER_VARIABLE], env[`${CLUSTER_VARIABLE}_FILE`], given.text('cluster')];
  return named.some((text) => Boolean(text?.trim()));
}
