/** State machines as tables, lists of words, and the order of priorities. */

export type Words<Line extends string> = Line extends `${infer Word} ${infer Rest}`
  ? Word | Words<Rest>
  : Line;

/** The words of the lines, which separate them by single spaces. */
export function words<const Line extends string>(...lines: readonly Line[]) {
  return lines.flatMap((line) => line.split(' ')) as readonly string[] as readonly Words<Line>[];
}

/** A state machine: its states in the order of the table, and the transitions that the table allows. */
export function machineOf<S extends string>(moves: Readonly<Record<S, readonly NoInfer<S>[]>>) {
  return {
    states: Object.keys(moves) as unknown as readonly S[],
    allows: (from: S, to: S): boolean => moves[from].includes(to),
  };
}

/** The transitions of `PATCH /instances/{id}/state`. A state's place in the table is its code in stored audit entries. */
const INSTANCE = machineOf({
  scheduled: ['running', 'paused', 'cancelled'],
  running: ['scheduled', 'waiting', 'completed', 'failed', 'paused', 'cancelled'],
  waiting: ['running', 'scheduled', 'cancelled', 'failed'],
  paused: ['scheduled', 'cancelled'],
  failed: ['scheduled'],
  completed: [],
  cancelled: [],
});
export const INSTANCE_STATES = INSTANCE.states;
export type InstanceState = (typeof INSTANCE_STATES)[number];
export const canPatch = INSTANCE.allows;

export const TASK_STATES = ['pending', 'claimed', 'completed', 'failed'] as const;
export type TaskState = (typeof TASK_STATES)[number];

export const NODE_STATES = words('pending running waiting completed failed cancelled skipped');
export type NodeState = (typeof NODE_STATES)[number];

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
