/**
 * The requests that wait for their turn on a shard, in one queue per tenant. While the shard keeps
 * up, they leave in order of arrival; when it is behind, tenants take turns, so that one tenant's
 * flood does not starve the others.
 */

import type { Request } from '../runtime/protocol.js';

interface TenantQueue {
  readonly requests: Request[];
  /** Index of the first request that has not left; the array is cut when it is empty. */
  head: number;
}

export class FairInbox {
  readonly #queues = new Map<string, TenantQueue>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(request: Request): void {
    const { tenant } = request;
    const queue = this.#queues.get(tenant);
    if (queue === undefined) this.#queues.set(tenant, { requests: [request], head: 0 });
    else queue.requests.push(request);
    this.#size += 1;
  }

  /** The next request: from the tenant that was served longest ago. */
  shift(): Request | undefined {
    const first = this.#queues.entries().next();
    if (first.done) return undefined;
    const [tenant, queue] = first.value;
    const request = queue.requests[queue.head++]!;
    this.#size -= 1;
    // Taking a tenant out and putting it back moves it behind the others: a Map keeps its order.
    if (this.#queues.size > 1 || queue.head === queue.requests.length) {
      this.#queues.delete(tenant);
      if (queue.head < queue.requests.length) this.#queues.set(tenant, queue);
    }
    return request;
  }
}
