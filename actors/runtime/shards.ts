/** The shards as the front thread's part of a room asks them: by the rows of its own table, and by routes. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { EngineOperations } from './operation.js';

/** What is sent with a request: of a route the text as it was received. */
type BodyOf<
  Table extends EngineOperations<never>,
  Id extends keyof Table | ShardRouteId,
> = Id extends keyof Table ? Parameters<Table[Id]['serve']>[1]['body'] : string;

/** @typeParam Table the rows without a route that are asked for */
export interface Shards<Table extends EngineOperations<never> = Record<never, never>> {
  /** The owner of what has this id. */
  shardOf(id: string): number;
  anyShard(): number;
  /** Rejects with the EngineError of the answer, or with the reason of the signal. */
  ask<Id extends (keyof Table & string) | ShardRouteId>(
    shard: number,
    operation: Id,
    tenant: string,
    target: string,
    body: BodyOf<Table, Id>,
    signal?: AbortSignal,
  ): Promise<{ readonly status: number; readonly body: string }>;
}
