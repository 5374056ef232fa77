/**
 * An execution as callers see it. Whether it has ended is read off its instance at every look, so that
 * it shows at once and a retry shows as well; only when that instance is removed is it written down.
 */

import type { Execution } from '../../../schema/continuity.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import { laterOf } from '../../../src/base/time.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { CONTINUITY_EXECUTIONS } from '../tables.js';

/** Its row; the instance's columns are null where the instance is not here. */
export interface ShownExecutionRow
  extends Omit<StoredRow<typeof CONTINUITY_EXECUTIONS>, 'state' | 'ended'> {
  readonly state: Execution['state'];
  readonly ended: Execution['state'] | null;
  readonly instance_state: InstanceState | null;
  readonly instance_updated_at: string | null;
}

export function executionView(row: ShownExecutionRow): Execution {
  const { version: _, ended, instance_state, instance_updated_at, ...execution } = row;
  // One that is on its way has ended nowhere: its instance is fenced.
  if (execution.state !== 'owned') return execution;
  if (instance_state === null) return { ...execution, state: ended ?? 'owned' };
  if (!isEnded(instance_state)) return execution;
  return {
    ...execution,
    state: instance_state as Execution['state'],
    updated_at: laterOf(execution.updated_at, instance_updated_at ?? ''),
  };
}
