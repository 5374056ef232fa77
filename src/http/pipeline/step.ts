/** What a step of the pipeline is, and what all of them are given. */

import type { Route } from '../../../schema/routes.js';
import type { Logger } from '../../base/log.js';
import type { TenantActivity } from '../../base/quota/tenant-activity.js';
import type { Admission } from '../admission.js';
import type { Authorise } from '../auth.js';
import type { StateGate } from '../engine-state.js';
import type { InsecureGuard } from '../insecure-guard.js';
import type { KeyRegistry } from '../key-registry.js';
import type { FrontBodies, FrontDeps, FrontOperations } from '../operation.js';
import type { Placement } from '../placement.js';
import type { RequestWatch } from '../request-watch.js';
import type { HttpReply, HttpRequest } from '../server.js';
import type { ShardSender } from '../shards.js';
import type { MatchedContext } from './context.js';

/** What the pipeline itself reads from the database. */
export interface RouterRows {
  /**
   * The committed record, while nothing is committed and the owner would wait. Rejects with an EngineError 404
   * or 503.
   */
  committedInstance(tenant: string, id: string): Promise<HttpReply>;
  /** Rejects with an EngineError 404 where the tenant has no such instance, or 503. */
  instanceIsThere(tenant: string, id: string): Promise<unknown>;
  /** The tenant of an entry of the outbox; empty: there is no such entry. */
  tenantsOfWebhook(id: string): Promise<readonly string[]>;
}

export interface RouterDeps extends FrontBodies {
  readonly gate: StateGate;
  readonly authorise: Authorise;
  readonly admission: Admission;
  /** Undefined while keys are required. */
  readonly guard?: InsecureGuard | undefined;
  readonly keys: Pick<KeyRegistry, 'whenGone'>;
  /** In a cluster; undefined: there is no other cell. */
  readonly placement?: Placement | undefined;
  readonly client: ShardSender;
  readonly rows: RouterRows;
  readonly activity: TenantActivity;
  readonly operations: FrontOperations;
  readonly pages: Pages;
  readonly front: FrontDeps;
  /** The description of the API requires a key and a tenant. */
  readonly protectDocs: boolean;
  readonly watch: RequestWatch;
  readonly log: Logger;
}

/** The reply to a request for the dashboard; undefined: it is none. */
export type Pages = (request: HttpRequest) => HttpReply | undefined;

export type Outcome = 'continue' | 'answered';

/**
 * Learns something about the request, refuses it, or answers it. A promise only where it must wait.
 *
 * @throws EngineError that is the answer, as the promise rejects with
 */
export type Step = (context: MatchedContext, deps: RouterDeps) => Outcome | Promise<Outcome>;

/** @param asked undefined: there is nothing to wait for */
export function after(asked: Promise<unknown> | undefined): Outcome | Promise<Outcome> {
  return asked === undefined ? 'continue' : asked.then(() => 'continue');
}

export function isPublic({ capability }: Route): boolean {
  return capability === 'public';
}
