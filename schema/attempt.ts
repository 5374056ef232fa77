/** Wire shapes and route of the tries of an instance's steps (docs/reference/history.md). */

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
import { listOf, type RouteRow, readById, refusals } from './route-row.js';

export const ATTEMPT_STATES = [
  'pending',
  'claimed',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

/** How many passes of a loop one request may ask for. */
export const PASSES_MAX = 1_000;

const Pass = Type.Integer({ minimum: 0, maximum: INT32_MAX });

/** Narrows what blocks left. */
export const BLOCK_QUERY = {
  block_id: Type.Optional(Type.String()),
  iteration: Type.Optional(
    Type.String({ description: 'The counters of the loops around the block, as in 2.0.' }),
  ),
};

/** Some passes of a block in loops. */
const PASSES_QUERY = {
  iteration_from: Type.Optional(
    noted(
      Pass,
      `With block_id: of its outermost loop, counted from 0; at most ${PASSES_MAX} at once.`,
    ),
  ),
  iteration_to: Type.Optional(noted(Pass, 'Inclusive; without it the one in iteration_from.')),
};

export const AttemptListQuery = Type.Object({
  ...BLOCK_QUERY,
  ...PASSES_QUERY,
  state: Type.Optional(Type.Array(oneOfWords(ATTEMPT_STATES))),
  order: withDefault(oneOfWords(['oldest', 'newest'], 'Which of them come first.'), 'oldest'),
  include_payloads: Type.Boolean({
    default: true,
    description: 'False: without params, overlay and output.',
  }),
  limit: Limit(100, 1_000, 1),
  cursor: Cursor,
});
export type AttemptListQuery = Static<typeof AttemptListQuery>;

export const StepAttempt = named(
  'StepAttempt',
  'A try of a step: of a worker from its dispatch on, of the process once it has ended.',
  {
    id: Uuid,
    source: oneOfWords(['task', 'process']),
    block_id: Type.String(),
    iteration: noted(Type.String(), "The counters of the loops around it; '' outside of loops."),
    attempt: Type.Integer({ description: 'Counted from 0 in each iteration.' }),
    state: oneOfWords(ATTEMPT_STATES),
    handler_name: noted(orNull(Type.String()), 'Null of a sub_sequence, or when it is not known.'),
    queue_name: orNull(Type.String()),
    task_id: orNull(Uuid),
    worker_id: noted(orNull(Type.String()), 'Who had it last.'),
    queued_at: noted(orNull(Timestamp), 'The dispatch to workers.'),
    started_at: noted(
      orNull(Timestamp),
      'The last claim, or when a request left the process; null: not yet, or not kept.',
    ),
    ended_at: orNull(Timestamp),
    timeout_ms: orNull(Type.Integer()),
    params: Type.Optional(noted(AnyJson, 'As they were rendered for the worker.')),
    overlay: Type.Optional(noted(AnyJson, 'What a for_each adds to context.data for it.')),
    output: Type.Optional(AnyJson),
    error: orNull(Type.Object({ message: Type.String(), retryable: orNull(Type.Boolean()) })),
  },
);
export type StepAttempt = Static<typeof StepAttempt>;

// ---------------------------------------------------------------- routes

export const ATTEMPT_ROWS = {
  'instances.attempts': {
    ...readById,
    path: '/instances/{id}/attempts',
    summary:
      'List the tries of the steps of an instance, those that began first before the others.',
    query: AttemptListQuery,
    replies: { 200: listOf(StepAttempt), ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
