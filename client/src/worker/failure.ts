/** From whatever a handler threw to what the server receives. Nothing in here throws. */

import { waitOf } from './errors.js';
import { memberOf, storable, textOf } from './texts.js';

export interface Failure {
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number;
  /** Lines of the step's log. */
  readonly lines: readonly string[];
}

/** What the server keeps of a message, in characters. */
const MESSAGE_LENGTH_MAX = 500;

/** An error is retryable unless it says that it is not. */
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
      ...(waitMs === undefined ? [`retryAfterMs says no time: ${textOf(retryAfterMs)}`] : []),
    ],
  };
}

/** As the server stores it. */
export function messageOf(thrown: unknown): string {
  const text = textOf(thrown);
  return storable(isSaid(thrown) ? text : `the handler threw ${text}`, MESSAGE_LENGTH_MAX);
}

function isSaid(thrown: unknown): boolean {
  try {
    return thrown instanceof Error || (typeof thrown === 'string' && thrown !== '');
  } catch {
    // A proxy may refuse to say what it is.
    return false;
  }
}
