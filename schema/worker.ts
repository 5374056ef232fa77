/**
 * Wire shapes and routes of external work. A claim is checked by `worker_id` and, if sent, by `claim_epoch`
 * (docs/decisions/0031-claims.md).
 */

import { type Static, type TObject, Type } from '@sinclair/typebox';
import {
  ALL_ROWS,
  AnyJson,
  CREATED_BETWEEN,
  checked,
  flag,
  INTEGER_MAX,
  JsonObjectSchema,
  Name,
  named,
  noted,
  optional,
  orNull,
  pageOf,
  TaskStateWord,
  TenantQuery,
  Timestamp,
  Uuid,
} from './common.js';
import { act, actById, get, getById, listOf, type RouteRow, refusals } from './route-row.js';
import { strict, strictNamed } from './strict.js';

export const POLL_LIMIT_DEFAULT = 1;
const POLL_LIMIT_MAX = 1_000;
/** Proxies commonly close a request after a minute. */
export const POLL_WAIT_MS_MAX = 60_000;

const LOG_LINES_MAX = 1_000;
const LOG_LEVEL_LENGTH_MAX = 32;
/** In characters. */
const LOG_MESSAGE_LENGTH_MAX = 8_192;

const EXCHANGE_RESULTS_MAX = 1_000;
const EXCHANGE_NAMES_MAX = 100;

const Epoch = Type.Integer({ minimum: 0, maximum: INTEGER_MAX });
const ClaimedBy = noted(Name, "Must equal the claim's worker_id.");
const ClaimEpoch = optional(
  noted(Epoch, "Must equal the claim's epoch; required by some deployments."),
);

const PollLimit = noted(
  optional(Type.Integer({ minimum: 0, 'x-cap': POLL_LIMIT_MAX, default: POLL_LIMIT_DEFAULT })),
  '0 returns none.',
);

const POLL_FIELDS = {
  handler_name: Name,
  worker_id: Name,
  limit: PollLimit,
  wait_ms: noted(
    optional(Type.Integer({ minimum: 0, 'x-cap': POLL_WAIT_MS_MAX, default: 0 })),
    'Maximum wait in ms for a task if there is none.',
  ),
  version: optional(Name),
};

export const PollTasks = named('PollTasks', POLL_FIELDS);
export type PollTasks = Static<typeof PollTasks>;

/** Only tasks with exactly this queue and handler. */
export const PollQueue = named('PollQueue', { ...POLL_FIELDS, queue_name: Name });

/** Log lines of the worker. Default of `ts`: time of arrival; of `level`: info. */
const LogLines = Type.Array(
  Type.Object({
    ts: optional(Timestamp),
    level: optional(Type.String({ maxLength: LOG_LEVEL_LENGTH_MAX })),
    message: Type.String({ maxLength: LOG_MESSAGE_LENGTH_MAX }),
  }),
  { maxItems: LOG_LINES_MAX },
);
export type LogLines = Static<typeof LogLines>;

export const CompleteTask = named(
  'CompleteTask',
  'Stores the output, and merges its top-level keys into context.data.',
  {
    worker_id: ClaimedBy,
    output: JsonObjectSchema,
    claim_epoch: ClaimEpoch,
    logs: optional(LogLines),
  },
);

export const FailTask = named('FailTask', {
  worker_id: ClaimedBy,
  message: Type.String(),
  retryable: flag(false),
  claim_epoch: ClaimEpoch,
  logs: optional(LogLines),
});

export const HeartbeatTask = Type.Object(
  {
    worker_id: ClaimedBy,
    claim_epoch: ClaimEpoch,
    checkpoint_seq: optional(Epoch),
    checkpoint: optional(JsonObjectSchema),
    release: noted(flag(false), 'Releases the claim: the task can be claimed again immediately.'),
  },
  {
    $id: 'HeartbeatTask',
    'x-check': 'heartbeat',
    description: 'A checkpoint requires the checkpoint_seq of the last response.',
  },
);

/** The body of a single result, with the task in place of the path. */
function resultOf<Kind extends string, Body extends TObject>(kind: Kind, body: Body) {
  const { worker_id: _, ...members } = body.properties as Omit<Body['properties'], 'worker_id'> & {
    worker_id?: unknown;
  };
  const rule = body['x-check'] === undefined ? {} : { 'x-check': body['x-check'] as string };
  return Type.Object(
    {
      kind: Type.Literal(kind),
      task_id: Uuid,
      ...(members as Omit<Body['properties'], 'worker_id'>),
    },
    rule,
  );
}

const RESULTS = {
  complete: resultOf('complete', CompleteTask),
  fail: resultOf('fail', FailTask),
  heartbeat: resultOf('heartbeat', HeartbeatTask),
};

