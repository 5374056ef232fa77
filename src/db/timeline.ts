/**
 * The history of the database that this process belongs to. Two servers may both say that they are the primary, when
 * the old one does not know yet that another one was promoted. Each promotion begins a timeline with a higher number;
 * sessions that are with a lower one than was proven are left, on all threads.
 *
 * A timeline is proven by a commit that waited for the replicas, if there are any. What says by itself that it is the
 * primary proves nothing: a server that was promoted by mistake must not take sessions from the one that has replicas.
 */

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * The database above, the number of its timeline in the 32 bits below; 0: the server does not tell. An upgrade makes
 * another database of it, whose timelines begin anew: those of two databases are not compared.
 */
export type Timeline = bigint;

const NUMBER_BITS = 32n;

/** Makes it fit into a signed number of 64 bits. */
const DATABASE_BITS = 31;

export const UNTOLD: Timeline = 0n;

const KEY = 'engine: proven timeline';

/** One for all threads: each is given it as it begins. */
function memoryOfProcess(): SharedArrayBuffer {
  const found: unknown = getEnvironmentData(KEY);
  if (found instanceof SharedArrayBuffer) return found;
  const made = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  setEnvironmentData(KEY, made as unknown as Parameters<typeof setEnvironmentData>[1]);
  return made;
}

const highest = new BigInt64Array(memoryOfProcess());

/**
 * @param system the number of the database
 * @param timeline its number as a server writes it in names of files: eight hexadecimal digits
 */
export function timelineOf(system: string, timeline: string): Timeline {
  const id = BigInt(system);
  const database = BigInt.asUintN(DATABASE_BITS, id ^ (id >> NUMBER_BITS));
  return (database << NUMBER_BITS) | BigInt(`0x${timeline}`);
}

/** The number alone. */
export const numberOf = (timeline: Timeline): number =>
  Number(BigInt.asUintN(Number(NUMBER_BITS), timeline));

/** The highest of the database that was proven last. */
export const provenTimeline = (): Timeline => Atomics.load(highest, 0);

/** A lower one of the same database than was proven. */
export function isOlder(timeline: Timeline, than = provenTimeline()): boolean {
  return timeline >> NUMBER_BITS === than >> NUMBER_BITS && timeline < than;
}

/** A commit on it is on the replicas, if there are any. */
export function proveTimeline(timeline: Timeline): void {
  if (timeline === UNTOLD) return;
  for (let now = provenTimeline(); now !== timeline && !isOlder(timeline, now); ) {
    const found = Atomics.compareExchange(highest, 0, now, timeline);
    if (found === now) return;
    now = found;
  }
}
