/** Wire shapes of rate limits: per tenant and key; a key without a limit is unlimited. */

import { type Static, Type } from '@sinclair/typebox';
import { KEY_LENGTH_MAX, named, Timestamp } from './common.js';

/** Grants are kept one by one within a window, so that no window of any position exceeds the limit. */
export const RATE_COUNT_MAX = 100_000;
export const RATE_WINDOW_SECONDS_MAX = 86_400;

/** At most `max_count` tries in any window of `window_seconds`. */
export const PutRateLimit = named('PutRateLimit', {
  max_count: Type.Integer({ minimum: 1, maximum: RATE_COUNT_MAX }),
  window_seconds: Type.Integer({ minimum: 1, maximum: RATE_WINDOW_SECONDS_MAX }),
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

export const RateLimitParams = Type.Object({
  key: Type.String({ pattern: '\\S', maxLength: KEY_LENGTH_MAX }),
});
export type RateLimitParams = Static<typeof RateLimitParams>;
