/** Wire shapes and route of step attempts (docs/reference/history.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  INT32_MAX,
  Limit,
  named,
  noted,
  oneOfWords,
  orNull,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
import { getById, listOf, type RouteRow } from './route-row.js';

const ATTEMPT_STATES = [
  'pending',
  'claimed',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
] as const;

export const PASSES_MAX = 1_000;

const Pass = Type.Integer({ minimum: 0, maximum: INT32_MAX });

export const BLOCK_QUERY = {
  block_id: Type.Optional(Type.String()),
  iteration: noted(Type.Optional(Type.String()), 'Counters of the enclosing loops, such as 2.0.'),
};

const PASSES_QUERY = {
  iteration_from: noted(
    Type.Optional(Pass),
    `With block_id: iteration of its outermost loop, from 0; a range has at most ${PASSES_MAX}.`,
  ),
  iteration_to: Type.Optional(noted(Pass, 'Inclusive; default: iteration_from.')),
};

export const AttemptListQuery = Type.Object({
  ...BLOCK_QUERY,
  ...PASSES_QUERY,
  state: Type.Optional(Type.Array(oneOfWords(ATTEMPT_STATES))),
  order: withDefault(oneOfWords(['oldest', 'newest'], 'Sort order.'), 'oldest'),
  include_payloads: Type.Boolean({
    default: true,
    description: 'False: omits params, overlay and output.',
  }),
  limit: Limit(100, 1_000, 1),
  cursor: Cursor,
});
export type AttemptListQuery = Static<typeof AttemptListQuery>;

export const StepAttempt = named(
  'StepAttempt',
  'An attempt of a step: for workers from its dispatch, ' +
    'for built-in handlers once it has finished.',
  {
    id: Uuid,
    source: oneOfWords(['task', 'process']),
    block_id: Type.String(),
    iteration: noted(Type.String(), "Counters of the enclosing loops; '' outside loops."),
    attempt: Type.Integer({ description: 'Counted from 0 in each iteration.' }),
    state: oneOfWords(ATTEMPT_STATES),
    handler_name: noted(orNull(Type.String()), 'Null for a sub_sequence, or if unknown.'),
    queue_name: orNull(Type.String()),
    task_id: orNull(Uuid),
    worker_id: noted(orNull(Type.String()), 'The last worker to claim the task.'),
    queued_at: noted(orNull(Timestamp), 'Time of the dispatch to workers.'),
    started_at: noted(orNull(Timestamp), 'Last claim or outgoing request; null: none, or unknown.'),
    ended_at: orNull(Timestamp),
    timeout_ms: orNull(Type.Integer()),
    params: Type.Optional(noted(AnyJson, 'Parameters as rendered for the worker.')),
    overlay: Type.Optional(
      noted(AnyJson, 'Members that for_each adds to context.data for this item.'),
    ),
    output: Type.Optional(AnyJson),
    error: orNull(Type.Object({ message: Type.String(), retryable: orNull(Type.Boolean()) })),
  },
);
export type StepAttempt = Static<typeof StepAttempt>;

export const ATTEMPT_ROWS = {
  'instances.attempts': getById(
    '/instances/{id}/attempts',
    'List the step attempts of an instance in the order of their start.',
    listOf(StepAttempt),
    { query: AttemptListQuery },
  ),
} as const satisfies Record<string, RouteRow>;
