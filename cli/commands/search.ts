/** Finds instances and sequences by what is at hand. */

import type { SearchHit } from '../../client/src/index.js';
import { type Command, listing } from '../command.js';
import { ago } from '../table.js';
import { toneOf } from '../tones.js';

/** The server's limit. */
const HITS_MAX = 50;

export const SEARCH_COMMANDS: readonly Command[] = [
  listing<SearchHit>({
    name: 'search',
    summary:
      'Find instances by id, idempotency key, metadata or searchable data, and sequences by name.',
    args: [{ name: 'text', about: 'What is at hand, such as an order number or its start.' }],
    columns: [
      { head: 'KIND', text: ({ kind }) => kind },
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      {
        head: 'STATE',
        text: ({ state }) => state ?? '-',
        tone: ({ state }) => state && toneOf(state),
      },
      { head: 'SEQUENCE', text: ({ sequence, version }) => `${sequence} ${version}` },
      { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
      { head: 'MATCHES', text: ({ matched_by, matched }) => `${matched_by}: ${matched}` },
    ],
    ask: ({ client, connection }, given, limit) =>
      client.search.list({
        q: given.arg(),
        namespace: connection.namespace,
        limit: Math.min(limit, HITS_MAX),
      }),
  }),
];
