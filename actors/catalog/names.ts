/**
 * A cache of sequence ids by name on one shard. An entry is read on demand and kept until the catalog reports a changed
 * version of the name (`names.forget`), a sequence is deleted, or a routing table changes.
 */

import { lastUsed } from '../../src/base/quota/last-used.js';
import type { Messages, Room } from '../runtime/room.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import type { CatalogLoads } from './loads.js';

export interface NamesDeps {
  readonly loader: Pick<CatalogLoads, 'namedSequence'>;
  /** All entries are void once this has changed. */
  readonly since: () => number;
  /** Called when the names of a `names.forget` were invalidated. */
  readonly forgotten: (version: number) => void;
}

/** Maximum number of cached names, at a hundred bytes each. */
const NAMES_MAX = 50_000;

/** Stands for every name in an invalidation. */
export const EVERY_NAME = '';

export class Names implements Room {
  readonly #deps: NamesDeps;
  readonly #ids = lastUsed<string, string>(NAMES_MAX);
  #since = 0;
  /** The number of invalidations. A read in progress during one may be stale. */
  #changes = 0;

  readonly messages = {
    'names.forget': ({ version, names }) => {
      this.forget(names);
      this.#deps.forgotten(version);
    },
  } satisfies Messages;

  constructor(deps: NamesDeps) {
    this.#deps = deps;
  }

  /** The cached id of the sequence. */
  get(name: SequenceName): string | undefined {
    this.#refresh();
    return this.#ids.get(placeOf(name));
  }

  async load(name: SequenceName): Promise<NamedId> {
    this.#refresh();
    const place = placeOf(name);
    const known = this.#ids.get(place);
    if (known !== undefined) return known;
    const changes = this.#changes;
    const id = await this.#deps.loader.namedSequence(name);
    this.#refresh();
    if (changes !== this.#changes) return this.load(name);
    if (id != null) this.#ids.set(place, id);
    return id;
  }

  /** @param names see `wordOf` */
  forget(names: readonly string[]): void {
    this.#changes += 1;
    if (names.includes(EVERY_NAME)) this.#ids.clear();
    else for (const word of names) this.#ids.delete(word);
  }

  tenantComes(): void {
    this.forget([EVERY_NAME]);
  }

  #refresh(): void {
    const since = this.#deps.since();
    if (since === this.#since) return;
    this.#since = since;
    this.forget([EVERY_NAME]);
  }
}

/** The name in an invalidation. It has no version, because the id of a given version never changes. */
export function wordOf(tenant: string, namespace: string, name: string): string {
  return `${tenant}\0${namespace}\0${name}`;
}

/** The separator NUL cannot occur in a part, because Postgres stores no text with it. */
function placeOf({ tenant, namespace, name, version }: SequenceName): string {
  const word = wordOf(tenant, namespace, name);
  return version === null ? word : `${word}\0${version}`;
}
