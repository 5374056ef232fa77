/** Wire shapes and route of the explanation of an instance (docs/reference/explain.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  InstanceStateWord,
  named,
  noted,
  oneOfWords,
  orNull,
  Timestamp,
  Uuid,
} from './common.js';
import { FailureOrNull } from './failure.js';
import { Cancelling } from './instance.js';
import { getById, type RouteRow } from './route-row.js';

/** Further waits are only counted. */
export const WAITS_MAX = 100;
export const WARNINGS_MAX = 20;
export const HOLDERS_MAX = 20;
/** Bound of the count of instances ahead in a queue. */
export const AHEAD_MAX = 10_000;
/** A worker counts as polling if it polled within this time. */
export const POLLED_LATELY_SECS = 60;

export const WAIT_KINDS = {
  pause: 'the instance is paused: nothing new starts until it is resumed',
  start: 'its start time, or the later time of a request',
  handoff: 'the instance belongs to another runtime, or is being handed over',
  slot: 'a slot of its `concurrency_key`',
  signal: 'a request set it to `waiting`: a signal, a task result or a state change wakes it',
  task: 'a worker to claim a task',
  worker: 'a worker to finish a claimed task',
  handler: 'a running built-in handler',
  approval: "a person's answer to the `wait_for_input` of a step",
  sleep: 'the end of a `sleep`',
  delay: 'the end of the `delay`, or the opening of the `send_window`, of a step',
  retry: 'the backoff before the next attempt',
  child: 'the child instance of a `sub_sequence`',
  rate_limit: 'a permit of the `rate_limit_key` of a step',
  event: 'an event, or a signal to the instance, with the name of a `wait_for_event`',
  engine: 'nothing: the engine is about to continue',
} as const;
export type WaitKind = keyof typeof WAIT_KINDS;

const FENCE_REASONS = ['transferring', 'moved', 'imported'] as const;

export const Wait = named('Wait', 'One thing that an instance waits for, with members by kind.', {
  kind: oneOfWords(Object.keys(WAIT_KINDS) as WaitKind[]),
  summary: Type.String(),
  block_id: noted(orNull(Type.String()), 'Null if the instance as a whole waits.'),
  path: noted(orNull(Type.String()), 'Path from the outermost block, such as orders[2]/charge.'),
  since: orNull(Timestamp),
  until: noted(orNull(Timestamp), 'When the wait ends at the latest; null: no time limit.'),
  attempt: noted(Type.Optional(Type.Integer()), 'The attempt, from 0; for a retry the next one.'),
  max_attempts: Type.Optional(orNull(Type.Integer({ description: 'Null: no retry policy.' }))),
  last_error: Type.Optional(Type.String({ description: 'Error of the previous attempt.' })),
  handler: Type.Optional(Type.String()),
  queue: Type.Optional(orNull(Type.String())),
  task_id: Type.Optional(Uuid),
  worker_id: Type.Optional(Type.String()),
  heartbeat_at: Type.Optional(Timestamp),
  lost_claims: noted(
    Type.Optional(Type.Integer()),
    'Claims of this attempt lost to silent workers; absent: none.',
  ),
  workers: Type.Optional(
    Type.Object({
      polled_lately: Type.Integer({
        description: `Workers for this task that polled within ${POLLED_LATELY_SECS} s.`,
      }),
      last_polled_at: orNull(Timestamp),
    }),
  ),
  reason: Type.Optional(
    oneOfWords(
      FENCE_REASONS,
      'transferring: being handed over; moved: owned elsewhere; imported: not yet owned here.',
    ),
  ),
  name: Type.Optional(Type.String({ description: 'Name of the event.' })),
  approval_id: Type.Optional(Uuid),
  prompt: Type.Optional(Type.String({ description: 'The question.' })),
  choices: Type.Optional(Type.Array(Type.String({ description: 'A possible answer.' }))),
  child_id: Type.Optional(Uuid),
  child_state: Type.Optional(InstanceStateWord),
  key: Type.Optional(Type.String()),
  max_concurrency: Type.Optional(Type.Integer()),
  holders: Type.Optional(
    Type.Array(Type.Object({ instance_id: Uuid, state: InstanceStateWord }), {
      maxItems: HOLDERS_MAX,
    }),
  ),
  ahead: Type.Optional(
    Type.Integer({ description: `Instances ahead in the queue, at most ${AHEAD_MAX}.` }),
  ),
  limit: Type.Optional(
    orNull(Type.Object({ max_count: Type.Integer(), window_seconds: Type.Integer() })),
  ),
});
export type Wait = Static<typeof Wait>;

/** Further blocks are only counted, unless they repeat effects. */
export const RUNS_AGAIN_MAX = 100;
/** Further steps of one block are omitted. */
export const REPEATS_MAX = 20;
/** Further paths are only counted. */
export const STAYS_MAX = 100;

