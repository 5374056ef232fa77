/** The values by which an instance is found (docs/search.md): in its data and metadata, and as a query has them. Pure. */

import type { JsonObject, JsonValue } from '../base/json.js';
import { follow } from './expression/scope.js';

/** Each term is a row. */
const TERMS_MAX = 20;
/** Of the characters of a term: names, numbers and addresses, but no prose. */
const TERM_LENGTH_MAX = 128;
/** Values examined, so that large metadata costs little. */
const VALUES_MAX = 200;

/** Postgres stores neither NUL nor lone surrogates. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** Names of members: below the metadata if `metadata` is the first of several, else below `context.data`. */
export type SearchPaths = readonly (readonly string[])[];

export const searchPaths = (searchable: readonly string[]): SearchPaths =>
  searchable.map((path) => path.split('.'));

/** The term of a value or query; undefined if it is empty, too long, or not storable. */
export function searchTerm(text: string): string | undefined {
  if (text.length > 2 * TERM_LENGTH_MAX) return undefined;
  const term = text.trim().toLowerCase();
  const isFit = term !== '' && term.length <= TERM_LENGTH_MAX && !UNFIT.test(term);
  return isFit ? term : undefined;
}

/** The terms of the searchable members. */
export function searchTerms(
  metadata: JsonObject,
  data: JsonObject,
  paths: SearchPaths,
): ReadonlySet<string> {
  const terms = new Set<string>();
  for (const path of paths) {
    const isOfMetadata = path[0] === 'metadata' && path.length > 1;
    const value = isOfMetadata ? follow(metadata, path, 1) : follow(data, path, 0);
    for (const term of termsIn(value)) if (terms.size < TERMS_MAX) terms.add(term);
  }
  return terms;
}

/** The term in the metadata that is the wanted one, else one that begins with it. */
export function matchIn(metadata: JsonObject, wanted: string): string | undefined {
  // What the engine adds names no single instance.
  const own = Object.entries(metadata).filter(
    ([name]) => !name.startsWith('_') && name !== 'release',
  );
  let found: string | undefined;
  for (const term of termsIn(own.map(([, value]) => value))) {
    if (term === wanted) return term;
    if (term.startsWith(wanted)) found ??= term;
  }
  return found;
}

/** Of the texts and numbers of a value, at any depth. */
function* termsIn(value: JsonValue | undefined): Generator<string> {
  const left = [value];
  for (let count = 0; left.length > 0 && count < VALUES_MAX; count += 1) {
    const one = left.shift();
    if (typeof one === 'string' || typeof one === 'number') {
      const term = searchTerm(String(one));
      if (term !== undefined) yield term;
    } else if (typeof one === 'object' && one !== null) {
      left.push(...Object.values(one).slice(0, VALUES_MAX));
    }
  }
}
