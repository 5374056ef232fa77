/**
 * What a room does with the requests of one operation: a row for each route that shards answer, and for what the
 * front thread asks for itself.
 */

import type { BodyOf, QueryOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { Findings } from '../../src/core/lint/definition.js';

/** A request as it is handed to the function that serves it. */
export interface Call<Body = unknown> {
  /** What it is answered through. */
  readonly request: number;
  /** Of the header; '' when the caller named none, which only an optional header allows. */
  readonly tenant: string;
  /** The parameters of the path, with slashes between them; '' when it has none. */
  readonly target: string;
  /** Checked against the schema of its route; undefined when that takes none. */
  readonly body: Body;
  /** The text that the body was parsed from; absent: it came otherwise. */
  readonly text?: string | undefined;
  /** Of a large definition, which a side thread has looked through. */
  readonly findings?: Findings | undefined;
  /** What the caller's work belongs to; undefined when it is not traced. */
  readonly traceparent: string | undefined;
  /** See `Request`. */
  readonly maySeeSecrets?: true | undefined;
  readonly by?: string | undefined;
}

export interface Operation<Body = never, Query = never> {
  /** Changes nothing, so that it is served while the database is behind. */
  readonly isRead?: true;
  /** Large bodies are definitions that a side thread looks through, before anything else is done with them. */
  readonly isLookedThrough?: true;
  /** What peers posted before it came is taken in first, although ports have no order among them. */
  readonly isBehindHints?: true;
  /**
   * The routing bits of the owner, where the body and the tenant name it: another shard hands the request on.
   * `itself`: the function does, with what it has made of the body.
   */
  readonly leadsTo?: LeadsTo<Body>;
  /**
   * Answers, at once or later. The query is checked like the body, and empty for a route without one.
   * @throws EngineError that is the answer
   */
  readonly serve: (call: Call<Body>, query: Query) => void;
}

/** By the name that a request gives. */
export type Operations = Readonly<Record<string, Operation>>;

type LeadsTo<Body> = ((body: Body, tenant: string) => number) | 'itself';

type RouteOperation<Id extends ShardRouteId> = Operation<BodyOf<Id>, QueryOf<Id>> &
  (Id extends RoutesOf<'by-body'>
    ? { readonly leadsTo: LeadsTo<BodyOf<Id>> }
    : { readonly leadsTo?: never });

/** Rows of routes. */
export type RouteOperations = { readonly [Id in ShardRouteId]?: RouteOperation<Id> };
