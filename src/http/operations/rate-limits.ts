/** The list of rate limits; each limit belongs to its actor. */

import { rateLimitList } from '../../db/reads/rate-limit-reads.js';
import { type FrontOperations, jsonReply, listTenant, type Operation } from './operation.js';

const list: Operation<'rateLimits.list'> = async (deps, call) =>
  jsonReply((await deps.reads.page(rateLimitList({ tenant_id: listTenant(call) }))).text);

/** The reads of rate limits; their changes belong to the limits. */
export const rateLimitOperations = {
  'rateLimits.list': list,
} satisfies Partial<FrontOperations>;
