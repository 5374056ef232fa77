/** The shards as the front thread's part of a room asks them: by the rows of its own table, and by routes. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { Operation, Operations } from './operation.js';

type Rows<Makes extends (...parts: never) => Operations> = ReturnType<Makes>;

/** What is sent with a request: of a route the text as it was received. */
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

/** @typeParam Makes what makes the operations of the room that are asked for */
export interface Shards<
  Makes extends (...parts: never) => Operations = () => Record<never, never>,
> {
  /** The owner of what has this id. */
  shardOf(id: string): number;
  anyShard(): number;
  /** Rejects with the EngineError of the answer, or with the reason of the signal. */
  ask<Id extends (keyof Rows<Makes> & string) | ShardRouteId>(
    shard: number,
    operation: Id,
    tenant: string,
    target: string,
    body: BodyOf<Rows<Makes>, Id>,
    signal?: AbortSignal,
  ): Promise<{ readonly status: number; readonly body: string }>;
}
