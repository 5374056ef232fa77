/** Positions in a sequence and in its loops: parsing and display. Also the words for failure codes. Pure. */

import type { FailureCode } from 'durable-workflow-engine-client';
import { shownIteration } from '../../flow/iteration.ts';
import { jsonOf } from '../../lib/json-text.ts';

/**
 * The counters of the loops in a path, as attempts have them: `2.0` for `orders[2]/lines[0]/charge`; '' outside of
 * loops.
 */
export function iterationOf(path: string): string {
  return [...path.matchAll(/\[(\d+)\](?=\/)/g)].map(([, counter]) => counter).join('.');
}

/** Counters for display, from 1: `iteration 3.1` for `2.0`. */
export function iterationText(iteration: string | undefined): string {
  return iteration ? `iteration ${shownIteration(iteration)}` : '';
}

/** An iteration in an address: numbers separated by dots; undefined for anything else. */
export function iterationIn(text: string | undefined): string | undefined {
  return text !== undefined && /^\d+(\.\d+)*$/.test(text) ? text : undefined;
}

/** The same as typed by the user, counted from 1. */
export function iterationTyped(text: string): string | undefined {
  const iteration = iterationIn(text)
    ?.split('.')
    .map((counter) => Number(counter) - 1);
  return iteration?.every((counter) => counter >= 0) ? iteration.join('.') : undefined;
}

/**
 * Parses an idempotency key that the engine made for a firing of a schedule, such as
 * `cron:<schedule>:2026-01-01T00:00:00.000Z`, into the schedule and the instant that was due.
 */
export function scheduleOf(
  key: string | undefined,
): { readonly id: string; readonly due: string } | undefined {
  const [, id, due] = /^cron:([0-9a-f-]{36}):(.+)$/.exec(key ?? '') ?? [];
  return id === undefined || due === undefined ? undefined : { id, due };
}

/** The meaning of each failure code (docs/reference/failures.md). */
export const FAILURE_WORDS: Readonly<Record<FailureCode, string>> = {
  handler_failed: 'A built-in handler reported a permanent failure.',
  worker_failed: 'The worker reported a permanent failure.',
  retries_exhausted: 'The last allowed attempt of the step failed.',
  not_retried: 'The step does not retry this kind of failure.',
  timeout: 'It took longer than its timeout.',
  claims_lost:
    'Too many workers claimed the task and stopped responding. The task may be what crashes them.',
  queue_timeout: 'No worker claimed the task in time.',
  deadline: 'The step exceeded its deadline, which includes all of its waits and attempts.',
  instance_timeout: 'The instance took longer than its timeout.',
  expression_error: 'An expression of the sequence cannot be evaluated with the data.',
  secret_missing: 'A secret does not exist, is disabled or has expired.',
  invalid_params: 'The parameters of the handler are not valid.',
  invalid_collection: 'The collection of the loop is not an array or has too many items.',
  context_limit: 'The output of the worker would make the context too large.',
  output_schema: 'The output does not match the output schema of the step.',
  handler_crashed: 'A built-in handler crashed; see the server log.',
  data_refused: 'The database refused to store the output of the step.',
  memory_limit: 'The instance uses too much memory.',
  internal_error: 'An internal error of the engine; see the server log for the stack trace.',
  child_failed: 'The child instance failed or was cancelled.',
  child_not_started: 'The child instance could not be started.',
  child_too_deep: 'Too many child instances would be nested.',
  cleanup_failed:
    'A finally block, compensation or hook failed while the instance was being cancelled or had timed out. A retry repeats what failed and then ends the instance.',
  failed_by_request: 'The failure was requested by a user.',
  unrecorded: 'An older version of the engine did not record the reason.',
};

/** The data in an editor. @throws SyntaxError unless it is a JSON object */
export function dataOf(text: string): { [name: string]: unknown } {
  const value = jsonOf('The data', text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('The data must be a JSON object.');
  }
  return value as { [name: string]: unknown };
}
