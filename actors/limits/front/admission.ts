/**
 * Admission by cost: a request takes its cost from the token buckets of its tenant before any work begins. The numbers
 * of schedules and open tasks are bounded, too. The defaults apply to keys of tenants, and the root key is limited only
 * by limits that were set for the tenant (docs/limits.md).
 */

import { isDeepStrictEqual } from 'node:util';
import type { Made } from '../../../schema/route-row.js';
import type { BodyRouteId, Route } from '../../../schema/routes.js';
import type { TenantLimitName, WorkUnit } from '../../../schema/tenant-limits.js';
import { conflict, tenantLimit } from '../../../src/base/errors.js';
import { askedRunId, keyedInstanceId } from '../../../src/base/ids.js';
import { isJsonObject } from '../../../src/base/json.js';
import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.js';
import { itemsIn } from '../../../src/base/json-members.js';
import { LIMITS } from '../../../src/base/limits.js';
import type { Offload } from '../../../src/base/offload.js';
import { lastUsed, valueFor } from '../../../src/base/quota/last-used.js';
import { type BucketRate, TokenBucket } from '../../../src/base/quota/rates.js';
import { type CreationBody, idempotencyKeyOf } from '../../../src/core/creation-key.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { LARGE_BODY } from '../../../src/http/body.js';
import type { Admission, AdmissionRequest } from '../../../src/http/ports.js';
import { COUNT_BLOCKS } from '../jobs.js';
import { countBlocks } from './count-blocks.js';
import { instancesThere, openTaskCount, scheduleCount } from './reads.js';
import type { SetLimits, TenantLimitRegistry } from './tenant-limits.js';

export interface AdmissionDeps {
  readonly limits: TenantLimitRegistry;
  readonly reads: Pick<Reader, 'rows'>;
  readonly offload: Offload;
  readonly monotonic: () => number;
}

interface Buckets {
  readonly set: SetLimits | undefined;
  readonly byUnit: Map<WorkUnit, TokenBucket>;
}

interface Cost {
  readonly unit: Exclude<WorkUnit, 'bytes'>;
  readonly of: (text: string, route: Route) => number;
  /** The request may create open tasks. */
  readonly isQueueing?: true;
}

const one = () => 1;

const COSTS: Readonly<Record<Made, Cost>> = {
  instance: { unit: 'rows', of: one, isQueueing: true },
  instances: { unit: 'rows', of: itemsIn, isQueueing: true },
  event: { unit: 'rows', of: one },
  events: { unit: 'rows', of: itemsIn },
  definition: {
    unit: 'blocks',
    of: (text, { id }) => countBlocks({ operation: id as BodyRouteId, text }),
  },
  schedule: { unit: 'schedules', of: one },
};

/** The default burst of a bucket, as a time. */
const BURST_SECONDS = 10;
/** Tenants with remembered buckets; those of others are full. */
const TENANTS_MAX = 20_000;
/** Tenants with remembered counts; those of others are read again. */
const COUNTED_TENANTS_MAX = 10_000;
const QUEUE_RETRY_MS = 1_000;

export class TenantAdmission implements Admission {
  readonly #deps: AdmissionDeps;
  readonly #buckets = lastUsed<string, Buckets>(TENANTS_MAX);
  readonly #schedules: BoundedRows;
  readonly #tasks: BoundedRows;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    const { reads } = deps;
    const countBy = (counted: typeof scheduleCount) => async (tenant: string, max: number) =>
      (await counted.row(reads, tenant, max))?.count ?? 0;
    this.#schedules = new BoundedRows(countBy(scheduleCount));
    this.#tasks = new BoundedRows(countBy(openTaskCount));
  }

  admit(request: AdmissionRequest): Promise<() => void> | undefined {
    const { route, tenant, isRoot, body } = request;
    const cost = route.makes && COSTS[route.makes];
    if (cost === undefined && body.length === 0) return undefined;
    const set = this.#deps.limits.of(tenant);
    if (isRoot && set === undefined) return undefined;
    if (cost?.unit === 'blocks' && body.length > LARGE_BODY) return this.#admitDefinition(request);
    const amount =
      cost === undefined ? 0 : cost.of(cost.of === one ? '' : body.toString('latin1'), route);
    this.#spend(request, set, cost?.unit, amount);
    if (cost === undefined) return undefined;
    if (cost.unit === 'schedules') {
      const max = set?.limits.schedules_max ?? (isRoot ? undefined : LIMITS.schedulesPerTenantMax);
      return max === undefined ? undefined : this.#enterSchedules(tenant, max);
    }
    const max = set?.limits.queue_depth_max ?? undefined;
    if (max === undefined || !cost.isQueueing) return undefined;
    return this.#enterQueue(request, amount, max);
  }

  /** After a change of limits, only buckets with a new rate begin full. */
  #bucketsOf(tenant: string, set: SetLimits | undefined): Buckets['byUnit'] {
    const known = this.#buckets.get(tenant);
    if (known?.set === set && known !== undefined) return known.byUnit;
    const kept = [...(known?.byUnit ?? [])].filter(([unit, { rate }]) =>
      isDeepStrictEqual(rate, rateOf(unit, set)),
    );
    const byUnit = new Map(kept);
    this.#buckets.set(tenant, { set, byUnit });
    return byUnit;
  }

  /** A side thread counts the blocks, so that other requests are not delayed. */
  async #admitDefinition(request: AdmissionRequest): Promise<() => void> {
    const { route, tenant, body } = request;
    const definition = { operation: route.id as BodyRouteId, text: body.toString('latin1') };
    const blocks = await this.#deps.offload.run(tenant, COUNT_BLOCKS, definition);
    this.#spend(request, this.#deps.limits.of(tenant), 'blocks', blocks);
    return () => undefined;
  }

  #spend(
    { tenant, isRoot, body }: AdmissionRequest,
    set: SetLimits | undefined,
    unit: WorkUnit | undefined,
    amount: number,
  ): void {
    const buckets = this.#bucketsOf(tenant, set);
    const now = this.#deps.monotonic();
    const bucketOf = (one: WorkUnit) =>
      valueFor(buckets, one, () => new TokenBucket(rateOf(one, set), now));
    const isBounded = (one: WorkUnit) =>
      !isRoot || (set?.limits[`${one}_per_second`] ?? null) !== null;
    const ofBytes = isBounded('bytes') ? bucketOf('bytes') : undefined;
    const ofUnit = unit && isBounded(unit) ? bucketOf(unit) : undefined;
    expectRoom(ofBytes, 'bytes', body.length, now);
    if (unit !== undefined) expectRoom(ofUnit, unit, amount, now);
    ofBytes?.take(body.length);
    ofUnit?.take(amount);
  }

  async #enterSchedules(tenant: string, max: number): Promise<() => void> {
    const leave = await this.#schedules.enter(tenant, 1, max);
    if (leave !== undefined) return leave;
    throw conflict(
      `the tenant has as many schedules as it may have: ${max}; delete some that are not needed`,
    );
  }

  /** Repeated creations are admitted, because they return existing instances. */
  async #enterQueue(creation: AdmissionRequest, rows: number, max: number): Promise<() => void> {
    const { tenant } = creation;
    const leave = await this.#tasks.enter(tenant, rows, max);
    if (leave !== undefined) return leave;
    const repeats = await repeatsIn(this.#deps.reads, creation);
    if (repeats >= rows) return () => undefined;
    const rest = repeats > 0 ? await this.#tasks.enter(tenant, rows - repeats, max) : undefined;
    if (rest !== undefined) return rest;
    const full = `the tenant may have ${max} open tasks (queue_depth_max), and this would make it more`;
    throw tenantLimit(full, QUEUE_RETRY_MS);
  }
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

