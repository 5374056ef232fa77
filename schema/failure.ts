/** The failure of an instance or block (docs/reference/failures.md): its shape and codes. */

import * as t from './common.js';

/** Longer messages are truncated, since lists show them. */
export const FAILURE_MESSAGE_MAX = 500;

/** Codes are for programs: their meaning never changes. */
export const FAILURE_CODES = {
  handler_failed:
    'a built-in handler failed permanently: `fail`, `assert`, a rejected `http_request`',
  worker_failed: 'a worker reported a permanent failure',
  retries_exhausted: 'the last attempt that `retry` allows failed',
  not_retried:
    'a retryable failure of a step without `retry`, or ' +
    'excluded by `retry_if` or `non_retryable_codes`',
  timeout:
    'a block, or the last attempt of a step, exceeded its `timeout`; a handler ' +
    "exceeded the server's limit; or an approval was not answered in time",
  claims_lost:
    'workers claimed the task of one attempt and went silent ' +
    '`ENGINE_WORKER_LOST_CLAIMS_MAX` times: the task may crash them',
  queue_timeout: 'no worker claimed the task of the last attempt within `queue_timeout`',
  deadline: 'the step exceeded its `deadline`, with all waits and attempts',
  instance_timeout: 'the instance exceeded its `timeout`',
  expression_error:
    'a `when`, a template of `params` or `prompt`, or a ' +
    'collection does not parse or cannot be evaluated',
  secret_missing:
    'a secret used in the parameters does not exist, is disabled, ' +
    'has expired, or is sealed with another encryption key',
  invalid_params: 'a built-in handler cannot work with its `params`',
  invalid_collection:
    'the collection of a `for_each` is not an array, or has more than `max_iterations` items',
  context_limit:
    "the context would be too large with the worker's output merged in; the output is kept",
  output_schema: 'the output does not conform to the `output_schema` of the step',
  handler_crashed: 'a built-in handler threw or returned an invalid result; see the log',
  data_refused: 'the database refused to store data of the step or the instance',
  memory_limit: 'the state of the instance in memory exceeds its limit',
  internal_error:
    'a defect of the engine stopped the instance each time it continued; the log has the stack',
  child_failed: 'the child instance of a `sub_sequence` failed or was cancelled',
  child_not_started:
    'a `sub_sequence` could not start its child: unknown sequence, or invalid `input`',
  child_too_deep: 'a `sub_sequence` would exceed the limit of nested child instances',
  cleanup_failed:
    'a `finally_block`, a protected `catch_block`, a compensation or a hook failed in a cancellation ' +
    'or timeout; a retry repeats it and then finishes the instance',
  failed_by_request: 'a request set the state to `failed`',
  unrecorded:
    'it failed under a version of the engine that did not record the reason; see the audit',
} as const;
export type FailureCode = keyof typeof FAILURE_CODES;

export function isFailureCode(code: unknown): code is FailureCode {
  return typeof code === 'string' && Object.hasOwn(FAILURE_CODES, code);
}

export const Failure = t.named(
  'Failure',
  'The reason of a failure. block_id, path, handler and attempt are null if it was not a block.',
  {
    block_id: t.nullable(t.text('The failed block, not the blocks around it.')),
    path: t.nullable(t.text('Path from the outermost block, such as orders[2]/charge.')),
    handler: t.nullable(t.text('Handler of the step.')),
    attempt: t.nullable(t.integer('Attempt of the step, from 0.')),
    code: t.oneOf(Object.keys(FAILURE_CODES) as FailureCode[]),
    message: t.text({ maxLength: FAILURE_MESSAGE_MAX }),
    at: t.Timestamp,
  },
);
export type Failure = t.Static<typeof Failure>;

export const FailureOrNull = t.refOrNull(Failure);
