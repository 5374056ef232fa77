/**
 * Which idle actors stay in memory: queues by how soon an actor is likely to be used again. A later queue
 * is evicted only when the earlier ones are empty.
 *
 * The queues are linked lists: each message removes an actor and adds it again, which in a Map of a hundred
 * thousand entries costs more than many a message.
 */

/**
 * In the order of eviction:
 *
 * - `ended`: it may be read once more, shortly after its end;
 * - `large`: many others have room in its place;
 * - `waiting`: for a time or a caller, for an unknown time;
 * - `offered`: its task is in a queue, whose first is taken next, or whose workers are gone for days;
 * - `active`: a handler or worker is working for it.
 */
export const LINES = ['ended', 'large', 'waiting', 'offered', 'active'] as const;
export type LineName = (typeof LINES)[number];

export type Outlook = Exclude<LineName, 'large'>;

export interface Member<Self extends Member<Self>> {
  /** Estimated memory. */
  bytes: number;
  line: Line<Self> | undefined;
  older: Self | undefined;
  newer: Self | undefined;
}

/** Members skipped for each that is taken from the middle of a queue. */
const STEP = 8;

export class Line<Item extends Member<Item>> {
  oldest: Item | undefined;
  newest: Item | undefined;
  bytes = 0;
  readonly #bytesMax: number;
  /** Where the last one was taken from the middle. */
  #hand: Item | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isOver(): boolean {
    return this.bytes > this.#bytesMax;
  }

  /** As the newest one; removed from its previous queue. */
  push(item: Item): void {
    this.#enter(item);
    item.older = this.newest;
    if (this.newest === undefined) this.oldest = item;
    else this.newest.newer = item;
    this.newest = item;
  }

  /** A member from anywhere in the queue, each with the same probability. */
  midst(): Item | undefined {
    let at = this.#hand;
    for (let step = 0; step < STEP; step += 1) at = at?.older ?? this.newest;
    this.#hand = at;
    return at;
  }

  #enter(item: Item): void {
    item.line?.remove(item);
    item.line = this;
    this.bytes += item.bytes;
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
  }
}

/** Memory of an actor besides its JSON values: its objects and their strings. */
const ACTOR_BYTES = 3_200;

/** Memory per character of JSON, for objects and arrays of small values, as most contexts are. */
const BYTES_PER_CHARACTER = 3;

/** Characters of a unit that are no values of a caller: names of columns, ids, times. */
const UNIT_FRAME_CHARACTERS = 2_000;

/** Estimated memory of an actor. @param characters of the JSON of its values */
export function bytesOf(characters: number): number {
  return ACTOR_BYTES + BYTES_PER_CHARACTER * characters;
}

export function valuesOf(unitCharacters: number): number {
  return Math.max(0, unitCharacters - UNIT_FRAME_CHARACTERS);
}

// Parts of the memory of all actors of a kind:

/** Preloaded ones. */
const AHEAD_SHARE = 1 / 12;
/** One with more is large. */
export const LARGE_SHARE = 1 / 16;
/** Left to idle actors, whatever busy ones take. */
export const IDLE_SHARE = 1 / 8;
const ENDED_SHARE = 1 / 128;
const WAITING_SHARE = 1 / 8;

/** How many may be preloaded, by the average memory. @param bytesMax limit of all actors of a kind */
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
    offered: new Line(bytesMax),
    active: new Line(bytesMax),
  };
}
