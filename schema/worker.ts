/**
 * Wire shapes and routes of external work. A claim is checked by `worker_id` and, if sent, by `claim_epoch`
 * (docs/decisions/0031-claims.md).
 */

import type { TObject } from '@sinclair/typebox';
import * as t from './common.js';
import { act, byBody, byId, get, getById, ok, type RouteRow } from './route-row.js';
import { words } from './states.js';

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

const Epoch = t.integer({ minimum: 0, maximum: t.INTEGER_MAX });
const ClaimedBy = t.noted(t.Name, "Must equal the claim's worker_id.");
const ClaimEpoch = t.nullish(Epoch, "Must equal the claim's epoch; required by some deployments.");

const PollLimit = t.nullish(
  t.integer({ minimum: 0, 'x-cap': POLL_LIMIT_MAX, default: POLL_LIMIT_DEFAULT }),
  'Maximum number of tasks; 0 claims none.',
);

export const PollWait = t.integer({ minimum: 0, 'x-cap': POLL_WAIT_MS_MAX, default: 0 });

/** An id beginning with it is that of a worker endpoint, in whose name only the engine claims tasks. */
export const ENDPOINT_WORKER_PREFIX = 'endpoint:';
const WorkerId = t.checked('worker-id', t.Name);

const POLL_FIELDS = {
  handler_name: t.Name,
  worker_id: WorkerId,
  limit: PollLimit,
  wait_ms: t.nullish(PollWait, 'Maximum wait in ms if there is no task.'),
  version: t.nullish(t.Name),
};

export const PollTasks = t.named('PollTasks', POLL_FIELDS);
export type PollTasks = t.Static<typeof PollTasks>;

/** Only tasks with exactly this queue and handler. */
export const PollQueue = t.named('PollQueue', { ...POLL_FIELDS, queue_name: t.Name });

/** Log lines of the worker. Default of `ts`: time of arrival; of `level`: info. */
const LogLines = t.list(
  t.object({
    ts: t.nullish(t.Timestamp),
    level: t.nullish(t.text({ maxLength: LOG_LEVEL_LENGTH_MAX })),
    message: t.text({ maxLength: LOG_MESSAGE_LENGTH_MAX }),
  }),
  { maxItems: LOG_LINES_MAX },
);
export type LogLines = t.Static<typeof LogLines>;

export const CompleteTask = t.named('CompleteTask', {
  worker_id: ClaimedBy,
  output: t.noted(t.JsonObjectSchema, 'Its top-level keys are merged into context.data.'),
  claim_epoch: ClaimEpoch,
  logs: t.nullish(LogLines),
});

export const FailTask = t.named('FailTask', {
  worker_id: ClaimedBy,
  message: t.text(),
  retryable: t.flag(false),
  claim_epoch: ClaimEpoch,
  logs: t.nullish(LogLines),
});

export const HeartbeatTask = t.checked(
  'heartbeat',
  t.named('HeartbeatTask', {
    worker_id: ClaimedBy,
    claim_epoch: ClaimEpoch,
    checkpoint_seq: t.nullish(Epoch, 'Value of the last response.'),
    checkpoint: t.nullish(t.JsonObjectSchema),
    release: t.flag(false, 'Releases the claim: the task can be claimed again immediately.'),
  }),
);

