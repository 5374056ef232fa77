/**
 * Shares a bounded number of places among parties, such as tenants, and within a tenant its instances or the
 * addresses that it calls. A party may use free places up to a bound of its own below the whole, so that a newcomer
 * finds one at once. Waiting requests are served in turns at every level, first come first served within the last
 * one (docs/limits.md).
 *
 *   all ─┬─ tenant a ─┬─ instance 1: ● ● (waiting: ○ ○)
 *        │            └─ instance 2: ●
 *        └─ tenant b ─── instance 3: ●
 */

import { valueFor } from './last-used.js';

/** The limits of each party at one level; the first level is all parties together. */
export interface LevelLimits {
  readonly activeMax: number;
  /** Absent: limited only by the level above. */
  readonly waitingMax?: number;
}

/** `full`: the limit of waiting requests is reached. */
export type SlotRefusal = 'aborted' | 'full' | 'closed';

export type Slot =
  | { readonly ok: true; readonly release: () => void }
  | { readonly ok: false; readonly reason: SlotRefusal };

interface Waiter {
  readonly party: Party;
  readonly places: number;
  readonly answer: (slot: Slot) => void;
}

/** A party exists while it, or a part of it, has a place or waits for one. */
interface Party {
  readonly name: string;
  readonly within: Party | undefined;
  readonly limits: LevelLimits;
  active: number;
  waiting: number;
  readonly parts: Map<string, Party>;
  /** The parts that wait, in the order of turns. A part that was served moves to the end. */
  readonly turns: Set<Party>;
  /** At the last level, in order of arrival. */
  readonly waiters: Set<Waiter>;
}

export class FairSlots {
  readonly #levels: readonly LevelLimits[];
  readonly #all: Party;
  #isClosed = false;
  /** The places of the next waiter are reserved until they are free. */
  #isAwaited = false;

  /** @param levels limits of all parties together, of one party, of one part within it, and so on */
  constructor(levels: readonly [LevelLimits, ...LevelLimits[]]) {
    this.#levels = levels;
    this.#all = newParty('', undefined, levels[0]);
  }

  get active(): number {
    return this.#all.active;
  }

  get waiting(): number {
    return this.#all.waiting;
  }

  /**
   * Takes places if they are free.
   *
   * @param path names of the party and its parts, one for each level below the first
   * @param places more than a level has are granted while no other party has a place there
   * @returns a function that releases the places; undefined: none are free
   */
  take(path: readonly string[], places = 1): (() => void) | undefined {
    const party = this.#partyAt(path);
    if (!this.#isClosed && this.#mayHave(party, places)) return this.#grant(party, places);
    discardIfIdle(party);
    return undefined;
  }

  /** Waits for places, which the holder must release. For the parameters see `take`. @param signal cancels the wait */
  acquire(path: readonly string[], signal?: AbortSignal, places = 1): Promise<Slot> {
    if (this.#isClosed) return refused('closed');
    if (signal?.aborted) return refused('aborted');
    const party = this.#partyAt(path);
    if (this.#mayHave(party, places)) {
      return Promise.resolve({ ok: true, release: this.#grant(party, places) });
    }
    if (mayWait(party)) return this.#wait(party, signal, places);
    discardIfIdle(party);
    return refused('full');
  }

  /** Refuses all waiting and later requests. Granted places stay. */
  close(): void {
    this.#isClosed = true;
    refuseAll(this.#all);
  }

  #partyAt(path: readonly string[]): Party {
    let party = this.#all;
    path.forEach((name, level) => {
      const limits = this.#levels[level + 1] as LevelLimits;
      party = valueFor(party.parts, name, () => newParty(name, party, limits));
    });
    return party;
  }

  #mayHave(party: Party, places: number): boolean {
    const isFirst = !this.#isAwaited && party.waiters.size === 0;
    return isFirst && hasRoomWithin(party, places) && fits(this.#all, places);
  }

  #wait(party: Party, signal: AbortSignal | undefined, places: number): Promise<Slot> {
    return new Promise((resolve) => {
      const onAbort = () => {
        answer({ ok: false, reason: 'aborted' });
        if (this.#isAwaited) this.#serve();
      };
      const answer = (slot: Slot) => {
        signal?.removeEventListener('abort', onAbort);
        party.waiters.delete(waiter);
        for (const each of upwards(party)) {
          each.waiting -= 1;
          if (each.waiting === 0) each.within?.turns.delete(each);
        }
        discardIfIdle(party);
        resolve(slot);
      };
      const waiter: Waiter = { party, places, answer };
      signal?.addEventListener('abort', onAbort);
      if (hasRoomWithin(party, places)) this.#isAwaited = true;
      party.waiters.add(waiter);
      for (const each of upwards(party)) {
        each.waiting += 1;
        each.within?.turns.add(each);
      }
    });
  }

  #grant(party: Party, places: number): () => void {
    for (const each of upwards(party)) each.active += places;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      for (const each of upwards(party)) each.active -= places;
      this.#serve();
      discardIfIdle(party);
    };
  }

  /** Serves the waiters whose turn it is while their places are free. */
  #serve(): void {
    for (;;) {
      const waiter = nextOf(this.#all);
      this.#isAwaited = waiter !== undefined && !fits(this.#all, waiter.places);
      if (waiter === undefined || this.#isAwaited) return;
      waiter.answer({ ok: true, release: this.#grant(waiter.party, waiter.places) });
      for (const each of upwards(waiter.party)) {
        if (each.within?.turns.delete(each)) each.within.turns.add(each);
      }
    }
  }
}

function newParty(name: string, within: Party | undefined, limits: LevelLimits): Party {
  const parts = new Map<string, Party>();
  const turns = new Set<Party>();
  return { name, within, limits, active: 0, waiting: 0, parts, turns, waiters: new Set() };
}

function* upwards(party: Party): Generator<Party> {
  for (let each: Party | undefined = party; each !== undefined; each = each.within) yield each;
}

function fits({ active, limits }: Party, places: number): boolean {
  return active === 0 ? limits.activeMax > 0 : active + places <= limits.activeMax;
}

/** In the party and all parties around it, below the first level. */
function hasRoomWithin(party: Party, places: number): boolean {
  for (const each of upwards(party)) {
    if (each.within !== undefined && !fits(each, places)) return false;
  }
  return true;
}

/** The waiter of the party whose turn it is, if its places are free within the party. */
function nextOf(party: Party): Waiter | undefined {
  const [first] = party.waiters;
  if (first !== undefined) return fits(party, first.places) ? first : undefined;
  for (const part of party.turns) {
    const waiter = nextOf(part);
    // A part keeps its turn: smaller requests of other parts do not overtake it.
    if (waiter !== undefined)
      return party.within === undefined || fits(party, waiter.places) ? waiter : undefined;
  }
  return undefined;
}

const mayWait = (party: Party) =>
  [...upwards(party)].every(
    ({ waiting, limits: { waitingMax = Infinity } }) => waiting < waitingMax,
  );

function discardIfIdle(party: Party): void {
  for (const { name, within, active, waiting, parts } of upwards(party)) {
    if (active === 0 && waiting === 0 && parts.size === 0) within?.parts.delete(name);
  }
}

function refuseAll(party: Party): void {
  for (const waiter of party.waiters) waiter.answer({ ok: false, reason: 'closed' });
  for (const part of party.turns) refuseAll(part);
}

function refused(reason: SlotRefusal): Promise<Slot> {
  return Promise.resolve({ ok: false, reason });
}
