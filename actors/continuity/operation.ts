/** What every operation on executions is made of; `operations.ts` has the table of them. */

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
  readonly serve: Serve<Id>;
}

/** Gives the body of the answer. Rejects with the EngineError that is the answer. */
export type Serve<Id extends ContinuityOperation> = (
  service: ExecutionService,
  asked: Asked<Id>,
) => Promise<ReplyOf<Id>>;

/** One for each route; those whose bodies lead to the execution's shard say how. */
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

/** @throws EngineError that `refused` makes of the message */
export function taken<T>(parsed: Parsed<T>, refused: (message: string) => EngineError): T {
  if (!parsed.ok) throw refused(parsed.message);
  return parsed.value;
}

/** @throws EngineError 409 when anything stands against it */
export function refuseFor(objection: string | undefined): void {
  if (objection !== undefined) throw conflict(objection);
}
