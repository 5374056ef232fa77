/**
 * The front thread's side of the shards: numbers requests, posts them once per turn and shard, and
 * hands each reply to whoever waits. Every request has a deadline, and is answered when its shard
 * dies, since a port does neither by itself.
 */

import type { MessagePort } from 'node:worker_threads';
import { LIMITS } from '../src/config.js';
import type { Clock, TimerHandle } from '../src/core/clock.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import { type EngineError, fromErrorData, unavailable } from '../src/errors.js';
import type {
  ClaimList,
  Reply,
  ReplyPost,
  Request,
  RequestPost,
  ShardOperation,
} from './protocol.js';

export type ShardReply =
  | { readonly status: number; readonly body: string }
  | { readonly error: EngineError };

export type OnReply = (reply: ShardReply) => void;

export interface ShardClientDeps {
  readonly shards: number;
  readonly clock: Clock;
  readonly setImmediate: (fn: () => void) => void;
}

interface Pending {
  readonly shard: number;
  readonly operation: ShardOperation;
  readonly tenant: string;
  readonly bytes: number;
  readonly deadline: number;
  readonly onReply: OnReply;
  aborted: boolean;
}

/** Requests whose owner is found by the shard they come to, and may be another one. */
const MAY_MOVE: ReadonlySet<ShardOperation> = new Set([
  'instances.create',
  'sequences.migrateInstance',
  'workers.poll',
  'workers.pollQueue',
]);

const SWEEP_MS = 1_000;

export class ShardClient {
  readonly #deps: ShardClientDeps;
  readonly #ports: (MessagePort | undefined)[];
  readonly #outbox: { requests: Request[]; aborted: number[] }[];
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #nextShard = 0;
  #bytes = 0;
  #flushing = false;
  #sweep: TimerHandle;

  constructor(deps: ShardClientDeps) {
    this.#deps = deps;
    this.#ports = Array.from({ length: deps.shards }, () => undefined);
    this.#outbox = this.#ports.map(() => ({ requests: [], aborted: [] }));
    this.#sweepLater();
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  attach(shard: number, port: MessagePort): void {
    // What another shard handed on to the predecessor after its death has reached nobody.
    this.#refuse(({ operation }) => MAY_MOVE.has(operation));
    this.#ports[shard] = port;
    port.on('message', (post: ReplyPost) => this.#receive(post));
  }

  /** The shard's thread is gone: what it was asked is answered 503, its outcome unknown. */
  detach(shard: number): void {
    this.#ports[shard]?.close();
    this.#ports[shard] = undefined;
    this.#outbox[shard] = { requests: [], aborted: [] };
    this.#refuse((pending) => pending.shard === shard || MAY_MOVE.has(pending.operation));
  }

  #refuse(isLost: (pending: Pending) => boolean): void {
    const error = unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');
    for (const [id, pending] of this.#pending) if (isLost(pending)) this.#settle(id, { error });
  }

  shardOf(id: string): number {
    return shardOf(routeOf(id), this.#deps.shards);
  }

  /** Any shard, in turns. */
  anyShard(): number {
    this.#nextShard = (this.#nextShard + 1) % this.#deps.shards;
    return this.#nextShard;
  }

  /**
   * @param onReply called once, also after `abort`
   * @param traceparent see `Request`
   * @returns the request's number, for `abort`
   * @throws EngineError 503 when too much is in flight or the shard is away
   */
  send(
    shard: number,
    operation: ShardOperation,
    tenant: string,
    target: string,
    body: string,
    onReply: OnReply,
    traceparent?: string,
  ): number {
    if (
      this.#pending.size >= LIMITS.requestsInFlightMax ||
      this.#bytes + body.length > LIMITS.requestBytesInFlightMax
    ) {
      throw unavailable('ENG_OVERLOADED', 'too many requests are in flight');
    }
    if (this.#ports[shard] === undefined) {
      throw unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');
    }
    const id = this.#nextId++;
    const isPoll = operation === 'workers.poll' || operation === 'workers.pollQueue';
    const timeoutMs = LIMITS.requestTimeoutMs + (isPoll ? LIMITS.pollWaitMsMax : 0);
    this.#pending.set(id, {
      shard,
      operation,
      tenant,
      bytes: body.length,
      deadline: this.#deps.clock.monotonic() + timeoutMs,
      onReply,
      aborted: false,
    });
    this.#bytes += body.length;
    const request: Request =
      traceparent === undefined
        ? [id, operation, tenant, target, body]
        : [id, operation, tenant, target, body, traceparent];
    this.#outboxOf(shard).requests.push(request);
    this.#flushSoon();
    return id;
  }

  /**
   * The same as a promise; rejects with the EngineError of the answer, or with the reason of the
   * signal, whose abort is that of the request.
   */
  ask(
    shard: number,
    operation: ShardOperation,
    tenant: string,
    target: string,
    body: string,
    signal?: AbortSignal,
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = this.send(shard, operation, tenant, target, body, (reply) => {
        signal?.removeEventListener('abort', leave);
        if ('error' in reply) reject(reply.error);
        else resolve(reply);
      });
      const leave = () => {
        this.abort(id);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** The client went away. What is parked is forgotten, and what a poll claims is given back. */
  abort(id: number): void {
    const pending = this.#pending.get(id);
    if (pending === undefined || pending.aborted) return;
    pending.aborted = true;
    if (pending.operation === 'instances.watch') this.#unwatch('instances.unwatch', id, pending);
    if (pending.operation === 'changes.watch') this.#unwatch('changes.unwatch', id, pending);
    if (pending.operation !== 'workers.poll' && pending.operation !== 'workers.pollQueue') return;
    // The queue may live on another shard than the one that was asked.
    for (const box of this.#outbox) box.aborted.push(id);
    this.#flushSoon();
  }

  /** Requests of one tenant stay in order, so that this one comes after the watch that it ends. */
  #unwatch(
    operation: 'instances.unwatch' | 'changes.unwatch',
    id: number,
    { shard, tenant }: Pending,
  ): void {
    this.#outboxOf(shard).requests.push([0, operation, tenant, '', String(id)]);
    this.#flushSoon();
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#sweep);
    for (const port of this.#ports) port?.close();
  }

  #outboxOf(shard: number) {
    return this.#outbox[shard] as { requests: Request[]; aborted: number[] };
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#deps.setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    this.#outbox.forEach(({ requests, aborted }, shard) => {
      if (requests.length === 0 && aborted.length === 0) return;
      const post: RequestPost = { kind: 'requests', requests, aborted };
      this.#ports[shard]?.postMessage(post);
      this.#outbox[shard] = { requests: [], aborted: [] };
    });
  }

  #receive(post: ReplyPost): void {
    for (const reply of post.replies) this.#reply(reply);
  }

