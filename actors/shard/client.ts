/**
 * The front thread's side of the shards: numbers requests, posts them once per turn and shard, and passes
 * replies to the callers. Every request has a deadline, and is answered when its shard dies, since a port
 * does neither by itself.
 */

import type { MessagePort } from 'node:worker_threads';
import { ROUTES, type Route, type RouteId } from '../../schema/routes.js';
import type { Clock, TimerHandle } from '../../src/base/clock.js';
import {
  type EngineError,
  fromErrorData,
  RESTARTING,
  shareTaken,
  unavailable,
} from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { itemsIn } from '../../src/base/json-members.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { TenantActivity } from '../../src/base/quota/tenant-activity.js';
import type { stallOf } from '../../src/db/trouble.js';
import type { OnReply, ShardReply, ShardRequest, ShardSender } from '../../src/http/shards.js';
import type { KnownRecord, Reply, Request, RequestPost, TaskClaim } from '../runtime/protocol.js';
import { Versions } from '../runtime/versions.js';
import { KeptRecords, type KeptReply } from './kept-records.js';
import { TENANT_SHARE, WorkInProgress } from './work-in-progress.js';

export interface ShardClientDeps {
  readonly shards: number;
  readonly clock: Clock;
  readonly setImmediate: (fn: () => void) => void;
  /** An event was stored that fires triggers. */
  readonly onFires?: () => void;
  /** Absent: each tenant is alone. */
  readonly activity?: TenantActivity;
}

interface Pending {
  readonly shard: number;
  readonly operation: string;
  readonly tenant: string;
  /** See `WorkInProgress`. */
  readonly work: number;
  readonly since: number;
  readonly deadline: number;
  readonly onReply: OnReply;
  /** A poll: its reply waits for as long as its caller does. */
  readonly isParked: boolean;
  /** Releases its place among the polls, or among the requests that shards have, once it has one. */
  leave: (() => void) | undefined;
  /** Its body leads to the owner, which may be on another shard. */
  readonly mayMove: boolean;
  aborted: boolean;
}

/** Requests that receive changes until their caller ends them. */
const WATCHES: ReadonlySet<string> = new Set(['instances.watch', 'changes.watch']);

/** Reads that wait for earlier changes all the same. */
const READS: ReadonlySet<string> = new Set(
  'instances.get instances.tree changes.watermark'.split(' '),
);

const SWEEP_MS = 1_000;

const NOTHING = () => undefined;

/** Nothing is cached for longer: in this time no counter of versions wraps around. */
const KEPT_MS_MAX = 3_600_000;

