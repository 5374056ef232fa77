/**
 * What clients send again, of both languages: which operations, after which answers, and by which keys the server
 * knows a repetition. "Asking again" in docs/reference/errors.md has the reasons.
 */

import { ROUTES, type Route } from '../../schema/routes.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const isAlways = ({ method }: Route) => method !== 'POST' && method !== 'PATCH';

export const isRepeatable = (route: Route) => isAlways(route) || route.repeats !== undefined;

/** Whether a row has to say so: of others the method does. */
export const isListed = (route: Route) => !isAlways(route) && isRepeatable(route);

/** What may be sent again, and why that does no harm. */
export function repeatRegions(): Regions {
  const told = Object.values<Route>(ROUTES).filter(isListed);
  const rows = told.map(({ method, path, repeats = '' }) => [code(`${method} ${path}`), repeats]);
  return { repeats: table(['request', 'harmless to repeat because'], rows) };
}

/** Fields by which the server knows a repetition. */
export const KEYS = ['idempotency_key', 'producer_event_id', 'answer_id'];

/** What answers say about another try. */
const ANSWERS = {
  UNDONE_STATUSES: [
    'Nothing was done. After 421 the map of a proxy is about to follow.',
    [408, 421, 429],
  ],
  GATEWAY_STATUSES: [
    'What was asked may have been done, but for a 503 of the engine.',
    [502, 503, 504],
  ],
  LASTING_CODES: [
    'Another try does not change it.',
    ['ENG_DELIVERY_FAILED', 'ENG_NO_KEYS', 'ENG_SLOW_READ'],
  ],
  UNKNOWN_CODES: ['With these a 503 may have been done.', ['ENG_SHARD_RESTARTING']],
} as const;
const UNKNOWN_WORDS = 'outcome is unknown';
const WORDS_NOTE = 'With these words in its message, too.';

const entries = Object.entries(ANSWERS);

export const repeatsOfTypeScript = () =>
  [
    '/** After which answers a request is sent again. Written by `npm run generate`. */\n',
    ...entries.map(
      ([name, [note, list]]) =>
        `/** ${note} */\nexport const ${name}: ReadonlySet<${typeof list[0]}> = new Set(${JSON.stringify(list)});`,
    ),
    `/** ${WORDS_NOTE} */\nexport const UNKNOWN_WORDS = ${JSON.stringify(UNKNOWN_WORDS)};\n`,
  ].join('\n');

export const repeatsOfPython = () =>
  [
    '"""After which answers a request is sent again. Written by `npm run generate`."""\n',
    'from typing import Final\n',
    ...entries.map(
      ([name, [note, list]]) =>
        `#: ${note}\n${name}: Final = frozenset({${list.map((one) => JSON.stringify(one)).join(', ')}})`,
    ),
    `#: ${WORDS_NOTE}\nUNKNOWN_WORDS: Final = ${JSON.stringify(UNKNOWN_WORDS)}\n`,
  ].join('\n');
