/** The actions for an instance, by its state and the caller's rights. Pure. */

import type { InstanceState, TaskInstance } from 'durable-workflow-engine-client';
import type { Allowed } from '../../api/allowed.ts';

export type ActionName =
  | 'retry'
  | 'retry-with-data'
  | 'pause'
  | 'resume'
  | 'signal'
  | 'change-data'
  | 'migrate'
  | 'resume-from'
  | 'fork'
  | 'cancel'
  | 'stop';

export const ACTION_LABELS: Readonly<Record<ActionName, string>> = {
  retry: 'Retry',
  'retry-with-data': 'Retry with other data…',
  pause: 'Pause',
  resume: 'Resume',
  signal: 'Send a signal…',
  'change-data': 'Change the data…',
  migrate: 'Migrate…',
  'resume-from': 'Run again from a block…',
  fork: 'Fork from a block…',
  cancel: 'Cancel…',
  stop: 'Stop at once…',
};

/** What an operator may do in each state, the most likely actions first. */
const BY_STATE: Readonly<Record<InstanceState, readonly ActionName[]>> = {
  scheduled: ['pause', 'signal', 'change-data', 'migrate', 'fork', 'cancel'],
  running: ['pause', 'signal', 'change-data', 'migrate', 'fork', 'cancel'],
  waiting: ['pause', 'signal', 'change-data', 'migrate', 'fork', 'cancel'],
  paused: ['resume', 'resume-from', 'signal', 'change-data', 'migrate', 'fork', 'cancel'],
  failed: [
    ...(['retry', 'retry-with-data', 'resume-from', 'migrate'] as const),
    ...(['change-data', 'signal', 'fork', 'cancel'] as const),
  ],
  completed: ['resume-from', 'fork'],
  cancelled: ['resume-from', 'fork'],
};

const BUTTONS: ReadonlySet<ActionName> = new Set(['retry', 'pause', 'resume']);

export interface Choices {
  /** The most common actions, as buttons. */
  readonly buttons: readonly ActionName[];
  /** Everything else, in a menu. */
  readonly menu: readonly ActionName[];
}

export function choicesOf(
  { state, cancelling }: Pick<TaskInstance, 'state' | 'cancelling'>,
  allowed: Pick<Allowed, 'operate' | 'start'>,
): Choices {
  const may = BY_STATE[state]
    .filter((name) => (name === 'signal' ? allowed.start : allowed.operate))
    // After a cancel, the remaining option is not to wait for protected work.
    .map((name) => (name === 'cancel' && cancelling !== undefined ? 'stop' : name));
  return {
    buttons: may.filter((name) => BUTTONS.has(name)),
    menu: may.filter((name) => !BUTTONS.has(name)),
  };
}

export function isOpen(state: InstanceState): boolean {
  return state !== 'completed' && state !== 'cancelled' && state !== 'failed';
}
