/**
 * What a test gives an actor that it has by itself: work that waits for its turn, units on their way to a
 * writer that may be away, and effects that are released. Everything happens in `quiet`.
 */

import { setImmediate } from 'node:timers/promises';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { createLogger } from '../../src/base/log.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { MUTATION_KINDS } from './store.js';

export abstract class ActorWorld {
  protected commits = new CommitLog();
  protected work: (() => void)[] = [];
  protected isWriterAway = false;
  #whenKnown: (() => void)[] = [];

  protected abstract perform(effect: Effect): void;

  /** What becomes of units, unless the writer is away. */
  protected abstract write(units: readonly UnitEnvelope[]): void;

  /** A turn of the actor ends, with all that it was given in it. */
  protected abstract endTurn(): void;

  /** What every actor is given, beside its rows and its clock. */
  protected host() {
    const schedule = (work: () => void) => void this.work.push(work);
    return {
      commits: this.commits,
      log: createLogger('silent', 'test'),
      schedule,
      scheduleSpare: schedule,
      whenWriterKnown: (then: () => void) => {
        if (this.isWriterAway) this.#whenKnown.push(then);
        else then();
      },
      release: (effects: readonly Effect[]) => {
        for (const effect of effects) this.perform(effect);
      },
    };
  }

  /** The thread of the actor is gone, with what it had to do. */
  protected forget(): void {
    this.commits = new CommitLog();
    this.work = [];
  }

  /** A new writer has settled what the old one left. */
  protected writerKnown(): void {
    this.isWriterAway = false;
    for (const then of this.#whenKnown.splice(0)) then();
  }

  /** Resolves when nothing happens any more without time passing. */
  async quiet(): Promise<void> {
    for (;;) {
      // Every read has its answer by then.
      await setImmediate();
      const work = this.work.splice(0);
      for (const each of work) each();
      this.endTurn();
      const units = this.isWriterAway ? [] : this.commits.take();
      if (units.length > 0) this.write(units);
      if (work.length === 0 && units.length === 0) return;
    }
  }
}

/** A unit is stored, and acknowledged. @param put stores one row; @returns the acknowledgement */
export function committed(
  { seq, mutations }: UnitEnvelope,
  put: (kind: string, row: never) => void,
): Ack {
  for (let i = 0; i < mutations.length; i += 3) {
    const kind = MUTATION_KINDS[mutations[i] as number] as string;
    put(kind, JSON.parse(mutations[i + 2] as string) as never);
  }
  return { seq, outcome: 'committed' };
}

/** As the database refuses the rows of a unit. */
export const refused = ({ seq }: UnitEnvelope, sqlState: string): Ack => {
  return { seq, outcome: 'refused', sqlState, reason: 'no' };
};
