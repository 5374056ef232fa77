/**
 * Keeps the rows by which an instance is found: those of the members that its sequence declares searchable. Each costs
 * a creation 11 µs of Postgres, so that without such members there are none.
 */

import { type SearchPaths, searchTerms } from '../../src/core/search-terms.js';
import { rowOf } from '../../src/db/lines.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceRecord } from './record.js';
import { SEARCH_TERM } from './tables.js';

const NONE: SearchPaths = [];

/** In the unit that inserts the instance. */
export function putSearchTerms(
  turn: Turn,
  record: InstanceRecord,
  paths: SearchPaths | undefined,
): void {
  if (paths === undefined) return;
  const { id: instance_id, tenant_id, created_at, metadata, snapshot } = record;
  for (const term of searchTerms(metadata, snapshot.data, paths)) {
    const row = rowOf(SEARCH_TERM.insert, { instance_id, term, tenant_id, created_at });
    turn.put(SEARCH_TERM.insert, `${instance_id}:${term}`, row);
  }
}

/** @param before what the rows follow from; the metadata never changes */
export function changeSearchTerms(
  { record, plan }: LiveInstance,
  turn: Turn,
  before: Pick<InstanceRecord['snapshot'], 'data'> & { readonly paths: SearchPaths | undefined },
): void {
  const { id: instance_id, tenant_id, created_at, metadata, snapshot } = record;
  if (before.paths === undefined && plan.searchable === undefined) return;
  if (before.paths === plan.searchable && before.data === snapshot.data) return;
  const old = searchTerms(metadata, before.data, before.paths ?? NONE);
  const now = searchTerms(metadata, snapshot.data, plan.searchable ?? NONE);
  const key = (term: string) => `${instance_id}:${term}`;
  for (const term of old) {
    if (!now.has(term)) turn.put(SEARCH_TERM.clear, key(term), { instance_id, term });
  }
  for (const term of now) {
    if (old.has(term)) continue;
    turn.put(SEARCH_TERM.set, key(term), { instance_id, term, tenant_id, created_at });
  }
}
