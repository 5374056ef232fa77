/**
 * The commit units of one shard: numbers them, posts them once per turn, and passes each outcome to the
 * actor that made the unit. Counts unacknowledged units, so that the shard can refuse new work while the
 * writer is behind.
 */

import type { StepTry } from '../../src/core/progress.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import type { Effect, Turn } from './turn.js';

/** `lost`: the writer died, only the rows show the outcome. `suspended`: the tenant is; not committed. */
export type Settlement = Ack | { readonly seq: number; readonly outcome: 'lost' | 'suspended' };

/** A keyed actor, a webhook, a batch creation, or an independent unit. */
export interface UnitOwner {
  readonly key: string;
  /**
   * From `nextIncarnation`: taken when the actor is created, and again after a refusal, because the writer
   * refuses all units of an incarnation that had one refused.
   */
  readonly incarnation: number;
  /** Called once for each of its units, in order. */
  settled(unit: PendingUnit, outcome: Settlement): void;
}

export interface PendingUnit {
  readonly owner: UnitOwner;
  readonly effects: Effect[];
  readonly origin: StepTry | undefined;
  readonly bytes: number;
  readonly isUnasked: boolean;
}

export class CommitLog {
  /**
   * Tenants this cell does not own: moving in, moving out, or gone. Nothing of such a tenant is committed,
   * started or kept in memory on this shard (docs/operate/moving-tenants.md).
   */
  readonly suspended = new Set<string | null | undefined>();
  readonly #schedule: (work: () => void) => void;
  readonly #pending = new Map<number, PendingUnit>();
  #outgoing: UnitEnvelope[] = [];
  readonly #barriers: { readonly seq: number; readonly then: () => void }[] = [];
  #seq = 0;
  #incarnations = 0;
  #bytes = 0;
  /** Units made now are background work, which no request waits for. */
  isUnasked = false;
  #unaskedUnits = 0;

  constructor(schedule: (work: () => void) => void = queueMicrotask) {
    this.#schedule = schedule;
  }

  /** Higher than all before, of any actor. */
  nextIncarnation(): number {
    this.#incarnations += 1;
    return this.#incarnations;
  }

  get unackedUnits(): number {
    return this.#pending.size;
  }

  get unackedBytes(): number {
    return this.#bytes;
  }

  /** Background units among them. */
  get unaskedUnits(): number {
    return this.#unaskedUnits;
  }

  /**
   * Reserves the place of a unit that takes several turns to make: waiting for the units made so far
   * includes it. Its owner receives `lost` if the writer dies before it is appended.
   */
  reserve(owner: UnitOwner): number {
    this.#seq += 1;
    const unit = { owner, effects: [], origin: undefined, bytes: 0, isUnasked: false };
    this.#pending.set(this.#seq, unit);
    return this.#seq;
  }

  /** Releases a reserved place. */
  forgo(place: number): void {
    if (this.#pending.delete(place)) this.#passBarriers();
  }

  /** @param place reserved for the unit, and not lost since; absent: behind all others */
  append(owner: UnitOwner, turn: Turn, place?: number): PendingUnit {
    if (place === undefined) this.#seq += 1;
    const seq = place ?? this.#seq;
    let bytes = 0;
    for (let i = 2; i < turn.mutations.length; i += 3) {
      bytes += (turn.mutations[i] as string).length;
    }
    const counts = turn.takeCounts();
    const { isUnasked } = this;
    const unit = { owner, effects: turn.effects, origin: turn.origin, bytes, isUnasked };
    this.#pending.set(seq, unit);
    this.#bytes += bytes;
    if (isUnasked) this.#unaskedUnits += 1;
    if (this.suspended.size > 0 && this.#isSuspended(turn)) {
      // The owner counts it before the outcome arrives.
      this.#schedule(() => this.settle([{ seq, outcome: 'suspended' }]));
      return unit;
    }
    const { gate, mutations } = turn;
    const { key: actor, incarnation } = owner;
    this.#outgoing.push({ seq, actor, incarnation, gate, mutations, counts });
    return unit;
  }

  /** The tenant is in the rows of most tables, unless the owner names one. */
  #isSuspended({ tenant, mutations }: Turn): boolean {
    if (tenant !== undefined) return this.suspended.has(tenant);
    for (let i = 2; i < mutations.length; i += 3) {
      const row = mutations[i] as string;
      if (!row.startsWith('{')) continue;
      const { tenant_id } = JSON.parse(row) as { readonly tenant_id?: string };
      if (this.suspended.has(tenant_id)) return true;
    }
    return false;
  }

  /** The units since the last call, for the writer. */
  take(): UnitEnvelope[] {
    const units = this.#outgoing;
    if (units.length > 0) this.#outgoing = [];
    return units;
  }

  settle(outcomes: readonly Settlement[]): void {
    for (const outcome of outcomes) this.#settle(outcome);
    this.#passBarriers();
  }

  #settle(outcome: Settlement): void {
    const unit = this.#pending.get(outcome.seq);
    if (unit === undefined) return;
    this.#pending.delete(outcome.seq);
    this.#bytes -= unit.bytes;
    if (unit.isUnasked) this.#unaskedUnits -= 1;
    unit.owner.settled(unit, outcome);
  }

  /** Calls `then` when every unit made so far is settled; immediately when none is in flight. */
  whenSettled(then: () => void): void {
    this.#barriers.push({ seq: this.#seq, then });
    this.#passBarriers();
  }

  #passBarriers(): void {
    while (this.#barriers.length > 0) {
      // Units are added in the order of their numbers, so the first one is the oldest.
      const oldest = this.#pending.keys().next();
      const barrier = this.#barriers[0]!;
      if (!oldest.done && oldest.value <= barrier.seq) return;
      this.#barriers.shift();
      barrier.then();
    }
  }

  /** The writer died: every unit in flight is settled as lost. */
  lose(): void {
    const lost = [...this.#pending];
    this.#pending.clear();
    this.#outgoing = [];
    this.#bytes = 0;
    this.#unaskedUnits = 0;
    for (const [seq, unit] of lost) unit.owner.settled(unit, { seq, outcome: 'lost' });
    this.#passBarriers();
  }
}
