/** The list of rate limits; each limit belongs to its actor. */

import type { RouteId } from '../../../schema/routes.js';
import { jsonReply, listTenant, type Operation } from './operation.js';

const list: Operation = async (deps, call) =>
  jsonReply(await deps.reads.rateLimits.list(listTenant(call)));

/** The reads of rate limits; their changes belong to the limits. */
export const rateLimitOperations = {
  'rateLimits.list': list,
} satisfies Partial<Record<RouteId, Operation>>;
