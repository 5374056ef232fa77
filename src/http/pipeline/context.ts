/** One request on its way through the pipeline, what a step of the pipeline is, and what all steps have in common. */

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

/** What the pipeline itself reads from the database. */
export interface RouterRows {
  /** The committed record, while the owner would wait. Rejects with an EngineError 404 or 503. */
  committedInstance(tenant: string, id: string): Promise<HttpReply>;
  /** Rejects with an EngineError 404 where the tenant has no such instance, or 503. */
  instanceIsThere(tenant: string, id: string): Promise<unknown>;
  /** The tenant of an entry of the outbox; empty: there is no such entry. */
  tenantsOfWebhook(id: string): Promise<readonly string[]>;
}

export interface RouterDeps extends FrontBodies {
  readonly gate: StateGate;
  readonly authorise: Authorise;
  readonly admission: Admission;
  /** Undefined while keys are required. */
  readonly guard?: InsecureGuard | undefined;
  readonly keys: Pick<KeyRegistry, 'whenGone'>;
  /** In a cluster; undefined: there is no other cell. */
  readonly placement?: Placement | undefined;
  readonly client: ShardSender;
  readonly rows: RouterRows;
  readonly activity: TenantActivity;
  readonly operations: FrontOperations;
  readonly pages: Pages;
  readonly front: FrontDeps;
  /** The description of the API requires a key and a tenant. */
  readonly protectDocs: boolean;
  readonly watch: RequestWatch;
  readonly log: Logger;
}

/** The reply to a request for the dashboard; undefined: it is none. */
export type Pages = (request: HttpRequest) => HttpReply | undefined;

export type Outcome = 'continue' | 'answered';

/**
 * Learns something about the request, refuses it, or answers it. A promise only where it must wait. @throws
 * EngineError, the answer
 */
export type Step = (context: MatchedContext, deps: RouterDeps) => Outcome | Promise<Outcome>;

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

  get isRoot(): boolean {
    return this.key === undefined;
  }

  get body(): Buffer {
    return this.request.body;
  }

  /** For people to read: who answers for a person, or sends a signal. */
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

/** @param awaited undefined: there is nothing to wait for */
export function after(awaited: Promise<unknown> | undefined): Outcome | Promise<Outcome> {
  return awaited === undefined ? 'continue' : awaited.then(() => 'continue');
}

export function isPublic({ capability }: Route): boolean {
  return capability === 'public';
}
