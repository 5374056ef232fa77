/** Converts errors to responses. A response that cannot be built or sent fails only its own request. */

import { EngineError } from '../../base/errors.js';
import type { Logger } from '../../base/log.js';
import { DEFECT, refusalReply } from '../reply.js';
import type { HttpReply, HttpRequest } from '../server.js';
import type { RequestContext } from './context.js';

export class MethodNotAllowed extends EngineError {
  readonly allow: readonly string[];

  constructor(method: string, allow: readonly string[]) {
    super('ENG_METHOD_NOT_ALLOWED', `method ${method} is not allowed here`);
    this.allow = allow;
  }
}

export function refuse({ request, exchange }: RequestContext, log: Logger, error: unknown): void {
  // The second reply contains nothing that could prevent sending it.
  for (const make of [() => errorReply(log, request, error), () => refusalReply(DEFECT)]) {
    try {
      exchange.reply(make());
      return;
    } catch (err) {
      log.error({ requestId: request.requestId, err }, 'an answer could not be sent');
    }
  }
}

export function errorReply(log: Logger, request: HttpRequest, error: unknown): HttpReply {
  if (!(error instanceof EngineError) || error.code === 'ENG_INTERNAL') {
    log.error({ requestId: request.requestId, err: error }, 'defect');
    return refusalReply(DEFECT);
  }
  if (error.cause !== undefined) {
    log.error({ requestId: request.requestId, err: error.cause }, 'the database cannot answer');
  }
  const reply = refusalReply(error);
  if (!(error instanceof MethodNotAllowed)) return reply;
  return { ...reply, headers: [...(reply.headers ?? []), ['allow', error.allow.join(', ')]] };
}
