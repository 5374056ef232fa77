/**
 * Watches collected creations, commit by commit: a start is taken away only by the commit that inserts its
 * instance, which has exactly what was collected for it, and what was acknowledged is in it. A key of a collected
 * creation is not that of an instance.
 */

import { isDeepEqual } from '../../src/base/bounds.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { Change, Row } from './memory-tables.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

interface Creation {
  readonly body: { readonly context: { readonly data: { readonly token?: string } } };
}

const creationOf = ({ pending_id, seq }: Row) => `${pending_id} ${seq}`;
const tokenOf = (data: JsonValue | undefined) => (data as { token?: string } | undefined)?.token;

export class CollectingObserver extends Watcher {
  /** Token of a creation → the start that has it, or had it until it was put off by a later one. */
  readonly #starts = new Map<string, string>();
  readonly #debounces = new Set<string>();
  readonly #removed: Row[] = [];
  readonly #items: Row[] = [];
  /** Creations whose orders were carried out. */
  readonly #ordered = new Set<string>();
  readonly #inserted = new Map<string, Row>();
  readonly #newKeys: string[] = [];
  /** Ids of the keys of collected creations, past ones too. */
  readonly keys = new Set<string>();

  look({ table, key, before, after }: Change): void {
    if (table === 'pending_starts') {
      if (after === undefined) this.#removed.push(before!);
      else {
        if (after.kind === 'debounce') this.#debounces.add(key);
        this.#note(tokenOf((after.creation as unknown as Creation).body.context.data), key);
      }
    } else if (table === 'collected_items') {
      if (after === undefined) this.#items.push(before!);
      else this.#note(tokenOf(after.data), String(after.pending_id));
    } else if (table === 'collected_cancels') {
      if (after === undefined) this.#ordered.add(creationOf(before!));
    } else if (table === 'instance_keys') {
      if (before === undefined) this.#newKeys.push(key);
    } else if (table === 'instances' && before === undefined) this.#inserted.set(key, after!);
  }

  /** To be called when all changes of a commit were looked at. @throws Violation */
  check(): void {
    for (const row of this.#removed) this.#started(row);
    for (const item of this.#items) {
      if (!this.#ordered.has(creationOf(item))) {
        throw new Violation('an item was removed without its start or an order');
      }
      this.counts.add('collected creation withdrawn');
    }
    this.#items.length = 0;
    this.#ordered.clear();
    for (const id of [...this.#newKeys, ...this.#inserted.keys()]) {
      if (['instances', 'instance_keys'].some((name) => this.tables.row(name, id) === undefined)) {
        continue;
      }
      throw new Violation('its key is that of a collected creation, too', id);
    }
    for (const id of this.#newKeys.splice(0)) this.keys.add(id);
    for (const [id, { sequence_id, tenant_id }] of this.#inserted) {
      const { definition } = this.tables.row('sequences', String(sequence_id)) ?? {};
      const { debounce, batch } = (definition ?? {}) as JsonObject;
      if (debounce === undefined && batch === undefined) continue;
      throw new Violation(`an instance of ${tenant_id} was not collected`, id);
    }
    this.#removed.length = 0;
    this.#inserted.clear();
  }

  #started({ id, kind, count, cancelled, creation }: Row): void {
    const start = String(id);
    const instance = this.#inserted.get(start);
    if (instance === undefined)
      throw new Violation('a start was removed without an instance', start);
    this.#inserted.delete(start);
    const own = this.#items.filter(({ pending_id }) => pending_id === id);
    for (const item of own) this.#items.splice(this.#items.indexOf(item), 1);
    const items = own.sort((a, b) => Number(a.seq) - Number(b.seq)).map(({ data }) => data!);
    const last = (creation as unknown as Creation).body.context.data as JsonObject;
    const expected = kind === 'batch' ? { items } : last;
    if (!isDeepEqual(instance.data as JsonValue, expected)) {
      throw new Violation(`it has ${JSON.stringify(instance.data)}, not what was collected`, start);
    }
    if (kind === 'batch' && items.length !== count) {
      throw new Violation(`it has ${items.length} of ${count} creations`, start);
    }
    if (instance.state === 'paused') {
      this.#cancelled(start, kind === 'batch' ? own : [{ pending_id: id!, seq: count! }]);
      this.counts.add(`cancelled ${kind}`);
      return;
    }
    this.counts.add(`started ${kind}`);
    if (Number(cancelled) > 0) this.counts.add(`started ${kind} without what was withdrawn`);
    if (Number(count) > 1) this.counts.add(`started ${kind} of several`);
  }

  /** It never runs, because each of its creations has an order. */
  #cancelled(start: string, creations: readonly Row[]): void {
    if (creations.every((creation) => this.#ordered.has(creationOf(creation)))) return;
    throw new Violation('it was cancelled without an order', start);
  }

  /** @throws Violation */
  checkEnd(): void {
    for (const table of ['collected_cancels', 'collected_waits']) {
      for (const { pending_id } of this.tables.rows(table).values()) {
        if (table === 'collected_waits' && this.#isPending(String(pending_id))) continue;
        throw new Violation(`a row of ${table} is left`, String(pending_id));
      }
    }
  }

  #note(token: string | undefined, start: string): void {
    if (token === undefined) return;
    const known = this.#starts.get(token) ?? start;
    // What was removed is collected anew when its creation is heard once more.
    const isGone = this.tables.row('instances', known) === undefined && !this.#isPending(known);
    if (known !== start && !isGone) {
      throw new Violation(`${token} was collected for ${known}, and for another one`, start);
    }
    this.#starts.set(token, start);
  }

  #isPending(start: string): boolean {
    return this.tables.row('pending_starts', start) !== undefined;
  }

  /** Of a debounce, a later creation of the same commit may have replaced it. @throws Violation */
  acknowledged(token: string, start: string): void {
    if (this.#starts.get(token) === start || this.#debounces.has(start)) return;
    throw new Violation(`${token} was acknowledged before it was collected`, start);
  }
}
