/** Requests that a shard answers: it gets the body as text. */

import type { ShardRouteId } from '../../../schema/routes.js';
import { rateLimitId, shardOf } from '../../base/ids.js';
import { seesSecrets } from '../auth.js';
import { validOf } from '../body.js';
import { leadIn } from '../lead.js';
import { textOf } from '../request-body.js';
import type { ShardReply, ShardRequest } from '../shards.js';
import { type MatchedContext, nameOf } from './context.js';
import { refuse } from './refuse.js';
import type { Outcome, RouterDeps } from './step.js';

type Deps = Pick<RouterDeps, 'client' | 'gate' | 'rows' | 'validators' | 'log'>;

/** @throws EngineError 400, or 503 when too much is in flight or the shard is restarting */
export function askShard(context: MatchedContext, deps: Deps): Outcome | Promise<Outcome> {
  const { client, gate, validators } = deps;
  const { request, exchange, route } = context;
  const query =
    route.query === undefined ? undefined : validOf(validators.parseQuery(route.id, request.query));
  if (route.id === 'instances.get' && gate.state === 'writes-fail') return committed(context, deps);
  const asked = requestOf(context, query);
  request.forgetBody();
  const id = client.send(shardFor(context, client, asked.body), asked, (reply) =>
    give(context, deps, reply),
  );
  if (route.isParked) exchange.onAbort(() => client.abort(id));
  return 'answered';
}

/** @throws EngineError 400 when the bytes of the body are not UTF-8 */
function requestOf(context: MatchedContext, query: ShardRequest['query']): ShardRequest {
  const { request, route, tenant, params, key, traceparent } = context;
  return {
    operation: route.id as ShardRouteId,
    tenant,
    target: Object.values(params).join('/'),
    body: route.body === undefined ? '' : textOf(request.body),
    query,
    traceparent,
    // Only polls hand tasks out.
    maySeeSecrets: route.isParked && seesSecrets(key) ? true : undefined,
    by: route.bringsSignals === true ? nameOf(key) : undefined,
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
      return client.shardOf(rateLimitId(tenant, params.key ?? ''));
    case 'first-shard':
      return 0;
    default: {
      const isLed = ledBy !== undefined && client.shards > 1;
      const bits = isLed ? leadIn(body, ledBy, tenant) : undefined;
      return bits === undefined ? client.anyShard() : shardOf(bits, client.shards);
    }
  }
}

function give(context: MatchedContext, deps: Deps, reply: ShardReply): void {
  const refuseWith = (error: unknown) => refuse(context, deps.log, error);
  if (!('error' in reply)) {
    const { status, body } = reply;
    try {
      context.exchange.reply({ status, body: status === 204 ? undefined : body });
    } catch (error) {
      refuseWith(error);
    }
  } else if (context.route.id === 'instances.get' && deps.gate.state === 'writes-fail') {
    committed(context, deps).catch(refuseWith);
  } else refuseWith(reply.error);
}

/** The record as it is committed: its owner would wait for a database that takes no writes. */
async function committed(
  { exchange, tenant, params }: MatchedContext,
  { rows }: Pick<Deps, 'rows'>,
): Promise<Outcome> {
  exchange.reply(await rows.committedInstance(tenant, params.id ?? ''));
  return 'answered';
}
