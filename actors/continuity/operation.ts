/**
 * What every operation on executions is made of: how it is led to the service of its execution, and
 * what is done there. Each subject has a table of its own; `operations.ts` puts them together.
 */

import type { BodyOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { Keyring } from '../../src/core/continuity/keys.js';
import { forbidden, unavailable } from '../../src/errors.js';
import type { ExecutionService, OperationReply } from './execution-service.js';

export type ContinuityOperation = Extract<
  ShardRouteId,
  | `continuity.${string}`
  | `migrations.${string}`
  | `handoffs.${string}`
  | `capsules.${string}`
  | 'runtimes.register'
>;

export interface Asked<Id extends ContinuityOperation> {
  /** Of the header or the body; '' is any. */
  readonly tenant: string;
  /** The id in the path, or the one in the body that leads to the execution's shard. */
  readonly id: string;
  readonly body: BodyOf<Id>;
}

export interface ExecutionOperation<Id extends ContinuityOperation> {
  /** The id in the body that leads to the execution's shard; absent: the one in the path does. */
  readonly ledBy?: (body: BodyOf<Id>) => string;
  /**
   * The execution that the id belongs to, in whose line the request is served; absent: the id is the
   * execution's own. Rejects with 404 when there is none.
   */
  readonly lineOf?: (service: ExecutionService, asked: Asked<Id>) => Promise<string>;
  /** Rejects with the EngineError that is the answer. */
  readonly serve: (service: ExecutionService, asked: Asked<Id>) => Promise<OperationReply>;
}

/** One for each route; those whose bodies lead to the execution's shard say how. */
export type ExecutionOperations = {
  readonly [Id in ContinuityOperation]: ExecutionOperation<Id> &
    (Id extends RoutesOf<'by-body'>
      ? { readonly ledBy: (body: BodyOf<Id>) => string }
      : { readonly ledBy?: never });
};

/**
 * Whose the object is that a body speaks of.
 *
 * @throws EngineError 403 when the body names another tenant than the header
 */
export function tenantOf(header: string, body: string | null | undefined): string {
  if (body == null || body === '') return header;
  if (header !== '' && body !== header) {
    throw forbidden('tenant_id is not the tenant of x-tenant-id');
  }
  return body;
}

/** @throws EngineError 503 when the server has no encryption key */
export function keysOf({ keyring }: ExecutionService): Keyring {
  if (keyring === undefined) {
    throw unavailable('ENG_NO_KEYS', 'the server has no encryption key (ENGINE_ENCRYPTION_KEY)');
  }
  return keyring;
}
