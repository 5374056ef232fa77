/**
 * State machines as tables. Allowed transitions of an instance: scheduled → running, paused, cancelled; running →
 * scheduled, waiting, completed, failed, paused, cancelled; waiting → running, scheduled, cancelled, failed; paused →
 * scheduled, cancelled; failed → scheduled; completed and cancelled are terminal.
 */

export const INSTANCE_STATES = [
  'scheduled',
  'running',
  'waiting',
  'paused',
  'failed',
  'completed',
  'cancelled',
] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

export const TASK_STATES = ['pending', 'claimed', 'completed', 'failed'] as const;
export type TaskState = (typeof TASK_STATES)[number];

export const NODE_STATES = [
  'pending',
  'running',
  'waiting',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** The transitions of `PATCH /instances/{id}/state`. */
const PATCH_MOVES: Readonly<Record<InstanceState, readonly InstanceState[]>> = {
  scheduled: ['running', 'paused', 'cancelled'],
  running: ['scheduled', 'waiting', 'completed', 'failed', 'paused', 'cancelled'],
  waiting: ['running', 'scheduled', 'cancelled', 'failed'],
  paused: ['scheduled', 'cancelled'],
  failed: ['scheduled'],
  completed: [],
  cancelled: [],
};

export function canPatch(from: InstanceState, to: InstanceState): boolean {
  return PATCH_MOVES[from].includes(to);
}

/** A failed instance is not terminal: it can be retried. */
export function isTerminal(state: InstanceState): boolean {
  return state === 'completed' || state === 'cancelled';
}

/** Terminal, or failed and in the dead letter queue: does nothing more by itself. */
export function isEnded(state: InstanceState): boolean {
  return isTerminal(state) || state === 'failed';
}

export const PRIORITIES = ['low', 'normal', 'high', 'critical'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Stored as a small integer, so that ordering is a comparison: low 0 … critical 3. */
export function priorityRank(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

/** 0 critical … 3 low: ascending in the order of service. */
export function rankOf(priority: number): number {
  return PRIORITIES.length - 1 - priority;
}
