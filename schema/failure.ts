/** Why an instance or a block failed (docs/reference/failures.md): its shape, and every code it can have. */

import { type Static, Type } from '@sinclair/typebox';
import { named, oneOfWords, orNull, Timestamp } from './common.js';

/** Longer messages are cut: they are shown in lists. */
export const FAILURE_MESSAGE_MAX = 500;

/** Every code with what it means. A code is for programs and never changes its meaning. */
export const FAILURE_CODES = {
  handler_failed: 'a built-in handler gave up for good: `fail`, `assert`, a refused `http_request`',
  worker_failed: 'a worker reported a failure that is not retryable',
  retries_exhausted: 'the last try that `retry` allows failed, too',
  not_retried:
    'a retryable failure of a step without `retry`, or one that `retry_if` or `non_retryable_codes` excludes',
  timeout:
    'a block, or the last try of a step, took longer than its `timeout`, or a handler longer than it may at all; or nobody answered at its gate in time',
  claims_lost:
    'workers took the task of one try and fell silent over it, `ENGINE_WORKER_LOST_CLAIMS_MAX` times: it may be what ends them',
  queue_timeout: 'no worker claimed the task of the last try within `queue_timeout`',
  deadline: 'the step took longer than its `deadline`, with all of its waits and tries',
  instance_timeout: 'the instance took longer than its `timeout`',
  expression_error:
    'a `when` of any block, a template of `params` or of a `prompt`, or a collection does not parse or cannot be evaluated',
  secret_missing:
    'a secret that the parameters name does not exist, is disabled or has expired when the step is called, or is sealed with another encryption key',
  invalid_params: 'a built-in handler cannot work with its `params`',
  invalid_collection:
    'the collection of a `for_each` is not an array, or has more items than `max_iterations`',
  context_limit:
    'with the output of the worker merged into it, the context would be too large; the output is kept',
  output_schema: 'the output does not conform to the `output_schema` of the step',
  handler_crashed: 'a built-in handler threw, or gave what is no outcome; the log has more',
  data_refused: 'the database refused to store what the step or the instance gave',
  memory_limit: 'what the instance has to keep in memory is larger than it may be',
  internal_error:
    'the engine met a defect whenever it went on with the instance; the log has the stack',
  child_failed: 'the child instance of a `sub_sequence` failed, or was cancelled',
  child_not_started:
    'a `sub_sequence` could not start its child: no such sequence, or it does not take the `input`',
  child_too_deep: 'a `sub_sequence` would nest more child instances than may be nested',
  cleanup_failed:
    'a `finally_block`, a compensation or a hook failed while the instance, or a block, was cancelled or timed out; a retry does what failed and then ends it',
  failed_by_request: 'somebody asked for the state `failed`',
  unrecorded:
    'it failed under a version of the engine that did not note why; the audit may tell more',
} as const;
export type FailureCode = keyof typeof FAILURE_CODES;

export function isFailureCode(code: unknown): code is FailureCode {
  return typeof code === 'string' && Object.hasOwn(FAILURE_CODES, code);
}

export const Failure = named(
  'Failure',
  'Why it failed. block_id, path, handler and attempt are null when no block was the reason.',
  {
    block_id: orNull(Type.String({ description: 'The block that failed, not those around it.' })),
    path: orNull(Type.String({ description: 'From the outermost block, as in orders[2]/charge.' })),
    handler: orNull(Type.String({ description: 'Of a step.' })),
    attempt: orNull(Type.Integer({ description: 'Of a step: the try, from 0.' })),
    code: oneOfWords(Object.keys(FAILURE_CODES) as FailureCode[]),
    message: Type.String({ maxLength: FAILURE_MESSAGE_MAX }),
    at: Timestamp,
  },
);
export type Failure = Static<typeof Failure>;

export const FailureOrNull = Type.Unsafe<Failure | null>({ anyOf: [Failure, { type: 'null' }] });