/** The body of a single result, with the task in place of the path. */
function resultOf<Kind extends string, Body extends TObject>(kind: Kind, body: Body) {
  const { worker_id: _, ...members } = body.properties as Omit<Body['properties'], 'worker_id'> & {
    worker_id?: unknown;
  };
  const rule = body['x-check'] === undefined ? {} : { 'x-check': body['x-check'] as string };
  return t.object(
    {
      kind: t.literal(kind),
      task_id: t.Uuid,
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
export type TaskResult = t.Static<(typeof RESULTS)[keyof typeof RESULTS]>;
export const TaskResult = t.typed<TaskResult>({
  $id: 'TaskResult',
  description: "A worker's report on one claimed task.",
  type: 'object',
  properties: { kind: { type: 'string' } },
  required: ['kind'],
  discriminator: { propertyName: 'kind' },
  oneOf: Object.values(RESULTS),
});

const NameList = t.list(t.Name, { minItems: 1, maxItems: EXCHANGE_NAMES_MAX });

const ExchangePoll = t.checked(
  'exchange-poll',
  t.strictObject({
    handlers: t.noted(NameList, 'Claims tasks of these handlers by priority, then age.'),
    queues: t.nullish(NameList, 'Restricts the poll to these queues. Default: all tasks.'),
    limit: PollLimit,
    wait_ms: t.nullish(PollWait, 'Maximum wait in ms for a task. A refused result ends it.'),
  }),
);
export type ExchangePoll = t.Static<typeof ExchangePoll>;

export const ExchangeTasks = t.strictNamed('ExchangeTasks', {
  worker_id: WorkerId,
  version: t.nullish(t.Name),
  results: t.nullish(
    t.list(TaskResult, { maxItems: EXCHANGE_RESULTS_MAX }),
    'Results, each checked separately, in this order.',
  ),
  poll: t.nullish(ExchangePoll),
  end_polls: t.flag(false, 'For a worker that stops: answers its waiting polls at once.'),
});
export type ExchangeTasks = t.Static<typeof ExchangeTasks>;

const TaskListQuery = t.object({
  tenant_id: t.optional(t.text()),
  state: t.optional(t.list(t.TaskStateWord)),
  handler_name: t.optional(t.text()),
  worker_id: t.optional(t.text()),
  queue_name: t.optional(t.text()),
  ...t.allOptional(t.CREATED_BETWEEN),
  sequence_name: t.optional(t.text()),
  ...t.pageOf(50, 1_000),
});

/** `context` has the sections visible to the step. Fields typed with null are always present. */
export const WorkerTask = t.named('WorkerTask', 'A step for an external worker.', {
  id: t.Uuid,
  instance_id: t.Uuid,
  block_id: t.text(),
  handler_name: t.text(),
  queue_name: t.optional(t.text()),
  params: t.AnyJson,
  context: t.object({ data: t.JsonObjectSchema, config: t.JsonObjectSchema }),
  attempt: t.integer(),
  idempotency_key: t.noted(
    t.Uuid,
    'The same for all attempts of one execution of the step; differs by item, iteration ' +
      'and restart.',
  ),
  timeout_ms: t.nullable(t.integer()),
  state: t.TaskStateWord,
  worker_id: t.nullable(t.text()),
  claim_epoch: t.integer(),
  lost_claims: t.integer('Claims lost to silent workers; too many fail the attempt permanently.'),
  claimed_at: t.nullable(t.Timestamp),
  heartbeat_at: t.nullable(t.Timestamp),
  completed_at: t.nullable(t.Timestamp),
  output: t.nullable(t.JsonObjectSchema),
  error_message: t.nullable(t.text()),
  error_retryable: t.nullable(t.boolean()),
  checkpoint_seq: t.integer(),
  resume_checkpoint: t.optional(t.AnyJson),
  /** W3C trace context: the parent of the worker's spans. */
  traceparent: t.optional(t.text()),
  created_at: t.Timestamp,
});
export type WorkerTask = t.Static<typeof WorkerTask>;

const TaskList = t.list(WorkerTask);

export const HeartbeatAccepted = t.named('HeartbeatAccepted', { checkpoint_seq: t.integer() });

/** `error` and `code` are present unless status is 200. */
export const TaskOutcome = t.named('TaskOutcome', 'Outcome of one result.', {
  task_id: t.nullable(t.text('Id as sent; null if it was not a string.')),
  status: t.integer('HTTP status of the equivalent single request.'),
  checkpoint_seq: t.optional(t.integer('Number of the stored checkpoint; only for heartbeats.')),
  error: t.optional(t.text()),
  code: t.optional(t.text('Error code, as in the header x-error-code.')),
});
export type TaskOutcome = t.Static<typeof TaskOutcome>;

export const TasksExchanged = t.named('TasksExchanged', {
  outcomes: t.list(TaskOutcome, 'Outcomes in the order of the results.'),
  tasks: t.list(WorkerTask, 'Tasks claimed by the poll.'),
  max_body_bytes: t.optional(t.integer('Limit of the body of an exchange.')),
});
export type TasksExchanged = t.Static<typeof TasksExchanged>;

const ATTEMPT_EVENTS = words(
  'claimed reclaimed completed failed timed_out cancelled stale_mutation_rejected',
);

/** An entry of a task's claim history, oldest first. */
export const WorkerAttempt = t.named('WorkerAttempt', {
  id: t.Uuid,
  task_id: t.Uuid,
  claim_epoch: t.integer(),
  worker_id: t.optional(t.text()),
  event: t.oneOf(ATTEMPT_EVENTS),
  reason: t.optional(t.text()),
  created_at: t.Timestamp,
});
export type WorkerAttempt = t.Static<typeof WorkerAttempt>;

const counts = t.typed<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
});

export const TaskStats = t.named('TaskStats', {
  by_state: counts,
  by_handler: t.typed<Record<string, Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: { type: 'integer' } },
  }),
  active_workers: t.list(t.text()),
});
export type TaskStats = t.Static<typeof TaskStats>;

