/** Wire shapes and route of the explanation of an instance (docs/reference/explain.md). */

import * as t from './common.js';
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
  throttle: 'its start, which the `throttle` of its sequence puts off',
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

export const Wait = t.named('Wait', 'One thing that an instance waits for, with members by kind.', {
  kind: t.oneOf(Object.keys(WAIT_KINDS) as WaitKind[]),
  summary: t.text(),
  block_id: t.nullable(t.text(), 'Null if the instance as a whole waits.'),
  path: t.nullable(t.text(), 'Path from the outermost block, such as orders[2]/charge.'),
  since: t.nullable(t.Timestamp),
  until: t.nullable(t.Timestamp, 'Latest end of the wait; null: no time limit.'),
  attempt: t.optional(t.integer(), 'The attempt, from 0; for a retry the next one.'),
  max_attempts: t.optional(t.nullable(t.integer('Maximum attempts; null: no policy.'))),
  last_error: t.optional(t.text('Error of the previous attempt.')),
  handler: t.optional(t.text()),
  queue: t.optional(t.nullable(t.text())),
  task_id: t.optional(t.Uuid),
  worker_id: t.optional(t.text()),
  heartbeat_at: t.optional(t.Timestamp),
  lost_claims: t.optional(t.integer(), 'Claims of this attempt lost to silent workers.'),
  workers: t.optional(
    t.object({
      polled_lately: t.integer(`Workers for this task that polled within ${POLLED_LATELY_SECS} s.`),
      last_polled_at: t.nullable(t.Timestamp),
      endpoints: t.optional(t.list(t.text()), 'Worker endpoints that get such tasks.'),
    }),
  ),
  reason: t.optional(
    t.oneOf(
      FENCE_REASONS,
      'transferring: being handed over; moved: owned elsewhere; imported: not yet owned here.',
    ),
  ),
  name: t.optional(t.text('Name of the event.')),
  approval_id: t.optional(t.Uuid),
  prompt: t.optional(t.text('Question to the person.')),
  choices: t.optional(t.list(t.text('A possible answer.'))),
  approvers: t.optional(t.list(t.text('A group whose members may answer.'))),
  child_id: t.optional(t.Uuid),
  child_state: t.optional(t.InstanceStateWord),
  key: t.optional(t.text()),
  max_concurrency: t.optional(t.integer()),
  holders: t.optional(
    t.list(t.object({ instance_id: t.Uuid, state: t.InstanceStateWord }), {
      maxItems: HOLDERS_MAX,
    }),
  ),
  ahead: t.optional(t.integer(`Instances ahead in the queue, at most ${AHEAD_MAX}.`)),
  limit: t.optional(
    t.nullable(
      t.object({
        max_count: t.integer(),
        window_seconds: t.integer(),
        pattern: t.optional(t.text('The pattern whose limit applies to the key.')),
      }),
    ),
  ),
});
export type Wait = t.Static<typeof Wait>;

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

export const RunsAgainBlock = t.named('RunsAgainBlock', 'A block that a retry runs again.', {
  kind: t.oneOf(Object.keys(AGAIN_KINDS) as AgainKind[]),
  summary: t.text(),
  block_id: t.text(),
  path: t.text('Path from the outermost block, such as orders[2]/charge.'),
  repeats: t.noted(
    t.list(t.text(), { maxItems: REPEATS_MAX }),
    'Paths of completed steps whose external effects are repeated with new ' +
      'idempotency keys; for a retried child, paths in the child.',
  ),
  repeats_effects: t.boolean('Whether external effects are repeated.'),
  child_id: t.optional(t.Uuid, 'The child that is retried or awaited; absent: none, or a new one.'),
  cleans_up: t.optional(t.literal(true, 'The child runs only its cleanup.')),
});
export type RunsAgainBlock = t.Static<typeof RunsAgainBlock>;

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

export const RunsAgainParent = t.named('RunsAgainParent', 'Effect of a retry on the parent.', {
  id: t.Uuid,
  stands: t.oneOf(Object.keys(PARENT_STANDS) as ParentStands[]),
  summary: t.text(),
});
export type RunsAgainParent = t.Static<typeof RunsAgainParent>;

export const RunsAgain = t.named('RunsAgain', 'Effect of a retry, or of a resume that retries.', {
  blocks: t.list(RunsAgainBlock),
  blocks_count: t.integer('Number of all blocks that run again.'),
  stays: t.list(t.text(), {
    maxItems: STAYS_MAX,
    description: 'Paths of completed outermost blocks that do not run again.',
  }),
  stays_count: t.integer('Number of all blocks that do not run again.'),
  repeats_effects: t.boolean(
    'Whether a completed step repeats external effects, or a child ' +
      'continues whose parent ignores it: ask for confirmation.',
  ),
  parent: t.optional(RunsAgainParent),
  ends: t.optional(t.oneOf(AGAIN_ENDS, 'Final state after the retry; absent: it continues.')),
});
export type RunsAgain = t.Static<typeof RunsAgain>;

export const NextAction = t.named('NextAction', 'A suggested request.', {
  action: t.text(),
  method: t.text(),
  path: t.text('Path, relative to the base address of the API.'),
  body: t.optional(t.AnyJson),
  why: t.text(),
  runs_again: t.optional(RunsAgain),
});
export type NextAction = t.Static<typeof NextAction>;

export const ExplanationWarning = t.named('ExplanationWarning', {
  kind: t.literal('output_truncated', 'An output exceeded its limit; expressions see a note.'),
  block_id: t.text(),
  summary: t.text(),
});
export type ExplanationWarning = t.Static<typeof ExplanationWarning>;

export const InstanceExplanation = t.named('InstanceExplanation', {
  id: t.Uuid,
  sequence_id: t.Uuid,
  state: t.InstanceStateWord,
  since: t.noted(t.Timestamp, 'Time of the change to this state.'),
  summary: t.text('Current activity in one sentence.'),
  waiting_for: t.list(Wait, { maxItems: WAITS_MAX }),
  waiting_count: t.integer('Number of all waits.'),
  failure: FailureOrNull,
  cancelling: t.optional(Cancelling),
  parent_instance_id: t.optional(t.Uuid, 'The parent, if a sub_sequence created it.'),
  cancel_on: t.optional(
    t.list(t.object({ event: t.text(), key: t.optional(t.text()) })),
    'Events that cancel it, with their correlation keys; absent: none.',
  ),
  next: t.list(NextAction),
  warnings: t.optional(
    t.list(ExplanationWarning, { maxItems: WARNINGS_MAX }),
    'Probable causes of unexpected behavior; absent: none.',
  ),
});
export type InstanceExplanation = t.Static<typeof InstanceExplanation>;

export const EXPLANATION_ROWS = {
  'instances.explain': getById(
    '/instances/{id}/explain',
    'Explain what an instance does and waits for, with suggested actions.',
    InstanceExplanation,
  ),
} as const satisfies Record<string, RouteRow>;
