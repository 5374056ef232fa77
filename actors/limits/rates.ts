/** The rate limits of one shard. */

import assert from 'node:assert/strict';
import type { PutRateLimit, RateLimit } from '../../schema/rate.js';
import { invalid, notFound } from '../../src/base/errors.js';
import { rateLimitId, routeOf, shardOf } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import type { StepTry } from '../../src/core/progress.js';
import { isPattern } from '../../src/core/rate-patterns.js';
import { ActorHost, type HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { HostedMessage } from '../runtime/kind.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import { GrantWindow } from './grant-window.js';
import type { LimitLoads, RateGrantRow, RateLimitRow } from './loads.js';
import type { RatePatternRows, RatePatterns } from './rate-patterns.js';
import { RATE_GRANT, RATE_LIMIT } from './tables.js';

interface RatesDeps extends HostDeps, RateLimiterDeps, Pick<Kernel<LimitLoads>, 'loader'> {
  /** On the first shard: the owner of the patterns. */
  readonly patternRows: RatePatternRows | undefined;
}

interface RateMessage extends HostedMessage {
  readonly take: (rate: RateLimiter, turn: Turn) => void;
}

/** Limits in memory; more are evicted when idle, however many keys match a pattern. */
const RATES_MAX = 10_000;
const NO_ROWS: RateRows = { limit: undefined, grants: [] };

export class Rates implements Room {
  readonly #host: ActorHost<RateLimiter, RateMessage, RateRows>;
  readonly #deps: RatesDeps;
  /** Attempts with a reservation in a limiter that is being reloaded. */
  readonly #called = new Map<string, readonly Asker[]>();
  /** Tenants and keys of limiters that are being loaded: a key that a pattern limits has no row. */
  readonly #places = new Map<string, LimitPlace>();

  readonly messages = {
    'rate.asked': ({ limit, tenant, name, instance, node, iteration, attempt }) => {
      const asker = { instance, node, iteration, attempt };
      const take = (rate: RateLimiter, turn: Turn) => rate.asked(turn, asker);
      this.#tell(limit, { tenant_id: tenant, limit_key: name }, { kind: 'asked', take });
    },
    // A limiter that is loaded knows no grant of an earlier one.
    'rate.used': ({ limit, grant, at }) => {
      const take = (rate: RateLimiter) => rate.used(grant, at);
      if (this.#host.peek(limit) !== undefined) this.#host.tell(limit, { kind: 'used', take });
    },
  } satisfies Messages;

  readonly operations = {
    'rateLimits.put': {
      serve: ({ request, tenant, target, body }) => {
        const place = { tenant_id: named(tenant), limit_key: target };
        if (isPattern(target)) {
          this.#owner.put(request, tenant, target, body);
          return;
        }
        const take = (rate: RateLimiter, turn: Turn) => rate.put(turn, request, place, body);
        this.#tell(rateLimitId(tenant, target), place, { kind: 'put', request, take });
      },
    },
    'rateLimits.delete': {
      serve: ({ request, tenant, target }) => {
        const place = { tenant_id: named(tenant), limit_key: target };
        if (isPattern(target)) {
          this.#owner.delete(request, tenant, target);
          return;
        }
        const take = (rate: RateLimiter, turn: Turn) => rate.delete(turn, request);
        this.#tell(rateLimitId(tenant, target), place, { kind: 'delete', request, take });
      },
    },
  } satisfies RouteOperations;

  constructor(deps: RatesDeps) {
    const { loader, now, patterns } = deps;
    this.#deps = deps;
    const read = async (id: string): Promise<[string, RateRows]> => {
      const limit = await loader.rateLimit(id);
      const place = limit ?? this.#places.get(id);
      const applying = limit ?? (place && patterns.of(place.tenant_id, place.limit_key));
      if (applying === undefined) return [id, NO_ROWS];
      return [id, { limit, grants: await loader.rateGrants(id, now() - windowMs(applying)) }];
    };
    this.#host = new ActorHost<RateLimiter, RateMessage, RateRows>(
      {
        noun: 'rate limit',
        keyOf: (id) => `rate:${id}`,
        nameOf: (id) => ({ actor: `rate:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax: RATES_MAX,
        load: async (ids) => new Map(await Promise.all(ids.map(read))),
        restore: (id, rows = NO_ROWS) => {
          const place = this.#places.get(id);
          this.#places.delete(id);
          return new RateLimiter(id, deps, rows, place);
        },
        discarded: ({ id, state }) => {
          if (state === undefined) return;
          this.#called.set(id, state.expected);
          if (state.place !== undefined) this.#places.set(id, state.place);
        },
        abandoned: (id) => {
          this.#called.delete(id);
          this.#places.delete(id);
        },
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

  get #owner(): RatePatternRows {
    const { patternRows } = this.#deps;
    assert.ok(patternRows, 'a pattern is changed on the first shard');
    return patternRows;
  }

  #tell(id: string, place: LimitPlace, message: RateMessage): void {
    if (this.#host.peek(id)?.state === undefined) this.#places.set(id, place);
    this.#host.tell(id, message);
  }

  /** Limiters that are being loaded read the patterns afterwards. */
  patternsChanged(tenants: ReadonlySet<string>): void {
    for (const resident of [...this.#host.residents]) {
      const { state, phase } = resident;
      if (state === undefined || phase !== 'ready' || !tenants.has(state.tenant ?? '')) continue;
      this.#host.run(resident, undefined, (turn) => state.patternsChanged(turn));
    }
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
interface RateLimiterDeps extends Pick<Kernel, 'now' | 'newId' | 'random' | 'shards'> {
  readonly patterns: Pick<RatePatterns, 'of'>;
}

interface RateRows {
  readonly limit: RateLimitRow | undefined;
  readonly grants: readonly RateGrantRow[];
}

/** An unused grant expires, and the attempt requests another. */
const USE_WITHIN_MS = 1_000;
/** Interval between deletions of rows of past windows. */
const PRUNE_EVERY_MS = 10_000;

/**
 * One key of one tenant with its limit, or that of a pattern: an exact sliding window. The row of a
 * grant is committed before the grant is sent and has the latest time of its use, so at most
 * `max_count` attempts begin within any window, even if messages are lost or late. A refused attempt
 * reserves a time for its next request, in the order of requests, which prevents bursts and
 * starvation.
 */
class RateLimiter {
  readonly #id: string;
  readonly #deps: RateLimiterDeps;
  /** The key's own limit. */
  #own: RateLimitRow | undefined;
  /** The limit that applies: the key's own, or that of a pattern. */
  #limit: RateLimitRow | undefined;
  readonly place: LimitPlace | undefined;
  readonly #window: GrantWindow;
  #nextGrant: number;
  /** Grants without a row, which is put at the end of the turn. */
  #granted = 0;
  #grantedUntil: UnixMs = 0;
  #prunedAt: UnixMs = 0;

  constructor(
    id: string,
    deps: RateLimiterDeps,
    { limit: own, grants }: RateRows,
    place: LimitPlace | undefined,
  ) {
    this.#id = id;
    this.#deps = deps;
    this.place = own ?? place;
    this.#own = own;
    const limit = this.#applying();
    this.#limit = limit;
    this.#window = new GrantWindow(limit?.max_count ?? 0, windowMs(limit));
    // Random, so that numbers of an earlier actor do not match.
    this.#nextGrant = Math.floor(deps.random() * 2 ** 48);
    for (const { granted_at, count } of grants) {
      for (let i = 0; i < count; i++) this.#window.add(Date.parse(granted_at));
    }
  }

  /** Undefined: only an old message has called it. */
  get tenant(): string | undefined {
    return this.place?.tenant_id;
  }

  #applying(): RateLimitRow | undefined {
    const { place } = this;
    return this.#own ?? (place && this.#deps.patterns.of(place.tenant_id, place.limit_key));
  }

  get isIdle(): boolean {
    return this.#window.isAtRest(this.#deps.now());
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
      tenant_id: this.tenant,
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
    const limit = this.#id;
    this.#answer(turn, { kind: 'rate.granted', limit, ...addressOf(asker), grant, usableUntil });
  }

  #answer(turn: Turn, message: PeerMessage & { readonly instance: string }): void {
    const shard = shardOf(routeOf(message.instance), this.#deps.shards);
    turn.effects.push({ kind: 'peer', shard, message });
  }

  /** @throws EngineError 409 if the limit has changed since `if_unchanged_since` */
  put(turn: Turn, request: number, place: LimitPlace, body: PutRateLimit): void {
    checkUnchanged(body.if_unchanged_since, this.#own?.updated_at);
    const { max_count, window_seconds } = body;
    const updated_at = updatedAt(this.#deps.now(), this.#own?.updated_at);
    const row = { id: this.#id, ...place, max_count, window_seconds, updated_at };
    turn.put(RATE_LIMIT.set, this.#id, row);
    const { tenant_id, limit_key: key } = place;
    const record: RateLimit = { tenant_id, key, max_count, window_seconds, updated_at };
    turn.reply(request, 200, JSON.stringify(record));
    this.#own = row;
    this.#change(turn);
  }

  /** @throws EngineError 404 */
  delete(turn: Turn, request: number): void {
    if (this.#own === undefined) throw notFound('rate limit');
    turn.put(RATE_LIMIT.clear, this.#id, { id: this.#id });
    turn.reply(request, 204, '');
    this.#own = undefined;
    this.#change(turn);
  }

  patternsChanged(turn: Turn): void {
    if (this.#own === undefined) this.#change(turn);
  }

  /** Attempts with reservations of the old limit may request again at once. */
  #change(turn: Turn): void {
    const limit = this.#applying();
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
