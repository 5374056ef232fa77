/** The steps that find the route, and refuse or delay requests that the engine cannot serve in its state. */

import { matchRoute } from '../../../schema/route-match.js';
import type { Route, RoutesOf } from '../../../schema/routes.js';
import { EngineError, invalid } from '../../base/errors.js';
import { UNAUTHENTICATED } from '../auth.js';
import { validOf } from '../body.js';
import { tenantsQueried } from '../named-tenants.js';
import type { EngineState } from '../ports.js';
import { headerText } from '../reply.js';
import type { HttpRequest } from '../server.js';
import {
  type MatchedContext,
  NO_PARAMS,
  type Outcome,
  type Params,
  type RequestContext,
  type RouterDeps,
} from './context.js';
import { errorReply, MethodNotAllowed } from './refuse.js';

/** Answers requests for the dashboard, which has no routes. @throws EngineError 404 for an unknown file */
export function page({ request, exchange }: RequestContext, { pages }: RouterDeps): Outcome {
  const reply = pages(request);
  if (reply === undefined) return 'continue';
  exchange.reply(reply);
  return 'answered';
}

/** Finds the route by method and path. @throws EngineError 404, 405 (as MethodNotAllowed) or 400 for a bad encoding */
export function match(context: RequestContext): Outcome {
  const { request, exchange } = context;
  const found = matchRoute(request.method, request.path);
  if (found === 'not-found') {
    throw new EngineError('ENG_NOT_FOUND', `not found: no route ${request.path}`);
  }
  if (found === 'bad-encoding') throw invalid('the path is not percent-encoded UTF-8');
  if ('allow' in found) throw new MethodNotAllowed(request.method, found.allow);
  if (found.isBareAlias) exchange.addHeaders(deprecation(request));
  context.matched(found.route, found.params);
  return 'continue';
}

/** Every response on a path without prefix, including refusals, names the path that replaces it. */
function deprecation({ path, query }: HttpRequest): string {
  const target = query === '' ? path : `${path}?${query}`;
  // These are allowed in a request line, but would end the address in the header.
  const address = target.replace(/[<>"]/g, encodeURIComponent);
  return `${DEPRECATED}${address}>; rel="successor-version"`;
}

const DEPRECATED =
  headerText([
    ['deprecation', '@1767225600'],
    ['sunset', 'Sat, 01 Jan 2028 00:00:00 GMT'],
  ]) + '\r\nlink: </api/v1';

/** Answers probes, which require no key, tenant or started engine. */
export function probe(context: MatchedContext, deps: RouterDeps): Outcome {
  const { route } = context;
  if (route.owner !== 'probe' || (deps.protectDocs && route.isDocument)) return 'continue';
  return answerProbe(context, deps);
}

export function answerProbe(context: MatchedContext, { operations }: RouterDeps): Outcome {
  const { exchange, route, params } = context;
  exchange.reply(operations[route.id as RoutesOf<'probe'>](params));
  return 'answered';
}

export function start({ route }: MatchedContext, { gate }: RouterDeps): Outcome | Promise<Outcome> {
  if (gate.state !== 'starting' || route.isAlwaysServed) return 'continue';
  return new Promise((resolve) => gate.whenStarted(() => resolve('continue')));
}

/** Refuses requests that the engine cannot serve in its state. @throws EngineError 503 */
export function state({ route }: MatchedContext, { gate }: RouterDeps): Outcome {
  if (route.isAlwaysServed || route.isDocument) return 'continue';
  const refusal = gate.refusal();
  if (refusal !== undefined && !mayRead(gate.state, route)) throw refusal;
  return 'continue';
}

/** Reads that are served while the engine refuses everything else. */
function mayRead(current: EngineState, { owner, method }: Route): boolean {
  if (method !== 'GET') return false;
  // A resident actor answers without the database.
  return current === 'writes-fail' || (current === 'database-unavailable' && owner === 'by-id');
}

export function parameters(context: MatchedContext, deps: RouterDeps): Outcome {
  context.params = checkedParams(context, deps);
  return 'continue';
}

export function checkedParams(
  { request, route, params }: MatchedContext,
  { validators }: RouterDeps,
): Params {
  if (route.params === undefined) return NO_PARAMS;
  // Postgres cannot store U+0000, so nothing has such a name.
  if (request.path.includes('%00')) throw invalid('the path holds U+0000');
  return validOf(validators.parseParams(route.id, params)) as Params;
}

/** Ends streams and parked requests when their key is revoked or expires, or their tenant leaves the cell. */
export function lifetime(context: MatchedContext, { keys, placement, log }: RouterDeps): Outcome {
  const { request, exchange, route, tenant, key, mayWait } = context;
  if (route.owner !== 'stream' && !mayWait) return 'continue';
  const end = (why: EngineError) => exchange.end(errorReply(log, request, why));
  if (key !== undefined) exchange.onEnd(keys.whenGone(key, () => end(UNAUTHENTICATED)));
  const [named] = tenant === '' ? tenantsQueried(request.query) : [tenant];
  if (placement !== undefined && named !== undefined) {
    exchange.onEnd(placement.whenGone(named, mayWait, end));
  }
  return 'continue';
}
