/** The rate limits of one shard. */

import type { PutRateLimit, RateLimit } from '../../schema/rate.js';
import { invalid, notFound } from '../../src/base/errors.js';
import { rateLimitId, routeOf, shardOf } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import type { StepTry } from '../../src/core/progress.js';
import { ActorHost, type HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { HostedMessage } from '../runtime/kind.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import { GrantWindow } from './grant-window.js';
import type { LimitLoads, RateGrantRow, RateLimitRow } from './loads.js';
import { RATE_GRANT, RATE_LIMIT } from './tables.js';

type RatesDeps = HostDeps & RateLimiterDeps & Pick<Kernel<LimitLoads>, 'loader'>;

interface RateMessage extends HostedMessage {
  readonly take: (rate: RateLimiter, turn: Turn) => void;
}

/** Limits in memory; more are evicted when idle. */
const RATES_MAX = 10_000;
const NO_ROWS: RateRows = { limit: undefined, grants: [] };

export class Rates implements Room {
  readonly #host: ActorHost<RateLimiter, RateMessage, RateRows>;
  /** Attempts with a reservation in a limiter that is being reloaded. */
  readonly #called = new Map<string, readonly Asker[]>();

  readonly messages = {
    'rate.asked': ({ limit, instance, node, iteration, attempt }) => {
      const asker = { instance, node, iteration, attempt };
      const take = (rate: RateLimiter, turn: Turn) => rate.asked(turn, asker);
      this.#host.tell(limit, { kind: 'asked', take });
    },
    'rate.used': ({ limit, grant, at }) =>
      this.#host.tell(limit, { kind: 'used', take: (rate) => rate.used(grant, at) }),
  } satisfies Messages;

  readonly operations = {
    'rateLimits.put': {
      serve: ({ request, tenant, target, body }) => {
        const place = { tenant_id: named(tenant), limit_key: target };
        const take = (rate: RateLimiter, turn: Turn) => rate.put(turn, request, place, body);
        this.#host.tell(rateLimitId(tenant, target), { kind: 'put', request, take });
      },
    },
    'rateLimits.delete': {
      serve: ({ request, tenant, target }) => {
        const take = (rate: RateLimiter, turn: Turn) => rate.delete(turn, request);
        this.#host.tell(rateLimitId(named(tenant), target), { kind: 'delete', request, take });
      },
    },
  } satisfies RouteOperations;

  constructor(deps: RatesDeps) {
    const { loader, now } = deps;
    const read = async (id: string): Promise<[string, RateRows]> => {
      const limit = await loader.rateLimit(id);
      if (limit === undefined) return [id, NO_ROWS];
      return [id, { limit, grants: await loader.rateGrants(id, now() - windowMs(limit)) }];
    };
    this.#host = new ActorHost<RateLimiter, RateMessage, RateRows>(
      {
        noun: 'rate limit',
        keyOf: (id) => `rate:${id}`,
        nameOf: (id) => ({ actor: `rate:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax: RATES_MAX,
        load: async (ids) => new Map(await Promise.all(ids.map(read))),
        restore: (id, rows = NO_ROWS) => new RateLimiter(id, deps, rows),
        discarded: ({ id, state }) => {
          if (state !== undefined) this.#called.set(id, state.expected);
        },
        abandoned: (id) => this.#called.delete(id),
        awake: (resident) => {
          const called = this.#called.get(resident.id) ?? [];
          this.#called.delete(resident.id);
          this.#host.run(resident, undefined, (turn) => resident.state.call(turn, called));
        },
        handle: (resident, message) =>
          this.#host.run(resident, message, (turn) => message.take(resident.state, turn)),
        flush: (rate, turn) => {
          rate.record(turn);
          return 'done';
        },
        isIdle: (rate) => rate.isIdle,
      },
      deps,
    );
  }

  tenantBack(): void {
    this.#host.reloadOwnerless();
  }

  tenantSuspended(): void {
    this.#host.dropSuspended();
  }

  endTurn(): void {
    this.#host.endTurn();
  }
}

/** The tenant header is optional for other requests. @throws EngineError 400 without a tenant */
function named(tenant: string): string {
  if (tenant === '') throw invalid('x-tenant-id is required');
  return tenant;
}

interface Asker extends StepTry {
  readonly instance: string;
}

type LimitPlace = Pick<RateLimitRow, 'tenant_id' | 'limit_key'>;
type RateLimiterDeps = Pick<Kernel, 'now' | 'newId' | 'random' | 'shards'>;

interface RateRows {
  readonly limit: RateLimitRow | undefined;
  readonly grants: readonly RateGrantRow[];
}

/** An unused grant expires, and the attempt requests another. */
const USE_WITHIN_MS = 1_000;
/** Interval between deletions of rows of past windows. */
const PRUNE_EVERY_MS = 10_000;

/**
 * One rate limit of one tenant: an exact sliding window. The row of a grant is committed before the
 * grant is sent and has the latest time of its use, so at most `max_count` attempts begin within
 * any window, even if messages are lost or late. A refused attempt reserves a time for its next
 * request, in the order of requests, which prevents bursts and starvation.
 */
class RateLimiter {
  readonly #id: string;
  readonly #deps: RateLimiterDeps;
  #limit: RateLimitRow | undefined;
  /** Undefined until the first limit is set; nothing is written before. */
  tenant: string | undefined;
  readonly #window: GrantWindow;
  #nextGrant: number;
  /** Grants without a row, which is put at the end of the turn. */
  #granted = 0;
  #grantedUntil: UnixMs = 0;
  #prunedAt: UnixMs = 0;

  constructor(id: string, deps: RateLimiterDeps, { limit, grants }: RateRows) {
    this.#id = id;
    this.#deps = deps;
    this.#limit = limit;
    this.tenant = limit?.tenant_id;
    this.#window = new GrantWindow(limit?.max_count ?? 0, windowMs(limit));
    // Random, so that numbers of an earlier actor do not match.
    this.#nextGrant = Math.floor(deps.random() * 2 ** 48);
    for (const { granted_at, count } of grants) {
      for (let i = 0; i < count; i++) this.#window.add(Date.parse(granted_at));
    }
  }

  get isIdle(): boolean {
    return this.#window.isEmpty(this.#deps.now());
  }

  get expected(): readonly Asker[] {
    return this.#window.expected.map(askerOf);
  }

  /** @param at when the grant was used; null: it was not used, and is free again */
  used(grant: number, at: UnixMs | null): void {
    this.#window.used(grant, at);
  }

  /** Puts one row for all grants since the last row. */
  record(turn: Turn): void {
    if (this.#granted === 0) return;
    const id = this.#deps.newId();
    turn.put(RATE_GRANT.insert, id, {
      limit_id: this.#id,
      granted_at: isoTime(this.#grantedUntil),
      id,
      count: this.#granted,
    });
    this.#granted = 0;
    this.#prune(turn);
  }

  asked(turn: Turn, asker: Asker): void {
    if (this.#limit === undefined) {
      this.#grant(turn, asker, UNLIMITED, Number.MAX_SAFE_INTEGER);
      return;
    }
    const now = this.#deps.now();
    const until = this.#window.place(keyOf(asker), now);
    if (until > now) {
      this.#answer(turn, { kind: 'rate.deferred', ...addressOf(asker), until });
      return;
    }
    this.#nextGrant += 1;
    const usableUntil = now + USE_WITHIN_MS;
    this.#window.grant(this.#nextGrant, usableUntil);
    this.#granted += 1;
    this.#grantedUntil = usableUntil;
    this.#grant(turn, asker, this.#nextGrant, usableUntil);
  }

  #grant(turn: Turn, asker: Asker, grant: number, usableUntil: UnixMs): void {
    this.#answer(turn, { kind: 'rate.granted', ...addressOf(asker), grant, usableUntil });
  }

  #answer(turn: Turn, message: PeerMessage & { readonly instance: string }): void {
    const shard = shardOf(routeOf(message.instance), this.#deps.shards);
    turn.effects.push({ kind: 'peer', shard, message });
  }

  /** @throws EngineError 409 if the limit has changed since `if_unchanged_since` */
  put(turn: Turn, request: number, place: LimitPlace, body: PutRateLimit): void {
    checkUnchanged(body.if_unchanged_since, this.#limit?.updated_at);
    const { max_count, window_seconds } = body;
    this.tenant ??= place.tenant_id;
    const updated_at = updatedAt(this.#deps.now(), this.#limit?.updated_at);
    const limit = { ...place, max_count, window_seconds, updated_at };
    turn.put(RATE_LIMIT.set, this.#id, { id: this.#id, ...limit });
    const { limit_key: key, tenant_id, ...rest } = limit;
    const record: RateLimit = { tenant_id, key, ...rest };
    turn.reply(request, 200, JSON.stringify(record));
    this.#change(turn, limit);
  }

  /** @throws EngineError 404 */
  delete(turn: Turn, request: number): void {
    if (this.#limit === undefined) throw notFound('rate limit');
    turn.put(RATE_LIMIT.clear, this.#id, { id: this.#id });
    turn.reply(request, 204, '');
    this.#change(turn, undefined);
  }

  /** Attempts with reservations of the old limit may request again at once. */
  #change(turn: Turn, limit: RateLimitRow | undefined): void {
    this.#limit = limit;
    this.call(turn, this.#window.change(limit?.max_count ?? 0, windowMs(limit)).map(askerOf));
  }

  call(turn: Turn, askers: readonly Asker[]): void {
    for (const asker of askers) {
      this.#answer(turn, { kind: 'rate.changed', ...addressOf(asker) });
    }
  }

  #prune(turn: Turn): void {
    const now = this.#deps.now();
    if (now - this.#prunedAt < PRUNE_EVERY_MS) return;
    this.#prunedAt = now;
    const before = isoTime(now - windowMs(this.#limit));
    turn.put(RATE_GRANT.prune, this.#id, { limit_id: this.#id, before });
  }
}

/** The number of grants that no limit counts. */
const UNLIMITED = 0;

function windowMs(limit: RateLimitRow | undefined): number {
  return (limit?.window_seconds ?? 0) * 1_000;
}

function addressOf({ instance, ...step }: Asker): { instance: string; step: StepTry } {
  return { instance, step };
}

function keyOf({ instance, node, iteration, attempt }: Asker): string {
  return `${instance}/${node}/${iteration}/${attempt}`;
}

function askerOf(key: string): Asker {
  const [instance = '', node, iteration = '', attempt] = key.split('/');
  return { instance, node: Number(node), iteration, attempt: Number(attempt) };
}
