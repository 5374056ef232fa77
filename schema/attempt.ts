/** Wire shapes and route of step attempts (docs/reference/history.md). */

import * as t from './common.js';
import { getById, type RouteRow } from './route-row.js';
import { words } from './states.js';

const ATTEMPT_STATES = words('pending claimed completed failed timed_out cancelled');

export const ITERATION_RANGE_MAX = 1_000;

const Iteration = t.integer({ minimum: 0, maximum: t.INT32_MAX });

export const BLOCK_QUERY = {
  block_id: t.optional(t.text()),
  iteration: t.optional(t.text(), 'Counters of the enclosing loops, such as 2.0.'),
};

export const AttemptListQuery = t.object({
  ...BLOCK_QUERY,
  iteration_from: t.optional(
    Iteration,
    `With block_id: iteration of its outermost loop, from 0; a range has at most ${ITERATION_RANGE_MAX}.`,
  ),
  iteration_to: t.optional(Iteration, 'Last iteration of the range; default: iteration_from.'),
  state: t.optional(t.list(t.oneOf(ATTEMPT_STATES))),
  order: t.withDefault(t.oneOf(['oldest', 'newest'], 'Sort order.'), 'oldest'),
  include_payloads: t.boolean({
    default: true,
    description: 'False: omits params, overlay and output.',
  }),
  limit: t.Limit(100, 1_000, 1),
  cursor: t.Cursor,
});
export type AttemptListQuery = t.Static<typeof AttemptListQuery>;

export const StepAttempt = t.named('StepAttempt', {
  id: t.Uuid,
  source: t.oneOf(
    ['task', 'process'],
    'task: for a worker, from its dispatch; process: of a built-in handler, once it has finished.',
  ),
  block_id: t.text(),
  iteration: t.text("Counters of the enclosing loops; '' outside loops."),
  attempt: t.integer('Counted from 0 in each iteration.'),
  state: t.oneOf(ATTEMPT_STATES),
  handler_name: t.nullable(t.text(), 'Null for a sub_sequence, or if unknown.'),
  queue_name: t.nullable(t.text()),
  task_id: t.nullable(t.Uuid),
  worker_id: t.nullable(t.text(), 'The last worker to claim the task.'),
  queued_at: t.nullable(t.Timestamp, 'Time of the dispatch to workers.'),
  started_at: t.nullable(t.Timestamp, 'Last claim or outgoing request; null: none, or unknown.'),
  ended_at: t.nullable(t.Timestamp),
  timeout_ms: t.nullable(t.integer()),
  params: t.optional(t.AnyJson, 'Parameters as rendered for the worker.'),
  overlay: t.optional(t.AnyJson, 'Members that for_each adds to context.data for this item.'),
  output: t.optional(t.AnyJson),
  error: t.nullable(t.object({ message: t.text(), retryable: t.nullable(t.boolean()) })),
});
export type StepAttempt = t.Static<typeof StepAttempt>;

export const ATTEMPT_ROWS = {
  'instances.attempts': getById(
    '/instances/{id}/attempts',
    'List the step attempts of an instance in the order of their start.',
    t.list(StepAttempt),
    { query: AttemptListQuery },
  ),
} as const satisfies Record<string, RouteRow>;
