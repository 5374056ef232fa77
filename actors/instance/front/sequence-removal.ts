/**
 * Removes the instances of deleted sequences, which their tombstones name until all of them are gone:
 * whatever dies in between, the next run goes on.
 */

import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import { removeInSteps } from './many-instances.js';

/** One instance of a deleted sequence, or null for a sequence that has none any more. */
export interface Orphan {
  readonly sequence: string;
  readonly instance: string | null;
}

export interface SequenceRemovalDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly orphans: (rows: number) => Promise<readonly Orphan[]>;
  /** Resolves with how many were removed; those with something under way are left for later. */
  readonly remove: (instances: readonly string[]) => Promise<number>;
  /** Nothing is left of the sequence. */
  readonly forget: (sequence: string) => Promise<unknown>;
}

/** Instances looked at in one query. */
const PAGE_ROWS = 1_000;
const FIRST_AFTER_MS = 1_000;
/** A deletion wakes the job; this is for instances that something was under way with. */
const EVERY_MS = 10_000;

export class SequenceRemoval extends BackgroundJob {
  readonly #deps: SequenceRemovalDeps;

  constructor(deps: SequenceRemovalDeps) {
    const { clock, log } = deps;
    super({
      clock,
      log,
      name: 'sequence removal',
      firstAfterMs: FIRST_AFTER_MS,
      everyMs: EVERY_MS,
      run: () => this.clear(),
    });
    this.#deps = deps;
  }

  /** Goes on for as long as it gets anywhere. Resolves with how many instances were removed. */
  async clear(): Promise<number> {
    const { orphans, remove, forget, log } = this.#deps;
    let total = 0;
    for (let isMoving = true; isMoving && !this.isStopped; ) {
      const found = await this.step(() => orphans(PAGE_ROWS));
      const instances = found.flatMap(({ instance }) => instance ?? []);
      const removed = await removeInSteps(this, instances, remove);
      const empty = found.filter(({ instance }) => instance === null);
      for (const { sequence } of empty) await this.step(() => forget(sequence));
      isMoving = removed + empty.length > 0;
      total += removed;
    }
    if (total > 0) log.info({ removed: total }, 'instances of deleted sequences removed');
    return total;
  }
}
