/**
 * Where names of sequences lead, on one shard: what creations and fires that name a sequence, not its
 * id, resolve by. Read from rows when somebody asks, and kept until the catalog says that the name has
 * got another version or lost one, or that a hold is lifted (`names.forget`), or until something else
 * changes what names lead to: the deletion of any sequence, and the routes of releases.
 */

import { lastUsed } from '../../src/base/quota/last-used.js';
import type { Messages, Room } from '../runtime/room.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import type { CatalogLoads } from './loads.js';

export interface NamesDeps {
  readonly loader: Pick<CatalogLoads, 'namedSequence'>;
  /** What is kept is old once this has changed. */
  readonly since: () => number;
  /** The names of that version were forgotten. */
  readonly forgotten: (version: number) => void;
}

/** A hundred bytes each; the rest is read when it is asked for. */
const NAMES_MAX = 50_000;

/** Stands for every name where names are told. */
export const EVERY_NAME = '';

export class Names implements Room {
  readonly #deps: NamesDeps;
  readonly #ids = lastUsed<string, string>(NAMES_MAX);
  /** The `since` of what is kept. */
  #since = 0;
  /** How often something was forgotten: what was read meanwhile may be old. */
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

  /** The id of the sequence if it is at hand. */
  get(name: SequenceName): string | undefined {
    this.#refresh();
    return this.#ids.get(placeOf(name));
  }

  /** Rejects when the database cannot be asked. */
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

  /** @param names those whose newest version may be another one now, see `wordOf` */
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

/** How a name is told: versions that are named themselves never lead to another id. */
export function wordOf(tenant: string, namespace: string, name: string): string {
  return `${tenant}\0${namespace}\0${name}`;
}

/** NUL cannot occur inside a part: Postgres stores no text with it. */
function placeOf({ tenant, namespace, name, version }: SequenceName): string {
  const word = wordOf(tenant, namespace, name);
  return version === null ? word : `${word}\0${version}`;
}
