/**
 * Watches the sagas of `shapes.ts` by their outputs: in each pass of one, compensations run once, from
 * the last step backwards, only of actions that completed, and behind them no action. One that failed is tried
 * again by a retry, and until it has completed there is no other pass.
 */

import { entryOf } from '../helpers/entry.js';
import type { Change, Row } from './memory-tables.js';
import { mayRepeat, placesOf } from './places.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

interface Pass {
  readonly instance: string;
  /** Steps whose actions completed. */
  readonly done: Set<number>;
  /** Steps that were compensated, or whose compensations have failed, in their order. */
  readonly undone: number[];
  /** Compensations that have failed, before a retry. */
  readonly owed: Set<number>;
}

export class SagasObserver extends Watcher {
  /** Instances that were stopped at once, which runs nothing. */
  readonly #stopped = new Set<string>();
  readonly #passes = new Map<string, Pass>();
  /** Instance, compensation and iteration. */
  readonly #compensated = new Set<string>();

  /** @throws Violation */
  look({ table, key, before, after }: Change): void {
    if (table === 'instances' && isStopped(after)) this.#stopped.add(key);
    if (table === 'instances' && before?.state === 'failed') this.#retried(key);
    if (table !== 'block_outputs' || (before === undefined) === (after === undefined)) return;
    const row = (after ?? before)!;
    const [, kind, saga, number] = /^(do|undo)(\d+)_(\d+)$/.exec(String(row.block_id)) ?? [];
    if (kind === undefined) return;
    const name = `${row.instance_id} ${saga} ${row.iteration}`;
    const instance = String(row.instance_id);
    const around = placesOf(this.tables, instance).get(String(row.block_id)) ?? [];
    if (mayRepeat(around)) return;
    const pass = entryOf(this.#passes, name, (): Pass => {
      return { instance, done: new Set(), undone: [], owed: new Set() };
    });
    if (after === undefined) {
      this.#dropped(pass, kind, Number(number));
      return;
    }
    if (kind === 'undo' && row.output_ref === null) {
      this.#compensated.add(`${instance} ${row.block_id} ${row.iteration}`);
    }
    if (kind === 'undo') this.#undone(pass, Number(number));
    else if (row.output_ref === null) {
      this.#done(pass, Number(number));
      this.#checkBefore(instance, String(saga), String(row.iteration));
    }
  }

  /** What has begun to be compensated in the pass before this one was compensated to the end. */
  #checkBefore(instance: string, saga: string, iteration: string): void {
    const path = iteration.split('.');
    const before = [...path.slice(0, -1), Number(path.at(-1)) - 1].join('.');
    const { done, owed, undone } = this.#passes.get(`${instance} ${saga} ${before}`) ?? NONE;
    if (owed.size + undone.length === 0) return;
    const places = placesOf(this.tables, instance);
    for (const step of done) {
      const block = `undo${saga}_${step}`;
      const isLeft = places.has(block) && !this.#compensated.has(`${instance} ${block} ${before}`);
      if (isLeft) throw new Violation(`ran again in ${iteration}, ${block} is left`, instance);
    }
  }

  /** One that has failed leaves no row, and is done behind the others. */
  #retried(retried: string): void {
    for (const { instance, done, undone, owed } of this.#passes.values()) {
      if (instance !== retried || undone.length === 0) continue;
      for (const step of done) if (!undone.includes(step)) owed.add(step);
    }
  }

  /** For a retry, or with the instance. */
  #dropped({ done, undone, owed }: Pass, kind: string, step: number): void {
    if (kind === 'do') done.delete(step);
    else {
      undone.splice(undone.indexOf(step), 1);
      owed.add(step);
    }
  }

  #done({ instance, done, undone }: Pass, step: number): void {
    if (undone.length > 0) throw new Violation(`action ${step} ran behind ${undone}`, instance);
    done.add(step);
  }

  #undone({ instance, done, undone, owed }: Pass, step: number): void {
    const last = undone.at(-1) ?? Number.POSITIVE_INFINITY;
    // One that is tried again has a row for each try.
    if (step > last && !owed.has(step))
      throw new Violation(`step ${step} was compensated after ${last}`, instance);
    if (!done.has(step)) throw new Violation(`step ${step} was compensated, not done`, instance);
    undone.push(step);
    this.counts.add(`compensation of step ${step}`);
  }

  /** @throws Violation when a compensation is missing beside another one */
  checkEnd(): void {
    for (const [name, { instance, done, undone }] of this.#passes) {
      const row: Row | undefined = this.tables.row('instances', instance);
      // One may be completed by request, too.
      if (row?.state !== 'failed') continue;
      if (undone.length === 0 || this.#stopped.has(instance)) continue;
      const [, saga] = name.split(' ');
      const sequence = this.tables.row('sequences', String(row.sequence_id));
      const text = JSON.stringify(sequence ?? null);
      for (const step of done) {
        // One that fails leaves no row.
        const isAsked = text.includes(`"undo${saga}_${step}","handler":"transform"`);
        if (isAsked && !undone.includes(step)) {
          throw new Violation(`step ${step} of saga ${saga} was not compensated`, instance);
        }
      }
    }
  }
}

const NONE: Pick<Pass, 'done' | 'undone' | 'owed'> = {
  done: new Set(),
  undone: [],
  owed: new Set(),
};

const STOPS: ReadonlySet<unknown> = new Set([
  'failed_by_request',
  'instance_timeout',
  'data_refused',
]);

/** At once, so that what compensates does not go on. */
function isStopped(row: Row | undefined): boolean {
  const { code } = (row?.failure ?? {}) as { code?: string };
  return row?.state === 'cancelled' || STOPS.has(code);
}
