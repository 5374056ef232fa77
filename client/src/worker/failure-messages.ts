/** Explains failed requests to the operator of the worker. Pure. */

import { EngineError } from '../client/errors.js';

/** Whether the server has rejected the worker itself, so that a retry does not help. */
export function isRefusal(error: unknown): error is EngineError {
  if (!(error instanceof EngineError)) return false;
  return error.code === 'CLIENT_NO_ENGINE' || [400, 401, 403, 404].includes(error.status);
}

export function failureMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const { status, code } = error instanceof EngineError ? error : { status: 0, code: '' };
  if (code === 'CLIENT_NO_ENGINE') return `check the url: ${message}`;
  if (status === 401)
    return `the server rejected the key: check that apiKey is correct and not revoked (${message})`;
  if (status === 403) {
    return `the key lacks the right: it needs the capability "worker" and must belong to the tenant (${message})`;
  }
  if (status === 404) return `the server has no routes for workers: check the url (${message})`;
  if (status === 400)
    return `the server rejected the poll: check tenant, handlers and queues (${message})`;
  return `no response, retrying: ${message}`;
}
