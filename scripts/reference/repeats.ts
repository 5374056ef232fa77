/**
 * Retries of the clients of both languages: which operations, after which responses, and with which idempotency keys.
 * "Asking again" in docs/reference/errors.md has the reasons.
 */

import { ROUTES, type Route } from '../../schema/routes.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const isAlways = ({ method }: Route) => method !== 'POST' && method !== 'PATCH';

export const isRepeatable = (route: Route) => isAlways(route) || route.repeats !== undefined;

/** Whether the row has a reason; for other methods the method is the reason. */
export const isListed = (route: Route) => !isAlways(route) && isRepeatable(route);

/** Requests that may be repeated, and why that is harmless. */
export function repeatRegions(): Regions {
  const listed = Object.values<Route>(ROUTES).filter(isListed);
  const rows = listed.map(({ method, path, repeats = '' }) => [code(`${method} ${path}`), repeats]);
  return { repeats: table(['request', 'harmless to repeat because'], rows) };
}

/** Fields that identify a repetition. */
export const KEYS = ['idempotency_key', 'producer_event_id', 'answer_id'];

/** Responses and what they mean for a retry. */
const ANSWERS = {
  UNDONE_STATUSES: [
    'Nothing was done. After 421 the map of a proxy is updated soon.',
    [408, 421, 429],
  ],
  GATEWAY_STATUSES: [
    'The request may have been executed, except after a 503 of the engine.',
    [502, 503, 504],
  ],
  LASTING_CODES: [
    'A retry fails in the same way.',
    ['ENG_DELIVERY_FAILED', 'ENG_NO_KEYS', 'ENG_SLOW_READ'],
  ],
  UNKNOWN_CODES: [
    'After a 503 with these, the request may have been executed.',
    ['ENG_SHARD_RESTARTING'],
  ],
} as const;
const UNKNOWN_WORDS = 'outcome is unknown';
const WORDS_NOTE = 'The same after a 503 whose message has these words.';

const entries = Object.entries(ANSWERS);

export const repeatsOfTypeScript = () =>
  [
    '/** After which responses a request is retried. Written by `npm run generate`. */\n',
    ...entries.map(
      ([name, [note, list]]) =>
        `/** ${note} */\nexport const ${name}: ReadonlySet<${typeof list[0]}> = new Set(${JSON.stringify(list)});`,
    ),
    `/** ${WORDS_NOTE} */\nexport const UNKNOWN_WORDS = ${JSON.stringify(UNKNOWN_WORDS)};\n`,
  ].join('\n');

export const repeatsOfPython = () =>
  [
    '"""After which responses a request is retried. Written by `npm run generate`."""\n',
    'from typing import Final\n',
    ...entries.map(
      ([name, [note, list]]) =>
        `#: ${note}\n${name}: Final = frozenset({${list.map((one) => JSON.stringify(one)).join(', ')}})`,
    ),
    `#: ${WORDS_NOTE}\nUNKNOWN_WORDS: Final = ${JSON.stringify(UNKNOWN_WORDS)}\n`,
  ].join('\n');
