/**
 * Watches the idempotency keys that steps give to others, by the rows of tasks and receipts: one execution of
 * a step has one key, whatever befalls it, and no other one has the same.
 */

import { taskIdempotencyKey } from '../../actors/instance/worker-task.js';
import { entryOf } from '../helpers/entry.js';
import type { Change, Row } from './memory-tables.js';
import { loopsIn, mayRepeat, placesOf } from './places.js';
import { Violation } from './violation.js';
import { owner, Watcher } from './watcher.js';

const TABLES: ReadonlySet<string> = new Set(['worker_tasks', 'effect_receipts', 'block_outputs']);

export class KeysObserver extends Watcher {
  /** Key → instance, block and iteration; and the other way round. */
  readonly #steps = new Map<string, string>();
  readonly #keys = new Map<string, string>();

  /** @throws Violation */
  look({ table, before, after }: Change): void {
    if (!TABLES.has(table) || before !== undefined || after === undefined) return;
    const key = keyIn(table, after);
    if (typeof key !== 'string') return;
    const instance = owner(after);
    const block = String(after.block_id);
    const step = `${instance} ${block} ${after.iteration}`;
    const known = entryOf(this.#steps, key, () => step);
    if (known !== step) throw new Violation(`${step} has the key ${key} of ${known}`, instance);
    if (mayRepeat(placesOf(this.tables, instance).get(block) ?? [])) return;
    const first = entryOf(this.#keys, step, () => key);
    if (first !== key)
      throw new Violation(`${step} has the key ${key}, and had ${first}`, instance);
    this.counts.add('key of a try');
  }

  /** What somebody outside has heard of a step; of one that is run once it is always the same. @throws Violation */
  called(instance: string, block: string, key: string): void {
    const around = placesOf(this.tables, instance).get(block);
    if (around === undefined || loopsIn(around).length > 0 || mayRepeat(around)) return;
    const step = `${instance} ${block} `;
    const first = entryOf(this.#keys, step, () => key);
    if (first === key) return;
    throw new Violation(`${step}calls with the key ${key}, and called with ${first}`, instance);
  }
}

function keyIn(table: string, row: Row): unknown {
  if (table === 'worker_tasks') return taskIdempotencyKey(row as never);
  const { effect } = row as { effect?: Row | null };
  return table === 'block_outputs' ? effect?.idempotency_key : row.idempotency_key;
}