export class ShardClient implements ShardSender {
  /** Shared with all shards. */
  readonly versions = new Versions();
  readonly kept = new KeptRecords(this.versions);
  /** Reads of instances that were answered from the cache. */
  readsKept = 0;
  readonly #deps: ShardClientDeps;
  readonly #ports: (MessagePort | undefined)[];
  readonly #outbox: { requests: Request[]; aborted: number[] }[];
  readonly #pending = new Map<number, Pending>();
  readonly #polls = new FairSlots([
    { activeMax: LIMITS.pollsInFlightMax },
    { activeMax: LIMITS.pollsInFlightPerTenantMax },
  ]);
  #nextId = 1;
  #nextShard = 0;
  readonly #work = new WorkInProgress();
  readonly #activity: TenantActivity;
  /** For large requests, by their work: shards have some, the others wait here. */
  readonly #places: FairSlots;
  /** For small ones, while tenants share the shards, and for large ones. */
  readonly #shared: FairSlots;
  readonly #sharedLarge: FairSlots;
  #flushing = false;
  #stall: ReturnType<typeof stallOf> | undefined;
  #keptSince: number;
  #sweep: TimerHandle;

  constructor(deps: ShardClientDeps) {
    this.#deps = deps;
    this.#activity = deps.activity ?? new TenantActivity();
    this.#ports = Array.from({ length: deps.shards }, () => undefined);
    this.#outbox = this.#ports.map(() => ({ requests: [], aborted: [] }));
    this.#keptSince = deps.clock.monotonic();
    const activeMax = LIMITS.workBytesPerShard * deps.shards;
    this.#places = new FairSlots([{ activeMax }, { activeMax: activeMax * TENANT_SHARE }]);
    const perTenant = (ofShard: number) =>
      new FairSlots([
        { activeMax: Number.POSITIVE_INFINITY },
        { activeMax: ofShard * deps.shards },
      ]);
    this.#shared = perTenant(LIMITS.sharedRequestsPerShard);
    this.#sharedLarge = perTenant(LIMITS.sharedWorkBytesPerShard);
    this.#sweepLater();
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  get pollsInFlight(): number {
    return this.#polls.active;
  }

  /** In bytes, including the weight of rows. */
  get workInProgress(): number {
    return this.#work.bytes;
  }

  /** See `WorkInProgress`. */
  refusalOf(bytes: number): EngineError | undefined {
    return this.#work.refusalOf(bytes);
  }

  attach(shard: number, port: MessagePort): void {
    // Requests that other shards handed on to the dead predecessor are lost.
    this.#refuse(({ mayMove }) => mayMove);
    this.#ports[shard] = port;
    port.on('message', (replies: Reply[]) => {
      for (const reply of replies) this.#reply(reply);
    });
  }

  /** The shard's thread is gone: its requests are answered 503, their outcome is unknown. */
  detach(shard: number): void {
    this.#ports[shard]?.close();
    this.#ports[shard] = undefined;
    this.#outbox[shard] = { requests: [], aborted: [] };
    // It does not raise the counters of versions any more.
    this.versions.raiseAll();
    this.#refuse((pending) => pending.shard === shard || pending.mayMove);
  }

  /**
   * Nothing is committed for now: waiting requests are answered at once, new ones a moment later. Their
   * changes may still be made.
   * @param stall undefined: it is over
   */
  stall(stall: ReturnType<typeof stallOf> | undefined): void {
    this.#stall = stall;
    for (const [id, { operation }] of this.#pending) this.#endStalled(id, operation);
  }

  #endStalled(id: number, operation: string): void {
    const error = READS.has(operation) ? this.#stall?.ofReads : this.#stall?.ofChanges;
    if (error !== undefined && !WATCHES.has(operation)) this.#settle(id, { error });
  }

  #refuse(isLost: (pending: Pending) => boolean): void {
    for (const [id, pending] of this.#pending) {
      if (isLost(pending)) this.#settle(id, { error: RESTARTING });
    }
  }

  #pollPlace(tenant: string): () => void {
    const leave = this.#polls.take([tenant]);
    if (leave !== undefined) return leave;
    if (this.#polls.active >= LIMITS.pollsInFlightMax) {
      throw unavailable('ENG_OVERLOADED', `${LIMITS.pollsInFlightMax} polls are in flight`);
    }
    const most = LIMITS.pollsInFlightPerTenantMax;
    throw shareTaken(`${most} polls of this tenant are in flight`);
  }

  shardOf(id: string): number {
    return shardOf(routeOf(id), this.#deps.shards);
  }

  anyShard(): number {
    this.#nextShard = (this.#nextShard + 1) % this.#deps.shards;
    return this.#nextShard;
  }

  get shards(): number {
    return this.#deps.shards;
  }

  /**
   * @param onReply called once, except for a poll after `abort`; before this returns when the reply is cached
   * @returns the number of the request, for `abort`
   * @throws EngineError 503 when too much is in flight or the shard is restarting, 429 for too many polls
   */
  send(shard: number, asked: ShardRequest<string>, onReply: OnReply): number {
    const { operation, tenant, target, body } = asked;
    const kept = operation === 'instances.get' ? this.kept.find(tenant, target) : undefined;
    if (kept !== undefined) {
      this.readsKept += 1;
      onReply(kept);
      return 0;
    }
    if (this.#pending.size >= LIMITS.requestsInFlightMax) {
      throw unavailable('ENG_OVERLOADED', 'too many requests are in flight');
    }
    if (this.#ports[shard] === undefined) throw RESTARTING;
    const now = this.#deps.clock.monotonic();
    const route: Route | undefined = ROUTES[operation as RouteId];
    const isParked = route?.isParked === true;
    const leave = isParked ? this.#pollPlace(tenant) : undefined;
    const work = isParked ? 0 : this.#work.begin(tenant, body.length, rowsOf(operation, body), now);
    const id = this.#nextId++;
    const timeoutMs = LIMITS.requestTimeoutMs + (isParked ? LIMITS.pollWaitMsMax : 0);
    this.#pending.set(id, {
      shard,
      operation,
      tenant,
      work,
      since: now,
      deadline: now + timeoutMs,
      onReply,
      isParked,
      leave,
      mayMove: route?.owner === 'by-body',
      aborted: false,
    });
    const request = numbered(id, asked);
    const isShared = this.#activity.isShared(now) && tenant !== '';
    if (work >= LIMITS.workBytesLarge) {
      void this.#giveInTurn(shard, request, isShared ? this.#sharedLarge : undefined, work);
    } else if (isShared && !isParked && !WATCHES.has(operation)) {
      void this.#giveInTurn(shard, request, this.#shared, 0);
    } else this.#give(shard, request);
    return id;
  }

  #give(shard: number, request: Request): void {
    this.#outbox[shard]!.requests.push(request);
    this.#flushSoon();
  }

  /**
   * A large request is in the memory of the shards and of the writer several times, so only some are sent at
   * once. Other tenants wait for what one tenant has there.
   */
  async #giveInTurn(
    shard: number,
    request: Request,
    shared: FairSlots | undefined,
    work: number,
  ): Promise<void> {
    const path = [request.tenant];
    const place = (slots: FairSlots, n: number) =>
      slots.take(path, n) ??
      slots.acquire(path, undefined, n).then((slot) => (slot.ok ? slot.release : NOTHING));
    const taken = shared === undefined ? NOTHING : place(shared, Math.max(1, work));
    const leaveShared = taken instanceof Promise ? await taken : taken;
    const leaveWork = work === 0 ? NOTHING : await place(this.#places, work);
    const release = () => {
      leaveShared();
      leaveWork();
    };
    const pending = this.#pending.get(request.id);
    if (pending === undefined) {
      // It was answered meanwhile: its shard died, or its deadline passed.
      release();
      return;
    }
    pending.leave = release;
    this.#give(shard, request);
  }

  /** `send` as a promise: see `Shards`. */
  ask(
    shard: number,
    operation: string,
    tenant: string,
    target: string,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const text = typeof body === 'string' ? body : textOf(body);
      const leave = () => {
        this.abort(id);
        reject(signal?.reason);
      };
      const id = this.send(shard, { operation, tenant, target, body: text }, (reply) => {
        signal?.removeEventListener('abort', leave);
        if ('error' in reply) reject(reply.error);
        else resolve(reply);
      });
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** The client disconnected. A poll ends immediately, and later claims of it are withdrawn. */
  abort(id: number): void {
    const pending = this.#pending.get(id);
    if (pending === undefined || pending.aborted) return;
    pending.aborted = true;
    if (WATCHES.has(pending.operation)) {
      // Requests of one tenant stay in order, so that this one comes after the watch that it ends.
      this.#notify(pending.shard, 'unwatch', pending.tenant, id);
    }
    if (!pending.isParked) return;
    this.#end(id, pending);
    // The queue may be on another shard than the request.
    for (const box of this.#outbox) box.aborted.push(id);
    this.#flushSoon();
  }

  /** Sends a request without a reply. */
  #notify(shard: number, operation: string, tenant: string, body: unknown): void {
    this.#give(shard, { id: 0, operation, tenant, target: '', body: textOf(body) });
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#sweep);
    for (const port of this.#ports) port?.close();
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
      const post: RequestPost = { requests, aborted };
      this.#ports[shard]?.postMessage(post);
      this.#outbox[shard] = { requests: [], aborted: [] };
    });
  }

  /**
   * Claimed tasks are delivered at the end of the event loop's turn: by then every disconnect from before
   * the turn has been handled, and the claims of those clients are withdrawn.
   */
  #reply(reply: Reply): void {
    const claims = 'claims' in reply ? reply.claims : undefined;
    if (claims === undefined) this.#answer(reply);
    else this.#deps.setImmediate(() => this.#handOver(reply, claims));
  }

  #handOver(reply: Reply, claims: readonly TaskClaim[]): void {
    const pending = this.#pending.get(reply.request);
    if (pending === undefined || pending.aborted) this.#unclaim(claims);
    this.#answer(reply);
  }

  #answer(reply: Reply): void {
    const { request } = reply;
    if ('error' in reply) {
      this.#settle(request, { error: fromErrorData(reply.error) });
      return;
    }
    const { status, body, known } = reply;
    const told = { status, body };
    if (known !== undefined) this.#keep(request, known, told);
    this.#settle(request, told);
    if (reply.fires) this.#deps.onFires?.();
  }

  #keep(request: number, { instance, stamp, text }: KnownRecord, told: KeptReply): void {
    const pending = this.#pending.get(request);
    const reply = text === undefined ? told : { status: 200, body: text };
    if (pending !== undefined) this.kept.keep(pending.tenant, instance, stamp, reply);
  }

  #unclaim(claims: readonly TaskClaim[]): void {
    const byShard = new Map<number, TaskClaim[]>();
    for (const claim of claims) {
      const shard = this.shardOf(claim.task);
      const list = byShard.get(shard);
      if (list === undefined) byShard.set(shard, [claim]);
      else list.push(claim);
    }
    for (const [shard, list] of byShard) this.#notify(shard, 'workers.unclaim', '', list);
  }

  #settle(id: number, reply: ShardReply): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#end(id, pending);
    pending.onReply(reply);
  }

  #end(id: number, { leave, tenant, work }: Pending): void {
    this.#pending.delete(id);
    leave?.();
    this.#work.end(tenant, work, this.#deps.clock.monotonic());
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
        else if (pending.since <= now - SWEEP_MS) this.#endStalled(id, pending.operation);
      }
      if (now - this.#keptSince > KEPT_MS_MAX) {
        this.#keptSince = now;
        this.kept.clear();
      }
      this.#sweepLater();
    }, SWEEP_MS);
  }
}

/** Most have only the first members, which are cheaper to post. A spread would take ten times as long. */
function numbered(id: number, asked: ShardRequest<string>): Request {
  const { operation, tenant, target, body, query, traceparent, maySeeSecrets, by } = asked;
  const isPlain =
    query === undefined &&
    traceparent === undefined &&
    maySeeSecrets === undefined &&
    by === undefined;
  return isPlain
    ? { id, operation, tenant, target, body }
    : { id, operation, tenant, target, body, query, traceparent, maySeeSecrets, by };
}

/** How many instances it creates. */
function rowsOf(operation: string, body: string): number {
  if (operation === 'instances.create') return 1;
  return operation === 'instances.createBatch' ? itemsIn(body) : 0;
}

function textOf(body: unknown): string {
  return body === undefined ? '' : JSON.stringify(body);
}
