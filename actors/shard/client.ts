/**
 * The front thread's side of the shards: numbers requests, posts them once per turn and shard, and passes replies to
 * the callers. Every request has a deadline, and is answered when its shard dies: a port does neither by itself.
 */

import type { MessagePort } from 'node:worker_threads';
import { ROUTES, type Route, type RouteId } from '../../schema/routes.js';
import { ChurningMap } from '../../src/base/churning-map.js';
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
import { valueFor } from '../../src/base/quota/last-used.js';
import { TenantActivity } from '../../src/base/quota/tenant-activity.js';
import type { stallOf } from '../../src/db/trouble.js';
import type {
  OnParked,
  OnReply,
  ShardReply,
  ShardRequest,
  ShardSender,
} from '../../src/http/shards.js';
import type { Reply, Request, RequestPost, TaskClaim } from '../runtime/protocol.js';
import type { AskOptions } from '../runtime/shards.js';
import { Versions } from '../runtime/versions.js';
import { KeptRecords } from './kept-records.js';
import { TENANT_SHARE, WorkInProgress } from './work-in-progress.js';

export interface ShardClientDeps {
  readonly shards: number;
  readonly clock: Clock;
  readonly setImmediate: (fn: () => void) => void;
  /** An event was stored that fires triggers. */
  readonly onFires?: () => void;
  /** Absent: tenants do not share the shards. */
  readonly activity?: TenantActivity;
}

interface Pending {
  readonly shard: number;
  readonly operation: string;
  readonly tenant: string;
  /** See `WorkInProgress`. */
  work: number;
  readonly since: number;
  deadline: number;
  readonly onReply: OnReply;
  readonly onParked: OnParked | undefined;
  /** A poll, or a request that has had its effect: it waits for as long as its caller does. */
  isParked: boolean;
  /** The response if the shard does not send another one. */
  interim: ShardReply | undefined;
  /** Releases its slot among the polls, or among the requests that shards have. */
  leave: (() => void) | undefined;
  /** The body determines the owner, which may be on another shard. */
  readonly mayMove: boolean;
  aborted: boolean;
}

const WATCHES: ReadonlySet<string> = new Set(['instances.watch', 'changes.watch']);

/** Reads that wait for earlier changes. */
const READS: ReadonlySet<string> = new Set(
  'instances.get instances.tree changes.watermark'.split(' '),
);

const SWEEP_MS = 1_000;
const NOTHING = () => undefined;
/** Less than a counter of versions takes to wrap around. */
const KEPT_MS_MAX = 3_600_000;

