/**
 * From a request to whoever answers it: matches the route, waits for a starting engine, checks key
 * and tenant, and hands the body on as text. Lists are operations of this thread; everything else
 * goes to a shard, which parses the body.
 */

import { isAscii } from 'node:buffer';
import type { ShardClient, ShardReply } from '../../actors/client.js';
import type { ShardOperation } from '../../actors/protocol.js';
import { matchRoute } from '../../schema/route-match.js';
import type { Route, RouteId } from '../../schema/routes.js';
import type { Validators } from '../../schema/validators.js';
import { rateLimitId } from '../core/ids.js';
import { decodeUtf8 } from '../core/json-guard.js';
import { EngineError, invalid } from '../errors.js';
import type { Logger } from '../log.js';
import { type Authorise, UNAUTHENTICATED } from './auth.js';
import type { Gate } from './gate.js';
import { endWithKey } from './key-bound.js';
import type { KeyRegistry } from './key-registry.js';
import type { Probe } from './operations/docs.js';
import type { FrontDeps, Operation, StreamOperation } from './operations/operation.js';
import type { RequestWatch } from './request-watch.js';
import type { HttpExchange, HttpHandler, HttpReply, HttpRequest } from './server.js';

export interface RouterDeps {
  readonly gate: Gate;
  readonly authorise: Authorise;
  readonly keys: Pick<KeyRegistry, 'whenGone'>;
  readonly validators: Validators;
  readonly client: ShardClient;
  /** What this thread answers by itself. */
  readonly operations: Readonly<Partial<Record<RouteId, Operation>>>;
  /** What it answers by a stream. */
  readonly streams: Readonly<Partial<Record<RouteId, StreamOperation>>>;
  /** Answers that need neither key, tenant nor database. */
  readonly probes: Readonly<Partial<Record<RouteId, Probe>>>;
  readonly front: FrontDeps;
  readonly watch: RequestWatch;
  readonly log: Logger;
}

/** Operations of shards that find their actor without the database: they work while it is away. */
const RESIDENT_READS: ReadonlySet<RouteId> = new Set(['instances.get', 'instances.tree']);

/** Operations whose instance goes on in the trace of the caller. */
const BEGINS_WORK: ReadonlySet<RouteId> = new Set([
  'instances.create',
  'instances.createBatch',
  'instances.signal',
  'instances.resumeFrom',
  'instances.fork',
]);

/** Operations that need no database: they answer in every state, to whoever has a key. */
const NEEDS_NOTHING: ReadonlySet<RouteId> = new Set(['metrics']);

const NO_PARAMS: Readonly<Record<string, string>> = {};

export function createRouter(deps: RouterDeps): HttpHandler {
  return (request, plain) => {
    const watched = deps.watch.watch(request, plain);
    let exchange: HttpExchange = watched;
    try {
      const matched = match(request);
      if (matched.isBareAlias) exchange = deprecated(request, watched);
      const traceparent = watched.begin(matched.route, matched.params);
      const probe = deps.probes[matched.route.id];
      if (probe !== undefined) exchange.reply(probe(matched.params));
      else if (deps.gate.state !== 'starting' || NEEDS_NOTHING.has(matched.route.id)) {
        serve(deps, request, exchange, matched, traceparent);
      } else deps.gate.whenStarted(() => guarded(deps, request, exchange, matched, traceparent));
    } catch (error) {
      exchange.reply(errorReply(deps.log, request, error));
    }
  };
}

interface Matched {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  readonly isBareAlias: boolean;
}

/** @throws EngineError 404, 405 (as MethodNotAllowed) or 400 for a bad encoding */
function match(request: HttpRequest): Matched {
  const found = matchRoute(request.method, request.path);
  if (found === 'not-found') {
    throw new EngineError('ENG_NOT_FOUND', `not found: no route ${request.path}`);
  }
  if (found === 'bad-encoding') throw invalid('the path is not percent-encoded UTF-8');
  if ('allow' in found) throw new MethodNotAllowed(request.method, found.allow);
  const { route, params, isBareAlias } = found;
  return { route, params: route.params === undefined ? NO_PARAMS : params, isBareAlias };
}

