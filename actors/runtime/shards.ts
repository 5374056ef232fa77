/** The shards as the front part of a room calls them: by the operations of its room, and by routes. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { RequestedAction } from '../../src/http/requested-action.js';
import type { Operation, Operations } from './operation.js';

type Rows<Makes extends (...parts: never) => Operations> = ReturnType<Makes>;

/** For a route the text as received. */
type BodyOf<
  Table extends Operations,
  Id extends keyof Table | ShardRouteId,
> = Id extends ShardRouteId
  ? string
  : Id extends keyof Table
    ? Table[Id] extends Pick<Operation<infer Body>, 'serve'>
      ? Body
      : never
    : never;

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  /** The action of the caller that the request performs. */
  readonly action?: RequestedAction | undefined;
}

/** @typeParam Makes the operations of the room */
export interface Shards<
  Makes extends (...parts: never) => Operations = () => Record<never, never>,
> {
  shardOf(id: string): number;
  anyShard(): number;
  /** Rejects with the EngineError of the reply, or with the reason of the signal. */
  ask<Id extends (keyof Rows<Makes> & string) | ShardRouteId>(
    shard: number,
    operation: Id,
    tenant: string,
    target: string,
    body: BodyOf<Rows<Makes>, Id>,
    options?: AskOptions,
  ): Promise<{ readonly status: number; readonly body: string }>;
}
