/** The outbox of one shard in memory: a delivery queue for each address, timers between attempts, and reading ahead. */

import type { TimerHandle } from '../../src/base/clock.js';
import { lastUsed, valueFor } from '../../src/base/quota/last-used.js';
import type { UnixMs } from '../../src/base/time.js';
import type { WebhookRow } from '../../src/core/webhook.js';
import type { Kernel } from '../runtime/kernel.js';
import { TimerHeap } from '../runtime/timer.js';
import { DeliveryQueue, Entry, Turns } from './delivery-queue.js';
import type { WebhookLoads } from './loads.js';

export interface WebhookMemoryDeps
  extends Pick<Kernel<WebhookLoads>, 'commits' | 'loader' | 'clock' | 'now' | 'schedule'> {
  /** The configured addresses; rows with other addresses are delivered too. */
  readonly settings: { readonly shards: number; readonly webhookUrls: readonly string[] };
}

/** Webhooks of one address in memory, unless the limit for all addresses allows fewer. */
export const WINDOW_MAX = 500;
const WINDOW_MIN = 10;
const ENTRIES_MAX = 50_000;
const PAGE_URLS = 500;
/** Webhooks remembered as skipped until the next start, and as finished; the oldest beyond are forgotten. */
const REMEMBERED_MAX = 10_000;
export const RELOAD_MS = 1_000;
/** Maximum time of a timer, because the clock may be set. */
const WAIT_MS_MAX = 60_000;

export class WebhookMemory {
  /** Set by every change and reset at the end of the turn. */
  isTouched = false;
  readonly #deps: WebhookMemoryDeps;
  readonly turns = new Turns();
  readonly #queues = new Map<string, DeliveryQueue>();
  readonly #due = new TimerHeap<Entry>();
  /** For each read in progress, the webhooks forgotten since its start. */
  readonly #reads = new Set<Set<string>>();
  readonly #abandoned = lastUsed<string, true>(REMEMBERED_MAX);
  /** Their rows may be read, and the webhooks delivered, before the effect of their creation arrives. */
  readonly #finished = lastUsed<string, true>(REMEMBERED_MAX);
  #isStopped = false;
  #timer: TimerHandle | undefined;

  constructor(deps: WebhookMemoryDeps) {
    this.#deps = deps;
    for (const url of deps.settings.webhookUrls) this.#queue(url);
  }

