/** The messages between the front thread and a shard for a request. */

import type { ShardRouteId } from '../../schema/routes.js';
import type { EngineError } from '../base/errors.js';
import type { RequestedAction } from './requested-action.js';

export type ShardReply =
  | { readonly status: number; readonly body: string }
  | { readonly error: EngineError };

export type OnReply = (reply: ShardReply) => void;
/** The request has had its effect, and its response waits. */
export type OnParked = () => void;

export interface ShardRequest<Operation extends string = ShardRouteId> {
  /** Its row in the table of operations. */
  readonly operation: Operation;
  /** '' without a tenant, where the header is optional. */
  readonly tenant: string;
  /** The path parameters in lower case, separated by slashes; '' without any. */
  readonly target: string;
  /** JSON text as received; '' without a body. */
  readonly body: string;
  /** Validated; absent if the route has no query. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  /** The trace context of the caller; well formed. */
  readonly traceparent?: string | undefined;
  /** The caller's worker may receive the secrets of tasks. */
  readonly maySeeSecrets?: true | undefined;
  /** The reply omits the record. */
  readonly isBrief?: true | undefined;
  /** The name of the key, for routes that send signals or are actions. */
  readonly by?: string | undefined;
  /** The id of the key, if `by` is one's name. */
  readonly key?: string | undefined;
  /** For requests of the front thread that do what a caller has requested. */
  readonly action?: RequestedAction | undefined;
  /** The groups for which the key may answer approvals, for the same routes. Undefined: all. */
  readonly groups?: readonly string[] | undefined;
}

export interface ShardSender {
  readonly shards: number;
  shardOf(id: string): number;
  anyShard(): number;
  /** @returns the number for `abort` @throws EngineError 503 when too much is in flight or the shard is restarting */
  send(shard: number, request: ShardRequest, onReply: OnReply, onParked?: OnParked): number;
  abort(id: number): void;
}
