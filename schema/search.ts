/** Finding instances and sequences by what a person has at hand, and the member of a sequence for it (docs/search.md). */

import * as t from './common.js';
import { get, type RouteRow } from './route-row.js';
import { INSTANCE_STATES, words } from './states.js';

/** Each value is a row of its instance, written again when it changes. */
const SEARCHABLE_MAX = 10;

export const Searchable = t.list(
  t.text({ pattern: '^[^.]+(\\.[^.]+)*$', maxLength: t.NAME_LENGTH_MAX }),
  {
    maxItems: SEARCHABLE_MAX,
    description:
      'Paths below context.data, such as customer.email, or with metadata as their first name below the ' +
      'metadata. Instances are found by the texts and numbers there.',
  },
);

/** What a definition has of it. */
export type SearchableMember = { readonly searchable?: readonly string[] | null | undefined };

export const SEARCH_KINDS = words('instance sequence');
export const SEARCH_MATCHES = words('id idempotency_key value name');
export type SearchMatch = (typeof SEARCH_MATCHES)[number];

const SearchHit = t.named('SearchHit', 'An instance or sequence that a search found.', {
  kind: t.oneOf(SEARCH_KINDS),
  id: t.noted(t.Uuid, 'Of a sequence: the id of its newest version.'),
  tenant_id: t.text(),
  namespace: t.text(),
  sequence: t.text('Name of the sequence.'),
  version: t.integer('Version of the sequence.'),
  state: t.optional(t.oneOf(INSTANCE_STATES), 'Of an instance.'),
  created_at: t.Timestamp,
  matched_by: t.oneOf(
    SEARCH_MATCHES,
    'value: a value of a searchable member or of metadata. name: the name of a sequence.',
  ),
  matched: t.text('The id, key, value or name that matches; values are in lower case.'),
});
export type SearchHit = t.Static<typeof SearchHit>;

const SearchQuery = t.object({
  q: t.text({
    pattern: '\\S',
    maxLength: t.KEY_LENGTH_MAX,
    description:
      'An id or at least its first 8 characters, an idempotency key, a value or its start, or a part of the name ' +
      'of a sequence.',
  }),
  tenant_id: t.optional(t.text(), 'Without any tenant only ids are searched.'),
  namespace: t.optional(t.text()),
  limit: t.integer({ minimum: 1, maximum: 50, default: 20 }),
});
export type SearchQuery = t.Static<typeof SearchQuery>;

export const SEARCH_ROWS = {
  'search.list': get(
    '/search',
    'Find instances by id, idempotency key, metadata or searchable data, and sequences by name; best first.',
    t.list(SearchHit),
    { query: SearchQuery },
  ),
} as const satisfies Record<string, RouteRow>;
