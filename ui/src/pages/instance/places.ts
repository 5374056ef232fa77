/** Where in a sequence and in its loops something happened, as it is spelled and as it is told. Pure. */

import type { FailureCode } from 'durable-workflow-engine-client';
import { shownPass } from '../../flow/words.ts';
import { jsonOf } from '../../lib/json-text.ts';

/** Of `orders[2]/lines[0]/charge`: the counters of the loops, as tries have them: `2.0`; '' outside of loops. */
export function passOf(path: string): string {
  return [...path.matchAll(/\[(\d+)\](?=\/)/g)].map(([, pass]) => pass).join('.');
}

/** Counters for people, who count from 1: of `2.0` it is `pass 3.1`. */
export function passText(iteration: string | undefined): string {
  return iteration ? `pass ${shownPass(iteration)}` : '';
}

/** A pass as it stands in an address: numbers between dots; undefined for everything else. */
export function passIn(text: string | undefined): string | undefined {
  return text !== undefined && /^\d+(\.\d+)*$/.test(text) ? text : undefined;
}

/** The same as it was typed, counted from 1. */
export function passTyped(text: string): string | undefined {
  const pass = passIn(text)
    ?.split('.')
    .map((counter) => Number(counter) - 1);
  return pass?.every((counter) => counter >= 0) ? pass.join('.') : undefined;
}

/**
 * Of an idempotency key that the engine made for a fire of a schedule, such as
 * `cron:<schedule>:2026-01-01T00:00:00.000Z`: the schedule, and the instant that was due.
 */
export function scheduleOf(
  key: string | undefined,
): { readonly id: string; readonly due: string } | undefined {
  const [, id, due] = /^cron:([0-9a-f-]{36}):(.+)$/.exec(key ?? '') ?? [];
  return id === undefined || due === undefined ? undefined : { id, due };
}

/** What a code means, for whoever has not read docs/reference/failures.md. */
export const FAILURE_WORDS: Readonly<Record<FailureCode, string>> = {
  handler_failed: 'A built-in handler gave up for good.',
  worker_failed: 'The worker said that trying again is of no use.',
  retries_exhausted: 'The last try that the step is allowed failed, too.',
  not_retried: 'The step does not retry this failure.',
  timeout: 'It took longer than its timeout.',
  claims_lost: 'Too many workers took the task and fell silent over it: it may be what ends them.',
  queue_timeout: 'No worker took the task in time.',
  deadline: 'The step took longer than its deadline, with all of its waits and tries.',
  instance_timeout: 'The instance took longer than its timeout.',
  expression_error: 'An expression of the sequence cannot be evaluated with the data.',
  secret_missing: 'A secret does not exist, is disabled or has expired.',
  invalid_params: 'The handler cannot work with its parameters.',
  invalid_collection: 'The collection of the loop is no array, or has too many items.',
  context_limit: 'With the output of the worker the context would be too large.',
  output_schema: 'The output does not conform to the output schema of the step.',
  handler_crashed: 'A built-in handler crashed; the log of the server has more.',
  data_refused: 'The database refused to store what the step gave.',
  memory_limit: 'What the instance keeps in memory is too large.',
  internal_error: 'The engine met a defect; the log of the server has the stack.',
  child_failed: 'The child instance failed or was cancelled.',
  child_not_started: 'The child instance could not be started.',
  child_too_deep: 'Too many child instances would be nested.',
  cleanup_failed:
    'A finally list, a compensation or a hook failed while it was cancelled or timed out. A retry does what failed, and then ends it.',
  failed_by_request: 'Somebody asked for it.',
  unrecorded: 'An older version of the engine did not note why.',
};

/** The data that an editor holds. @throws SyntaxError when it is no JSON object */
export function dataOf(text: string): { [name: string]: unknown } {
  const value = jsonOf('The data', text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('The data has to be a JSON object.');
  }
  return value as { [name: string]: unknown };
}