/** The result of one task, or its heartbeat. */
export type TaskResult = Static<(typeof RESULTS)[keyof typeof RESULTS]>;
export const TaskResult = Type.Unsafe<TaskResult>({
  $id: 'TaskResult',
  description: "A worker's report on one claimed task.",
  type: 'object',
  properties: { kind: { type: 'string' } },
  required: ['kind'],
  discriminator: { propertyName: 'kind' },
  oneOf: Object.values(RESULTS),
});

const NameList = Type.Array(Name, { minItems: 1, maxItems: EXCHANGE_NAMES_MAX });

const ExchangePoll = strict(
  checked(
    'exchange-poll',
    Type.Object(
      {
        handlers: NameList,
        queues: optional(
          noted(NameList, 'Restricts the poll to these queues. Default: all tasks.'),
        ),
        limit: PollLimit,
        wait_ms: noted(
          optional(Type.Integer({ minimum: 0, 'x-cap': POLL_WAIT_MS_MAX, default: 0 })),
          'Maximum wait in ms for a task if there is none. A refused result ends the wait.',
        ),
      },
      { description: 'Tasks of any of the handlers, by priority of their instances, then age.' },
    ),
  ),
);
export type ExchangePoll = Static<typeof ExchangePoll>;

export const ExchangeTasks = strictNamed(
  'ExchangeTasks',
  'Results of earlier tasks, and a poll for new ones; both are optional.',
  {
    worker_id: Name,
    version: optional(Name),
    results: noted(
      optional(Type.Array(TaskResult, { maxItems: EXCHANGE_RESULTS_MAX })),
      'Each is checked separately, in this order.',
    ),
    poll: optional(ExchangePoll),
    end_polls: noted(flag(false), 'For a worker that stops: answers its waiting polls at once.'),
  },
);
export type ExchangeTasks = Static<typeof ExchangeTasks>;

const TaskListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  state: Type.Optional(Type.Array(TaskStateWord)),
  handler_name: Type.Optional(Type.String()),
  worker_id: Type.Optional(Type.String()),
  queue_name: Type.Optional(Type.String()),
  ...Type.Partial(Type.Object(CREATED_BETWEEN)).properties,
  sequence_name: Type.Optional(Type.String()),
  ...pageOf(50, 1_000),
});

const WorkerListQuery = Type.Object({
  ...TenantQuery.properties,
  alive_within_secs: Type.Integer({ minimum: 0, default: 60 }),
  include_stale: Type.Boolean({ default: false }),
});

/** `context` has the sections visible to the step. Fields typed with null are always present. */
export const WorkerTask = named('WorkerTask', 'A step for an external worker.', {
  id: Uuid,
  instance_id: Uuid,
  block_id: Type.String(),
  handler_name: Type.String(),
  queue_name: Type.Optional(Type.String()),
  params: AnyJson,
  context: Type.Object({ data: JsonObjectSchema, config: JsonObjectSchema }),
  attempt: Type.Integer(),
  idempotency_key: noted(
    Uuid,
    'The same for all attempts of one execution of the step; differs by item, iteration ' +
      'and restart.',
  ),
  timeout_ms: orNull(Type.Integer()),
  state: TaskStateWord,
  worker_id: orNull(Type.String()),
  claim_epoch: Type.Integer(),
  lost_claims: Type.Integer({
    description: 'Claims of this attempt lost to silent workers; too many fail it permanently.',
  }),
  claimed_at: orNull(Timestamp),
  heartbeat_at: orNull(Timestamp),
  completed_at: orNull(Timestamp),
  output: orNull(JsonObjectSchema),
  error_message: orNull(Type.String()),
  error_retryable: orNull(Type.Boolean()),
  checkpoint_seq: Type.Integer(),
  resume_checkpoint: Type.Optional(AnyJson),
  /** W3C trace context: the parent of the worker's spans. */
  traceparent: Type.Optional(Type.String()),
  created_at: Timestamp,
});
export type WorkerTask = Static<typeof WorkerTask>;

const TaskList = Type.Array(WorkerTask);

export const HeartbeatAccepted = named('HeartbeatAccepted', { checkpoint_seq: Type.Integer() });

/** `error` and `code` are present unless status is 200. */
export const TaskOutcome = named('TaskOutcome', 'Outcome of one result.', {
  task_id: orNull(noted(Type.String(), 'As sent; null if it was not a string.')),
  status: Type.Integer({ description: 'HTTP status of the equivalent single request.' }),
  checkpoint_seq: Type.Optional(Type.Integer({ description: 'Only for heartbeats.' })),
  error: Type.Optional(Type.String()),
  code: Type.Optional(Type.String({ description: 'As in x-error-code.' })),
});
export type TaskOutcome = Static<typeof TaskOutcome>;

export const TasksExchanged = named('TasksExchanged', {
  outcomes: noted(Type.Array(TaskOutcome), 'In the order of the results.'),
  tasks: noted(Type.Array(WorkerTask), 'As in a poll.'),
  max_body_bytes: Type.Optional(Type.Integer({ description: 'Limit of the body of an exchange.' })),
});
export type TasksExchanged = Static<typeof TasksExchanged>;

