/**
 * The webhooks of one address in memory: a window on its rows, which may be a million. What is beyond
 * the window is read when it empties. Lanes know nothing of one another, so that an address that does
 * not answer holds up its own webhooks only.
 */

import type { WebhookRow } from '../../src/core/webhook.js';
import type { CommitLog } from '../runtime/commit-log.js';
import type { Attempt } from './record.js';

/** Before every row: Postgres reads it as a time. */
const BEGINNING = { at: '-infinity', id: '00000000-0000-0000-0000-000000000000' } as const;

/**
 * - `ready`: its turn has come; `waiting`: it comes at `dueAt`.
 * - `sending`: an attempt is under way.
 * - `settling`: what is known of it is being committed.
 * - `doubtful`: whether that was committed is not known, and nothing is done until it is.
 */
export type Phase = 'ready' | 'waiting' | 'sending' | 'settling' | 'doubtful';

/** One webhook in memory; it makes its own units, so that no other one depends on theirs. */
export class Entry {
  readonly id: string;
  readonly key: string;
  readonly tenant: string;
  readonly lane: Lane;
  incarnation: number;
  /** As it will be when the units under way are committed; undefined: gone then. */
  row: WebhookRow | undefined;
  phase: Phase = 'ready';
  dueAt = 0;
  attempt: Attempt | undefined;
  controller: AbortController | undefined;
  /** Gives its slot back; undefined: it has none. */
  releaseSlot: (() => void) | undefined;
  /** Who asked for its redelivery, and waits for the outcome. */
  request: number | undefined;
  unacked = 0;
  /** A unit of those under way was not committed, or may not have been. */
  isDoubtful = false;
  refusals = 0;
  /** Commits the same outcome once more. */
  recordAgain: (() => void) | undefined;

  constructor(row: WebhookRow, lane: Lane, commits: CommitLog) {
    this.id = row.id;
    this.key = `webhook:${row.id}`;
    this.tenant = row.tenant_id;
    this.row = row;
    this.lane = lane;
    this.incarnation = commits.nextIncarnation();
  }
}

/** Who has something to send, and where: tenants take turns, and for each of them its addresses. */
export class Turns {
  /** In the order of turns, as are the lanes of each. */
  readonly #lanes = new Map<string, Set<Lane>>();

  join(tenant: string, lane: Lane): void {
    const lanes = this.#lanes.get(tenant);
    if (lanes === undefined) this.#lanes.set(tenant, new Set([lane]));
    else lanes.add(lane);
  }

  leave(tenant: string, lane: Lane): void {
    const lanes = this.#lanes.get(tenant);
    if (lanes?.delete(lane) && lanes.size === 0) this.#lanes.delete(tenant);
  }

  /**
   * The next webhook to be sent, and its slot.
   *
   * @param share attempts that one address may have under way
   * @param takeSlot undefined: the tenant has its share
   */
  next(
    share: number,
    takeSlot: (tenant: string) => (() => void) | undefined,
  ): { readonly entry: Entry; readonly releaseSlot: () => void } | undefined {
    for (const [tenant, lanes] of this.#lanes) {
      const lane = firstBelow(lanes, share);
      const releaseSlot = lane && takeSlot(tenant);
      if (lane === undefined || releaseSlot === undefined) continue;
      const entry = lane.takeReady(tenant);
      // What still has something to send moves behind the others.
      if (lanes.delete(lane)) lanes.add(lane);
      if (this.#lanes.delete(tenant)) this.#lanes.set(tenant, lanes);
      return { entry, releaseSlot };
    }
    return undefined;
  }
}

function firstBelow(lanes: ReadonlySet<Lane>, share: number): Lane | undefined {
  for (const lane of lanes) if (lane.active < share) return lane;
  return undefined;
}

export class Lane {
  readonly url: string;
  /** Attempts under way. */
  active = 0;
  /** There may be rows that are not in memory. */
  isUnread = true;
  isReading = false;
  /** The last row that was read; reading goes on behind it. */
  place: { readonly at: string; readonly id: string } = BEGINNING;
  /** A row was left out that may lie before `place`. */
  #isMissed = false;
  readonly #entries = new Map<string, Entry>();
  /** By tenant; none is empty. */
  readonly #ready = new Map<string, Entry[]>();
  readonly #turns: Turns;

  constructor(url: string, turns: Turns) {
    this.url = url;
    this.#turns = turns;
  }

  get entries(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  /** @param window so many of its webhooks may be in memory */
  isFull(window: number): boolean {
    return this.#entries.size >= window;
  }

  wantsRows(window: number): boolean {
    return this.isUnread && !this.isReading && this.#entries.size <= window / 2;
  }

  /** Nothing of it is in memory, nor, as far as is known, in its table. */
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

  /** Behind all others, or before them. */
  makeReady(entry: Entry, where: 'last' | 'first' = 'last'): void {
    entry.phase = 'ready';
    const { tenant } = entry;
    const ready = this.#ready.get(tenant);
    if (ready === undefined) this.#ready.set(tenant, [entry]);
    else if (where === 'last') ready.push(entry);
    else ready.unshift(entry);
    this.#turns.join(tenant, this);
  }

  unready(entry: Entry): void {
    const ready = this.#ready.get(entry.tenant);
    const at = ready?.indexOf(entry) ?? -1;
    if (at < 0) return;
    ready?.splice(at, 1);
    this.#dropIfEmpty(entry.tenant);
  }

  /** The first one of a tenant that has some. */
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

  /** There is a row that is not in memory. */
  miss(): void {
    this.isUnread = true;
    if (this.isReading || this.place !== BEGINNING) this.#isMissed = true;
  }

  /** There is no row behind `place`: reading has come to its end, or begins anew. */
  reachedEnd(): void {
    this.place = BEGINNING;
    this.isUnread = this.#isMissed;
    this.#isMissed = false;
  }
}
