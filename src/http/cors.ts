/**
 * Cross-origin access for browsers. The policy is compiled once from the list of origins; a request
 * only looks its own origin up. Pure.
 */

type Headers = readonly (readonly [string, string])[];

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const REQUEST_HEADERS = [
  'content-type',
  'authorization',
  'x-api-key',
  'x-tenant-id',
  'x-cell',
  'x-trigger-secret',
  'x-trigger-timestamp',
  'x-trigger-nonce',
  'x-engine-signature',
].join(', ');
/** Reply headers that a script may read; without them a browser client could not page. */
const EXPOSED_HEADERS = 'link, retry-after, x-cell, x-error-code, x-next-cursor, x-request-id';
/** Chromium ignores more than two hours; a change of the list need not wait for even that long. */
const PREFLIGHT_AGE_S = '600';
const NONE: Headers = [];

export interface CorsPolicy {
  /** Headers for a reply to a request from `origin`; only `vary`, or none, for a foreign one. */
  replyHeaders(origin: string | undefined): Headers;
  /** What the 204 to a preflight from `origin` carries besides `replyHeaders`. */
  preflightHeaders(origin: string | undefined): Headers;
}

/**
 * Compiles `origins` (compared exactly, `*` = any). As soon as the list names an origin, all replies depend on it and
 * say so in `vary`.
 */
export function corsPolicy(origins: readonly string[]): CorsPolicy {
  const isAny = origins.includes('*');
  const foreign: Headers = isAny || origins.length === 0 ? NONE : [['vary', 'Origin']];
  const replies = new Map(origins.map((origin) => [origin, allowed(origin, foreign)]));
  const anyReply = isAny ? allowed('*', NONE) : undefined;

  const replyHeaders = (origin: string | undefined): Headers => {
    if (origin === undefined) return foreign;
    return anyReply ?? replies.get(origin) ?? foreign;
  };
  return {
    replyHeaders,
    preflightHeaders: (origin) => (replyHeaders(origin) === foreign ? NONE : PREFLIGHT),
  };
}

const PREFLIGHT: Headers = [
  ['access-control-allow-methods', METHODS],
  ['access-control-allow-headers', REQUEST_HEADERS],
  ['access-control-max-age', PREFLIGHT_AGE_S],
];

function allowed(origin: string, foreign: Headers): Headers {
  return [
    ['access-control-allow-origin', origin],
    ['access-control-expose-headers', EXPOSED_HEADERS],
    ...foreign,
  ];
}
