/**
 * Admission by cost: what a request asks for is measured in units of work before anything is done for it, and
 * taken from buckets of its tenant; how many schedules and open tasks a tenant may have is bounded, too. The
 * defaults are for keys of tenants; the root key is bound only by what was set for a tenant
 * (docs/limits.md).
 */

import { ROUTES, type Route, type RouteId } from '../schema/routes.js';
import type { TenantLimitName, WorkUnit } from '../schema/tenant-limits.js';
import { BoundedRows } from './bounded-rows.js';
import { blocksIn, itemsIn } from './core/batch-size.js';
import { type BucketRate, TokenBucket } from './core/token-bucket.js';
import type { Reader } from './db/reads/reader.js';
import { openTaskCount, scheduleCount } from './db/reads/tenant-limit-reads.js';
import { conflict, tenantLimit } from './errors.js';
import { lastUsed } from './last-used.js';
import { LIMITS } from './limits.js';
import type { SetLimits, TenantLimitRegistry } from './tenant-limits.js';

export interface AdmissionDeps {
  readonly limits: TenantLimitRegistry;
  readonly reads: Pick<Reader, 'rows'>;
  readonly monotonic: () => number;
}

type Buckets = Map<WorkUnit, TokenBucket>;

/** What a request costs beside the bytes of its body. */
interface Cost {
  readonly unit: Exclude<WorkUnit, 'bytes'>;
  readonly of: (text: string) => number;
}

const one = () => 1;

const COSTS: Partial<Record<RouteId, Cost>> = {
  'instances.create': { unit: 'rows', of: one },
  'instances.createBatch': { unit: 'rows', of: itemsIn },
  'instances.fork': { unit: 'rows', of: one },
  'triggers.fire': { unit: 'rows', of: one },
  'cron.run': { unit: 'rows', of: one },
  'events.send': { unit: 'rows', of: one },
  'events.sendBatch': { unit: 'rows', of: itemsIn },
  'sequences.create': { unit: 'blocks', of: blocksIn },
  'sequences.validate': { unit: 'blocks', of: blocksIn },
  'instances.injectBlocks': { unit: 'blocks', of: blocksIn },
  'cron.create': { unit: 'schedules', of: one },
};

/** Routes whose instances may become open tasks. */
const QUEUEING: ReadonlySet<RouteId> = new Set<RouteId>([
  'instances.create',
  'instances.createBatch',
  'instances.fork',
  'triggers.fire',
  'cron.run',
]);

/** A null burst is what comes together in this time. */
const BURST_SECONDS = 10;

/** Tenants whose buckets are remembered; the others have full ones. */
const TENANTS_MAX = 20_000;

/** How soon a queue may have room again. */
const QUEUE_RETRY_MS = 1_000;

