/**
 * The instances of one shard that have work now: by priority, then tenants in turns, then the order in
 * which they became due. An instance is queued at most once.
 */

import { PRIORITIES } from '../../schema/states.js';
import { Fifo } from '../../src/base/fifo.js';
import { LIMITS } from '../../src/base/limits.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { DueTimer } from '../runtime/timer.js';

interface Rank {
  /** By tenant, in the order of turns; no queue is empty. */
  readonly queues: Map<string, Fifo<string>>;
  readonly waiting: Set<string>;
}

export class RunQueue {
  readonly #ranks = PRIORITIES.map((): Rank => ({ queues: new Map(), waiting: new Set() }));
  #size = 0;
  /** Limit of concurrent commits. */
  unitsMax: number = LIMITS.dueUnitsMax;
  #servedTenant = '';
  #servedAt = Number.NEGATIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  /** @param timer with the rank from `rankOf`: 0 critical … 3 low */
  push({ instance, rank, tenant }: DueTimer): void {
    const found = this.#ranks[rank];
    if (found === undefined) throw new Error(`no rank ${rank}`);
    const { queues, waiting } = found;
    if (waiting.has(instance)) return;
    waiting.add(instance);
    valueFor(queues, tenant, () => new Fifo()).push(instance);
    this.#size += 1;
  }

  /** A request of the tenant is served; '' is no tenant. */
  served(tenant: string, now: number): void {
    if (tenant === '') return;
    this.#servedTenant = tenant;
    this.#servedAt = now;
  }

  /** Updates `unitsMax`, which depends on whether tenants share the shard. */
  update(now: number): void {
    this.unitsMax = this.#isShared(now) ? LIMITS.dueUnitsSharedMax : LIMITS.dueUnitsMax;
  }

  /** Whether a request was served lately, and instances of other tenants wait. */
  #isShared(now: number): boolean {
    if (now - this.#servedAt >= LIMITS.sharedForMs) return false;
    return this.#ranks.some(({ queues }) => queues.size > (queues.has(this.#servedTenant) ? 1 : 0));
  }

  shift(): string | undefined {
    for (const rank of this.#ranks) {
      for (const [tenant, queue] of rank.queues) return this.#take(rank, tenant, queue);
    }
    return undefined;
  }

  #take({ queues, waiting }: Rank, tenant: string, queue: Fifo<string>): string {
    const instance = queue.shift() as string;
    waiting.delete(instance);
    this.#size -= 1;
    // Deleting and adding a key moves it to the end of a Map.
    if (queue.size === 0 || queues.size > 1) queues.delete(tenant);
    if (queue.size > 0) queues.set(tenant, queue);
    return instance;
  }
}