  /**
   * Claimed tasks are handed over at the end of the event loop's turn: by then every client that had
   * gone when the turn began is known to be gone, and its claims are given back.
   */
  #reply(reply: Reply): void {
    if (reply.length === 4) this.#deps.setImmediate(() => this.#handOver(reply));
    else this.#answer(reply);
  }

  #handOver(reply: Extract<Reply, { length: 4 }>): void {
    const pending = this.#pending.get(reply[0]);
    if (pending === undefined || pending.aborted) this.#unclaim(reply[3]);
    this.#answer(reply);
  }

  #answer(reply: Reply): void {
    const [id, status, body] = reply;
    if (typeof body === 'string') this.#settle(id, { status, body });
    else this.#settle(id, { error: fromErrorData(body) });
  }

  #unclaim(claims: ClaimList): void {
    const byShard = new Map<number, [string, number][]>();
    for (const [task, epoch] of claims) {
      const shard = this.shardOf(task);
      const list = byShard.get(shard);
      if (list === undefined) byShard.set(shard, [[task, epoch]]);
      else list.push([task, epoch]);
    }
    for (const [shard, list] of byShard) {
      this.#outboxOf(shard).requests.push([0, 'workers.unclaim', '', '', JSON.stringify(list)]);
    }
    this.#flushSoon();
  }

  #settle(id: number, reply: ShardReply): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    this.#bytes -= pending.bytes;
    pending.onReply(reply);
  }

  #sweepLater(): void {
    this.#sweep = this.#deps.clock.setTimeout(() => {
      const now = this.#deps.clock.monotonic();
      const error = unavailable(
        'ENG_OVERLOADED',
        'no answer in time; the outcome is unknown, ask again with an idempotency key',
      );
      for (const [id, pending] of this.#pending) {
        if (pending.deadline <= now) this.#settle(id, { error });
      }
      this.#sweepLater();
    }, SWEEP_MS);
  }
}