/** Kinds of repetition of a block. */
export const AGAIN_KINDS = {
  step: 'a step that failed or was interrupted, or at which the instance continues',
  block: 'a block without repeated blocks inside: it starts, or continues with new work',
  compensation: 'a block of a failed or unfinished compensation',
  finally: 'a failed block of a `finally_block`, or all blocks of the list after the retried ones',
  saga: 'a saga that has compensated: all of its actions run again',
  child: 'a `sub_sequence`: its child is retried, or a new child is started',
  hook: 'a hook that failed after a cancellation or timeout',
} as const;
export type AgainKind = keyof typeof AGAIN_KINDS;

export const RunsAgainBlock = named('RunsAgainBlock', 'A block that a retry runs again.', {
  kind: oneOfWords(Object.keys(AGAIN_KINDS) as AgainKind[]),
  summary: Type.String(),
  block_id: Type.String(),
  path: noted(Type.String(), 'Path from the outermost block, such as orders[2]/charge.'),
  repeats: noted(
    Type.Array(Type.String(), { maxItems: REPEATS_MAX }),
    'Paths of completed steps whose external effects are repeated with new ' +
      'idempotency keys; for a retried child, paths in the child.',
  ),
  repeats_effects: noted(Type.Boolean(), 'Whether external effects are repeated.'),
  child_id: noted(
    Type.Optional(Uuid),
    'The child that is retried or waited for; absent: none, or a new child is started.',
  ),
  cleans_up: Type.Optional(
    Type.Literal(true, {
      description: 'The child runs only its cleanup.',
    }),
  ),
});
export type RunsAgainBlock = Static<typeof RunsAgainBlock>;

/** States after the work of a retry. */
const AGAIN_ENDS = ['cancelled', 'failed'] as const;

/** Relation of a parent to its failed child. */
export const PARENT_STANDS = {
  waits: 'a block of the parent waits for the child',
  takes: 'the parent has failed, and its retry continues with this child',
  went_on: 'the parent, or one above it, has continued without the child and ignores its result',
  ended: 'the parent, or one above it, has finished without the child or was deleted',
} as const;
export type ParentStands = keyof typeof PARENT_STANDS;

export const RunsAgainParent = named('RunsAgainParent', 'Effect of a child retry on the parent.', {
  id: Uuid,
  stands: oneOfWords(Object.keys(PARENT_STANDS) as ParentStands[]),
  summary: Type.String(),
});
export type RunsAgainParent = Static<typeof RunsAgainParent>;

export const RunsAgain = named('RunsAgain', 'Effect of a retry, or of a resume that retries.', {
  blocks: Type.Array(RunsAgainBlock),
  blocks_count: Type.Integer({ description: 'Number of all blocks that run again.' }),
  stays: Type.Array(Type.String(), {
    maxItems: STAYS_MAX,
    description: 'Paths of completed outermost blocks that do not run again.',
  }),
  stays_count: Type.Integer({ description: 'Number of all such blocks.' }),
  repeats_effects: noted(
    Type.Boolean(),
    'Whether a completed step repeats external effects, or a child ' +
      'continues whose parent ignores it: ask for confirmation.',
  ),
  parent: Type.Optional(RunsAgainParent),
  ends: Type.Optional(
    oneOfWords(AGAIN_ENDS, 'Final state if the retry succeeds; absent: the instance continues.'),
  ),
});
export type RunsAgain = Static<typeof RunsAgain>;

export const NextAction = named('NextAction', 'A suggested request.', {
  action: Type.String(),
  method: Type.String(),
  path: noted(Type.String(), 'Relative to the base address of the API.'),
  body: Type.Optional(AnyJson),
  why: Type.String(),
  runs_again: Type.Optional(RunsAgain),
});
export type NextAction = Static<typeof NextAction>;

export const ExplanationWarning = named('ExplanationWarning', {
  kind: Type.Literal('output_truncated', {
    description: 'An output exceeded its limit: expressions see a note instead.',
  }),
  block_id: Type.String(),
  summary: Type.String(),
});
export type ExplanationWarning = Static<typeof ExplanationWarning>;

export const InstanceExplanation = named('InstanceExplanation', {
  id: Uuid,
  sequence_id: Uuid,
  state: InstanceStateWord,
  since: noted(Timestamp, 'Since when it is in this state.'),
  summary: noted(Type.String(), 'Current activity in one sentence.'),
  waiting_for: Type.Array(Wait, { maxItems: WAITS_MAX }),
  waiting_count: Type.Integer({ description: 'Number of all waits.' }),
  failure: FailureOrNull,
  cancelling: Type.Optional(Cancelling),
  parent_instance_id: Type.Optional(noted(Uuid, 'The parent, if a sub_sequence created it.')),
  next: Type.Array(NextAction),
  warnings: noted(
    Type.Optional(Type.Array(ExplanationWarning, { maxItems: WARNINGS_MAX })),
    'Probable causes of unexpected behavior; absent: none.',
  ),
});
export type InstanceExplanation = Static<typeof InstanceExplanation>;

export const EXPLANATION_ROWS = {
  'instances.explain': getById(
    '/instances/{id}/explain',
    'Explain what an instance does and waits for, with suggested actions.',
    InstanceExplanation,
  ),
} as const satisfies Record<string, RouteRow>;
