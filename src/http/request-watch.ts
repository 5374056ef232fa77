/**
 * What is told about requests once they are answered: lines of the log, and spans when the engine is
 * traced. One small object per request; with neither a debug level nor a tracer that is all it costs.
 */

import type { Route } from '../../schema/routes.js';
import { LineLimit, type Logger } from '../base/log.js';
import { keptTraceparent } from '../core/traceparent.js';
import type { Tracer, WorkSpan } from '../metrics/tracing.js';
import { RefusalPace } from './refusal-pace.js';
import type {
  HttpBodyStream,
  HttpExchange,
  HttpReply,
  HttpRequest,
  HttpStreamHead,
} from './server.js';

export interface RequestWatchDeps {
  readonly log: Logger;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
  readonly tracer: Tracer | undefined;
}

/** Slower than this is worth a line: no request waits for anything but the database. */
const SLOW_MS = 1_000;
/** An outage must not fill the disk, and a caller with a wrong key must not either. */
const LINES_PER_SECOND = 10;

/** Asked for by machines every few seconds, with answers that say it themselves. */
const UNTRACED = /^(health|metrics|docs)/;

export class RequestWatch {
  readonly #deps: RequestWatchDeps;
  readonly #isDebug: boolean;
  readonly #failed = new LineLimit(LINES_PER_SECOND);
  readonly #slow = new LineLimit(LINES_PER_SECOND);
  readonly #refused = new LineLimit(LINES_PER_SECOND);
  readonly #pace = new RefusalPace();

  constructor(deps: RequestWatchDeps) {
    this.#deps = deps;
    this.#isDebug = deps.log.isLevelEnabled('debug');
  }

  watch(request: HttpRequest, exchange: HttpExchange): WatchedExchange {
    return new WatchedExchange(this, request, exchange, this.#deps.monotonic());
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

  /** How long an answer to a tenant is held back. */
  holdMs(tenant: string, status: number): number {
    return status < 400 ? 0 : this.#pace.holdMs(tenant, status, this.#deps.monotonic());
  }

  answered(exchange: WatchedExchange, status: number, code: string | undefined): void {
    const now = this.#deps.monotonic();
    const ms = now - exchange.since;
    const { log } = this.#deps;
    if (this.#isDebug) log.debug(factsOf(exchange, status, ms), 'request');
    if (exchange.route?.id.startsWith('health.')) return;
    if (status >= 500) {
      // A defect has a line of its own each time; the rest may come in crowds.
      const more = status === 500 ? {} : this.#failed.admit(now);
      if (more === undefined) return;
      const facts = { ...factsOf(exchange, status, ms), code, ...more };
      if (status === 500) log.error(facts, 'request failed');
      else log.warn(facts, 'request failed');
    } else if (status === 401) {
      const more = this.#refused.admit(now);
      if (more !== undefined)
        log.warn({ ...factsOf(exchange, status, ms), ...more }, 'key refused');
    } else if (ms >= SLOW_MS && !exchange.route?.isParked) {
      const more = this.#slow.admit(now);
      if (more !== undefined)
        log.warn({ ...factsOf(exchange, status, ms), ...more }, 'slow request');
    }
  }
}

function factsOf({ request, route, params }: WatchedExchange, status: number, ms: number) {
  const { requestId, method } = request;
  const id = route?.path.startsWith('/instances/{id}') ? params?.id : undefined;
  // What stands there instead of an id is the caller's text.
  const instanceId = id !== undefined && UUID.test(id) ? id.toLowerCase() : undefined;
  return { requestId, method, route: route?.id, instanceId, status, ms: Math.round(ms) };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export class WatchedExchange implements HttpExchange {
  readonly request: HttpRequest;
  /** When the request was whole. */
  readonly since: number;
  /** Undefined until it is matched. */
  route: Route | undefined;
  /** Undefined until its key is known, and of who needs none. */
  tenant: string | undefined;
  /** From its path, not checked. */
  params: Readonly<Record<string, string>> | undefined;
  readonly #watch: RequestWatch;
  readonly #exchange: HttpExchange;
  #span: WorkSpan<number | undefined> | undefined;

  constructor(watch: RequestWatch, request: HttpRequest, exchange: HttpExchange, since: number) {
    this.#watch = watch;
    this.#exchange = exchange;
    this.request = request;
    this.since = since;
  }

  /** @returns the trace that the work of the request belongs to, as the header says it */
  begin(route: Route, params: Readonly<Record<string, string>>): string | undefined {
    this.route = route;
    this.params = params;
    const span = this.#watch.startSpan(this.request, route);
    if (span === undefined) return keptTraceparent(this.request.header('traceparent'));
    this.#span = span;
    this.onAbort(() => span.end(undefined));
    return span.traceparent;
  }

  get aborted(): boolean {
    return this.#exchange.aborted;
  }

  onAbort(listener: () => void): void {
    this.#exchange.onAbort(listener);
  }

  reply(reply: HttpReply): void {
    const { status, headers } = reply;
    const heldMs = this.tenant === undefined ? 0 : this.#watch.holdMs(this.tenant, status);
    if (heldMs === 0) this.#exchange.reply(reply);
    else setTimeout(() => this.#exchange.reply(reply), heldMs).unref();
    this.#answered(status, headers);
  }

  /** Answered with its head: what follows may last for hours. */
  stream(head: HttpStreamHead): HttpBodyStream {
    const body = this.#exchange.stream(head);
    this.#answered(head.status, head.headers);
    return body;
  }

  #answered(status: number, headers: HttpReply['headers']): void {
    this.#span?.end(status);
    const code = status < 500 ? undefined : headers?.find(([name]) => name === 'x-error-code')?.[1];
    this.#watch.answered(this, status, code);
  }
}
