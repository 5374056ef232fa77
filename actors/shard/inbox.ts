/**
 * The requests waiting for a turn on a shard, in one queue per tenant. While the shard keeps up, they leave
 * in order of arrival; under load each tenant gets the same amount of time, whatever its requests cost: the
 * tenant that has had the least is next.
 *
 * An idle tenant accumulates no credit. A tenant that had more time than the others waits until they have
 * had as much. While no request waits, time is not counted.
 */

import TinyQueue from 'tinyqueue';
import { Fifo } from '../../src/base/fifo.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import { LARGE_BODY } from '../../src/http/body.js';
import type { Request } from '../runtime/protocol.js';

interface TenantQueue {
  readonly tenant: string;
  readonly requests: Fifo<Request>;
  /** On the shared virtual clock. */
  had: number;
  /** When it joined the queue: decides between tenants with equal time. */
  turn: number;
}

/** Beyond this number, tenants without requests and without debt are forgotten. */
const REMEMBERED_TENANTS = 1_000;

export class FairInbox {
  readonly #queues = new Map<string, TenantQueue>();
  /** Tenants with requests, except the served one. */
  readonly #waiting = new TinyQueue<TenantQueue>([], (a, b) => a.had - b.had || a.turn - b.turn);
  #served: TenantQueue | undefined;
  /** When serving began, or the shard became idle. */
  #since = 0;
  /** The shard is idle, and no request waited when the last one ended. */
  #isFree = false;
  #rememberedMax = REMEMBERED_TENANTS;
  #size = 0;
  #turns = 0;
  /** The virtual clock: the time of the last served tenant, plus idle time. New tenants start from it. */
  #now = 0;

  get size(): number {
    return this.#size;
  }

  push(request: Request): void {
    const { tenant } = request;
    const made = () => ({ tenant, requests: new Fifo<Request>(), had: this.#now, turn: 0 });
    const queue = valueFor(this.#queues, tenant, made);
    queue.requests.push(request);
    this.#size += 1;
    if (queue.requests.size === 1 && queue !== this.#served) this.#lineUp(queue);
  }

  /** Takes the request of the tenant that has had the least time. @param at by a monotonic clock */
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

  /** Charges the tenant of the last request. @param unfinished goes back to the front of its queue */
  charge(at: number, unfinished?: Request): void {
    const queue = this.#served;
    if (queue === undefined) return;
    this.#served = undefined;
    if (unfinished !== undefined) {
      queue.requests.unshift(unfinished);
      this.#size += 1;
    }
    queue.had = this.#now + at - this.#since;
    this.#since = at;
    this.#isFree = this.#size === 0;
    if (queue.requests.size > 0) this.#lineUp(queue);
    if (this.#queues.size > this.#rememberedMax) this.#prune();
  }

  /** Whether the next request is so large that it delays earlier decisions. */
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

  /** A new queue of these tenants would start with the same time. */
  #prune(): void {
    for (const { tenant, requests, had } of this.#queues.values()) {
      if (requests.size === 0 && had <= this.#now) this.#queues.delete(tenant);
    }
    this.#rememberedMax = Math.max(REMEMBERED_TENANTS, 2 * this.#queues.size);
  }
}