export class ShardClient implements ShardSender {
  readonly versions = new Versions();
  readonly kept = new KeptRecords(this.versions);
  readsKept = 0;
  readonly #deps: ShardClientDeps;
  readonly #ports: (MessagePort | undefined)[];
  readonly #outbox: { requests: Request[]; aborted: number[] }[];
  readonly #pending = new ChurningMap<number, Pending>();
  readonly #polls = new FairSlots([
    { activeMax: LIMITS.pollsInFlightMax },
    { activeMax: LIMITS.pollsInFlightPerTenantMax },
  ]);
  #nextId = 1;
  #nextShard = 0;
  readonly #work = new WorkInProgress();
  readonly #activity: TenantActivity;
  /** Limits the work of large requests that shards have; the others wait here. */
  readonly #places: FairSlots;
  /** Per-tenant limits while tenants share the shards: of small requests, and of the work of large ones. */
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

  get workInProgress(): number {
    return this.#work.bytes;
  }

  /** See `WorkInProgress`. */
  refusalOf(bytes: number): EngineError | undefined {
    return this.#work.refusalOf(bytes);
  }

  attach(shard: number, port: MessagePort): void {
    // Requests that other shards forwarded to the dead predecessor are lost.
    this.#refuse(({ mayMove }) => mayMove);
    this.#ports[shard] = port;
    port.on('message', (replies: Reply[]) => {
      for (const reply of replies) this.#reply(reply);
    });
  }

  /** The shard's thread died: its requests are answered 503, their outcome is unknown. */
  detach(shard: number): void {
    this.#ports[shard]?.close();
    this.#ports[shard] = undefined;
    this.#outbox[shard] = { requests: [], aborted: [] };
    // The dead thread raises no counters of versions any more.
    this.versions.raiseAll();
    this.#refuse((pending) => pending.shard === shard || pending.mayMove);
  }

  /** Nothing can be committed: answers requests, whose changes may still be made. @param stall undefined: over */
  stall(stall: ReturnType<typeof stallOf> | undefined): void {
    this.#stall = stall;
    for (const [id, { operation }] of this.#pending) this.#endStalled(id, operation);
  }

  #endStalled(id: number, operation: string): void {
    const error = READS.has(operation) ? this.#stall?.ofReads : this.#stall?.ofChanges;
    if (error !== undefined && !WATCHES.has(operation)) this.#fail(id, error);
  }

  #refuse(isLost: (pending: Pending) => boolean): void {
    for (const [id, pending] of this.#pending) {
      if (isLost(pending)) this.#fail(id, RESTARTING);
    }
  }

  /** One that has had its effect says so instead. */
  #fail(id: number, error: EngineError): void {
    this.#settle(id, this.#pending.get(id)?.interim ?? { error });
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
   * @param onReply called once, except for a parked request after `abort`; for a cached reply before this returns
   * @param onParked called once if the request is parked after its effect
   * @returns the number of the request, for `abort`
   * @throws EngineError 503 when too much is in flight or the shard is restarting, 429 for too many polls
   */
  send(
    shard: number,
    message: ShardRequest<string>,
    onReply: OnReply,
    onParked?: OnParked,
  ): number {
    const { operation, tenant, target, body } = message;
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
      onParked,
      isParked,
      interim: undefined,
      leave,
      mayMove: route?.owner === 'by-body',
      aborted: false,
    });
    const request = numbered(id, message);
    const isShared = this.#activity.isShared(now) && tenant !== '';
    if (work >= LIMITS.workBytesLarge) {
      void this.#postInTurn(shard, request, isShared ? this.#sharedLarge : undefined, work);
    } else if (isShared && !isParked && !WATCHES.has(operation)) {
      void this.#postInTurn(shard, request, this.#shared, 0);
    } else this.#post(shard, request);
    return id;
  }

  #post(shard: number, request: Request): void {
    this.#outbox[shard]!.requests.push(request);
    this.#flushSoon();
  }

  /**
   * A large request takes memory in the shards and in the writer several times, so only some are sent at
   * once; other tenants do not wait for more than the share of one tenant.
   */
  async #postInTurn(
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
      // Answered meanwhile: its shard died, or its deadline passed.
      release();
      return;
    }
    pending.leave = release;
    this.#post(shard, request);
  }

  ask(
    shard: number,
    operation: string,
    tenant: string,
    target: string,
    body: unknown,
    { signal, action }: AskOptions = {},
  ): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const text = typeof body === 'string' ? body : textOf(body);
      const leave = () => {
        this.abort(id);
        reject(signal?.reason);
      };
      const asked = { operation, tenant, target, body: text, action };
      const id = this.send(shard, asked, (reply) => {
        signal?.removeEventListener('abort', leave);
        if ('error' in reply) reject(reply.error);
        else resolve(reply);
      });
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** The client disconnected: a poll ends immediately, and its later claims are withdrawn. */
  abort(id: number): void {
    const pending = this.#pending.get(id);
    if (pending === undefined || pending.aborted) return;
    pending.aborted = true;
    if (WATCHES.has(pending.operation)) {
      // Requests of one tenant stay in order: this one arrives after the watch that it ends.
      this.#notify(pending.shard, 'unwatch', pending.tenant, id);
    }
    if (pending.isParked) this.#leave(id, pending);
  }

  #leave(id: number, pending: Pending): void {
    this.#end(id, pending);
    // The queue or the instance may be on another shard than the request.
    for (const box of this.#outbox) box.aborted.push(id);
    this.#flushSoon();
  }

  /** Sends a request that has no reply. */
  #notify(shard: number, operation: string, tenant: string, body: unknown): void {
    this.#post(shard, { id: 0, operation, tenant, target: '', body: textOf(body) });
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

  /** Delivers claimed tasks after the disconnects of the same turn, whose claims are withdrawn. */
  #reply(reply: Reply): void {
    const claims = 'claims' in reply ? reply.claims : undefined;
    if (claims === undefined) this.#answer(reply);
    else {
      this.#deps.setImmediate(() => {
        if (this.#pending.get(reply.request)?.aborted !== false) this.#unclaim(claims);
        this.#answer(reply);
      });
    }
  }

  #answer(reply: Reply): void {
    const { request } = reply;
    if ('error' in reply) {
      this.#settle(request, { error: fromErrorData(reply.error) });
      return;
    }
    const { status, body, known, parks } = reply;
    const answer = { status, body };
    const pending = this.#pending.get(request);
    if (parks && pending !== undefined) {
      this.#park(request, pending, answer);
      return;
    }
    if (known !== undefined && pending !== undefined) {
      const { instance, stamp, text } = known;
      const reply = text === undefined ? answer : { status: 200, body: text };
      this.kept.keep(pending.tenant, instance, stamp, reply);
    }
    this.#settle(request, answer);
    if (reply.fires) this.#deps.onFires?.();
  }

  /** From here on the request counts as a poll: it has had its effect, and is no work any more. */
  #park(id: number, pending: Pending, interim: ShardReply): void {
    const { tenant, aborted, isParked, onParked, onReply } = pending;
    pending.interim = interim;
    if (isParked) return;
    const leave = aborted ? undefined : this.#polls.take([tenant]);
    if (leave === undefined) {
      this.#leave(id, pending);
      onReply(interim);
      return;
    }
    pending.leave?.();
    const now = this.#deps.clock.monotonic();
    this.#work.end(tenant, pending.work, now);
    const deadline = now + LIMITS.requestTimeoutMs + LIMITS.pollWaitMsMax;
    Object.assign(pending, { leave, work: 0, deadline, isParked: true });
    onParked?.();
  }

  #unclaim(claims: readonly TaskClaim[]): void {
    const byShard = new Map<number, TaskClaim[]>();
    for (const claim of claims) {
      valueFor(byShard, this.shardOf(claim.task), () => []).push(claim);
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
        if (pending.deadline <= now) this.#fail(id, error);
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

/** Most requests have only the first members, and are cheaper to post. A spread is ten times slower. */
function numbered(id: number, message: ShardRequest<string>): Request {
  const { operation, tenant, target, body, query, traceparent, maySeeSecrets, isBrief } = message;
  const { by, key, groups, action } = message;
  if ((traceparent ?? maySeeSecrets ?? isBrief ?? by ?? action) === undefined) {
    return query === undefined
      ? { id, operation, tenant, target, body }
      : { id, operation, tenant, target, body, query };
  }
  return {
    id,
    operation,
    tenant,
    target,
    body,
    query,
    traceparent,
    maySeeSecrets,
    isBrief,
    by,
    key,
    groups,
    action,
  };
}

function rowsOf(operation: string, body: string): number {
  if (operation === 'instances.create') return 1;
  return operation === 'instances.createBatch' ? itemsIn(body) : 0;
}

function textOf(body: unknown): string {
  return body === undefined ? '' : JSON.stringify(body);
}
