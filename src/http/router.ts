/**
 * From a request to whoever answers it: matches the route, waits for a starting engine, checks key
 * and tenant, and does as the route's row says: the function of this thread that the table of
 * operations has for it, or a shard, which is handed the body as text. An answer that cannot be built
 * or sent ends its request and nothing else.
 */

import { isAscii } from 'node:buffer';
import { matchRoute } from '../../schema/route-match.js';
import type { FrontRouteId, Route, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { Validators } from '../../schema/validators.js';
import { EngineError, invalid } from '../base/errors.js';
import { rateLimitId } from '../base/ids.js';
import { decodeUtf8 } from '../base/json-guard.js';
import type { Logger } from '../base/log.js';
import type { TenantActivity } from '../base/quota/tenant-activity.js';
import type { Admission } from './admission.js';
import {
  type Authorise,
  type Caller,
  seesSecrets,
  signalRefusal,
  UNAUTHENTICATED,
} from './auth.js';
import type { Pages } from './dashboard.js';
import type { EngineState, Gate } from './gate.js';
import type { InsecureGuard } from './insecure-guard.js';
import type { KeyRegistry } from './key-registry.js';
import { endWith } from './lasting-exchange.js';
import { tenantsQueried } from './named-tenants.js';
import { checkCall, type FrontBodies, type FrontDeps, type FrontOperations } from './operation.js';
import { admitCaller, admitNamed, type Placement } from './placement.js';
import type { RequestWatch, WatchedExchange } from './request-watch.js';
import type { HttpExchange, HttpHandler, HttpReply, HttpRequest } from './server.js';
import type { AskedBy, ShardReply, ShardSender } from './shards.js';
import { DEFECT, refusalReply } from './transport.js';

/** What the router itself asks the database. */
export interface RouterRows {
  /** While nothing is committed, what is: the owner would wait. Rejects with an EngineError 404 or 503. */
  committedInstance(tenant: string, id: string): Promise<HttpReply>;
  /** Rejects with an EngineError 404 where the tenant has no such instance, or 503. */
  instanceIsThere(tenant: string, id: string): Promise<unknown>;
  /** Whose the entry of the outbox is; empty: there is none. */
  tenantsOfWebhook(id: string): Promise<readonly string[]>;
}

export interface RouterDeps extends FrontBodies {
  readonly gate: Gate;
  readonly authorise: Authorise;
  readonly admission: Pick<Admission, 'admit'>;
  /** Before keys and tenants; undefined while keys are asked for. */
  readonly guard?: InsecureGuard | undefined;
  readonly keys: Pick<KeyRegistry, 'whenGone'>;
  /** Decides which tenants are served here. Undefined: all are. */
  readonly placement?: Placement | undefined;
  readonly client: ShardSender;
  readonly rows: RouterRows;
  readonly activity: TenantActivity;
  readonly operations: FrontOperations;
  /** What a person is shown, and what belongs to it. */
  readonly pages: Pages;
  readonly front: FrontDeps;
  /** The API's description takes a key and a tenant. */
  readonly protectDocs: boolean;
  readonly watch: RequestWatch;
  readonly log: Logger;
}

const NO_BODY = Buffer.alloc(0);
const NOTHING = () => undefined;
const NO_PARAMS: Readonly<Record<string, string>> = {};

export function createRouter(deps: RouterDeps): HttpHandler {
  return (request, plain) => {
    const watched = deps.watch.watch(request, plain);
    try {
      begin(deps, request, watched);
    } catch (error) {
      replyError(deps, request, watched, error);
    }
  };
}

/** @throws EngineError before it is known which route it is, and whether by its deprecated path */
function begin(deps: RouterDeps, request: HttpRequest, watched: WatchedExchange): void {
  const page = deps.pages(request);
  if (page !== undefined) {
    watched.reply(page);
    return;
  }
  const matched = match(request);
  const exchange = matched.isBareAlias ? deprecated(request, watched) : watched;
  const traceparent = watched.begin(matched.route, matched.params);
  if (deps.gate.state === 'starting' && mustStart(deps, matched.route)) {
    deps.gate.whenStarted(() =>
      attempt(deps, request, exchange, () =>
        serve(deps, request, exchange, matched, traceparent, watched),
      ),
    );
    return;
  }
  try {
    serve(deps, request, exchange, matched, traceparent, watched);
  } catch (error) {
    replyError(deps, request, exchange, error);
  }
}

/** Any answer, and why there is none: what is thrown on the way is the answer. */
function attempt(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  answer: () => void,
): void {
  try {
    answer();
  } catch (error) {
    replyError(deps, request, exchange, error);
  }
}

function replyError(
  { log }: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  error: unknown,
): void {
  // What makes the first one unsendable is not in the second.
  for (const make of [() => errorReply(log, request, error), () => refusalReply(DEFECT)]) {
    try {
      exchange.reply(make());
      return;
    } catch (err) {
      log.error({ requestId: request.requestId, err }, 'an answer could not be sent');
    }
  }
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

/** Every answer on a bare path, refusals too, names the prefixed one that replaces it. */
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

/** A probe needs nothing; the API's description may be protected. */
function isOpen({ protectDocs }: RouterDeps, { owner, isDocument }: Route): boolean {
  return owner === 'probe' && !(protectDocs && isDocument);
}

function mustStart(deps: RouterDeps, route: Route): boolean {
  return !isOpen(deps, route) && !route.isAlwaysServed;
}

/**
 * Placement, key and tenant are checked before everything else. Placement is first: the keys of a tenant that is
 * served elsewhere are unknown here.
 */
function serve(
  deps: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  matched: Matched,
  traceparent: string | undefined,
  watched: WatchedExchange,
): void {
  if (isOpen(deps, matched.route)) {
    given.reply(deps.operations[matched.route.id as RoutesOf<'probe'>](matched.params));
    return;
  }
  const go = () => serveHome(deps, request, given, matched, traceparent, watched);
  const asked = admitNamed(deps, request, matched.route);
  if (asked === undefined) go();
  else then(deps, request, given, asked, go);
}

/** Goes on when the promise has resolved; what it rejects with is the answer. */
function then(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  asked: Promise<unknown>,
  go: () => void,
): void {
  asked.then(
    () => attempt(deps, request, exchange, go),
    (error: unknown) => replyError(deps, request, exchange, error),
  );
}

/** Of a tenant that lives here, as far as the headers say whose it is. */
function serveHome(
  deps: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  matched: Matched,
  traceparent: string | undefined,
  watched: WatchedExchange,
): void {
  const { gate, authorise } = deps;
  const { route } = matched;
  // Of a request of anybody there is no tenant whom it could be charged to.
  const isPublic = route.capability === 'public';
  if (!isPublic) deps.guard?.(request);
  const caller = authorise(request, route);
  if (!isPublic) {
    watched.tenant = caller.tenant;
    deps.activity.came(caller.tenant, watched.since);
  }
  const refusal = route.isAlwaysServed || route.isDocument ? undefined : gate.refusal();
  if (refusal !== undefined && !mayRead(gate.state, route)) throw refusal;
  const go = () => serveAdmitted(deps, request, given, matched, caller, traceparent);
  const checked = () => paramsOf(deps.validators, route, request.path, matched.params);
  const settled = isPublic
    ? undefined
    : admitCaller(deps, request, matched, caller.tenant, checked);
  if (settled === undefined) go();
  else then(deps, request, given, settled, go);
}

function serveAdmitted(
  deps: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  { route, params: raw }: Matched,
  caller: Caller,
  traceparent: string | undefined,
): void {
  const room =
    route.capability === 'public'
      ? undefined
      : deps.admission.admit(route, caller.tenant, caller.key === undefined, request.body, raw);
  if (room === undefined) {
    serveCaller(deps, request, given, { route, params: raw }, caller, traceparent);
    return;
  }
  room.then(
    (leave) => {
      const exchange = leaving(given, leave);
      attempt(deps, request, exchange, () =>
        serveCaller(deps, request, exchange, { route, params: raw }, caller, traceparent),
      );
    },
    (error: unknown) => replyError(deps, request, given, error),
  );
}

/** The room that the request was given is given back with its answer, once: one that cannot be sent has another. */
function leaving(exchange: HttpExchange, leave: () => void): HttpExchange {
  let hasLeft = false;
  return {
    get aborted() {
      return exchange.aborted;
    },
    onAbort: (listener) => exchange.onAbort(listener),
    reply: (reply) => {
      if (!hasLeft) leave();
      hasLeft = true;
      exchange.reply(reply);
    },
    stream: (head) => exchange.stream(head),
  };
}

/** @throws EngineError */
function serveCaller(
  deps: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  { route, params: raw }: Pick<Matched, 'route' | 'params'>,
  { tenant, key }: Caller,
  traceparent: string | undefined,
): void {
  const { operations, validators } = deps;
  const params = paramsOf(validators, route, request.path, raw);
  const unsent =
    route.answers === undefined ? undefined : signalRefusal(request, route.answers, key);
  if (unsent !== undefined) {
    refuseOwner(deps, request, given, tenant, params, unsent);
    return;
  }
  const isLasting = route.owner === 'stream' || route.isParked;
  const exchange = isLasting ? lasting(deps, request, given, route, { tenant, key }) : given;
  if (route.owner === 'probe') exchange.reply(operations[route.id as RoutesOf<'probe'>](params));
  else if (route.owner === 'front' || route.owner === 'stream') {
    serveHere(deps, request, exchange, { route, tenant, params, traceparent, key });
  } else {
    // Only polls hand tasks out.
    const maySeeSecrets = route.isParked && seesSecrets(key) ? true : undefined;
    const by = route.bringsSignals === true ? nameOf(key) : undefined;
    askShard(deps, request, exchange, { route, tenant, params, traceparent, maySeeSecrets, by });
  }
}

/** Ends with its key, and once its tenant is no longer served here. */
function lasting(
  { keys, placement, log }: RouterDeps,
  request: HttpRequest,
  given: HttpExchange,
  route: Route,
  { tenant, key }: Caller,
): HttpExchange {
  const bound =
    key === undefined
      ? given
      : endWith(given, (end) =>
          keys.whenGone(key, () => end(errorReply(log, request, UNAUTHENTICATED))),
        );
  const [whose] = tenant === '' ? tenantsQueried(request.query) : [tenant];
  if (placement === undefined || whose === undefined) return bound;
  const isPoll = route.isParked === true;
  return endWith(bound, (end) =>
    placement.whenGone(whose, isPoll, (why) => end(errorReply(log, request, why))),
  );
}

/** Others than those who may know of the instance are told that there is no such thing, as ever. */
function refuseOwner(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  tenant: string,
  { id = '' }: Readonly<Record<string, string>>,
  refusal: EngineError,
): void {
  const refuse = (error: unknown) => replyError(deps, request, exchange, error);
  deps.rows.instanceIsThere(tenant, id).then(() => refuse(refusal), refuse);
}

/** Finds its actor without the database: it works while that is away. */
function isResidentRead({ owner, method }: Route): boolean {
  return owner === 'by-id' && method === 'GET';
}

/** What is served although the engine refuses the rest. */
function mayRead(state: EngineState, route: Route): boolean {
  return (
    (state === 'database-away' && isResidentRead(route)) ||
    (state === 'writes-fail' && route.method === 'GET')
  );
}

interface Authorised {
  readonly route: Route;
  readonly tenant: string;
  readonly params: Readonly<Record<string, string>>;
  readonly traceparent: string | undefined;
}

/** @throws EngineError 400; what the function itself rejects with is answered later */
function serveHere(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  { route, tenant, params, traceparent, key }: Authorised & Pick<Caller, 'key'>,
): void {
  const { operations } = deps;
  const front = { ...deps.front, reads: deps.front.reads.of(tenant) };
  // That each function has the call of its route is checked where they are put together.
  const call = checkCall(deps, route.id as FrontRouteId, {
    tenant,
    key,
    by: nameOf(key),
    params,
    path: request.path,
    search: request.query,
    bodyText: route.isRaw ? '' : bodyOf(request, route),
    traceparent,
    header: (name) => request.header(name),
    peer: request.peer,
    raw: route.isRaw ? request.body : NO_BODY,
    host: request.header('host'),
    wantsPage: /\btext\/html\b/i.test(request.header('accept') ?? ''),
    lastEventId: request.header('last-event-id'),
  });
  request.forgetBody();
  const answerTo = (checked: never) =>
    route.owner === 'front'
      ? operations[route.id as RoutesOf<'front'>](front, checked).then(
          (reply) => () => exchange.reply(reply),
        )
      : operations[route.id as RoutesOf<'stream'>](front, checked).then(
          (feed) => () => feed(exchange),
        );
  const answer =
    call instanceof Promise
      ? call.then((checked) => answerTo(checked as never))
      : answerTo(call as never);
  answer.then(
    (give) => attempt(deps, request, exchange, give),
    (error: unknown) => replyError(deps, request, exchange, error),
  );
}

/** What answers of people, and signals, note as theirs. */
function nameOf(key: Caller['key']): string {
  return key === undefined ? 'root' : key.name || key.id;
}

/** @throws EngineError 400, or 503 when too much is in flight or the shard is away */
function askShard(
  deps: RouterDeps,
  request: HttpRequest,
  exchange: HttpExchange,
  { route, tenant, params, traceparent, maySeeSecrets, by }: Authorised & AskedBy,
): void {
  const { client, gate, validators } = deps;
  const query = route.query === undefined ? undefined : queryOf(validators, route, request.query);
  const committed = () => {
    const given = deps.rows.committedInstance(tenant, params.id ?? '');
    then(deps, request, exchange, given.then(exchange.reply.bind(exchange)), NOTHING);
  };
  const isRecord = route.id === 'instances.get';
  if (isRecord && gate.state === 'writes-fail') {
    committed();
    return;
  }
  const body = route.body === undefined ? '' : textOf(request.body);
  request.forgetBody();
  const id = client.send(
    shardFor(client, route, tenant, params),
    route.id as ShardRouteId,
    tenant,
    Object.values(params).join('/'),
    body,
    (reply) => {
      if (isRecord && 'error' in reply && gate.state === 'writes-fail') committed();
      else attempt(deps, request, exchange, () => exchange.reply(httpReply(reply)));
    },
    traceparent,
    query,
    maySeeSecrets,
    by,
  );
  if (route.isParked) exchange.onAbort(() => client.abort(id));
}

function queryOf(validators: Validators, route: Route, raw: string): Record<string, unknown> {
  const checked = validators.parseQuery(route.id, raw);
  if (!checked.ok) throw invalid(checked.message);
  return checked.value;
}

function paramsOf(
  validators: Validators,
  route: Route,
  path: string,
  raw: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (raw === NO_PARAMS) return raw;
  // No text of the database can hold it, so nothing has such a name.
  if (path.includes('%00')) throw invalid('the path holds U+0000');
  const checked = validators.parseParams(route.id, raw);
  if (!checked.ok) throw invalid(checked.message);
  return checked.value as Record<string, string>;
}

function shardFor(
  client: RouterDeps['client'],
  { owner }: Route,
  tenant: string,
  params: Readonly<Record<string, string>>,
): number {
  if (owner === 'by-id') return client.shardOf(params.id ?? '');
  if (owner === 'by-limit') return client.shardOf(rateLimitId(tenant, params.key ?? ''));
  return owner === 'first-shard' ? 0 : client.anyShard();
}

/** The text of a form becomes that of an object. @throws EngineError 400 when the bytes are not UTF-8 */
function bodyOf(request: HttpRequest, { body, isForm }: Route): string {
  if (body === undefined) return '';
  const text = textOf(request.body);
  const type = request.header('content-type') ?? '';
  if (isForm !== true || !/^application\/x-www-form-urlencoded\b/i.test(type)) return text;
  return JSON.stringify(Object.fromEntries(new URLSearchParams(text)));
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

/** @throws EngineError of the shard */
function httpReply(reply: ShardReply): HttpReply {
  if ('error' in reply) throw reply.error;
  return { status: reply.status, body: reply.status === 204 ? undefined : reply.body };
}

/** Defects go into the log. */
function errorReply(log: Logger, request: HttpRequest, error: unknown): HttpReply {
  if (!(error instanceof EngineError) || error.code === 'ENG_INTERNAL') {
    log.error({ requestId: request.requestId, err: error }, 'defect');
    return refusalReply(DEFECT);
  }
  if (error.cause !== undefined) {
    log.error({ requestId: request.requestId, err: error.cause }, 'the database cannot answer');
  }
  const reply = refusalReply(error);
  if (!(error instanceof MethodNotAllowed)) return reply;
  return { ...reply, headers: [...(reply.headers ?? []), ['allow', error.allow.join(', ')]] };
}
