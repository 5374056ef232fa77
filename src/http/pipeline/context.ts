/** The state of a request in the pipeline, and the type of a pipeline step. */

import type { Route } from '../../../schema/routes.js';
import type { Logger } from '../../base/log.js';
import type { TenantActivity } from '../../base/quota/tenant-activity.js';
import { keptTraceparent } from '../../core/traceparent.js';
import type { WorkSpan } from '../../metrics/tracing.js';
import type { Authorise } from '../auth.js';
import type { InsecureGuard } from '../insecure-guard.js';
import type { KeyRegistry, ResidentKey } from '../key-registry.js';
import type { FrontBodies, FrontDeps, FrontOperations } from '../operation.js';
import type { Admission, Placement, StateGate } from '../ports.js';
import type { RequestWatch } from '../request-watch.js';
import type { AnswerHooks, HandledExchange, HttpReply, HttpRequest } from '../server.js';
import type { ShardSender } from '../shards.js';

export interface RouterRows {
  /** The committed record, for when its owner would wait. Rejects with an EngineError 404 or 503. */
  committedInstance(tenant: string, id: string): Promise<HttpReply>;
  /** Rejects with an EngineError 404 when the tenant has no such instance, or 503. */
  instanceIsThere(tenant: string, id: string): Promise<unknown>;
  /** The tenant of an outbox entry; empty: unknown id. */
  tenantsOfWebhook(id: string): Promise<readonly string[]>;
}

export interface RouterDeps extends FrontBodies {
  readonly gate: StateGate;
  readonly authorise: Authorise;
  readonly admission: Admission;
  /** Undefined while keys are required. */
  readonly guard?: InsecureGuard | undefined;
  readonly keys: Pick<KeyRegistry, 'whenGone'>;
  readonly placement?: Placement | undefined;
  readonly client: ShardSender;
  readonly rows: RouterRows;
  readonly activity: TenantActivity;
  readonly operations: FrontOperations;
  readonly pages: Pages;
  readonly front: FrontDeps;
  readonly protectDocs: boolean;
  readonly watch: RequestWatch;
  readonly log: Logger;
}

/** The reply to a request for the dashboard; undefined: the request is not for it. */
export type Pages = (request: HttpRequest) => HttpReply | undefined;

export type Outcome = 'continue' | 'answered';

/** Returns a promise only when it must wait. @throws EngineError, sent as the response */
export type Step = (context: MatchedContext, deps: RouterDeps) => Outcome | Promise<Outcome>;

export type Params = Readonly<Record<string, string>>;
export const NO_PARAMS: Params = {};

export class RequestContext implements AnswerHooks {
  readonly request: HttpRequest;
  readonly exchange: HandledExchange;
  /** When the request was complete, on the monotonic clock. */
  readonly since: number;
  route: Route | undefined;
  /** Of the path; validated by the step `parameters`. */
  params: Params = NO_PARAMS;
  traceparent: string | undefined;
  /** Of the key or the header; '' until the step `key`, and without either. */
  tenant = '';
  /** Undefined: the root key, or none. */
  key: ResidentKey | undefined;
  /** The tenant whose refusals are throttled; undefined before the step `tenant` and on a public route. */
  charged: string | undefined;
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

  get isRoot(): boolean {
    return this.key === undefined;
  }

  get body(): Buffer {
    return this.request.body;
  }

  /** Whether the response may wait for as long as the caller does. */
  get mayWait(): boolean {
    const { request, route } = this;
    return route?.isParked === true || (route?.mayWait === true && request.query !== '');
  }

  /** The display name of the caller, in answers for a person and in signals. */
  get by(): string {
    const { key } = this;
    return key === undefined ? 'root' : key.name || key.id;
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

  /** The request has had its effect; its response may wait. */
  parked(): void {
    const { leave } = this;
    this.leave = undefined;
    leave?.();
  }

  delayMs(status: number): number {
    return this.charged === undefined ? 0 : this.#watch.delayMs(this.charged, status);
  }

  answered({ status, headers }: Pick<HttpReply, 'status' | 'headers'>): void {
    this.parked();
    this.#span?.end(status);
    const code = status < 500 ? undefined : headers?.find(([name]) => name === 'x-error-code')?.[1];
    this.#watch.answered(this, status, code);
  }
}

/** The context after the step `match`. */
export type MatchedContext = RequestContext & { readonly route: Route };

/** @param awaited undefined: nothing to wait for */
export function after(awaited: Promise<unknown> | undefined): Outcome | Promise<Outcome> {
  return awaited === undefined ? 'continue' : awaited.then(() => 'continue');
}

export function isPublic({ capability }: Route): boolean {
  return capability === 'public';
}
