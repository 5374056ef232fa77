/** Wire shapes and routes of rate limits by tenant and key; a key without a limit is unlimited. */

import { UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { get, ok, ownedBy, type RouteRow } from './route-row.js';

/** Each grant in a window is kept, so that no sliding window exceeds the limit. */
const RATE_COUNT_MAX = 100_000;
const RATE_WINDOW_SECONDS_MAX = 86_400;

/** At most `max_count` attempts in any window of `window_seconds`. */
export const PutRateLimit = t.strictNamed('PutRateLimit', {
  max_count: t.integer({ minimum: 1, maximum: RATE_COUNT_MAX }),
  window_seconds: t.integer({ minimum: 1, maximum: RATE_WINDOW_SECONDS_MAX }),
  ...UNCHANGED,
});
export type PutRateLimit = t.Static<typeof PutRateLimit>;

export const RateLimit = t.named('RateLimit', {
  tenant_id: t.text(),
  key: t.text(),
  max_count: t.integer(),
  window_seconds: t.integer(),
  updated_at: t.Timestamp,
});
export type RateLimit = t.Static<typeof RateLimit>;

const LimitKey = t.text({ pattern: '\\S', maxLength: t.KEY_LENGTH_MAX });

const byLimit = ownedBy({ owner: 'by-limit' });

export const RATE_ROWS = {
  'rateLimits.put': byLimit.put('/rate-limits/{key}', {
    summary: 'Set the rate limit of a key.',
    params: t.object({ key: t.addressed(LimitKey) }),
    body: PutRateLimit,
    replies: ok(RateLimit, 409),
  }),
  'rateLimits.list': get('/rate-limits', 'List rate limits by key.', t.list(RateLimit), {
    query: t.object({ ...t.TenantQuery.properties, ...t.ALL_ROWS }),
  }),
  'rateLimits.delete': byLimit.remove(
    '/rate-limits/{key}',
    'Delete the rate limit of a key, which becomes unlimited.',
    { params: t.object({ key: LimitKey }) },
  ),
} as const satisfies Record<string, RouteRow>;
