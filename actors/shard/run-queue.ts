/**
 * The instances of one shard that have something to do now: by priority, then tenants in turns, then the
 * order in which they became due. An instance is queued at most once.
 */

import { PRIORITIES } from '../../schema/states.js';
import { Fifo } from '../../src/base/fifo.js';
import { LIMITS } from '../../src/base/limits.js';
import type { DueTimer } from '../runtime/timer.js';

interface Rank {
  /** By tenant, in the order of turns, without empty queues. */
  readonly lines: Map<string, Fifo<string>>;
  readonly waiting: Set<string>;
}

export class RunQueue {
  readonly #ranks = PRIORITIES.map((): Rank => ({ lines: new Map(), waiting: new Set() }));
  #size = 0;
  /** Limit of concurrent commits. */
  unitsMax: number = LIMITS.dueUnitsMax;
  #asker = '';
  #askedAt = Number.NEGATIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  /** @param timer with the rank from `rankOf`: 0 critical … 3 low */
  push({ instance, rank, tenant }: DueTimer): void {
    const found = this.#ranks[rank];
    if (found === undefined) throw new Error(`no rank ${rank}`);
    const { lines, waiting } = found;
    if (waiting.has(instance)) return;
    waiting.add(instance);
    let line = lines.get(tenant);
    if (line === undefined) {
      line = new Fifo();
      lines.set(tenant, line);
    }
    line.push(instance);
    this.#size += 1;
  }

  /** A request is served. @param tenant '': of no tenant */
  asked(tenant: string, now: number): void {
    if (tenant === '') return;
    this.#asker = tenant;
    this.#askedAt = now;
  }

  /** Checks whether tenants share the shard, which determines `unitsMax`. */
  look(now: number): void {
    this.unitsMax = this.#isShared(now) ? LIMITS.dueUnitsSharedMax : LIMITS.dueUnitsMax;
  }

  /** Whether instances of another tenant wait than the one that asked last, which was lately. */
  #isShared(now: number): boolean {
    if (now - this.#askedAt >= LIMITS.sharedForMs) return false;
    return this.#ranks.some(({ lines }) => lines.size > (lines.has(this.#asker) ? 1 : 0));
  }

  shift(): string | undefined {
    for (const rank of this.#ranks) {
      for (const [tenant, line] of rank.lines) return this.#take(rank, tenant, line);
    }
    return undefined;
  }

  #take({ lines, waiting }: Rank, tenant: string, line: Fifo<string>): string {
    const instance = line.shift() as string;
    waiting.delete(instance);
    this.#size -= 1;
    // Deleting and adding a key moves it to the end: a Map keeps its order.
    if (line.size === 0 || lines.size > 1) lines.delete(tenant);
    if (line.size > 0) lines.set(tenant, line);
    return instance;
  }
}
