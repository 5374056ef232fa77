/** The exit codes that scripts can rely on, and the error that carries one. */

import { UnsendableError } from '../client/src/client/errors.js';
import { EngineError } from '../client/src/index.js';

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  forbidden: 4,
  unreachable: 5,
  refused: 6,
  declined: 7,
  timedOut: 8,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The meaning of each code; docs/cli.md lists them. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'Success.',
  failed:
    'The operation failed: an awaited instance, an invalid definition, a bulk change with failures, a problem found by `doctor`.',
  usage: 'Invalid usage: unknown command or option, or a missing or invalid value.',
  notFound: 'Not found.',
  forbidden: 'The key is missing or wrong, or lacks the right.',
  unreachable: 'The server is unreachable, too slow, or unavailable.',
  refused: 'The server refused the request, or the current state does not allow it.',
  declined: 'The confirmation was declined.',
  timedOut: 'The awaited event did not happen within `--timeout`.',
  interrupted: 'Ctrl-C.',
};

/** Ends the command with a message and a hint on what to do. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(exit: keyof typeof EXIT, message: string, hint?: string) {
    super(message);
    this.exitCode = EXIT[exit];
    this.hint = hint;
  }
}

export const usageError = (message: string, hint?: string) =>
  new CommandError('usage', message, hint);

/** @returns undefined for a defect: neither a refusal nor a user error */
export function exitOf(error: unknown): ExitCode | undefined {
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof EngineError) return EXIT[ofStatus(error)];
  if (error instanceof UnsendableError) return EXIT.usage;
  return undefined;
}

function ofStatus({ status, code }: EngineError): keyof typeof EXIT {
  if (code === 'CLIENT_NO_ENGINE') return 'unreachable';
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 404 || status === 410) return 'notFound';
  // No answer, too many requests, or a failure in front of or behind the server.
  if (status === 0 || status === 429 || status >= 500) return 'unreachable';
  return 'refused';
}