const ATTEMPT_EVENTS = [
  'claimed',
  'reclaimed',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
  'stale_mutation_rejected',
] as const;

/** An entry of a task's claim history, oldest first. */
export const WorkerAttempt = named('WorkerAttempt', {
  id: Uuid,
  task_id: Uuid,
  claim_epoch: Type.Integer(),
  worker_id: Type.Optional(Type.String()),
  event: Type.Unsafe<(typeof ATTEMPT_EVENTS)[number]>({
    type: 'string',
    enum: [...ATTEMPT_EVENTS],
  }),
  reason: Type.Optional(Type.String()),
  created_at: Timestamp,
});
export type WorkerAttempt = Static<typeof WorkerAttempt>;

const counts = Type.Unsafe<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
});

export const TaskStats = named('TaskStats', {
  by_state: counts,
  by_handler: Type.Unsafe<Record<string, Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: { type: 'integer' } },
  }),
  active_workers: Type.Array(Type.String()),
});
export type TaskStats = Static<typeof TaskStats>;

export const WorkerInfo = named('WorkerInfo', {
  worker_id: Type.String(),
  handlers: Type.Array(Type.String()),
  queues: Type.Array(Type.String()),
  version: orNull(Type.String()),
  last_seen_at: Timestamp,
  alive: Type.Boolean(),
  in_flight: Type.Integer(),
});
export type WorkerInfo = Static<typeof WorkerInfo>;

export const HandlerNames = named('HandlerNames', {
  builtin: Type.Array(Type.String()),
  external: Type.Array(Type.String()),
});
export type HandlerNames = Static<typeof HandlerNames>;

export const WORKER_ROWS = {
  'workers.poll': {
    method: 'POST',
    path: '/workers/tasks/poll',
    summary: 'Claim tasks of a handler.',
    owner: 'by-body',
    ledBy: { kind: 'name', members: ['handler_name'] },
    isParked: true,
    body: PollTasks,
    bodySize: 'small',
    repeats:
      'a claim with a lost response is released, at the latest after 60 s without a heartbeat',
    replies: { 200: TaskList, ...refusals(400) },
  },
  'workers.pollQueue': {
    method: 'POST',
    path: '/workers/tasks/poll/queue',
    summary: 'Claim tasks of a handler from a named queue.',
    owner: 'by-body',
    ledBy: { kind: 'name', members: ['handler_name'] },
    isParked: true,
    body: PollQueue,
    bodySize: 'small',
    repeats: 'as for workers.poll',
    replies: { 200: TaskList, ...refusals(400) },
  },
  'workers.exchange': {
    method: 'POST',
    path: '/workers/tasks/exchange',
    summary: 'Report the results of many tasks, and claim new ones.',
    owner: 'by-body',
    ledBy: { kind: 'poll', members: ['poll'] },
    isParked: true,
    judgesEach: 'results',
    body: ExchangeTasks,
    bodySize: 'large',
    repeats: 'a result is accepted once, and claims with a lost response are released',
    replies: { 200: TasksExchanged, ...refusals(400) },
  },
  'workers.tasks': get('/workers/tasks', 'List tasks, newest first.', TaskList, {
    query: TaskListQuery,
  }),
  'workers.stats': get('/workers/tasks/stats', 'Count tasks by state and handler.', TaskStats, {
    query: strict(TenantQuery),
  }),
  'workers.complete': act(
    '/workers/tasks/{id}/complete',
    'Complete a claimed task with its output.',
    WorkerTask,
    {
      body: CompleteTask,
      bodySize: 'large',
      repeats: 'a result is accepted once: a repetition is a 409',
    },
  ),
  'workers.fail': {
    ...actById,
    path: '/workers/tasks/{id}/fail',
    summary: 'Fail a claimed task.',
    body: FailTask,
    bodySize: 'large',
    repeats: 'a result is accepted once: a repetition is a 409',
    replies: { 200: WorkerTask, ...refusals(400, 404, 409) },
  },
  'workers.heartbeat': act(
    '/workers/tasks/{id}/heartbeat',
    'Renew a claim and save a checkpoint.',
    HeartbeatAccepted,
    { body: HeartbeatTask },
  ),
  'workers.attempts': getById(
    '/workers/tasks/{id}/attempts',
    'List the claim history of a task, oldest first.',
    listOf(WorkerAttempt),
    { query: Type.Object(ALL_ROWS) },
  ),
  'workers.list': get('/workers', 'List workers, last contact first.', listOf(WorkerInfo), {
    query: WorkerListQuery,
  }),

  handlers: get('/handlers', 'List built-in handlers and those of workers.', HandlerNames, {
    query: strict(TenantQuery),
  }),
} as const satisfies Record<string, RouteRow>;
