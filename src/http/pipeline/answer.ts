/** The last step answers the request according to its route: on this thread, or by a shard. */

import type { FrontRouteId, Route, RoutesOf, ShardRouteId } from '../../../schema/routes.js';
import { rateLimitId, shardOf } from '../../base/ids.js';
import { isPattern } from '../../core/rate-patterns.js';
import { answerGroups, seesSecrets } from '../auth.js';
import { validOf } from '../body.js';
import { formText, isFormType } from '../form.js';
import { leadIn } from '../lead.js';
import { checkCall, type UncheckedCall } from '../operation.js';
import { textOf } from '../request-body.js';
import { prefers } from '../request-head.js';
import type { HttpReply, HttpRequest } from '../server.js';
import type { ShardReply, ShardRequest } from '../shards.js';
import { type MatchedContext, NO_PARAMS, type Outcome, type RouterDeps } from './context.js';
import { refuse } from './refuse.js';
import { answerProbe } from './routing.js';

/** @throws EngineError, as the promise rejects with */
export function answer(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  switch (context.route.owner) {
    case 'probe':
      return answerProbe(context, deps);
    case 'front':
    case 'stream':
      return serveHere(context, deps);
    default:
      return askShard(context, deps);
  }
}

const NO_BODY = Buffer.alloc(0);

async function serveHere(context: MatchedContext, deps: RouterDeps): Promise<Outcome> {
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

function callOf({ request, route, tenant, key, by, params, traceparent }: MatchedContext) {
  return {
    ...{ tenant, key, by, params, traceparent },
    path: request.path,
    search: request.query,
    bodyText: route.isRaw ? '' : bodyOf(request, route),
    header: (name) => request.header(name),
    allHeaders: () => request.allHeaders(),
    peer: request.peer,
    raw: route.isRaw ? request.body : NO_BODY,
  } satisfies UncheckedCall;
}

/** Converts a form to JSON. @throws EngineError 400 when the bytes are not UTF-8 */
function bodyOf(request: HttpRequest, { body, isForm }: Route): string {
  if (body === undefined) return '';
  const text = textOf(request.body);
  return isForm === true && isFormType(request.header('content-type')) ? formText(text) : text;
}

/** Sends the body as text. @throws EngineError 503 when too much is in flight or the shard is restarting */
function askShard(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  const { client, gate, validators } = deps;
  const { request, exchange, route } = context;
  const hasNone = route.query === undefined || (route.mayWait === true && request.query === '');
  const query = hasNone ? undefined : validOf(validators.parseQuery(route.id, request.query));
  if (route.id === 'instances.get' && gate.state === 'writes-fail') return committed(context, deps);
  const shardRequest = requestOf(context, query);
  request.forgetBody();
  const shard = shardFor(context, client, shardRequest.body);
  const id = client.send(
    shard,
    shardRequest,
    (reply) => give(context, deps, reply),
    context.mayWait ? () => context.parked() : undefined,
  );
  if (context.mayWait) exchange.onAbort(() => client.abort(id));
  return 'answered';
}

/** @throws EngineError 400 when the bytes of the body are not UTF-8 */
function requestOf(context: MatchedContext, query: ShardRequest['query']): ShardRequest {
  const { request, route, tenant, params, key, traceparent } = context;
  const isSigned = route.bringsSignals === true || route.action !== undefined;
  return {
    operation: route.id as ShardRouteId,
    tenant,
    target: params === NO_PARAMS ? '' : Object.values(params).join('/'),
    body: route.body === undefined ? '' : textOf(request.body),
    query,
    traceparent,
    // Only polls return tasks.
    maySeeSecrets: (route.isParked || route.grantsSecrets) && seesSecrets(key) ? true : undefined,
    isBrief: route.mayBeMinimal && prefers(request, 'return=minimal') ? true : undefined,
    by: isSigned ? context.by : undefined,
    key: isSigned ? key?.id : undefined,
    groups: route.bringsSignals === true ? answerGroups(key) : undefined,
  };
}

function shardFor(
  { route: { owner, ledBy }, tenant, params }: MatchedContext,
  client: RouterDeps['client'],
  body: string,
): number {
  switch (owner) {
    case 'by-id':
      return client.shardOf(params.id ?? '');
    case 'by-limit':
      // The first shard owns the patterns.
      return isPattern(params.key ?? '')
        ? 0
        : client.shardOf(rateLimitId(tenant, params.key ?? ''));
    case 'first-shard':
      return 0;
    default: {
      const isLed = ledBy !== undefined && client.shards > 1;
      const bits = isLed ? leadIn(body, ledBy, tenant) : undefined;
      return bits === undefined ? client.anyShard() : shardOf(bits, client.shards);
    }
  }
}

const EMPTY: HttpReply = { status: 204, body: undefined };
const MINIMAL: HttpReply = { ...EMPTY, headers: [['preference-applied', 'return=minimal']] };

function give(context: MatchedContext, deps: RouterDeps, reply: ShardReply): void {
  const { exchange, route } = context;
  if ('error' in reply) {
    const isReadable = route.id === 'instances.get' && deps.gate.state === 'writes-fail';
    if (!isReadable) refuse(context, deps.log, reply.error);
    else committed(context, deps).catch((error: unknown) => refuse(context, deps.log, error));
    return;
  }
  try {
    if (reply.status !== 204) exchange.reply(reply);
    else exchange.reply(route.mayBeMinimal ? MINIMAL : EMPTY);
  } catch (error) {
    refuse(context, deps.log, error);
  }
}

/** The committed record: its owner would wait for a database that takes no writes. */
async function committed(
  { exchange, tenant, params }: MatchedContext,
  { rows }: RouterDeps,
): Promise<Outcome> {
  exchange.reply(await rows.committedInstance(tenant, params.id ?? ''));
  return 'answered';
}
