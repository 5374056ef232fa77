/** The types of the operations on executions, and the errors that they share. */

import type { BodyOf, ReplyOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import { conflict, type EngineError, unavailable } from '../../src/base/errors.js';
import type { Parsed } from '../../src/core/parsed.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { ExecutionService } from './execution-service.js';

export type ContinuityOperation = Extract<
  ShardRouteId,
  | `continuity.${string}`
  | `migrations.${string}`
  | `handoffs.${string}`
  | `capsules.${string}`
  | 'runtimes.register'
>;

export interface RequestTarget {
  /** From the header or the body; '' is any. */
  readonly tenant: string;
  /** From the path, or the one in the body that routes the request. */
  readonly id: string;
}

export interface ExecutionRequest<Id extends ContinuityOperation> extends RequestTarget {
  /** The number of the request. */
  readonly request: number;
  readonly body: BodyOf<Id>;
}

export interface ExecutionOperation<Id extends ContinuityOperation> {
  /** The id in the body that routes the request; absent: the path does. */
  readonly ledBy?: (body: BodyOf<Id>) => string;
  /** The execution in whose line the request is served; absent: the id is the execution's own. */
  readonly lineOf?: (service: ExecutionService, request: ExecutionRequest<Id>) => Promise<string>;
  readonly serve: Serve<Id>;
}

export type Serve<Id extends ContinuityOperation> = (
  service: ExecutionService,
  request: ExecutionRequest<Id>,
) => Promise<ReplyOf<Id>>;

/** Operations routed by body say how. */
export type ExecutionOperations = {
  readonly [Id in ContinuityOperation]: ExecutionOperation<Id> &
    (Id extends RoutesOf<'by-body'>
      ? { readonly ledBy: (body: BodyOf<Id>) => string }
      : { readonly ledBy?: never });
};

/** @throws EngineError 503 when the server has no encryption key */
export function keysOf({ keyring }: Pick<ExecutionService, 'keyring'>): Keyring {
  if (keyring === undefined) {
    throw unavailable('ENG_NO_KEYS', 'the server has no encryption key (ENGINE_ENCRYPTION_KEY)');
  }
  return keyring;
}

export function unwrapped<T>(parsed: Parsed<T>, refused: (message: string) => EngineError): T {
  if (!parsed.ok) throw refused(parsed.message);
  return parsed.value;
}

/** @throws EngineError 409 when there is a reason */
export function refuseFor(reason: string | undefined): void {
  if (reason !== undefined) throw conflict(reason);
}
