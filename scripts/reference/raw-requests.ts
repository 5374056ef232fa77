/** What the two backends answer differently: made of the corpus that is run on both. */

import { code, table } from './markdown.js';
import { RAW_REQUESTS } from './raw-corpus.js';
import type { Regions } from './regions.js';

/** What uWebSockets.js does otherwise than node:http, as the documentation tells it. */
export const DIFFERENCES = {
  bare: 'Its own parser refuses the request: 400, 431 or 505 with a line of HTML, without JSON, `x-error-code` and `x-request-id`. The connection is closed.',
  version: 'HTTP/1.0 is answered with 505, and closed.',
  waits:
    'Its parser takes the bytes for the beginning of a request and waits for the rest. Nothing is answered, nothing behind them is served, and the connection is closed after ten seconds.',
  taken: 'It is served; node:http refuses it.',
  ends: 'Bytes beyond ASCII at both ends of the value of a header are dropped, also of `x-tenant-id`. A value that has no others is refused there. Who names tenants in such letters sets `ENGINE_HTTP_BACKEND=node`.',
  chunked:
    'The connection closes behind a chunked body, and what comes with its end is not served: its parser does not tell the next request from what a malformed chunk leaves over.',
  chunks:
    'Its parser takes malformed sizes and ends of chunks, or waits for the bytes that it made of them until the body is too slow (408). The connection is closed all the same.',
  extensions: 'Extensions of chunks are refused, or waited upon until the body is too slow (408).',
  trailers:
    'Trailers are taken for a request: the one with the body is not served, and the connection is closed.',
  continue: 'Every `100-continue` in lower case is told to go on, even if it is refused then.',
  close:
    '`close` counts only as the whole value of `connection`, and what came in the same packet behind it is served, too.',
  upgrade:
    'It serves what comes in one packet behind a request for an upgrade; node:http does not.',
  behind:
    'What comes in one packet behind a refused request closes the connection, so that the refusal is not told.',
  lost: 'What its parser refuses, or what comes behind a refusal, closes the connection: the answer to a good request before it in the same packet is lost.',
  pipelined:
    'It serves one request of a connection at a time: what arrives behind one in work closes the connection without the answer.',
} as const;

export type Difference = keyof typeof DIFFERENCES;

/** A group with more of them is told by its name and their number. */
const NAMED_MAX = 6;
const NAME_LENGTH_MAX = 60;

export function rawRequestRegions(): Regions {
  const differences = Object.keys(DIFFERENCES) as Difference[];
  const rows = differences.map((why) => [DIFFERENCES[why], requestsOf(why)]);
  const otherwise = RAW_REQUESTS.filter(({ uws }) => uws !== undefined).length;
  const counts = `Of the ${RAW_REQUESTS.length} raw requests of the corpus ${RAW_REQUESTS.length - otherwise} are answered alike, ${otherwise} otherwise.`;
  return {
    'http-differences': `${counts}\n\n${table(['what uWebSockets.js does otherwise', 'with'], rows)}`,
  };
}

function requestsOf(why: Difference): string {
  const named = new Map<string, string[]>();
  for (const { group, name, uws } of RAW_REQUESTS) {
    if (uws?.why !== why) continue;
    named.set(group, [...(named.get(group) ?? []), code(name.slice(0, NAME_LENGTH_MAX))]);
  }
  return [...named]
    .map(([group, names]) => {
      return names.length > NAMED_MAX
        ? `${group} (${names.length})`
        : `${group}: ${names.join(', ')}`;
    })
    .join('; ');
}
