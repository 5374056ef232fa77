/** After which responses a request is retried. Written by `npm run generate`. */

/** Nothing was done. After 421 the map of a proxy is updated soon. */
export const UNDONE_STATUSES: ReadonlySet<number> = new Set([408, 421, 429]);
/** The request may have been executed, except after a 503 of the engine. */
export const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** A retry fails in the same way. */
export const LASTING_CODES: ReadonlySet<string> = new Set([
  'ENG_DELIVERY_FAILED',
  'ENG_NO_KEYS',
  'ENG_SLOW_READ',
]);
/** After a 503 with these, the request may have been executed. */
export const UNKNOWN_CODES: ReadonlySet<string> = new Set(['ENG_SHARD_RESTARTING']);
/** The same after a 503 whose message has these words. */
export const UNKNOWN_WORDS = 'outcome is unknown';
