/** Converts whatever a handler throws into a report to the server. Never throws. */

import { waitOf } from './errors.js';
import { memberOf, storable, textOf } from './texts.js';

export interface Failure {
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number;
  /** Lines of the step's log. */
  readonly lines: readonly string[];
}

/** The server's limit for messages, in characters. */
const MESSAGE_LENGTH_MAX = 500;

/** Errors are retryable unless they say otherwise. */
export function failureOf(thrown: unknown): Failure {
  const retryAfterMs = memberOf(thrown, 'retryAfterMs');
  const details = memberOf(thrown, 'details');
  const waitMs = waitOf(retryAfterMs);
  return {
    message: messageOf(thrown),
    retryable: memberOf(thrown, 'retryable') !== false,
    retryAfterMs: waitMs ?? 0,
    lines: [
      ...(details === undefined ? [] : [textOf(details)]),
      ...(waitMs === undefined
        ? [`retryAfterMs is not a valid time: ${textOf(retryAfterMs)}`]
        : []),
    ],
  };
}

/** In the form that the server stores. */
export function messageOf(thrown: unknown): string {
  const text = textOf(thrown);
  return storable(isSaid(thrown) ? text : `the handler threw ${text}`, MESSAGE_LENGTH_MAX);
}

function isSaid(thrown: unknown): boolean {
  try {
    return thrown instanceof Error || (typeof thrown === 'string' && thrown !== '');
  } catch {
    // A proxy may throw when it is inspected.
    return false;
  }
}
