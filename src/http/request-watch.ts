/** Logs answered requests, and records their spans when the engine is traced. */

import type { Route } from '../../schema/routes.js';
import { LIMITS } from '../base/limits.js';
import { LineLimit, type Logger } from '../base/log.js';
import { lastUsed, valueFor } from '../base/quota/last-used.js';
import { TokenBucket } from '../base/quota/rates.js';
import type { Tracer, WorkSpan } from '../metrics/tracing.js';
import type { RequestContext } from './pipeline/context.js';
import type { HttpRequest } from './server.js';

export interface RequestWatchDeps {
  readonly log: Logger;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
  readonly tracer: Tracer | undefined;
}

/** Slower requests are logged: a request waits only for the database. */
const SLOW_MS = 1_000;
/** Limits the log during an outage, or with a caller that repeats a wrong key. */
const LINES_PER_SECOND = 10;
/** Requested by machines every few seconds: not worth a span. */
const UNTRACED = /^(health|metrics|docs)/;

export class RequestWatch {
  readonly #deps: RequestWatchDeps;
  readonly #isDebug: boolean;
  readonly #failed = new LineLimit(LINES_PER_SECOND);
  readonly #slow = new LineLimit(LINES_PER_SECOND);
  readonly #refused = new LineLimit(LINES_PER_SECOND);
  readonly #throttle = new RefusalThrottle();

  constructor(deps: RequestWatchDeps) {
    this.#deps = deps;
    this.#isDebug = deps.log.isLevelEnabled('debug');
  }

  now(): number {
    return this.#deps.monotonic();
  }

  startSpan(request: HttpRequest, route: Route): WorkSpan<number | undefined> | undefined {
    const { tracer } = this.#deps;
    if (tracer === undefined || UNTRACED.test(route.id)) return undefined;
    return tracer.request({
      name: route.id,
      method: request.method,
      route: route.path,
      traceparent: request.header('traceparent'),
      tracestate: request.header('tracestate'),
    });
  }

  delayMs(tenant: string, status: number): number {
    return status < 400 ? 0 : this.#throttle.delayMs(tenant, status, this.now());
  }

  answered(context: RequestContext, status: number, code: string | undefined): void {
    const now = this.now();
    const ms = now - context.since;
    const { log } = this.#deps;
    if (this.#isDebug) log.debug(factsOf(context, status, ms), 'request');
    if (context.route?.id.startsWith('health.')) return;
    if (status >= 500) {
      // Every defect is logged; other errors may come in bursts.
      const more = status === 500 ? {} : this.#failed.admit(now);
      if (more === undefined) return;
      const facts = { ...factsOf(context, status, ms), code, ...more };
      if (status === 500) log.error(facts, 'request failed');
      else log.warn(facts, 'request failed');
    } else if (status === 401) {
      const more = this.#refused.admit(now);
      if (more !== undefined) log.warn({ ...factsOf(context, status, ms), ...more }, 'key refused');
    } else if (ms >= SLOW_MS && !context.mayWait) {
      const more = this.#slow.admit(now);
      if (more !== undefined)
        log.warn({ ...factsOf(context, status, ms), ...more }, 'slow request');
    }
  }
}

function factsOf({ request, route, params }: RequestContext, status: number, ms: number) {
  const { requestId, method } = request;
  const id = route?.path.startsWith('/instances/{id}') ? params.id : undefined;
  // The path may contain any text in place of an id.
  const instanceId = id !== undefined && UUID.test(id) ? id.toLowerCase() : undefined;
  return { requestId, method, route: route?.id, instanceId, status, ms: Math.round(ms) };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Refusals about load, not about the request itself. */
const REFUSALS: ReadonlySet<number> = new Set([413, 429, 503]);
/** Cached tenants; others count as not recently refused. */
const TENANTS_MAX = 10_000;
const RATE = { perSecond: LIMITS.refusalsPerSecond, burst: LIMITS.refusalsAtOnce };

/**
 * Delays the refusals of a tenant that repeats refused requests at once (docs/limits.md): a loop of them would take
 * the front thread from others. A delayed response occupies one connection of its client.
 */
export class RefusalThrottle {
  /** Beyond its burst a bucket is in debt, for as long as the response is delayed. */
  readonly #buckets = lastUsed<string, TokenBucket>(TENANTS_MAX);

  /** @param now on a monotonic clock */
  delayMs(tenant: string, status: number, now: number): number {
    if (!REFUSALS.has(status)) return 0;
    const bucket = valueFor(this.#buckets, tenant, () => new TokenBucket(RATE, now));
    if (bucket.waitMs(0, now) < LIMITS.refusalHeldMsMax) bucket.take(1);
    return bucket.waitMs(0, now);
  }
}
