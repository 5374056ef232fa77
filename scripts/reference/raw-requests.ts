/** How the responses of the two backends differ, counted in the corpus that is run on both. */

import { table } from './markdown.js';
import { RAW_REQUESTS } from './raw-corpus.js';
import type { Regions } from './regions.js';

/** How uWebSockets.js differs from node:http, as the documentation says it. */
export const DIFFERENCES = {
  bare: 'Its parser refuses malformed requests (request line, version, target, host, headers, lengths, transfer encodings, chunks) with 400, 431 or 505 and a line of HTML, without JSON, `x-error-code` and `x-request-id`, and closes the connection.',
  version: 'HTTP/1.0 gets 505, and the connection is closed.',
  waits:
    'After empty lines, a bare carriage return or a request line without a version it waits for more bytes, answers nothing, and closes the connection after ten seconds.',
  taken: 'Headers with an empty name, and 0x7f in a value, are accepted; node:http refuses them.',
  ends: 'Non-ASCII bytes at both ends of a header value are dropped, also in `x-tenant-id`; a value that has no others is refused there. For such tenant names set `ENGINE_HTTP_BACKEND=node`.',
  chunked:
    'The connection is closed after a chunked body, and requests pipelined after it are lost.',
  chunks:
    'Malformed chunk sizes and ends are accepted, or waited for until the body is too slow (408). The connection is closed in any case.',
  extensions: 'Chunk extensions are refused, or waited for until the body is too slow (408).',
  trailers:
    'Trailers are parsed as a request: the request with the body is not served, and the connection is closed.',
  continue:
    'Every lower-case `100-continue` is accepted, even if the request is refused afterwards.',
  close:
    '`close` counts only as the whole value of `connection`; a request after it in the same packet is served too.',
  upgrade: 'A request in the same packet after an upgrade request is served.',
  behind:
    'A request in the same packet after a refused one closes the connection, and the refusal is not sent.',
  lost: 'A malformed or refused request closes the connection: the response to an earlier request in the same packet is lost.',
  pipelined:
    'One request per connection is served at a time: a request that arrives before the response closes the connection.',
} as const;

export type Difference = keyof typeof DIFFERENCES;

export function rawRequestRegions(): Regions {
  const differences = Object.keys(DIFFERENCES) as Difference[];
  const numberOf = (why: Difference) => RAW_REQUESTS.filter(({ uws }) => uws?.why === why).length;
  const rows = differences.map((why) => [DIFFERENCES[why], String(numberOf(why))]);
  const otherwise = RAW_REQUESTS.filter(({ uws }) => uws !== undefined).length;
  const counts = `${RAW_REQUESTS.length - otherwise} of the ${RAW_REQUESTS.length} requests get the same response, ${otherwise} another one.`;
  return { 'http-differences': `${counts}\n\n${table(['uWebSockets.js', 'requests'], rows)}` };
}
