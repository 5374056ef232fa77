/** One request on its way through the pipeline, with everything that its steps have learned. */

import type { Route } from '../../../schema/routes.js';
import { keptTraceparent } from '../../core/traceparent.js';
import type { WorkSpan } from '../../metrics/tracing.js';
import type { ResidentKey } from '../key-registry.js';
import type { RequestWatch } from '../request-watch.js';
import type { AnswerHooks, HandledExchange, HttpReply, HttpRequest } from '../server.js';

export type Params = Readonly<Record<string, string>>;

export const NO_PARAMS: Params = {};

export class RequestContext implements AnswerHooks {
  readonly request: HttpRequest;
  readonly exchange: HandledExchange;
  /** When the request was complete, by the monotonic clock. */
  readonly since: number;
  /** Undefined until the step `match`. */
  route: Route | undefined;
  /** Of the path; checked by the step `parameters`. */
  params: Params = NO_PARAMS;
  /** The trace that the work of the request belongs to. */
  traceparent: string | undefined;
  /** Of the key or the header; '' until the step `key`, and when neither names one. */
  tenant = '';
  /** Of a tenant; undefined: the root key, or none. */
  key: ResidentKey | undefined;
  /** The tenant whose refusals are throttled; undefined before the step `tenant` and on a public route. */
  charged: string | undefined;
  /** Gives back what the request was admitted to. */
  leave: (() => void) | undefined;
  readonly #watch: RequestWatch;
  #span: WorkSpan<number | undefined> | undefined;

  constructor(watch: RequestWatch, request: HttpRequest, exchange: HandledExchange) {
    this.#watch = watch;
    this.request = request;
    this.exchange = exchange;
    this.since = watch.now();
    exchange.follow(this);
  }

  matched(route: Route, params: Params): void {
    this.route = route;
    this.params = params;
    const span = this.#watch.startSpan(this.request, route);
    this.traceparent = span?.traceparent ?? keptTraceparent(this.request.header('traceparent'));
    if (span === undefined) return;
    this.#span = span;
    this.exchange.onAbort(() => span.end(undefined));
  }

  delayMs(status: number): number {
    return this.charged === undefined ? 0 : this.#watch.delayMs(this.charged, status);
  }

  answered({ status, headers }: Pick<HttpReply, 'status' | 'headers'>): void {
    const { leave } = this;
    this.leave = undefined;
    leave?.();
    this.#span?.end(status);
    const code = status < 500 ? undefined : headers?.find(([name]) => name === 'x-error-code')?.[1];
    this.#watch.answered(this, status, code);
  }
}

/** Behind the step `match`. */
export type MatchedContext = RequestContext & { readonly route: Route };

/** For people to read: who answers for a person, or sends a signal. */
export function nameOf(key: ResidentKey | undefined): string {
  return key === undefined ? 'root' : key.name || key.id;
}
