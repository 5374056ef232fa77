/**
 * How a room handles requests: one row for each route that shards answer, and for each internal request of
 * the front thread.
 */

import type { BodyOf, QueryOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { Findings } from '../../src/core/lint/definition.js';
import type { Request } from './protocol.js';

export interface Call<Body = unknown>
  extends Pick<Request, 'tenant' | 'target' | 'maySeeSecrets' | 'isBrief' | 'by' | 'groups'> {
  readonly request: number;
  /** Validated by the schema of the route; undefined without a body. */
  readonly body: Body;
  readonly text?: string | undefined;
  /** For a large definition that a side thread has checked. */
  readonly findings?: Findings | undefined;
  readonly traceparent: string | undefined;
}

export interface Operation<Body = never, Query = never> {
  /** A read, which is served even while the database is behind. */
  readonly isRead?: true;
  /** Large bodies are definitions that a side thread checks first. */
  readonly isLookedThrough?: true;
  /** Messages that peers posted earlier are handled first: ports have no order among one another. */
  readonly isBehindHints?: true;
  /** The routing bits of the owner, if the body names it. `itself`: `serve` forwards the request. */
  readonly leadsTo?: LeadsTo<Body>;
  /** Replies, now or later. The query is validated like the body. @throws EngineError */
  readonly serve: (call: Call<Body>, query: Query) => void;
}

export type Operations = Readonly<Record<string, Operation>>;

type LeadsTo<Body> = ((body: Body, tenant: string) => number) | 'itself';

type RouteOperation<Id extends ShardRouteId> = Operation<BodyOf<Id>, QueryOf<Id>> &
  (Id extends RoutesOf<'by-body'>
    ? { readonly leadsTo: LeadsTo<BodyOf<Id>> }
    : { readonly leadsTo?: never });

export type RouteOperations = { readonly [Id in ShardRouteId]?: RouteOperation<Id> };
