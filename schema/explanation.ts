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
import { type RouteRow, readById, refusals } from './route-row.js';

/** More of what an instance waits for is counted only. */
export const WAITS_MAX = 100;
/** More blocks of which something is to be warned are left out. */
export const WARNINGS_MAX = 20;
/** More of those who hold a slot are left out. */
export const HOLDERS_MAX = 20;
/** How many of those before it in a queue are counted. */
export const AHEAD_MAX = 10_000;
/** A worker that polled so long ago counts as one that polls. */
export const POLLED_LATELY_SECS = 60;

/** What an instance can wait for, with what that means. */
export const WAIT_KINDS = {
  pause: 'it is paused: nothing new starts until it is resumed',
  start: 'its start, or the time that somebody has put it off to',
  handoff: 'it belongs to another runtime, or is on its way there or from there',
  slot: 'a slot of its `concurrency_key`',
  signal: 'it was set to `waiting` by request: a signal, an outcome or a move wakes it',
  task: 'a task that no worker has claimed',
  worker: 'a worker that has claimed the task',
  handler: 'a built-in handler that is at work',
  approval: 'the answer of a person to the `wait_for_input` of a step',
  sleep: 'the end of a `sleep`',
  delay: 'the end of the `delay`, or the opening of the `send_window`, of a step',
  retry: 'the end of the back-off before the next try',
  child: 'the end of the child instance of a `sub_sequence`',
  rate_limit: 'a permit of the `rate_limit_key` of a step',
  event: 'an event, or a signal of its own, with the name that a `wait_for_event` asks for',
  engine: 'nothing: the engine is about to go on with it',
} as const;
export type WaitKind = keyof typeof WAIT_KINDS;

const FENCE_REASONS = ['transferring', 'moved', 'imported'] as const;

export const Wait = named(
  'Wait',
  'One thing that an instance waits for. Members that do not fit the kind are absent.',
  {
    kind: oneOfWords(Object.keys(WAIT_KINDS) as WaitKind[]),
    summary: Type.String(),
    block_id: noted(orNull(Type.String()), 'Null when the instance as a whole waits.'),
    path: noted(orNull(Type.String()), 'From the outermost block, as in orders[2]/charge.'),
    since: orNull(Timestamp),
    until: noted(
      orNull(Timestamp),
      'When it is over by itself, at the latest; null: by nothing but what it waits for.',
    ),
    attempt: Type.Optional(
      Type.Integer({ description: 'The try, from 0; of a retry the next one.' }),
    ),
    max_attempts: Type.Optional(orNull(Type.Integer({ description: 'Null: no retry policy.' }))),
    last_error: Type.Optional(Type.String({ description: 'Of the try before.' })),
    handler: Type.Optional(Type.String()),
    queue: Type.Optional(orNull(Type.String())),
    task_id: Type.Optional(Uuid),
    worker_id: Type.Optional(Type.String()),
    heartbeat_at: Type.Optional(Timestamp),
    lost_claims: Type.Optional(
      Type.Integer({
        description: 'Of a task: claims of this try whose workers fell silent; absent: none.',
      }),
    ),
    workers: Type.Optional(
      Type.Object({
        polled_lately: Type.Integer({
          description: `Workers that may take the task and polled within ${POLLED_LATELY_SECS} s.`,
        }),
        last_polled_at: orNull(Timestamp),
      }),
    ),
    reason: Type.Optional(
      oneOfWords(FENCE_REASONS, 'Of a handoff: on its way, gone, or here and not owned yet.'),
    ),
    name: Type.Optional(Type.String({ description: 'Of the event.' })),
    approval_id: Type.Optional(Uuid),
    prompt: Type.Optional(Type.String({ description: 'What is asked.' })),
    choices: Type.Optional(
      Type.Array(Type.String({ description: 'A value that can be answered.' })),
    ),
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
      Type.Integer({ description: `Instances that wait before it, ${AHEAD_MAX} at most.` }),
    ),
    limit: Type.Optional(
      orNull(Type.Object({ max_count: Type.Integer(), window_seconds: Type.Integer() })),
    ),
  },
);
export type Wait = Static<typeof Wait>;

/** More of what runs again is counted only, but for what repeats effects. */
export const RUNS_AGAIN_MAX = 100;
/** More steps of one block are left out. */
export const REPEATS_MAX = 20;
/** More of what stays is counted only. */
export const STAYS_MAX = 100;

/** As what a block runs once more, with what that means. */
export const AGAIN_KINDS = {
  step: 'a step that failed or was cut off, or the one with which the instance goes on',
  block: 'a block of which nothing inside runs again: it begins, or goes on with what is new',
  compensation: 'a block of a compensation that failed or is still owed',
  finally: 'a block of a `finally_block`: one that failed, or all of the list behind what goes on',
  saga: 'a whole saga that has compensated: all of its actions run again',
  child: 'a `sub_sequence`: its child is retried, or another one is started',
  hook: 'a hook that failed behind a cancel or a time-out',
} as const;
export type AgainKind = keyof typeof AGAIN_KINDS;

