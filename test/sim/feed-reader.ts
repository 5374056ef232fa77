/**
 * A reader of a tenant's change feed while everything goes wrong: it asks the shards how far it may
 * read, with the front's own code, and goes on behind its last entry. Sometimes it asks an engine that
 * does not know that it was replaced. What it is shown ascends; in the end it has seen every entry
 * that is in the rows.
 */

import { EngineError } from '../../src/base/errors.js';
import { routeOf } from '../../src/base/ids.js';
import { isoTime } from '../../src/base/time.js';
import type { Row } from './memory-tables.js';
import type { Parts } from './parts.js';
import { Violation } from './violation.js';

interface FeedReaderDeps extends Pick<Parts, 'world' | 'cluster' | 'tables' | 'random'> {
  readonly tenant: string;
}

interface Entry {
  readonly at: string;
  readonly id: string;
  readonly instance: string;
}

/** An engine that died says nothing. */
const PATIENCE_MS = 8_000;
/** How long the last reading may take once everything works. */
const END_MS_MAX = 60_000;

export class FeedReader {
  readonly #deps: FeedReaderDeps;
  readonly #seen = new Set<string>();
  #last: Entry = { at: '', id: '', instance: '' };

  constructor(deps: FeedReaderDeps) {
    this.#deps = deps;
  }

  /** Reads on for ever. */
  async follow(): Promise<void> {
    const { world, random } = this.#deps;
    for (;;) {
      await world.sleep(world.latency(1, random.pick([20, 400, 3_000])));
      await this.#read(random.integer(1, 5));
    }
  }

  /** @throws Violation when an entry was not shown that is there */
  async finish(): Promise<void> {
    const { world } = this.#deps;
    const until = world.now + END_MS_MAX;
    for (;;) {
      const missing = this.#entries().find(({ id }) => !this.#seen.has(id));
      if (missing === undefined) return;
      if (world.now > until) {
        throw new Violation(`the feed skipped ${missing.id} of ${missing.at}`, missing.instance);
      }
      await this.#read(Number.POSITIVE_INFINITY);
      await world.sleep(100);
    }
  }

  /** One page, unless the engine does not answer. */
  async #read(limit: number): Promise<void> {
    const { world, cluster, random } = this.#deps;
    const engine = cluster.pick();
    if (engine === undefined) return;
    // A reader can know of a time that lies ahead of a shard's clock.
    const past = Math.floor(world.now) + (random.chance(0.1) ? random.integer(1, 2_000) : 0);
    const silence = world.sleep(PATIENCE_MS).then(() => undefined);
    const below = await Promise.race([engine.watermark.above(past), silence]).catch(refused);
    if (below === undefined) return;
    await world.sleep(world.latency(0.1, 50));
    const end = isoTime(below);
    const news = this.#entries().filter((entry) => entry.at < end && isAfter(entry, this.#last));
    for (const entry of news.sort((a, b) => (isAfter(a, b) ? 1 : -1)).slice(0, limit)) {
      this.#seen.add(entry.id);
      this.#last = entry;
    }
  }

  #entries(): Entry[] {
    const { tables, tenant } = this.#deps;
    const ofTenant = (row: Row) => row.tenant_id === tenant;
    const units = [...tables.rows('audit_log').values()].filter(ofTenant);
    const births = [...tables.rows('instances').values()].filter(ofTenant);
    return [
      ...units.flatMap((row) => entriesIn(row, String(row.instance_id), row.entries)),
      ...births.flatMap((row) => entriesIn(row, String(row.id), row.creation_audit)),
    ];
  }
}

function entriesIn(row: Row, instance: string, packed: unknown): Entry[] {
  const entries = (packed ?? []) as readonly (Readonly<{ id?: string }> | readonly unknown[])[];
  const first = entries[0] === undefined ? '' : (idIn(entries[0]) ?? '');
  return entries.map((entry, place) => {
    const following = `${first.slice(0, 19)}${(0x8000 + place).toString(16)}${first.slice(23)}`;
    const id = idIn(entry) ?? following;
    if (routeOf(id) !== routeOf(instance)) throw new Violation(`entry ${id} is astray`, instance);
    return { at: String(row.created_at), id, instance };
  });
}

function idIn(entry: Readonly<{ id?: string }> | readonly unknown[]): string | undefined {
  if ('id' in entry) return entry.id;
  return Array.isArray(entry) && entry.length === 3 ? String(entry[0]) : undefined;
}

function isAfter(one: Entry, other: Entry): boolean {
  return one.at > other.at || (one.at === other.at && one.id > other.id);
}

function refused(error: unknown): undefined {
  if (!(error instanceof EngineError)) throw error;
  return undefined;
}
