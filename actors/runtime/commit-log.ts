/**
 * The commit units of one shard: numbers them, posts them once per turn, and passes each outcome to the actor that made
 * the unit. Counts unacknowledged units, so that the shard can refuse new work while the writer is behind.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import type { StepTry } from '../../src/core/progress.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import type { Effect, Turn } from './turn.js';

/** `lost`: the writer died, and only the rows show the outcome. `suspended`: its tenant is suspended. */
export type Settlement = Ack | { readonly seq: number; readonly outcome: 'lost' | 'suspended' };

/** A keyed actor, a webhook, a batch creation, or an independent unit. */
export interface UnitOwner {
  readonly key: string;
  /** From `nextIncarnation`; changes after a refusal, with which the writer refuses all later units. */
  readonly incarnation: number;
  /** Called once for each of its units, in order. */
  settled(unit: PendingUnit, outcome: Settlement): void;
}

export interface PendingUnit {
  readonly owner: UnitOwner;
  readonly effects: Effect[];
  readonly origin: StepTry | undefined;
  readonly bytes: number;
  readonly isBackground: boolean;
}

export class CommitLog {
  /** Tenants this cell does not own: nothing of them is committed (docs/operate/moving-tenants.md). */
  readonly suspended = new Set<string | null | undefined>();
  readonly #schedule: (work: () => void) => void;
  readonly #pending = new ChurningMap<number, PendingUnit>();
  #outgoing: UnitEnvelope[] = [];
  readonly #barriers: { readonly seq: number; readonly then: () => void }[] = [];
  #seq = 0;
  #incarnations = 0;
  #bytes = 0;
  /** Units appended now are background work: no request waits for them. */
  isBackground = false;
  #backgroundUnits = 0;
  /** Adds the action of a request to its unit. */
  record: ((turn: Turn) => void) | undefined;

  constructor(schedule: (work: () => void) => void = queueMicrotask) {
    this.#schedule = schedule;
  }

  /** Increases over all actors of the shard. */
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

  get backgroundUnits(): number {
    return this.#backgroundUnits;
  }

  /** For a unit that takes several turns to make. Its owner receives `lost` if the writer dies before. */
  reserve(owner: UnitOwner): number {
    this.#seq += 1;
    const unit = { owner, effects: [], origin: undefined, bytes: 0, isBackground: false };
    this.#pending.set(this.#seq, unit);
    return this.#seq;
  }

  forgo(place: number): void {
    if (this.#pending.delete(place)) this.#passBarriers();
  }

  /** @param place reserved earlier and not lost since; absent: behind all others */
  append(owner: UnitOwner, turn: Turn, place?: number): PendingUnit {
    if (place === undefined) this.#seq += 1;
    const seq = place ?? this.#seq;
    this.record?.(turn);
    let bytes = 0;
    for (let i = 2; i < turn.mutations.length; i += 3) {
      bytes += (turn.mutations[i] as string).length;
    }
    const counts = turn.takeCounts();
    const { isBackground } = this;
    const unit = { owner, effects: turn.effects, origin: turn.origin, bytes, isBackground };
    this.#pending.set(seq, unit);
    this.#bytes += bytes;
    if (isBackground) this.#backgroundUnits += 1;
    if (this.suspended.size > 0 && this.#isSuspended(turn)) {
      // Later: the owner counts the unit before its outcome arrives.
      this.#schedule(() => this.settle([{ seq, outcome: 'suspended' }]));
      return unit;
    }
    const { gate, mutations } = turn;
    const { key: actor, incarnation } = owner;
    this.#outgoing.push({ seq, actor, incarnation, gate, mutations, counts });
    return unit;
  }

  /** The rows of most tables name their tenant, unless the owner does. */
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
    if (unit.isBackground) this.#backgroundUnits -= 1;
    unit.owner.settled(unit, outcome);
  }

  /** Calls `then` when every unit made so far is settled; immediately when none is in flight. */
  whenSettled(then: () => void): void {
    this.#barriers.push({ seq: this.#seq, then });
    this.#passBarriers();
  }

  #passBarriers(): void {
    while (this.#barriers.length > 0) {
      // Units are added in the order of their numbers: the first one is the oldest.
      const oldest = this.#pending.keys().next();
      const barrier = this.#barriers[0]!;
      if (!oldest.done && oldest.value <= barrier.seq) return;
      this.#barriers.shift();
      barrier.then();
    }
  }

  /** The writer died: settles every unit in flight as lost. */
  lose(): void {
    const lost = [...this.#pending];
    this.#pending.clear();
    this.#outgoing = [];
    this.#bytes = 0;
    this.#backgroundUnits = 0;
    for (const [seq, unit] of lost) unit.owner.settled(unit, { seq, outcome: 'lost' });
    this.#passBarriers();
  }
}