export const RunsAgainBlock = named('RunsAgainBlock', 'A block that a retry runs once more.', {
  kind: oneOfWords(Object.keys(AGAIN_KINDS) as AgainKind[]),
  summary: Type.String(),
  block_id: Type.String(),
  path: noted(Type.String(), 'From the outermost block, as in orders[2]/charge.'),
  repeats: Type.Array(Type.String(), {
    maxItems: REPEATS_MAX,
    description:
      'Paths of steps that had completed and act outside once more, under other idempotency keys; of a child that is retried, in the child.',
  }),
  repeats_effects: noted(Type.Boolean(), 'Whether what had happened outside happens once more.'),
  child_id: Type.Optional(
    noted(
      Uuid,
      'The child that is retried, or whose end is taken or waited for; absent: none is, or another one is started.',
    ),
  ),
  cleans_up: Type.Optional(
    Type.Literal(true, {
      description: 'The child goes on only with what it has to clean up.',
    }),
  ),
});
export type RunsAgainBlock = Static<typeof RunsAgainBlock>;

/** What an instance can come to behind what a retry does. */
const AGAIN_ENDS = ['cancelled', 'failed'] as const;

/** Where a failed child stands with its parent, with what that means. */
export const PARENT_STANDS = {
  waits: 'a block of the parent waits for its end',
  takes: 'the parent has failed, and a retry of it goes on with this child',
  went_on: 'the parent, or one above it, goes on without it: nobody takes what it comes to',
  ended: 'the parent, or one above it, has ended without it, or is not there any more',
} as const;
export type ParentStands = keyof typeof PARENT_STANDS;

export const RunsAgainParent = named(
  'RunsAgainParent',
  'Of a child that is retried by itself: what its parent makes of it.',
  {
    id: Uuid,
    stands: oneOfWords(Object.keys(PARENT_STANDS) as ParentStands[]),
    summary: Type.String(),
  },
);
export type RunsAgainParent = Static<typeof RunsAgainParent>;

export const RunsAgain = named(
  'RunsAgain',
  'Of a retry, or a resume that is one: what it runs once more, and what it leaves as it is.',
  {
    blocks: Type.Array(RunsAgainBlock),
    blocks_count: Type.Integer({ description: 'Of all that run again.' }),
    stays: Type.Array(Type.String(), {
      maxItems: STAYS_MAX,
      description: 'Paths of the outermost blocks that completed and do not run again.',
    }),
    stays_count: Type.Integer({ description: 'Of all that stay.' }),
    repeats_effects: noted(
      Type.Boolean(),
      'Whether something that had completed and acts outside runs a second time, or a child goes on whose parent has gone on without it: ask before.',
    ),
    parent: Type.Optional(RunsAgainParent),
    ends: Type.Optional(
      oneOfWords(
        AGAIN_ENDS,
        'What the instance comes to once this has gone well; absent: it goes on.',
      ),
    ),
  },
);
export type RunsAgain = Static<typeof RunsAgain>;

export const NextAction = named(
  'NextAction',
  'A request that can be made now, and what it is good for.',
  {
    action: Type.String(),
    method: Type.String(),
    path: noted(Type.String(), 'Behind the base address of the API.'),
    body: Type.Optional(AnyJson),
    why: Type.String(),
    runs_again: Type.Optional(RunsAgain),
  },
);
export type NextAction = Static<typeof NextAction>;

export const ExplanationWarning = named('ExplanationWarning', {
  kind: Type.Literal('output_truncated', {
    description: 'An output was too large: expressions see a note instead.',
  }),
  block_id: Type.String(),
  summary: Type.String(),
});
export type ExplanationWarning = Static<typeof ExplanationWarning>;

export const InstanceExplanation = named('InstanceExplanation', {
  id: Uuid,
  sequence_id: Uuid,
  state: InstanceStateWord,
  since: noted(Timestamp, 'Of the state.'),
  summary: noted(Type.String(), 'What it is doing, in a sentence for people.'),
  waiting_for: Type.Array(Wait, { maxItems: WAITS_MAX }),
  waiting_count: Type.Integer({ description: 'Of all that it waits for.' }),
  failure: FailureOrNull,
  cancelling: Type.Optional(Cancelling),
  parent_instance_id: Type.Optional(
    noted(Uuid, 'Whose sub_sequence started it; absent: it stands for itself.'),
  ),
  next: Type.Array(NextAction),
  warnings: Type.Optional(
    Type.Array(ExplanationWarning, {
      maxItems: WARNINGS_MAX,
      description: 'What may make it do something else than was meant; absent: nothing.',
    }),
  ),
});
export type InstanceExplanation = Static<typeof InstanceExplanation>;

// ---------------------------------------------------------------- routes

export const EXPLANATION_ROWS = {
  'instances.explain': {
    ...readById,
    path: '/instances/{id}/explain',
    summary: 'Say what an instance is doing, what it waits for, and what can be done.',
    replies: { 200: InstanceExplanation, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
