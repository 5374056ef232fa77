/**
 * Ends streams and parked polls with the key that they were opened with, since a revocation that leaves them open
 * would be none, and when their tenant leaves the cell.
 */

import type { EngineError } from '../../base/errors.js';
import { UNAUTHENTICATED } from '../auth.js';
import { tenantsQueried } from '../named-tenants.js';
import type { MatchedContext } from './context.js';
import { errorReply } from './refuse.js';
import type { Outcome, RouterDeps } from './step.js';

export function lifetime(
  { request, exchange, route, tenant, key }: MatchedContext,
  { keys, placement, log }: Pick<RouterDeps, 'keys' | 'placement' | 'log'>,
): Outcome {
  if (route.owner !== 'stream' && route.isParked !== true) return 'continue';
  const end = (why: EngineError) => exchange.end(errorReply(log, request, why));
  if (key !== undefined) exchange.onEnd(keys.whenGone(key, () => end(UNAUTHENTICATED)));
  const [named] = tenant === '' ? tenantsQueried(request.query) : [tenant];
  if (placement !== undefined && named !== undefined) {
    exchange.onEnd(placement.whenGone(named, route.isParked === true, end));
  }
  return 'continue';
}
