/**
 * A batch of instances as one commit unit: all are inserted in their plain first state, or none is.
 * Their own actors find them by their timers, and are told so by a hint after the commit.
 */

import { routeOf, shardOf } from '../../src/core/ids.js';
import { rankOf } from '../../src/core/states.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import { DATABASE_AWAY, type EngineError, unavailable } from '../../src/errors.js';
import { failureOf } from '../runtime/commit.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from '../runtime/commit-log.js';
import type { Rows } from '../runtime/loader.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { type NewInstance, newRecord, wholeRow } from './record.js';

export interface BatchCreationDeps {
  readonly commits: CommitLog;
  readonly loader: Pick<Rows, 'orphanedInstances'>;
  readonly now: () => UnixMs;
  readonly shards: number;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/** One batch; lives until its unit is settled. */
export class BatchCreation implements UnitOwner {
  readonly key: string;
  readonly incarnation: number;
  readonly #deps: BatchCreationDeps;
  readonly #request: number;
  readonly #instances = new Map<string, NewInstance>();
  readonly #asked: readonly NewInstance[];

  /**
   * @param instances checked; those with the same idempotency key have the same id
   * @param asked all that were asked for: some are there already
   */
  constructor(
    deps: BatchCreationDeps,
    request: number,
    instances: readonly NewInstance[],
    asked: readonly NewInstance[],
  ) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
    this.#request = request;
    this.key = `batch:${instances[0]?.id ?? ''}`;
    this.#asked = asked;
    for (const instance of instances) {
      if (!this.#instances.has(instance.id)) this.#instances.set(instance.id, instance);
    }
  }

  commit(): void {
    if (this.#instances.size === 0) {
      this.#created([]);
      return;
    }
    const turn = new Turn();
    const now = this.#deps.now();
    for (const instance of this.#instances.values()) {
      const record = newRecord(instance, now);
      if (instance.idempotencyKey !== null) turn.gate = 'batch';
      turn.put('instance.insert', instance.id, wholeRow(record));
      turn.put('timer.set', instance.id, {
        instance_id: instance.id,
        fire_at: isoTime(record.snapshot.nextFireAt ?? now),
        recover: false,
        rank: rankOf(instance.priority),
      });
    }
    this.#deps.commits.append(this, turn);
  }

  settled(_unit: PendingUnit, ack: Settlement): void {
    const error = failureOf(ack, 'batch');
    if (error !== undefined) this.#fail(error);
    else this.#created(ack.outcome === 'inserted' ? ack.ids : [...this.#instances.keys()]);
  }

  #rankOf(id: string): number {
    return rankOf(this.#instances.get(id)?.priority ?? 0);
  }

  #fail(error: EngineError): void {
    this.#deps.release([{ kind: 'error', request: this.#request, error }]);
  }

  #created(ids: readonly string[]): void {
    const { loader, schedule, release, now: clock } = this.#deps;
    const now = clock();
    const hints: Effect[] = ids.map((id) => ({
      kind: 'peer',
      shard: shardOf(routeOf(id), this.#deps.shards),
      message: {
        kind: 'wake',
        instance: id,
        at: this.#instances.get(id)?.nextFireAt ?? now,
        rank: this.#rankOf(id),
      },
    }));
    release(hints);
    const body = JSON.stringify({ count: this.#asked.length, created: ids.length });
    const reply = () => release([{ kind: 'reply', request: this.#request, status: 201, body }]);
    const created = new Set(ids);
    const others = this.#asked.filter(({ id }) => !created.has(id)).map(({ id }) => id);
    if (others.length === 0) {
      reply();
      return;
    }
    loader.orphanedInstances(others).then(
      ([orphan]) =>
        schedule(() => {
          if (orphan === undefined) reply();
          else this.#fail(beingRemoved(orphan));
        }),
      () => schedule(() => this.#fail(DATABASE_AWAY)),
    );
  }
}

/** Under its idempotency key another one will be created, but not yet. */
export function beingRemoved(instance: string): EngineError {
  const what = `instance ${instance}, whose sequence was deleted, is being removed`;
  return unavailable('ENG_OVERLOADED', what);
}