/** The number of instances that exist already under the idempotency keys of a request. */
async function repeatsIn(
  reads: Pick<Reader, 'rows'>,
  { route: { keyed }, tenant, params, body }: AdmissionRequest,
): Promise<number> {
  // A body without a key is not parsed.
  if (keyed === undefined || !body.includes('"idempotency_key"')) return 0;
  const parsed = parseJson(body.toString('utf8'), BODY_JSON_LIMITS);
  if (!parsed.ok || !isJsonObject(parsed.value)) return 0;
  const { instances } = parsed.value;
  const items = keyed === 'items' ? instances : [parsed.value];
  if (!Array.isArray(items)) return 0;
  const ids = items.flatMap((item) => {
    if (!isJsonObject(item)) return [];
    const { idempotency_key: key } = item;
    if (typeof key !== 'string' || key === '') return [];
    if (keyed === 'run') return [askedRunId(params.id ?? '', key)];
    return [keyedInstanceId(tenant, idempotencyKeyOf(item as CreationBody) as string)];
  });
  if (ids.length === 0) return 0;
  const there = new Set((await instancesThere.rows(reads, ids, tenant)).map(({ id }) => id));
  // Items with the same key count each, although they are one instance.
  return ids.filter((id) => there.has(id)).length;
}

/** Counts the rows of the tenant, up to `max`. Rejects like every read. */
type CountOf = (tenant: string, max: number) => Promise<number>;

interface Known {
  counted: number;
  /** Rows admitted since that count began: answered, and not yet answered. */
  since: number;
  pending: number;
  counting: Promise<void> | undefined;
}

function unknownCount(): Known {
  return { counted: Number.POSITIVE_INFINITY, since: 0, pending: 0, counting: undefined };
}

/**
 * Limits the rows of one kind per tenant. The database counts them only when the last count and the rows admitted
 * since leave no room: a tenant far below its limit costs no query, one at its limit one query at a time. Under
 * concurrency the limit may be reached a few rows early or late.
 */
export class BoundedRows {
  readonly #countOf: CountOf;
  readonly #known = lastUsed<string, Known>(COUNTED_TENANTS_MAX);

  constructor(countOf: CountOf) {
    this.#countOf = countOf;
  }

  /** @returns a function to call once the request is answered; undefined: there is no room */
  async enter(tenant: string, rows: number, max: number): Promise<(() => void) | undefined> {
    const known = valueFor(this.#known, tenant, unknownCount);
    if (!fits(known, rows, max)) await this.#count(tenant, known, max);
    if (!fits(known, rows, max)) return undefined;
    known.pending += rows;
    return () => {
      known.pending -= rows;
      known.since += rows;
    };
  }

  #count(tenant: string, known: Known, max: number): Promise<void> {
    known.counting ??= (async () => {
      const { since } = known;
      try {
        known.counted = await this.#countOf(tenant, max);
        known.since -= since;
      } finally {
        known.counting = undefined;
      }
    })();
    return known.counting;
  }
}

function fits({ counted, since, pending }: Known, rows: number, max: number): boolean {
  return counted + since + pending + rows <= max;
}
