/**
 * The patterns of rate limits on one shard: a replica of all of them, because a limit cannot wait for rows when a key
 * asks it. The first shard owns the rows, and answers a change after every shard has applied it.
 */

import type { PutRateLimit, RateLimit } from '../../schema/rate.js';
import { conflict, notFound } from '../../src/base/errors.js';
import { rateLimitId } from '../../src/base/ids.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import { limitFor } from '../../src/core/rate-patterns.js';
import type { Kernel } from '../runtime/kernel.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { EVERY_TENANT, TenantReplica } from '../runtime/tenant-replica.js';
import { Turn } from '../runtime/turn.js';
import type { LimitLoads, RateLimitRow } from './loads.js';
import { RATE_LIMIT } from './tables.js';

export interface RatePatternsDeps
  extends Pick<Kernel<LimitLoads>, 'shard' | 'clock' | 'loader' | 'log' | 'release' | 'schedule'> {
  /** Called when the patterns of these tenants may have changed. */
  readonly changed: (tenants: ReadonlySet<string>) => void;
}

export class RatePatterns implements Room {
  readonly #deps: RatePatternsDeps;
  readonly #byTenant = new Map<string, readonly RateLimitRow[]>();
  readonly #rows: TenantReplica<RateLimitRow>;

  readonly messages = {
    'rates.read': ({ version, tenants }) => this.#rows.changed(version, tenants),
  } satisfies Messages;

  constructor(deps: RatePatternsDeps) {
    this.#deps = deps;
    const { loader, shard } = deps;
    this.#rows = new TenantReplica<RateLimitRow>(deps, {
      name: 'patterns of rate limits',
      page: loader.allRatePatterns,
      ofTenants: loader.ratePatterns,
      take: (rows, tenants) => this.#take(rows, tenants),
      settled: (version) => ({ kind: 'rates.settled', version, shard }),
    });
  }

  get parts() {
    return [this.#rows];
  }

  get size(): number {
    let sum = 0;
    for (const rows of this.#byTenant.values()) sum += rows.length;
    return sum;
  }

  /** The pattern whose limit applies to a key without a limit of its own. */
  of(tenant: string, key: string): RateLimitRow | undefined {
    const rows = this.#byTenant.get(tenant);
    return rows && limitFor(rows, key);
  }

  #take(rows: readonly RateLimitRow[], ofTenants: ReadonlySet<string> | undefined): void {
    const tenants =
      ofTenants ?? new Set([...this.#byTenant.keys(), ...rows.map((row) => row.tenant_id)]);
    for (const tenant of tenants) this.#byTenant.delete(tenant);
    for (const row of rows) {
      const others = this.#byTenant.get(row.tenant_id) ?? [];
      this.#byTenant.set(row.tenant_id, [...others, row]);
    }
    this.#deps.changed(tenants);
  }
}

/** Each key is compared with all of them when it is first used. */
const RATE_PATTERNS_PER_TENANT_MAX = 100;
/** Every shard has a replica of all patterns, at some 200 bytes each. */
const RATE_PATTERNS_MAX = 50_000;

/** The owner of the patterns, on the first shard. It caches no rows. */
export class RatePatternRows implements Room {
  readonly #deps: Kernel<LimitLoads>;
  readonly #patterns: Pick<RatePatterns, 'size'>;
  readonly #publisher: Publisher<string>;
  /** Changes of one tenant are serialized, so that the limit holds. */
  readonly #service: Service;

  readonly messages = {
    'rates.settled': ({ version, shard }) => this.#publisher.settled(version, shard),
  } satisfies Messages;

  constructor(deps: Kernel<LimitLoads>, patterns: Pick<RatePatterns, 'size'>) {
    this.#deps = deps;
    this.#patterns = patterns;
    this.#service = new Service('rate patterns', deps);
    const message = (version: number, tenants: readonly string[]) =>
      ({ kind: 'rates.read', version, tenants }) as const;
    this.#publisher = new Publisher<string>(deps, EVERY_TENANT, message);
  }

  get parts() {
    return [this.#publisher];
  }

  put(request: number, tenant_id: string, key: string, body: PutRateLimit): void {
    this.#service.answer(request, 200, tenant_id, async () => {
      const known = await this.#read(tenant_id);
      const before = known.find(({ limit_key }) => limit_key === key);
      checkUnchanged(body.if_unchanged_since, before?.updated_at);
      if (before === undefined) this.#checkRoom(known.length);
      const { max_count, window_seconds } = body;
      const updated_at = updatedAt(this.#deps.now(), before?.updated_at);
      const id = rateLimitId(tenant_id, key);
      const turn = new Turn(tenant_id, request);
      turn.put(RATE_LIMIT.set, id, {
        id,
        tenant_id,
        limit_key: key,
        max_count,
        window_seconds,
        updated_at,
      });
      await this.#commit(turn, tenant_id);
      return { tenant_id, key, max_count, window_seconds, updated_at } satisfies RateLimit;
    });
  }

  delete(request: number, tenant: string, key: string): void {
    this.#service.answer(request, 204, tenant, async () => {
      const known = await this.#read(tenant);
      if (!known.some(({ limit_key }) => limit_key === key)) throw notFound('rate limit');
      const id = rateLimitId(tenant, key);
      const turn = new Turn(tenant, request);
      turn.put(RATE_LIMIT.clear, id, { id });
      await this.#commit(turn, tenant);
      return undefined;
    });
  }

  #read(tenant: string): Promise<RateLimitRow[]> {
    return this.#service.read(() => this.#deps.loader.ratePatterns([tenant]));
  }

  /** @throws EngineError 409 */
  #checkRoom(ofTenant: number): void {
    const most = RATE_PATTERNS_PER_TENANT_MAX;
    if (ofTenant >= most) throw conflict(`a tenant has at most ${most} patterns of rate limits`);
    if (this.#patterns.size < RATE_PATTERNS_MAX) return;
    throw conflict(`there are at most ${RATE_PATTERNS_MAX} patterns of rate limits of all tenants`);
  }

  #commit(turn: Turn, tenant: string): Promise<void> {
    const publish = () => this.#publisher.publish(tenant);
    return this.#service.commit(turn, { publish });
  }
}
