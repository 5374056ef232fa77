/** What the front thread posts to a shard for a request, and what comes back. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';

export type ShardReply =
  | { readonly status: number; readonly body: string }
  | { readonly error: EngineError };

export type OnReply = (reply: ShardReply) => void;

/** A request without its number. */
export interface ShardRequest<Operation extends string = ShardRouteId> {
  readonly operation: Operation;
  /** '' when the caller named none, which only an optional tenant header allows. */
  readonly tenant: string;
  /** The parameters of the path, with slashes between them; '' when it has none. */
  readonly target: string;
  /** JSON text as received; '' when the request has none. */
  readonly body: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  /** The trace that the work belongs to, when its caller is traced; well formed. */
  readonly traceparent?: string | undefined;
  /** The key of the caller allows its worker the secrets of tasks. */
  readonly maySeeSecrets?: true | undefined;
  /** The name of the key, of a route that brings signals. */
  readonly by?: string | undefined;
}

export interface ShardSender {
  readonly shards: number;
  /** The owner of the object with this id. */
  shardOf(id: string): number;
  anyShard(): number;
  /**
   * @returns the number to abort the request by
   * @throws EngineError 503 when too much is in flight or the shard is restarting
   */
  send(shard: number, request: ShardRequest, onReply: OnReply): number;
  abort(id: number): void;
}