/** Every answer on a bare path, refusals too, names the prefixed one that replaces it (spec/01 §1). */
function deprecated(request: HttpRequest, exchange: HttpExchange): HttpExchange {
  const query = request.query === '' ? '' : `?${request.query}`;
  // What may stand in a request line as it is, and would end the address within the header.
  const address = `/api/v1${request.path}${query}`.replace(/[<>"]/g, encodeURIComponent);
  const headers: readonly (readonly [string, string])[] = [
    ['deprecation', '@1767225600'],
    ['sunset', 'Sat, 01 Jan 2028 00:00:00 GMT'],
    ['link', `<${address}>; rel="successor-version"`],
  ];
  return {
    get aborted() {
      return exchange.aborted;
    },
    onAbort: (listener) => exchange.onAbort(listener),
    reply: (reply) => exchange.reply({ ...reply, headers: [...(reply.headers ?? []), ...headers] }),
    stream: (head) => exchange.stream({ ...head, headers: [...(head.headers ?? []), ...headers] }),
  };
}

class MethodNotAllowed extends EngineError {
  readonly allow: readonly string[];

  constructor(method: string, allow: readonly string[]) {
    super('ENG_METHOD_NOT_ALLOWED', `method ${method} is not allowed here`);
    this.allow = allow;
  }
}

function guarded(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  matched: Matched,
  traceparent: string | undefined,
): void {
  try {
    serve(deps, request, exchange, matched, traceparent);
  } catch (error) {
    exchange.reply(errorReply(deps.log, request, error));
  }
}

/** Key and tenant come before everything else that a request can be wrong in (spec/01 §2). */
function serve(
  deps: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  { route, params: raw }: Matched,
  traceparent: string | undefined,
): void {
  const { tenant, key } = deps.authorise(request, route);
  const refusal = NEEDS_NOTHING.has(route.id) ? undefined : deps.gate.refusal();
  const mayRead = deps.gate.state === 'database-away' && RESIDENT_READS.has(route.id);
  if (refusal !== undefined && !mayRead && !route.isDocument) throw refusal;
  const params = paramsOf(deps.validators, route, raw);
  const operation = deps.operations[route.id];
  const stream = deps.streams[route.id];
  const isLasting = stream !== undefined || route.owner === 'queue';
  const exchange =
    key === undefined || !isLasting
      ? given
      : endWithKey(given, deps.keys, key, errorReply(deps.log, request, UNAUTHENTICATED));
  if (operation !== undefined || stream !== undefined) {
    const { query, path } = request;
    const call = {
      tenant,
      params,
      query,
      path,
      bodyText: textOf(request.body),
      traceparent,
      lastEventId: request.header('last-event-id'),
    };
    const refuse = (error: unknown) => exchange.reply(errorReply(deps.log, request, error));
    operation?.(deps.front, call).then((reply) => exchange.reply(reply), refuse);
    stream?.(deps.front, call).then((feed) => feed(exchange), refuse);
    return;
  }
  const target = Object.values(params).join('/');
  const body = route.body === undefined ? '' : textOf(request.body);
  const shard = shardFor(deps.client, route, tenant, params);
  const id = deps.client.send(
    shard,
    route.id as ShardOperation,
    tenant,
    target,
    body,
    (reply) => exchange.reply(httpReply(deps.log, request, reply)),
    BEGINS_WORK.has(route.id) ? traceparent : undefined,
  );
  if (route.owner === 'queue') exchange.onAbort(() => deps.client.abort(id));
}

function paramsOf(
  validators: Validators,
  route: Route,
  raw: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (raw === NO_PARAMS) return raw;
  // No text of the database can hold it, so nothing has such a name.
  if (Object.values(raw).some((text) => text.includes('\u0000'))) {
    throw invalid('the path holds U+0000');
  }
  const checked = validators.parseParams(route.id, raw);
  if (!checked.ok) throw invalid(checked.message);
  return checked.value as Record<string, string>;
}

function shardFor(
  client: ShardClient,
  route: Route,
  tenant: string,
  params: Readonly<Record<string, string>>,
): number {
  const { owner } = route;
  if (typeof owner === 'object') return client.shardOf(params.id ?? '');
  if (owner === 'rate') return client.shardOf(rateLimitId(tenant, params.key ?? ''));
  return owner === 'catalog' ? 0 : client.anyShard();
}

/** @throws EngineError 400 when the bytes are not UTF-8 */
function textOf(body: Buffer): string {
  if (body.length === 0) return '';
  if (isAscii(body)) return body.toString('latin1');
  const text = decodeUtf8(body);
  if (text === undefined) {
    throw new EngineError('ENG_INVALID_JSON', 'invalid argument: the body is not valid UTF-8');
  }
  return text;
}

function httpReply(log: Logger, request: HttpRequest, reply: ShardReply): HttpReply {
  if ('error' in reply) return errorReply(log, request, reply.error);
  return { status: reply.status, body: reply.status === 204 ? undefined : reply.body };
}

/** The body is the message alone; the code goes into a header, defects into the log. */
function errorReply(log: Logger, request: HttpRequest, error: unknown): HttpReply {
  if (!(error instanceof EngineError) || error.code === 'ENG_INTERNAL') {
    log.error({ requestId: request.requestId, err: error }, 'defect');
    return {
      status: 500,
      body: '{"error":"internal error"}',
      headers: [['x-error-code', 'ENG_INTERNAL']],
    };
  }
  const headers: [string, string][] = [['x-error-code', error.code]];
  if (error.retryAfterMs !== undefined) {
    headers.push(['retry-after', String(Math.ceil(error.retryAfterMs / 1_000))]);
  }
  if (error instanceof MethodNotAllowed) headers.push(['allow', error.allow.join(', ')]);
  return { status: error.status, body: JSON.stringify({ error: error.message }), headers };
}
