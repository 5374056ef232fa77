/**
 * What every operation on executions is made of: how it is led to its desk, and what its work is
 * given there. Each subject has a table of its own; `operations.ts` puts them together.
 */

import type { BodyOf } from '../../schema/routes.js';
import type { Keyring } from '../../src/core/continuity/keys.js';
import type { Env } from '../../src/core/progress.js';
import { forbidden, unavailable } from '../../src/errors.js';
import type { MigrationJudge } from '../../src/migration-judge.js';
import type { Plans } from '../plans.js';
import type { ShardOperation } from '../protocol.js';
import type { Desk, DeskReply } from './desk.js';

export type ContinuityOperation = Extract<
  ShardOperation,
  | `continuity.${string}`
  | `migrations.${string}`
  | `handoffs.${string}`
  | `capsules.${string}`
  | 'runtimes.register'
>;

/** What the work of an operation is given beside what was asked. */
export interface Office {
  readonly desk: Desk;
  readonly plans: Plans;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  readonly judge: MigrationJudge;
  /** As instances have it here. */
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
}

export interface Asked<Id extends ContinuityOperation> {
  /** Of the header or the body (05 §0); '' is any. */
  readonly tenant: string;
  /** The id in the path, or the one in the body that leads to the desk. */
  readonly id: string;
  readonly body: BodyOf<Id>;
}

export interface Service<Id extends ContinuityOperation> {
  /** The id in the body that leads to the desk; absent: the one in the path does. */
  readonly ledBy?: (body: BodyOf<Id>) => string;
  /** It needs no desk of its own: the shard that was asked serves it. */
  readonly isServedAnywhere?: true;
  /**
   * The execution that the id belongs to, in whose line the request is served; absent: the id is the
   * execution's own. Rejects with 404 when there is none.
   */
  readonly lineOf?: (office: Office, asked: Asked<Id>) => Promise<string>;
  /** Rejects with the EngineError that is the answer. */
  readonly serve: (office: Office, asked: Asked<Id>) => Promise<DeskReply>;
}

export type Services = { readonly [Id in ContinuityOperation]?: Service<Id> };

/**
 * Whose the object is that a body speaks of (05 §0).
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

/** @throws EngineError 503 when the server has no encryption key (05 §14) */
export function keysOf({ keyring }: Office): Keyring {
  if (keyring === undefined) {
    throw unavailable('ENG_NO_KEYS', 'the server has no encryption key (ENGINE_ENCRYPTION_KEY)');
  }
  return keyring;
}
