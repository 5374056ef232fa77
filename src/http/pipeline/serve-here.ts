/** Requests that the front thread answers by itself: from what it reads, or by a stream. */

import type { FrontRouteId, Route, RoutesOf } from '../../../schema/routes.js';
import { checkCall, type UncheckedCall } from '../operation.js';
import { textOf } from '../request-body.js';
import type { HttpRequest } from '../server.js';
import { type MatchedContext, nameOf } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

type Deps = Pick<RouterDeps, 'operations' | 'front' | 'validators' | 'offload' | 'places'>;

const NO_BODY = Buffer.alloc(0);

/** @throws EngineError, as the promise rejects with */
export async function serveHere(context: MatchedContext, deps: Deps): Promise<Outcome> {
  const { request, exchange, route, tenant } = context;
  const checking = checkCall(deps, route.id as FrontRouteId, callOf(context));
  request.forgetBody();
  // `FrontOperations` guarantees that each operation takes the call of its route.
  const call = (checking instanceof Promise ? await checking : checking) as never;
  const front = { ...deps.front, reads: deps.front.reads.of(tenant) };
  if (route.owner === 'stream') {
    const feed = await deps.operations[route.id as RoutesOf<'stream'>](front, call);
    feed(exchange);
  } else {
    exchange.reply(await deps.operations[route.id as RoutesOf<'front'>](front, call));
  }
  return 'answered';
}

function callOf(context: MatchedContext): UncheckedCall {
  const { request, route, tenant, key, params, traceparent } = context;
  return {
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
  };
}

/** The text of a form becomes that of an object. @throws EngineError 400 when the bytes are not UTF-8 */
function bodyOf(request: HttpRequest, { body, isForm }: Route): string {
  if (body === undefined) return '';
  const text = textOf(request.body);
  const type = request.header('content-type') ?? '';
  if (isForm !== true || !/^application\/x-www-form-urlencoded\b/i.test(type)) return text;
  return JSON.stringify(Object.fromEntries(new URLSearchParams(text)));
}
