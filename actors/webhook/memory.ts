/**
 * What one shard keeps of the outbox in memory: a lane for each address, the waits between attempts,
 * and the reading on behind what is in memory. Sends nothing.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import { lastUsed } from '../../src/base/quota/last-used.js';
import type { UnixMs } from '../../src/base/time.js';
import type { WebhookRow } from '../../src/core/webhook.js';
import type { Kernel } from '../runtime/kernel.js';
import { TimerHeap } from '../runtime/timer-heap.js';
import { Entry, Lane, Turns } from './lane.js';
import type { WebhookLoads } from './loads.js';

export interface WebhookMemoryDeps
  extends Pick<Kernel<WebhookLoads>, 'commits' | 'loader' | 'clock' | 'now' | 'schedule'> {
  /** The addresses are those that are configured; rows of others are delivered too. */
  readonly settings: {
    readonly shard: number;
    readonly shards: number;
    readonly webhookUrls: readonly string[];
  };
}

/**
 * Webhooks of one address kept in memory; the rest stays in its table until these run low. With so many
 * addresses that these would be more than the bound of all, each has its part of that.
 */
export const WINDOW_MAX = 500;
const WINDOW_MIN = 10;
const ENTRIES_MAX = 50_000;
/** Addresses read by one query. */
const PAGE_URLS = 500;
/** Webhooks that are left alone until the next start; beyond these the oldest are tried again. */
const ABANDONED_MAX = 10_000;
/** How soon rows that could not be read are asked for again. */
export const RELOAD_MS = 1_000;
/** Clocks jump: a wait is looked at again after this long at the latest. */
const WAIT_MS_MAX = 60_000;

export class WebhookMemory {
  /** Something happened since this was last set to false. */
  isTouched = false;
  readonly #deps: WebhookMemoryDeps;
  readonly turns = new Turns();
  readonly #lanes = new Map<string, Lane>();
  readonly #due = new TimerHeap<Entry>();
  /** For each read under way, the webhooks that were forgotten since it began. */
  readonly #reads = new Set<Set<string>>();
  readonly #abandoned = lastUsed<string, true>(ABANDONED_MAX);
  #isStopped = false;
  #timer: TimerHandle | undefined;

  constructor(deps: WebhookMemoryDeps) {
    this.#deps = deps;
    for (const url of deps.settings.webhookUrls) this.#lane(url);
  }

