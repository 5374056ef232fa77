/**
 * What clients send again, of both languages: which operations, after which answers, and by which keys the server
 * knows a repetition. "Asking again" in docs/reference/errors.md has the reasons.
 */

import type { Route, RouteId } from '../../schema/routes.js';

/**
 * What may be asked again when no answer came, beside GET, PUT, DELETE and what has a key. Left out is what a second
 * time answers otherwise than the first one, and what moves by a distance.
 */
const REPEATABLE: ReadonlySet<string> = new Set<RouteId>([
  'sequences.validate',
  'sequences.compare',
  'sequences.update',
  'sequences.deprecate',
  'instances.patchContext',
  'cron.preview',
  'bulkJobs.cancel',
  'workers.poll',
  'workers.pollQueue',
  'workers.exchange',
  'workers.complete',
  'workers.fail',
  'releases.evaluate',
  'releases.rollback',
  'continuity.claim',
  'runtimes.register',
  'handoffs.accept',
  'capsules.import',
  'credentials.update',
  'triggers.update',
  'webhooks.update',
]);

/** Whether a row has to say so: of others the method does. */
export const isListed = ({ id }: Route) => REPEATABLE.has(id);

export const isRepeatable = (route: Route) =>
  (route.method !== 'POST' && route.method !== 'PATCH') || isListed(route);

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
