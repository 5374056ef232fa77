/**
 * An execution as callers see it. Its end is derived from its instance on every read, so that an end
 * and a retry show immediately; it is stored only when the instance is deleted.
 */

import type { Execution } from '../../../schema/continuity.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import { laterOf } from '../../../src/base/time.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { CONTINUITY_EXECUTIONS } from '../tables.js';

/** The columns of the instance are null when the instance is not here. */
export interface ShownExecutionRow
  extends Omit<StoredRow<typeof CONTINUITY_EXECUTIONS>, 'state' | 'ended'> {
  readonly state: Execution['state'];
  readonly ended: Execution['state'] | null;
  readonly instance_state: InstanceState | null;
  readonly instance_updated_at: string | null;
}

export function executionView(row: ShownExecutionRow): Execution {
  const { version: _, ended, instance_state, instance_updated_at, ...execution } = row;
  // In transfer, the instance is fenced and cannot have ended.
  if (execution.state !== 'owned') return execution;
  if (instance_state === null) return { ...execution, state: ended ?? 'owned' };
  if (!isEnded(instance_state)) return execution;
  return {
    ...execution,
    state: instance_state as Execution['state'],
    updated_at: laterOf(execution.updated_at, instance_updated_at ?? ''),
  };
}