export const WorkerInfo = t.named('WorkerInfo', {
  worker_id: t.text(),
  handlers: t.list(t.text()),
  queues: t.list(t.text()),
  version: t.nullable(t.text()),
  last_seen_at: t.Timestamp,
  alive: t.boolean(),
  in_flight: t.integer(),
});
export type WorkerInfo = t.Static<typeof WorkerInfo>;

export const HandlerNames = t.named('HandlerNames', {
  builtin: t.list(t.text()),
  external: t.list(t.text()),
});
export type HandlerNames = t.Static<typeof HandlerNames>;

export const WORKER_ROWS = {
  'workers.poll': byBody.post('/workers/tasks/poll', {
    summary: 'Claim tasks of a handler.',
    ledBy: { kind: 'name', members: ['handler_name'] },
    isParked: true,
    body: PollTasks,
    bodySize: 'small',
    repeats:
      'a claim with a lost response is released, at the latest after 60 s without a heartbeat',
    replies: ok(TaskList),
  }),
  'workers.pollQueue': byBody.post('/workers/tasks/poll/queue', {
    summary: 'Claim tasks of a handler from a named queue.',
    ledBy: { kind: 'name', members: ['handler_name'] },
    isParked: true,
    body: PollQueue,
    bodySize: 'small',
    repeats: 'as for workers.poll',
    replies: ok(TaskList),
  }),
  'workers.exchange': byBody.post('/workers/tasks/exchange', {
    summary: 'Report the results of many tasks, and claim new ones.',
    ledBy: { kind: 'poll', members: ['poll'] },
    isParked: true,
    judgesEach: 'results',
    body: ExchangeTasks,
    bodySize: 'large',
    repeats: 'a result is accepted once, and claims with a lost response are released',
    replies: ok(TasksExchanged),
  }),
  'workers.tasks': get('/workers/tasks', 'List tasks, newest first.', TaskList, {
    query: TaskListQuery,
  }),
  'workers.stats': get('/workers/tasks/stats', 'Count tasks by state and handler.', TaskStats, {
    query: t.strict(t.TenantQuery),
  }),
  'workers.complete': act(
    '/workers/tasks/{id}/complete',
    'Complete a claimed task with its output.',
    WorkerTask,
    {
      body: CompleteTask,
      bodySize: 'large',
      mayBeMinimal: true,
      repeats: 'a result is accepted once: a repetition is a 409',
    },
  ),
  'workers.fail': byId.post('/workers/tasks/{id}/fail', {
    summary: 'Fail a claimed task.',
    body: FailTask,
    bodySize: 'large',
    mayBeMinimal: true,
    repeats: 'a result is accepted once: a repetition is a 409',
    replies: ok(WorkerTask, 404, 409),
  }),
  'workers.heartbeat': act(
    '/workers/tasks/{id}/heartbeat',
    'Renew a claim and save a checkpoint.',
    HeartbeatAccepted,
    { body: HeartbeatTask },
  ),
  'workers.attempts': getById(
    '/workers/tasks/{id}/attempts',
    'List the claim history of a task, oldest first.',
    t.list(WorkerAttempt),
    { query: t.object(t.ALL_ROWS) },
  ),
  'workers.list': get('/workers', 'List workers, last contact first.', t.list(WorkerInfo), {
    query: t.object({
      ...t.TenantQuery.properties,
      alive_within_secs: t.integer({ minimum: 0, default: 60 }),
      include_stale: t.boolean({ default: false }),
    }),
  }),

  handlers: get('/handlers', 'List built-in handlers and those of workers.', HandlerNames, {
    query: t.strict(t.TenantQuery),
  }),
} as const satisfies Record<string, RouteRow>;
