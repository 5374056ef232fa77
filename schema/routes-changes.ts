/** Rows of the change feed. */

import * as change from './change.js';
import { type RouteRow, refusals } from './route-row.js';

export const CHANGE_ROWS = {
  'changes.list': {
    method: 'GET',
    path: '/changes',
    summary: 'Read what happened to the instances of the tenant, oldest first.',
    owner: 'front',
    isTenantInBody: true,
    query: change.ChangesQuery,
    replies: { 200: change.Changes, ...refusals(400) },
  },
  'changes.stream': {
    method: 'GET',
    path: '/changes/stream',
    summary: 'Follow what happens to the instances of the tenant as server-sent events.',
    owner: 'stream',
    isTenantInBody: true,
    query: change.ChangesStreamQuery,
    contentType: 'text/event-stream',
    replies: { 200: null, ...refusals(400, 429) },
  },
} as const satisfies Record<string, RouteRow>;