  /** Everything is read again: rows may be there that nobody told of. */
  rescan(): void {
    for (const lane of this.#lanes.values()) lane.miss();
    this.isTouched = true;
    this.#findLanes();
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
  }

  get entries(): Entry[] {
    return [...this.#lanes.values()].flatMap((lane) => [...lane.entries]);
  }

  get laneCount(): number {
    return this.#lanes.size;
  }

  get #window(): number {
    const part = Math.floor(ENTRIES_MAX / Math.max(1, this.#lanes.size));
    return Math.min(WINDOW_MAX, Math.max(WINDOW_MIN, part));
  }

  /** A row that was committed just now. It stands behind those that are not read yet. */
  added(row: WebhookRow): void {
    if (this.#deps.commits.held.has(row.tenant_id)) return;
    const lane = this.#lane(row.url);
    if (lane.isFull(this.#window) || lane.isUnread) lane.miss();
    else if (lane.get(row.id) === undefined) this.admit(lane, row);
    this.isTouched = true;
  }

  admit(lane: Lane, row: WebhookRow): void {
    if (this.#deps.commits.held.has(row.tenant_id)) return;
    this.wait(this.#newEntry(lane, row), Date.parse(row.next_attempt_at ?? row.created_at));
  }

  wait(entry: Entry, dueAt: UnixMs): void {
    this.isTouched = true;
    if (dueAt <= this.#deps.now()) {
      entry.lane.makeReady(entry);
      return;
    }
    entry.phase = 'waiting';
    entry.dueAt = dueAt;
    this.#due.push(dueAt, entry);
  }

  forget(entry: Entry): void {
    entry.lane.remove(entry);
    for (const gone of this.#reads) gone.add(entry.id);
    this.isTouched = true;
  }

  /** Forgotten although its row stays: only a request for it brings it back. */
  abandon(entry: Entry): void {
    this.#abandoned.set(entry.id, true);
    this.forget(entry);
  }

  /**
   * Calls `then` with the webhook, from memory or read into it, or with undefined when there is none.
   *
   * @param fail called instead when it cannot be read
   */
  find(id: string, then: (entry: Entry | undefined) => void, fail: () => void): void {
    const known = this.#get(id);
    if (known !== undefined) {
      then(known);
      return;
    }
    this.#reading(this.#deps.loader.webhook(id), (row, gone) => {
      // Whatever the answer says, it may be older than what happened meanwhile.
      if (this.#get(id) !== undefined || gone.has(id)) this.find(id, then, fail);
      else then(row === undefined ? undefined : this.#newEntry(this.#lane(row.url), row));
    }).catch(() => this.#deps.schedule(fail));
  }

  #get(id: string): Entry | undefined {
    for (const lane of this.#lanes.values()) {
      const entry = lane.get(id);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #lane(url: string): Lane {
    let lane = this.#lanes.get(url);
    if (lane === undefined) {
      lane = new Lane(url, this.turns);
      this.#lanes.set(url, lane);
    }
    return lane;
  }

  #newEntry(lane: Lane, row: WebhookRow): Entry {
    const entry = new Entry(row, lane, this.#deps.commits);
    lane.add(entry);
    return entry;
  }

  // ---------------------------------------------------------------- reading on

  /** Reads on where a window runs low. Addresses that nothing waits for are forgotten. */
  readOn(): void {
    const window = this.#window;
    const { webhookUrls } = this.#deps.settings;
    for (const lane of this.#lanes.values()) {
      if (lane.wantsRows(window)) this.#read(lane, window);
      else if (lane.isSpent && !webhookUrls.includes(lane.url)) this.#lanes.delete(lane.url);
    }
  }

  /** @param after the address behind which is looked on */
  #findLanes(after = ''): void {
    const { loader, schedule, clock } = this.#deps;
    loader.webhookUrls(after, PAGE_URLS).then(
      (urls) =>
        schedule(() => {
          for (const url of urls) this.#lane(url);
          this.isTouched = true;
          const last = urls.at(-1);
          if (last !== undefined && urls.length === PAGE_URLS) this.#findLanes(last);
        }),
      () =>
        clock.setTimeout(() => {
          if (!this.#isStopped) this.#findLanes(after);
        }, RELOAD_MS),
    );
  }

  /** @param window rows that are read at once, at most */
  #read(lane: Lane, window: number): void {
    const { loader, schedule, clock } = this.#deps;
    const done = () => {
      lane.isReading = false;
      this.isTouched = true;
    };
    lane.isReading = true;
    this.#reading(loader.dueWebhooks(lane.url, lane.place, window), (rows, gone) => {
      done();
      this.#takeRows(lane, rows, gone, window);
    }).catch(() => clock.setTimeout(() => schedule(done), RELOAD_MS));
  }

  #takeRows(
    lane: Lane,
    rows: readonly WebhookRow[],
    gone: ReadonlySet<string>,
    window: number,
  ): void {
    for (const row of rows) {
      if (lane.isFull(window)) return;
      lane.place = { at: row.next_attempt_at as string, id: row.id };
      const isLeftOut = gone.has(row.id) || this.#abandoned.has(row.id);
      if (!isLeftOut && lane.get(row.id) === undefined) this.admit(lane, row);
    }
    if (rows.length < window) lane.reachedEnd();
  }

  /** @param then is told which webhooks were forgotten since the read began. Rejects as it does. */
  async #reading<T>(
    read: Promise<T>,
    then: (answer: T, gone: ReadonlySet<string>) => void,
  ): Promise<void> {
    const gone = new Set<string>();
    this.#reads.add(gone);
    try {
      const answer = await read;
      this.#deps.schedule(() => {
        this.#reads.delete(gone);
        then(answer, gone);
      });
    } catch (error) {
      this.#reads.delete(gone);
      throw error;
    }
  }

  // ---------------------------------------------------------------- time

  takeDue(): void {
    const now = this.#deps.now();
    for (;;) {
      const entry = this.#due.popDue(now);
      if (entry === undefined) return;
      // One that was hurried or discarded has left its place in the heap behind.
      if (entry.phase === 'waiting' && entry.dueAt <= now) entry.lane.makeReady(entry);
    }
  }

  /** Asks for a turn when the next wait is over. */
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
