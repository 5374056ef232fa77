/**
 * Instances that ended long ago, on their way out of the tables (spec/06 row 49): one unit for some of
 * them. They are held meanwhile, so that nobody changes what is being deleted; whether they are still
 * what the sweep found is read again while they are held.
 */

import type { UnixMs } from '../src/core/time.js';
import { DATABASE_AWAY, refusedData, UNKNOWN_OUTCOME } from '../src/errors.js';
import type { Logger } from '../src/log.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Rows } from './loader.js';
import { type Effect, Turn } from './turn.js';

/** The body of `instances.purge`, which only the sweep of the front thread sends. */
export interface PurgeRequest {
  readonly ids: readonly string[];
  /** Instances that changed at this time or later stay. */
  readonly before: UnixMs;
}

/** How many of them were removed. */
export interface PurgeReply {
  readonly removed: number;
}

export interface PurgeDeps {
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly log: Logger;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
  /** Lets nothing happen to the instance; false when something is about to. */
  readonly hold: (instance: string) => boolean;
  /** Ends the holding: its rows are gone, or it goes on. */
  readonly letGo: (instance: string, isGone: boolean) => void;
}

/** One request; lives until its unit is settled. */
export class Purge implements UnitOwner {
  readonly key: string;
  readonly incarnation: number;
  readonly #deps: PurgeDeps;
  readonly #request: number;
  #doomed: readonly string[] = [];

  constructor(deps: PurgeDeps, request: number) {
    this.#deps = deps;
    this.#request = request;
    this.key = `purge:${request}`;
    this.incarnation = deps.commits.nextIncarnation();
  }

  start({ ids, before }: PurgeRequest): void {
    const { loader, schedule, hold, release } = this.#deps;
    const held = ids.filter(hold);
    loader.endedInstances(held, before).then(
      (ended) => schedule(() => this.#commit(held, new Set(ended))),
      () =>
        schedule(() => {
          this.#letGo(held, false);
          release([{ kind: 'error', request: this.#request, error: DATABASE_AWAY }]);
        }),
    );
  }

  #commit(held: readonly string[], ended: ReadonlySet<string>): void {
    this.#doomed = held.filter((id) => ended.has(id));
    const others = held.filter((id) => !ended.has(id));
    this.#letGo(others, false);
    const turn = new Turn();
    const reply: PurgeReply = { removed: this.#doomed.length };
    turn.reply(this.#request, 200, JSON.stringify(reply));
    if (this.#doomed.length === 0) {
      this.#deps.release(turn.effects);
      return;
    }
    for (const id of this.#doomed) turn.put('instance.delete', id, { id });
    turn.count('engine_retention_removed_total', this.#doomed.length);
    this.#deps.commits.append(this, turn);
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    const isGone = ack[1] === 'committed';
    // The effects first: whoever is let go may ask for rows that are gone.
    if (isGone) this.#deps.release(unit.effects);
    else {
      const error = ack[1] === 'refused' ? refusedData(ack[3]) : UNKNOWN_OUTCOME;
      this.#deps.log.warn({ outcome: ack[1] }, 'instances could not be removed');
      this.#deps.release([{ kind: 'error', request: this.#request, error }]);
    }
    this.#letGo(this.#doomed, isGone);
  }

  #letGo(ids: readonly string[], isGone: boolean): void {
    for (const id of ids) this.#deps.letGo(id, isGone);
  }
}
