/** How blocks have ended. */

import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  type Execution,
  FAILED,
  SKIPPED,
} from '../../schema/execution.js';

/** A failed or cancelled block ends its list. */
export function isFailure(code: DoneCode | undefined): code is typeof FAILED | typeof CANCELLED {
  return code === FAILED || code === CANCELLED;
}

/** Whether the node has completed or was skipped: a retry steps over it. */
export function isDone({ d }: Pick<Execution, 'd'>, index: number): boolean {
  const code = d[index]?.[0];
  return code === COMPLETED || code === SKIPPED;
}
