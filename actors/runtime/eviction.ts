/**
 * Which actors stay in memory while nothing happens to them: lines of idle ones, by how soon they are
 * likely to be asked for again. Those of a later line leave only when the earlier ones are empty.
 *
 * A line is linked through its members: each message takes an actor out and puts it back, which in a Map
 * of a hundred thousand costs more than what many a message does.
 */

/**
 * In the order in which they leave:
 *
 * - `ended`: it may be read once more, just behind its end;
 * - `large`: many others have room in its place, whatever it waits for;
 * - `waiting`: for a time or for somebody, nobody knows how long;
 * - `offered`: its work is in a queue, whose first is taken next, or whose workers are gone for days;
 * - `active`: somebody is at work for it.
 */
export const LINES = ['ended', 'large', 'waiting', 'offered', 'active'] as const;
export type LineName = (typeof LINES)[number];

/** What the state of an actor says of it. */
export type Outlook = Exclude<LineName, 'large'>;

/** What a line needs of its members. */
export interface Member<Self extends Member<Self>> {
  /** Memory that it takes, estimated. */
  bytes: number;
  line: Line<Self> | undefined;
  older: Self | undefined;
  newer: Self | undefined;
}

/** Members that are passed over for each that is taken out of the midst of a line. */
const STEP = 8;

export class Line<Item extends Member<Item>> {
  oldest: Item | undefined;
  newest: Item | undefined;
  /** Of all its members. */
  bytes = 0;
  readonly #bytesMax: number;
  /** Where the last one was taken out of the midst. */
  #hand: Item | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isOver(): boolean {
    return this.bytes > this.#bytesMax;
  }

  /** As the newest one; it leaves the line that it was in. */
  push(item: Item): void {
    this.#enter(item);
    item.older = this.newest;
    if (this.newest === undefined) this.oldest = item;
    else this.newest.newer = item;
    this.newest = item;
  }

  /** The next one from all over the line: each is as likely as any other. */
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

  /** A member leaves it. */
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

/** What an actor takes beside the values of its JSON: its own objects, and the strings in them. */
const ACTOR_BYTES = 3_200;

/** Objects and arrays of small values, as contexts mostly are, take so much for each character of their JSON. */
const BYTES_PER_CHARACTER = 3;

/** Text of a unit that is no value of a caller's: names of columns, ids, times. */
const UNIT_FRAME_CHARACTERS = 2_000;

/** What an actor takes, estimated. @param characters of the JSON of its values */
export function bytesOf(characters: number): number {
  return ACTOR_BYTES + BYTES_PER_CHARACTER * characters;
}

/** Characters of values in the rows of a unit that has so many characters. */
export function valuesOf(unitCharacters: number): number {
  return Math.max(0, unitCharacters - UNIT_FRAME_CHARACTERS);
}

/** Of what all actors may take those may take so much that are loaded before they are needed. */
const AHEAD_SHARE = 1 / 12;

/** How many may be loaded ahead, by what those in memory take. @param bytesMax what all actors of a kind may take */
export function aheadMaxOf(bytesMax: number, actors: number, bytes: number): number {
  const each = actors === 0 ? ACTOR_BYTES : bytes / actors;
  return Math.floor((bytesMax * AHEAD_SHARE) / each);
}

/** Of what all actors may take; one that takes more is large. */
export const LARGE_SHARE = 1 / 16;
/** So much is left to idle ones, whatever those take for whom something is under way. */
export const IDLE_SHARE = 1 / 8;
/** Of what all actors may take these may take so much, however few others there are. */
const ENDED_SHARE = 1 / 128;
const WAITING_SHARE = 1 / 8;

export type Lines<Item extends Member<Item>> = Readonly<Record<LineName, Line<Item>>>;

/** @param bytesMax what all actors of a kind may take */
export function newLines<Item extends Member<Item>>(bytesMax: number): Lines<Item> {
  return {
    ended: new Line(bytesMax * ENDED_SHARE),
    large: new Line(bytesMax),
    waiting: new Line(bytesMax * WAITING_SHARE),
    offered: new Line(bytesMax),
    active: new Line(bytesMax),
  };
}
