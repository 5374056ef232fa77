/** Hands the request to whoever answers it, by the row of its route. */

import type { RoutesOf } from '../../../schema/routes.js';
import { askShard } from './ask-shard.js';
import type { MatchedContext } from './context.js';
import { serveHere } from './serve-here.js';
import type { Outcome, RouterDeps } from './step.js';

export function answer(context: MatchedContext, deps: RouterDeps): Outcome | Promise<Outcome> {
  const { route, params, exchange } = context;
  switch (route.owner) {
    case 'probe':
      exchange.reply(deps.operations[route.id as RoutesOf<'probe'>](params));
      return 'answered';
    case 'front':
    case 'stream':
      return serveHere(context, deps);
    default:
      return askShard(context, deps);
  }
}
