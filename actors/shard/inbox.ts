/**
 * The requests that wait for their turn on a shard, in one queue per tenant. While the shard keeps up, they
 * leave in order of arrival; when it is behind, each tenant gets the same time of it, whatever its requests
 * cost: next is the tenant that had the least. So a tenant with a few dear ones does not hold up the many
 * cheap ones of others, nor the other way round.
 *
 * Time is counted from when a tenant came: one that was away saves nothing up, and what it took more than the
 * others is held against it until they had as much, or until nobody waits.
 */

import TinyQueue from 'tinyqueue';
import type { Request } from '../runtime/protocol.js';

interface TenantQueue {
  readonly tenant: string;
  requests: Request[];
  /** Index of the first request that has not left; the array is cut when it is empty. */
  head: number;
  /** The time that it had, on the clock of all of them. */
  had: number;
  /** When it lined up: tenants that had the same take turns. */
  turn: number;
}

/** Tenants without a request that are remembered for what they took, before those are let go that took nothing more. */
const IDLE_TENANTS = 1_000;
/** In characters: such a request may take longer than a whole turn. */
const LARGE_BODY = 64 * 1024;

export class FairInbox {
  readonly #queues = new Map<string, TenantQueue>();
  /** Those with requests, but for the one that is being served. */
  readonly #waiting = new TinyQueue<TenantQueue>([], (a, b) => a.had - b.had || a.turn - b.turn);
  #served: TenantQueue | undefined;
  #size = 0;
  #turns = 0;
  /** What the tenant that was served last had had before: who comes begins with that. */
  #now = 0;

  get size(): number {
    return this.#size;
  }

  push(request: Request): void {
    const { tenant } = request;
    let queue = this.#queues.get(tenant);
    if (queue === undefined) {
      queue = { tenant, requests: [], head: 0, had: this.#now, turn: 0 };
      this.#queues.set(tenant, queue);
    }
    queue.requests.push(request);
    this.#size += 1;
    if (queue.requests.length === 1 && queue !== this.#served) this.#lineUp(queue);
  }

  /** The next request: of the tenant that had the least time. */
  shift(): Request | undefined {
    this.charge(0);
    const queue = this.#waiting.pop();
    if (queue === undefined) return undefined;
    this.#served = queue;
    this.#now = queue.had;
    this.#size -= 1;
    const request = queue.requests[queue.head++];
    if (queue.head === queue.requests.length) {
      queue.requests = [];
      queue.head = 0;
    }
    return request;
  }

  /** The request that left last has taken so much time. */
  charge(cost: number): void {
    const queue = this.#served;
    if (queue === undefined) return;
    this.#served = undefined;
    queue.had += cost;
    if (queue.requests.length > 0) this.#lineUp(queue);
    if (this.#size === 0) this.#forget();
    else if (this.#queues.size > this.#waiting.length + IDLE_TENANTS) this.#letGo();
  }

  /** Whether the next request may hold up what was decided before it. */
  get isLargeNext(): boolean {
    const queue = this.#waiting.peek();
    return queue !== undefined && queue.requests[queue.head]!.body.length > LARGE_BODY;
  }

  #lineUp(queue: TenantQueue): void {
    queue.had = Math.max(queue.had, this.#now);
    this.#turns += 1;
    queue.turn = this.#turns;
    this.#waiting.push(queue);
  }

  /** Nobody waits, so nobody was put behind. */
  #forget(): void {
    this.#queues.clear();
    this.#now = 0;
  }

  /** Those that would begin anew with as much. */
  #letGo(): void {
    for (const { tenant, requests, had } of this.#queues.values()) {
      if (requests.length === 0 && had <= this.#now) this.#queues.delete(tenant);
    }
  }
}
