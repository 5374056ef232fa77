/** What a failed request probably means, for whoever operates the worker. Pure. */

import { EngineError } from '../client/errors.js';

/** Whether the server has refused the worker itself, so that a new try is of no use before somebody acts. */
export function isRefusal(error: unknown): error is EngineError {
  if (!(error instanceof EngineError)) return false;
  return error.code === 'CLIENT_NO_ENGINE' || [400, 401, 403, 404].includes(error.status);
}

export function complaintOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const { status, code } = error instanceof EngineError ? error : { status: 0, code: '' };
  if (code === 'CLIENT_NO_ENGINE') return `is the url right? ${message}`;
  if (status === 401)
    return `the server does not know the key: is apiKey right, and not revoked? (${message})`;
  if (status === 403) {
    return `the key may not do this: it needs the capability "worker", and must be of the tenant (${message})`;
  }
  if (status === 404) return `the server has no routes for workers: is the url right? (${message})`;
  if (status === 400)
    return `the server refuses the poll: are tenant, handlers and queues right? (${message})`;
  return `no answer, trying again: ${message}`;
}