  /** Reads all rows again, because some may not have been reported. */
  rescan(): void {
    for (const queue of this.#queues.values()) queue.miss();
    this.isTouched = true;
    this.#findQueues();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
  }

  get entries(): Entry[] {
    return [...this.#queues.values()].flatMap((queue) => [...queue.entries]);
  }

  get queueCount(): number {
    return this.#queues.size;
  }

  get #window(): number {
    const part = Math.floor(ENTRIES_MAX / Math.max(1, this.#queues.size));
    return Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, part));
  }

  /** Adds a committed row, after rows that are not read yet. */
  added(row: WebhookRow): void {
    if (this.#deps.commits.suspended.has(row.tenant_id) || this.#finished.has(row.id)) return;
    const queue = this.#queue(row.url);
    if (queue.isFull(this.#window) || queue.isUnread) queue.miss();
    else if (queue.get(row.id) === undefined) this.admit(queue, row);
    this.isTouched = true;
  }

  admit(queue: DeliveryQueue, row: WebhookRow): void {
    if (this.#deps.commits.suspended.has(row.tenant_id)) return;
    this.wait(this.#newEntry(queue, row), Date.parse(row.next_attempt_at ?? row.created_at));
  }

  wait(entry: Entry, dueAt: UnixMs): void {
    this.isTouched = true;
    if (dueAt <= this.#deps.now()) {
      entry.queue.makeReady(entry);
      return;
    }
    entry.phase = 'waiting';
    entry.dueAt = dueAt;
    this.#due.push(dueAt, entry);
  }

  forget(entry: Entry): void {
    entry.queue.remove(entry);
    this.#finished.set(entry.id, true);
    for (const forgotten of this.#reads) forgotten.add(entry.id);
    this.isTouched = true;
  }

  /** Forgets the webhook although its row stays. Only a request loads it again. */
  abandon(entry: Entry): void {
    this.#abandoned.set(entry.id, true);
    this.forget(entry);
  }

  /** Calls `then` with the webhook, loaded if needed, or with undefined when it does not exist. */
  find(id: string, then: (entry: Entry | undefined) => void, fail: () => void): void {
    const known = this.#get(id);
    if (known !== undefined) {
      then(known);
      return;
    }
    this.#reading(this.#deps.loader.webhook(id), (row, forgotten) => {
      // The row may be stale after changes during the read.
      if (this.#get(id) !== undefined || forgotten.has(id)) this.find(id, then, fail);
      else then(row === undefined ? undefined : this.#newEntry(this.#queue(row.url), row));
    }).catch(() => this.#deps.schedule(fail));
  }

  #get(id: string): Entry | undefined {
    for (const queue of this.#queues.values()) {
      const entry = queue.get(id);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #queue(url: string): DeliveryQueue {
    return valueFor(this.#queues, url, () => new DeliveryQueue(url, this.turns));
  }

  #newEntry(queue: DeliveryQueue, row: WebhookRow): Entry {
    const entry = new Entry(row, queue, this.#deps.commits);
    queue.add(entry);
    return entry;
  }

  /** Reads ahead for queues that run low, and drops empty queues. */
  readOn(): void {
    const window = this.#window;
    const { webhookUrls } = this.#deps.settings;
    for (const queue of this.#queues.values()) {
      if (queue.wantsRows(window)) this.#read(queue, window);
      else if (queue.isSpent && !webhookUrls.includes(queue.url)) this.#queues.delete(queue.url);
    }
  }

  #findQueues(after = ''): void {
    const read = () => this.#deps.loader.webhookUrls(after, PAGE_URLS);
    this.readUntilKnown(read, (urls) => {
      for (const url of urls) this.#queue(url);
      this.isTouched = true;
      const last = urls.at(-1);
      if (last !== undefined && urls.length === PAGE_URLS) this.#findQueues(last);
    });
  }

  /** Repeats the read until it succeeds, and continues in a turn. */
  readUntilKnown<T>(read: () => Promise<T>, then: (found: T) => void): void {
    const { schedule, clock } = this.#deps;
    read().then(
      (found) => schedule(() => then(found)),
      () =>
        clock.setTimeout(() => {
          if (!this.#isStopped) this.readUntilKnown(read, then);
        }, RELOAD_MS),
    );
  }

  #read(queue: DeliveryQueue, window: number): void {
    const { loader, schedule, clock } = this.#deps;
    const done = () => {
      queue.isReading = false;
      this.isTouched = true;
    };
    queue.isReading = true;
    this.#reading(loader.dueWebhooks(queue.url, queue.place, window), (rows, forgotten) => {
      done();
      this.#takeRows(queue, rows, forgotten, window);
    }).catch(() => clock.setTimeout(() => schedule(done), RELOAD_MS));
  }

  #takeRows(
    queue: DeliveryQueue,
    rows: readonly WebhookRow[],
    forgotten: ReadonlySet<string>,
    window: number,
  ): void {
    for (const row of rows) {
      if (queue.isFull(window)) return;
      queue.place = { at: row.next_attempt_at as string, id: row.id };
      const isLeftOut = forgotten.has(row.id) || this.#abandoned.has(row.id);
      if (!isLeftOut && queue.get(row.id) === undefined) this.admit(queue, row);
    }
    if (rows.length < window) queue.reachedEnd();
  }

  /** @param then also receives the webhooks forgotten since the start of the read */
  async #reading<T>(read: Promise<T>, then: (answer: T, forgotten: ReadonlySet<string>) => void) {
    const forgotten = new Set<string>();
    this.#reads.add(forgotten);
    try {
      const answer = await read;
      this.#deps.schedule(() => {
        this.#reads.delete(forgotten);
        then(answer, forgotten);
      });
    } catch (error) {
      this.#reads.delete(forgotten);
      throw error;
    }
  }

  takeDue(): void {
    const now = this.#deps.now();
    for (;;) {
      const entry = this.#due.popDue(now);
      if (entry === undefined) return;
      // Entries of redelivered or discarded webhooks are stale.
      if (entry.phase === 'waiting' && entry.dueAt <= now) entry.queue.makeReady(entry);
    }
  }

  arm(): void {
    const { clock, now, schedule } = this.#deps;
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    const at = this.#due.nextAt;
    if (at === undefined || this.#isStopped) return;
    const ms = Math.min(Math.max(1, at - now()), WAIT_MS_MAX);
    const touch = () => {
      this.isTouched = true;
    };
    this.#timer = clock.setTimeout(() => schedule(touch), ms);
  }
}
