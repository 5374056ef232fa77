/**
 * The requests that wait for their turn on a shard, in one queue per tenant. While the shard keeps up, they
 * leave in order of arrival; when it is behind, each tenant gets the same time of it, whatever its requests
 * cost: next is the tenant that had the least. So a tenant with a few dear ones does not hold up the many
 * cheap ones of others, nor the other way round.
 *
 * A tenant that was away has saved nothing up. What one took more than the others is held against it until
 * they had as much: a shard hears of those who wait only when it is done. While nobody waits the time is
 * everybody's.
 */

import TinyQueue from 'tinyqueue';
import { LARGE_BODY } from '../../src/http/body.js';
import type { Request } from '../runtime/protocol.js';
import { Fifo } from './fifo.js';

interface TenantQueue {
  readonly tenant: string;
  readonly requests: Fifo<Request>;
  /** The time that it had, on the clock of all of them. */
  had: number;
  /** When it lined up: tenants that had the same take turns. */
  turn: number;
}

/** Beyond so many those are forgotten that have no request, and against which nothing is held. */
const REMEMBERED_TENANTS = 1_000;

export class FairInbox {
  readonly #queues = new Map<string, TenantQueue>();
  /** Those with requests, but for the one that is being served. */
  readonly #waiting = new TinyQueue<TenantQueue>([], (a, b) => a.had - b.had || a.turn - b.turn);
  #served: TenantQueue | undefined;
  /** Since when it is served, or nobody was. */
  #since = 0;
  /** Nobody is served, and nobody waited when the last one had been. */
  #isFree = false;
  #rememberedMax = REMEMBERED_TENANTS;
  #size = 0;
  #turns = 0;
  /** What the tenant that was served last had had before, and time that nobody wanted: who comes begins with that. */
  #now = 0;

  get size(): number {
    return this.#size;
  }

  push(request: Request): void {
    const { tenant } = request;
    let queue = this.#queues.get(tenant);
    if (queue === undefined) {
      queue = { tenant, requests: new Fifo(), had: this.#now, turn: 0 };
      this.#queues.set(tenant, queue);
    }
    queue.requests.push(request);
    this.#size += 1;
    if (queue.requests.size === 1 && queue !== this.#served) this.#lineUp(queue);
  }

  /**
   * The next request: of the tenant that had the least time.
   *
   * @param at by a clock that never goes back, in the unit of time that is shared
   */
  shift(at: number): Request | undefined {
    const queue = this.#waiting.pop();
    if (queue === undefined) return undefined;
    if (this.#isFree) this.#now += at - this.#since;
    this.#isFree = false;
    this.#since = at;
    this.#served = queue;
    this.#now = Math.max(this.#now, queue.had);
    this.#size -= 1;
    return queue.requests.shift();
  }

  /**
   * The request that left last is served.
   *
   * @param left it is not: it goes on before the others of its tenant
   */
  charge(at: number, left?: Request): void {
    const queue = this.#served;
    if (queue === undefined) return;
    this.#served = undefined;
    if (left !== undefined) {
      queue.requests.unshift(left);
      this.#size += 1;
    }
    queue.had = this.#now + at - this.#since;
    this.#since = at;
    this.#isFree = this.#size === 0;
    if (queue.requests.size > 0) this.#lineUp(queue);
    if (this.#queues.size > this.#rememberedMax) this.#letGo();
  }

  /** Whether the next request may hold up what was decided before it. */
  get isLargeNext(): boolean {
    const queue = this.#waiting.peek();
    return queue !== undefined && queue.requests.first!.body.length > LARGE_BODY;
  }

  #lineUp(queue: TenantQueue): void {
    queue.had = Math.max(queue.had, this.#now);
    this.#turns += 1;
    queue.turn = this.#turns;
    this.#waiting.push(queue);
  }

  /** Those that would begin anew with as much. */
  #letGo(): void {
    for (const { tenant, requests, had } of this.#queues.values()) {
      if (requests.size === 0 && had <= this.#now) this.#queues.delete(tenant);
    }
    this.#rememberedMax = Math.max(REMEMBERED_TENANTS, 2 * this.#queues.size);
  }
}
