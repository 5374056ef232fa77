/** After which answers a request is sent again. Written by `npm run generate`. */

/** Nothing was done. After 421 the map of a proxy is about to follow. */
export const UNDONE_STATUSES: ReadonlySet<number> = new Set([408, 421, 429]);
/** What was asked may have been done, but for a 503 of the engine. */
export const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** Another try does not change it. */
export const LASTING_CODES: ReadonlySet<string> = new Set([
  'ENG_DELIVERY_FAILED',
  'ENG_NO_KEYS',
  'ENG_SLOW_READ',
]);
/** With these a 503 may have been done. */
export const UNKNOWN_CODES: ReadonlySet<string> = new Set(['ENG_SHARD_RESTARTING']);
/** With these words in its message, too. */
export const UNKNOWN_WORDS = 'outcome is unknown';
