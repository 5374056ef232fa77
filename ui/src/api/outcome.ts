/** What is known of an action that was not answered as it should be: whether it may have been done. Pure. */

import { EngineError } from 'durable-workflow-engine-client';
import {
  GATEWAY_STATUSES,
  LASTING_CODES,
  UNKNOWN_CODES,
  UNKNOWN_WORDS,
} from '../../../client/src/generated/repeats.ts';

/** `refused`: the engine says why, and an answer is an answer. */
export type Outcome = 'refused' | 'not-sent' | 'unclear';

export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof EngineError) || LASTING_CODES.has(error.code)) return 'refused';
  const { status, code, message } = error;
  if (code === 'CLIENT_UNREACHABLE') return 'not-sent';
  if (status === 0) return 'unclear';
  if (!GATEWAY_STATUSES.has(status)) return 'refused';
  const isUnknown = UNKNOWN_CODES.has(code) || message.includes(UNKNOWN_WORDS);
  return code.startsWith('ENG_') && !isUnknown ? 'not-sent' : 'unclear';
}

/** An action that nobody took, or of which nobody knows. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly isUnclear: boolean;

  constructor(message: string, isUnclear: boolean, cause: unknown) {
    super(message, { cause });
    this.isUnclear = isUnclear;
  }
}

/** The error of an action, in words for whoever has done it. */
export function actionErrorOf(error: unknown): unknown {
  const outcome = outcomeOf(error);
  if (outcome === 'refused' || !(error instanceof EngineError)) return error;
  const isAnswered = error.status > 0;
  if (outcome === 'not-sent') {
    const why = isAnswered ? `The engine cannot take it now: ${error.message}` : NOBODY;
    return new ActionError(`Not sent, so that nothing was done. ${why}`, false, error);
  }
  const why = isAnswered ? `The answer was: ${error.message}.` : 'It was sent, and no answer came.';
  return new ActionError(
    `Unclear: it may have been done. ${why} Look before you do it again.`,
    true,
    error,
  );
}

const NOBODY = 'The engine does not answer; try again when it is back.';

/** Of an action that is not begun, since nobody would take it. */
export function unreachable(): EngineError {
  return new EngineError({ status: 0, code: 'CLIENT_UNREACHABLE', message: NOBODY });
}
