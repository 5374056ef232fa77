/** Classifies a failed action by whether it may have taken effect. Pure. */

import { EngineError } from 'durable-workflow-engine-client';
import {
  GATEWAY_STATUSES,
  LASTING_CODES,
  UNKNOWN_CODES,
  UNKNOWN_WORDS,
} from '../../../client/src/generated/repeats.ts';

/** `refused`: the engine answered with the reason. */
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

/** An action that was not sent, or whose outcome is unknown. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly isUnclear: boolean;

  constructor(message: string, isUnclear: boolean, cause: unknown) {
    super(message, { cause });
    this.isUnclear = isUnclear;
  }
}

/** Turns the error of an action into a message for the user. */
export function actionErrorOf(error: unknown): unknown {
  const outcome = outcomeOf(error);
  if (outcome === 'refused' || !(error instanceof EngineError)) return error;
  const isAnswered = error.status > 0;
  if (outcome === 'not-sent') {
    const why = isAnswered ? `The engine cannot accept requests now: ${error.message}` : NOBODY;
    return new ActionError(
      `The request was not sent, so nothing has changed. ${why}`,
      false,
      error,
    );
  }
  const why = isAnswered
    ? `The engine answered: ${error.message}.`
    : 'The request was sent, but no answer arrived.';
  return new ActionError(
    `The outcome is unknown: the action may have been applied. ${why} Check before you repeat it.`,
    true,
    error,
  );
}

const NOBODY = 'The engine is unreachable; try again when it is back.';

/** The error of an action that is not sent because the engine cannot be reached. */
export function unreachable(): EngineError {
  return new EngineError({ status: 0, code: 'CLIENT_UNREACHABLE', message: NOBODY });
}
