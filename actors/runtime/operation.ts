/**
 * What a row of the table of operations says about the owner's side: how a request is led to it, and
 * what is done there. Each room has the rows of what it owns in its `operations.ts`; the table that
 * `shard/operations.ts` makes of them has one for every route that shards answer.
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

export interface Operation<Body, Parts, Query = unknown> {
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
  readonly serve: (parts: Parts, call: Call<Body>, query: Query) => void;
}

type LeadsTo<Body> = ((body: Body, tenant: string) => number) | 'itself';

type RouteOperation<Id extends ShardRouteId, Parts> = Operation<BodyOf<Id>, Parts, QueryOf<Id>> &
  (Id extends RoutesOf<'by-body'>
    ? { readonly leadsTo: LeadsTo<BodyOf<Id>> }
    : { readonly leadsTo?: never });

/** A row for every route that shards answer. */
export type RouteOperations<Parts> = {
  readonly [Id in ShardRouteId]: RouteOperation<Id, Parts>;
};

/** Rows without a route: what the front thread asks for itself, with bodies that nobody checks. */
export type EngineOperations<Parts> = Readonly<Record<string, Operation<never, Parts>>>;

/** For what the first shard alone has. */
export function ofFirstShard<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('the request belongs to the first shard');
  return part;
}
