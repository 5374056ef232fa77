/**
 * A batch of instances as one commit unit: all are born in their plain first state, or none is.
 * Their own actors find them by their timers, and are told so by a hint after the commit.
 */

import { routeOf, shardOf } from '../src/core/ids.js';
import { rankOf } from '../src/core/states.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import { type EngineError, refusedData, UNKNOWN_OUTCOME } from '../src/errors.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import { type NewInstance, newRecord, wholeRow } from './instance-record.js';
import { type Effect, Turn } from './turn.js';

export interface BirthsDeps {
  readonly commits: CommitLog;
  readonly now: () => UnixMs;
  readonly shards: number;
  readonly release: (effects: readonly Effect[]) => void;
}

/** One batch; lives until its unit is settled. */
export class BatchOfBirths implements UnitOwner {
  readonly key: string;
  readonly incarnation: number;
  readonly #deps: BirthsDeps;
  readonly #request: number;
  readonly #instances = new Map<string, NewInstance>();
  readonly #accepted: number;

  /**
   * @param instances checked; those with the same idempotency key have the same id
   * @param accepted how many were asked for: some may be there already
   */
  constructor(
    deps: BirthsDeps,
    request: number,
    instances: readonly NewInstance[],
    accepted: number,
  ) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
    this.#request = request;
    this.key = `births:${instances[0]?.id ?? ''}`;
    this.#accepted = accepted;
    for (const instance of instances) {
      if (!this.#instances.has(instance.id)) this.#instances.set(instance.id, instance);
    }
  }

  commit(): void {
    if (this.#instances.size === 0) {
      this.#born([]);
      return;
    }
    const turn = new Turn();
    const now = this.#deps.now();
    for (const instance of this.#instances.values()) {
      const record = newRecord(instance, now);
      if (instance.idempotencyKey !== null) turn.gate = 'births';
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
    switch (ack[1]) {
      case 'committed':
        this.#born([...this.#instances.keys()]);
        return;
      case 'born':
        this.#born(ack[2]);
        return;
      case 'refused':
        this.#fail(refusedData(ack[3]));
        return;
      default:
        this.#fail(UNKNOWN_OUTCOME);
    }
  }

  #rankOf(id: string): number {
    return rankOf(this.#instances.get(id)?.priority ?? 0);
  }

  #fail(error: EngineError): void {
    this.#deps.release([{ kind: 'error', request: this.#request, error }]);
  }

  #born(ids: readonly string[]): void {
    const now = this.#deps.now();
    const hints: Effect[] = ids.map((id) => ({
      kind: 'peer',
      shard: shardOf(routeOf(id), this.#deps.shards),
      message: ['wake', id, this.#instances.get(id)?.nextFireAt ?? now, this.#rankOf(id)],
    }));
    const body = JSON.stringify({ count: this.#accepted, created: ids.length });
    this.#deps.release([{ kind: 'reply', request: this.#request, status: 201, body }, ...hints]);
  }
}
