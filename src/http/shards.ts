/** The shards as the router has them: who owns what, and the way there and back. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';

export type ShardReply =
  | { readonly status: number; readonly body: string }
  | { readonly error: EngineError };

export type OnReply = (reply: ShardReply) => void;

/** What a request tells its owner of its caller. */
export interface AskedBy {
  /** The key of the caller says that a worker with it is given the secrets of its tasks. */
  readonly maySeeSecrets?: true | undefined;
  /** The name of the key, of a route that brings signals. */
  readonly by?: string | undefined;
}

export interface ShardSender {
  /** The owner of what has this id. */
  shardOf(id: string): number;
  anyShard(): number;
  /**
   * @param target the parameters of the path, with slashes between them
   * @param body as it came; '' without one
   * @returns what the request can be given up by
   * @throws EngineError 503 when too much is in flight or the shard is away
   */
  send(
    shard: number,
    operation: ShardRouteId,
    tenant: string,
    target: string,
    body: string,
    onReply: OnReply,
    traceparent?: string,
    query?: Readonly<Record<string, unknown>>,
    maySeeSecrets?: true,
    by?: string,
  ): number;
  abort(id: number): void;
}
