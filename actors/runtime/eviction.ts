/**
 * Decides which idle actors stay in memory: queues by how soon an actor is likely to be used again. A later
 * queue is evicted only when the earlier ones are empty.
 *
 * The queues are linked lists: each message removes an actor and adds it again, which costs more in a Map
 * of 100,000 entries than handling the message.
 */

/**
 * In the order of eviction:
 * - `ended`: it may be read once more, shortly after its end;
 * - `large`: evicting it makes room for many others;
 * - `waiting`: for a timer or a caller, for an unknown time;
 * - `offered`: its task is in a queue, and is claimed next, or not for days if its workers are gone;
 * - `active`: a handler or worker is working for it.
 */
export const LINES = ['ended', 'large', 'waiting', 'offered', 'active'] as const;
export type LineName = (typeof LINES)[number];

export type Outlook = Exclude<LineName, 'large'>;

export interface Member<Self extends Member<Self>> {
  bytes: number;
  line: Line<Self> | undefined;
  older: Self | undefined;
  newer: Self | undefined;
}

/** Of the members that `surplus` passes, it takes the last one. */
const STEP = 8;
/** The share of a queue, from its newest end, through which `surplus` goes. */
const SURPLUS_SHARE = 1 / 4;

export class Line<Item extends Member<Item>> {
  oldest: Item | undefined;
  newest: Item | undefined;
  bytes = 0;
  readonly #bytesMax: number;
  #size = 0;
  /** Where `surplus` goes on, and how many members it has passed since it was at the newest end. */
  #hand: Item | undefined;
  #passed = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isFull(): boolean {
    return this.bytes > this.#bytesMax;
  }

  /** Moves the item from its previous queue to the newest end of this one. */
  push(item: Item): void {
    item.line?.remove(item);
    item.line = this;
    this.bytes += item.bytes;
    this.#size += 1;
    item.older = this.newest;
    if (this.newest === undefined) this.oldest = item;
    else this.newest.newer = item;
    this.newest = item;
  }

  /**
   * A member that others are likely to precede. The newest quarter is taken in passing, so that what is soon gone again
   * mostly stays; behind it the oldest members keep their places until they are gone. Once per lap the oldest one is
   * taken, so that a queue without workers does not keep its places for ever.
   */
  surplus(): Item | undefined {
    if (this.#passed > this.#size * SURPLUS_SHARE) {
      this.#passed = 0;
      this.#hand = undefined;
      return this.oldest;
    }
    let at = this.#hand;
    for (let step = 0; step < STEP; step += 1) at = at?.older ?? this.newest;
    this.#hand = at;
    this.#passed += STEP;
    return at;
  }

  remove(item: Item): void {
    const { older, newer } = item;
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
    if (this.#hand === item) this.#hand = newer;
    item.older = undefined;
    item.newer = undefined;
    item.line = undefined;
    this.bytes -= item.bytes;
    this.#size -= 1;
  }
}

/** Bytes of an actor besides its JSON values. */
const ACTOR_BYTES = 3_200;
/** For objects and arrays of small values, as most contexts are. */
const BYTES_PER_CHARACTER = 3;
/** Characters of a unit other than the values of a caller: names of columns, ids, times. */
const UNIT_FRAME_CHARACTERS = 2_000;

/** @param characters of the JSON of its values */
export function bytesOf(characters: number): number {
  return ACTOR_BYTES + BYTES_PER_CHARACTER * characters;
}

export function valuesOf(unitCharacters: number): number {
  return Math.max(0, unitCharacters - UNIT_FRAME_CHARACTERS);
}

/** Shares of the memory limit of a kind: preloaded actors. */
const AHEAD_SHARE = 1 / 12;
/** An actor with more is `large`. */
export const LARGE_SHARE = 1 / 16;
/** Reserved for idle actors, however much the busy ones use. */
export const IDLE_SHARE = 1 / 8;
const ENDED_SHARE = 1 / 128;
/** 20,000 to 30,000 small instances; a longer backlog is read again as it is claimed. */
const OFFERED_SHARE = 3 / 16;
const WAITING_SHARE = 1 / 8;

/** @param bytesMax memory limit of all actors of a kind */
export function aheadMaxOf(bytesMax: number, actors: number, bytes: number): number {
  const each = actors === 0 ? ACTOR_BYTES : bytes / actors;
  return Math.floor((bytesMax * AHEAD_SHARE) / each);
}

export type Lines<Item extends Member<Item>> = Readonly<Record<LineName, Line<Item>>>;

/** @param bytesMax limit of all actors of a kind */
export function newLines<Item extends Member<Item>>(bytesMax: number): Lines<Item> {
  return {
    ended: new Line(bytesMax * ENDED_SHARE),
    large: new Line(bytesMax),
    waiting: new Line(bytesMax * WAITING_SHARE),
    offered: new Line(bytesMax * OFFERED_SHARE),
    active: new Line(bytesMax),
  };
}
