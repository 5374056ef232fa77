/**
 * The delivery queue of one address: a window in memory on its rows, which may be a million. Queues are independent, so
 * that an address that does not respond delays only its own webhooks.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { WebhookRow } from '../../src/core/webhook.js';
import type { CommitLog } from '../runtime/commit-log.js';
import type { WebhookPlace } from './loads.js';
import type { Attempt } from './record.js';

/** The place before all rows, in the syntax of Postgres. */
const BEGINNING = { at: '-infinity', id: '00000000-0000-0000-0000-000000000000' } as const;

/**
 * - `ready`: can be sent now
 * - `waiting`: until `dueAt`
 * - `sending`: an attempt is in flight
 * - `settling`: the outcome of the attempt is being committed
 * - `doubtful`: the outcome of the commit is unknown, and nothing is sent until it is known
 */
export type Phase = 'ready' | 'waiting' | 'sending' | 'settling' | 'doubtful';

/** One webhook in memory. Its units are committed separately, so that no other webhook depends on them. */
export class Entry {
  readonly id: string;
  readonly key: string;
  readonly tenant: string;
  readonly queue: DeliveryQueue;
  incarnation: number;
  /** The row after the pending units; undefined when they delete it. */
  row: WebhookRow | undefined;
  phase: Phase = 'ready';
  dueAt = 0;
  attempt: Attempt | undefined;
  controller: AbortController | undefined;
  releaseSlot: (() => void) | undefined;
  /** The redelivery request that waits for the outcome. */
  request: number | undefined;
  unacked = 0;
  /** A pending unit was not committed, or its outcome is unknown. */
  isDoubtful = false;
  refusals = 0;
  /** Commits the same outcome again. */
  recordAgain: (() => void) | undefined;

  constructor(row: WebhookRow, queue: DeliveryQueue, commits: CommitLog) {
    this.id = row.id;
    this.key = `webhook:${row.id}`;
    this.tenant = row.tenant_id;
    this.row = row;
    this.queue = queue;
    this.incarnation = commits.nextIncarnation();
  }
}

/** The order of attempts: tenants take turns, and so do the addresses of a tenant. */
export class Turns {
  /** Tenants and the queues of each tenant are in the order of turns. */
  readonly #queues = new Map<string, Set<DeliveryQueue>>();

  join(tenant: string, queue: DeliveryQueue): void {
    valueFor(this.#queues, tenant, () => new Set()).add(queue);
  }

  leave(tenant: string, queue: DeliveryQueue): void {
    const queues = this.#queues.get(tenant);
    if (queues?.delete(queue) && queues.size === 0) this.#queues.delete(tenant);
  }

  /**
   * The next webhook to send, and its slot.
   * @param share maximum attempts in flight of one address
   * @param takeSlot undefined when the tenant has used its share
   */
  next(
    share: number,
    takeSlot: (tenant: string) => (() => void) | undefined,
  ): { readonly entry: Entry; readonly releaseSlot: () => void } | undefined {
    for (const [tenant, queues] of this.#queues) {
      const queue = firstBelow(queues, share);
      const releaseSlot = queue && takeSlot(tenant);
      if (queue === undefined || releaseSlot === undefined) continue;
      const entry = queue.takeReady(tenant);
      // A queue with more webhooks moves to the end.
      if (queues.delete(queue)) queues.add(queue);
      if (this.#queues.delete(tenant)) this.#queues.set(tenant, queues);
      return { entry, releaseSlot };
    }
    return undefined;
  }
}

function firstBelow(queues: ReadonlySet<DeliveryQueue>, share: number): DeliveryQueue | undefined {
  for (const queue of queues) if (queue.active < share) return queue;
  return undefined;
}

export class DeliveryQueue {
  readonly url: string;
  active = 0;
  /** Whether there may be unread rows. */
  isUnread = true;
  isReading = false;
  place: WebhookPlace = BEGINNING;
  /** Whether a skipped row may precede `place`. */
  #isMissed = false;
  readonly #entries = new ChurningMap<string, Entry>();
  readonly #ready = new Map<string, Entry[]>();
  readonly #turns: Turns;

  constructor(url: string, turns: Turns) {
    this.url = url;
    this.#turns = turns;
  }

  get entries(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  isFull(window: number): boolean {
    return this.#entries.size >= window;
  }

  wantsRows(window: number): boolean {
    return this.isUnread && !this.isReading && this.#entries.size <= window / 2;
  }

  /** No webhook in memory and, as far as known, none in the table. */
  get isSpent(): boolean {
    return this.#entries.size === 0 && !this.isUnread && !this.isReading;
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  add(entry: Entry): void {
    this.#entries.set(entry.id, entry);
  }

  remove(entry: Entry): void {
    this.unready(entry);
    this.#entries.delete(entry.id);
  }

  makeReady(entry: Entry, where: 'last' | 'first' = 'last'): void {
    entry.phase = 'ready';
    const ready = valueFor(this.#ready, entry.tenant, () => []);
    if (where === 'last') ready.push(entry);
    else ready.unshift(entry);
    this.#turns.join(entry.tenant, this);
  }

  unready(entry: Entry): void {
    const ready = this.#ready.get(entry.tenant);
    const at = ready?.indexOf(entry) ?? -1;
    if (at < 0) return;
    ready?.splice(at, 1);
    this.#dropIfEmpty(entry.tenant);
  }

  takeReady(tenant: string): Entry {
    const entry = this.#ready.get(tenant)?.shift() as Entry;
    this.#dropIfEmpty(tenant);
    return entry;
  }

  #dropIfEmpty(tenant: string): void {
    if (this.#ready.get(tenant)?.length !== 0) return;
    this.#ready.delete(tenant);
    this.#turns.leave(tenant, this);
  }

  /** Records that a row is not in memory. */
  miss(): void {
    this.isUnread = true;
    if (this.isReading || this.place !== BEGINNING) this.#isMissed = true;
  }

  /** Called when there are no rows after `place`. Reading starts again if rows were skipped. */
  reachedEnd(): void {
    this.place = BEGINNING;
    this.isUnread = this.#isMissed;
    this.#isMissed = false;
  }
}
