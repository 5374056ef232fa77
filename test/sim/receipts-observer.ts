/**
 * Receipts of the steps that act outside from within the process: every one that is dispatched has
 * one from its dispatch on, and each comes to one end and is kept.
 */

import type { Change, Row } from './memory-tables.js';
import { Violation } from './violation.js';
import { openSteps, owner, Watcher } from './watcher.js';

export class ReceiptsObserver extends Watcher {
  /** Receipts by their ids → the instance. */
  readonly #dispatched = new Map<string, string>();

  /** @throws Violation */
  look({ table, key, after }: Change): void {
    if (table === 'instances') this.#instance(key, after);
    if (table !== 'block_outputs' || after?.effect == null) return;
    const { id } = after.effect as { id?: unknown };
    if (id !== after.id) throw new Violation(`an output has the receipt ${id}`, owner(after));
  }

  #instance(instance: string, row: Row | undefined): void {
    if (row === undefined) {
      for (const [id, of] of this.#dispatched) if (of === instance) this.#dispatched.delete(id);
      return;
    }
    for (const { p, u } of openSteps(row)) {
      if (p === 'run' && u === undefined) {
        throw new Violation('a step is dispatched without a receipt', instance);
      }
      if (u !== undefined) this.#dispatched.set(u.id, instance);
    }
  }

  /** @throws Violation */
  checkEnd(): void {
    const kept = new Map<string, number>();
    const count = (id: unknown) => kept.set(String(id), (kept.get(String(id)) ?? 0) + 1);
    for (const row of this.tables.rows('block_outputs').values())
      if (row.effect != null) count(row.id);
    for (const id of this.tables.rows('effect_receipts').keys()) count(id);
    for (const row of this.tables.rows('instances').values()) {
      for (const { u } of openSteps(row)) if (u !== undefined) count(u.id);
    }
    for (const [id, instance] of this.#dispatched) {
      const times = kept.get(id) ?? 0;
      if (times !== 1) throw new Violation(`the receipt ${id} is kept ${times} times`, instance);
    }
  }
}
