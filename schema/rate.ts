/** Wire shapes and routes of rate limits by tenant and key; a key without a limit is unlimited. */

import { type Static, Type } from '@sinclair/typebox';
import { UNCHANGED } from './change-shapes.js';
import { ALL_ROWS, addressed, KEY_LENGTH_MAX, named, TenantQuery, Timestamp } from './common.js';
import { get, listOf, type RouteRow, refusals, remove } from './route-row.js';
import { strictNamed } from './strict.js';

/** Each grant in a window is kept, so that no sliding window exceeds the limit. */
const RATE_COUNT_MAX = 100_000;
const RATE_WINDOW_SECONDS_MAX = 86_400;

/** At most `max_count` attempts in any window of `window_seconds`. */
export const PutRateLimit = strictNamed('PutRateLimit', {
  max_count: Type.Integer({ minimum: 1, maximum: RATE_COUNT_MAX }),
  window_seconds: Type.Integer({ minimum: 1, maximum: RATE_WINDOW_SECONDS_MAX }),
  ...UNCHANGED,
});
export type PutRateLimit = Static<typeof PutRateLimit>;

export const RateLimit = named('RateLimit', {
  tenant_id: Type.String(),
  key: Type.String(),
  max_count: Type.Integer(),
  window_seconds: Type.Integer(),
  updated_at: Timestamp,
});
export type RateLimit = Static<typeof RateLimit>;

const LimitKey = Type.String({ pattern: '\\S', maxLength: KEY_LENGTH_MAX });
const RateLimitParams = Type.Object({ key: LimitKey });

const RateLimitListQuery = Type.Object({
  ...TenantQuery.properties,
  ...ALL_ROWS,
});

export const RATE_ROWS = {
  'rateLimits.put': {
    method: 'PUT',
    path: '/rate-limits/{key}',
    summary: 'Set the rate limit of a key.',
    owner: 'by-limit',
    params: Type.Object({ key: addressed(LimitKey) }),
    body: PutRateLimit,
    replies: { 200: RateLimit, ...refusals(400, 409) },
  },
  'rateLimits.list': get('/rate-limits', 'List rate limits by key.', listOf(RateLimit), {
    query: RateLimitListQuery,
  }),
  'rateLimits.delete': remove(
    '/rate-limits/{key}',
    'Delete the rate limit of a key, which becomes unlimited.',
    { owner: 'by-limit', params: RateLimitParams },
  ),
} as const satisfies Record<string, RouteRow>;
