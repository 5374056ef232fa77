/**
 * Wire shapes and routes of rate limits by tenant and key. A key that contains `*` is a pattern: the limit of every
 * matching key without one of its own. A key that nothing limits is unlimited.
 */

import { UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { did, get, ok, ownedBy, type RouteRow } from './route-row.js';

/** Each grant in a window is kept, so that no sliding window exceeds the limit. */
const RATE_COUNT_MAX = 100_000;
export const RATE_WINDOW_SECONDS_MAX = 86_400;

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
  pattern: t.optional(
    t.text('The pattern whose limit applies to the requested key. Absent: it has its own limit.'),
  ),
});
export type RateLimit = t.Static<typeof RateLimit>;

const LimitKey = t.text({ pattern: '\\S', maxLength: t.KEY_LENGTH_MAX });

const byLimit = ownedBy({ owner: 'by-limit' });

export const RATE_ROWS = {
  'rateLimits.put': byLimit.put('/rate-limits/{key}', {
    summary: 'Set the rate limit of a key, or with * in it of every key that matches.',
    params: t.object({ key: t.addressed(LimitKey) }),
    body: PutRateLimit,
    replies: ok(RateLimit, 409),
    action: did('rate_limit', 'set', { shows: ['max_count', 'window_seconds'] }),
  }),
  'rateLimits.get': get(
    '/rate-limits/{key}',
    'Get the rate limit that applies to a key.',
    RateLimit,
    { params: t.object({ key: LimitKey }), replies: ok(RateLimit, 404) },
  ),
  'rateLimits.list': get(
    '/rate-limits',
    'List rate limits and patterns by key.',
    t.list(RateLimit),
    {
      query: t.object({ ...t.TenantQuery.properties, ...t.ALL_ROWS }),
    },
  ),
  'rateLimits.delete': byLimit.remove(
    '/rate-limits/{key}',
    'Delete the rate limit of a key, to which then the best pattern applies, if any.',
    { params: t.object({ key: LimitKey }), action: did('rate_limit', 'deleted') },
  ),
} as const satisfies Record<string, RouteRow>;
