/** The list of rate limits; each limit belongs to its actor. */

import {
  type FrontOperations,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { rateLimitList } from './rate-limit-reads.js';

const list: Operation<'rateLimits.list'> = async (deps, call) => {
  const query = listQuery(call);
  return pageReply(call, query, await deps.reads.page(rateLimitList(query)));
};

/** The reads of rate limits; their changes belong to the limits. */
export const rateLimitOperations = {
  'rateLimits.list': list,
} satisfies Partial<FrontOperations>;