export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #buckets = lastUsed<string, Buckets>(TENANTS_MAX);
  readonly #schedules: BoundedRows;
  readonly #tasks: BoundedRows;
  readonly #costs = new Map<Route, Cost>();

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    const { limits, reads } = deps;
    limits.onChange = (tenant) => void this.#buckets.delete(tenant);
    const counter = (counted: typeof scheduleCount) => ({
      count: async (tenant: string, max: number) =>
        (await counted.row(reads, tenant, max))?.count ?? 0,
    });
    this.#schedules = new BoundedRows(counter(scheduleCount));
    this.#tasks = new BoundedRows(counter(openTaskCount));
    for (const [id, cost] of Object.entries(COSTS)) this.#costs.set(ROUTES[id as RouteId], cost);
  }

  /**
   * Takes what the request costs from the buckets of its tenant, all of it or nothing.
   * @param isRoot it came with the root key
   * @returns when it makes what is bounded in number: a promise of what is to be called when it was answered
   * @throws EngineError 429; the promise rejects with one, or with 409
   */
  admit(
    route: Route,
    tenant: string,
    isRoot: boolean,
    body: Buffer,
  ): Promise<() => void> | undefined {
    const cost = this.#costs.get(route);
    if (cost === undefined && body.length === 0) return undefined;
    const set = this.#deps.limits.of(tenant);
    if (isRoot && set === undefined) return undefined;
    const amount = cost === undefined ? 0 : cost.of(cost.of === one ? '' : body.toString('latin1'));
    this.#spend(tenant, set, isRoot, body.length, cost?.unit, amount);
    if (cost === undefined) return undefined;
    if (cost.unit === 'schedules') return this.#enterSchedules(tenant, isRoot, set);
    return QUEUEING.has(route.id) ? this.#enterQueue(tenant, amount, set) : undefined;
  }

  #spend(
    tenant: string,
    set: SetLimits | undefined,
    isRoot: boolean,
    bytes: number,
    unit: WorkUnit | undefined,
    amount: number,
  ): void {
    let buckets = this.#buckets.get(tenant);
    if (buckets === undefined) {
      buckets = new Map();
      this.#buckets.set(tenant, buckets);
    }
    const now = this.#deps.monotonic();
    const ofBytes = this.#bucket(buckets, 'bytes', set, isRoot, now);
    const ofUnit = unit && this.#bucket(buckets, unit, set, isRoot, now);
    expectRoom(ofBytes, 'bytes', bytes, now);
    if (unit !== undefined) expectRoom(ofUnit, unit, amount, now);
    ofBytes?.take(bytes);
    ofUnit?.take(amount);
  }

  /** Undefined: not bounded. */
  #bucket(
    buckets: Buckets,
    unit: WorkUnit,
    set: SetLimits | undefined,
    isRoot: boolean,
    now: number,
  ): TokenBucket | undefined {
    if (isRoot && (set?.limits[`${unit}_per_second`] ?? null) === null) return undefined;
    let bucket = buckets.get(unit);
    if (bucket === undefined) {
      bucket = new TokenBucket(rateOf(unit, set), now);
      buckets.set(unit, bucket);
    }
    return bucket;
  }

  #enterSchedules(tenant: string, isRoot: boolean, set: SetLimits | undefined) {
    const max = set?.limits.schedules_max ?? (isRoot ? undefined : LIMITS.schedulesPerTenantMax);
    if (max === undefined) return undefined;
    const full = `the tenant has as many schedules as it may have: ${max}; delete some that are not needed`;
    return entered(this.#schedules.enter(tenant, 1, max), () => conflict(full));
  }

  #enterQueue(tenant: string, rows: number, set: SetLimits | undefined) {
    const max = set?.limits.queue_depth_max ?? undefined;
    if (max === undefined) return undefined;
    const full = `the tenant may have ${max} open tasks (queue_depth_max), and this would make it more`;
    return entered(this.#tasks.enter(tenant, rows, max), () => tenantLimit(full, QUEUE_RETRY_MS));
  }
}

async function entered(entering: Promise<(() => void) | undefined>, refusal: () => Error) {
  const leave = await entering;
  if (leave === undefined) throw refusal();
  return leave;
}

function rateOf(unit: WorkUnit, set: SetLimits | undefined): BucketRate {
  const limits = set?.limits ?? {};
  const perSecond = limits[`${unit}_per_second`] ?? LIMITS.tenantRates[unit];
  const name: TenantLimitName = `${unit}_burst`;
  return { perSecond, burst: limits[name] ?? perSecond * BURST_SECONDS };
}

/** @throws EngineError 429 */
function expectRoom(
  bucket: TokenBucket | undefined,
  unit: WorkUnit,
  cost: number,
  now: number,
): void {
  const waitMs = bucket?.waitMs(cost, now) ?? 0;
  if (bucket === undefined || waitMs === 0) return;
  const { perSecond, burst } = bucket.rate;
  const text = `the tenant has used up its ${unit}: ${perSecond} a second, at most ${burst} at once`;
  throw tenantLimit(`${text}; this takes ${cost}`, waitMs);
}
