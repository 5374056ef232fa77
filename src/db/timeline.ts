/**
 * The timeline of the database that this process uses. After a fail-over, the old primary may not know yet
 * that another server was promoted, so both claim to be the primary. Each promotion begins a timeline with
 * a higher number; all threads leave sessions on a lower one than was proven.
 *
 * A commit that waited for the replicas, if there are any, proves a timeline. The claim of a server proves
 * nothing: one that was promoted by mistake must not take sessions from the one with replicas.
 */

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * The database in the upper bits, the number of its timeline in the lower 32; 0: the server does not report
 * it. An upgrade creates another database, whose timelines are not comparable.
 */
export type Timeline = bigint;

const NUMBER_BITS = 32n;

/** Fits a signed number of 64 bits. */
const DATABASE_BITS = 31;

export const UNTOLD: Timeline = 0n;

const KEY = 'engine: proven timeline';

/** Shared by all threads. */
function memoryOfProcess(): SharedArrayBuffer {
  const found: unknown = getEnvironmentData(KEY);
  if (found instanceof SharedArrayBuffer) return found;
  const made = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  setEnvironmentData(KEY, made as unknown as Parameters<typeof setEnvironmentData>[1]);
  return made;
}

const highest = new BigInt64Array(memoryOfProcess());

/** @param timeline as in names of WAL files: eight hexadecimal digits */
export function timelineOf(system: string, timeline: string): Timeline {
  const id = BigInt(system);
  const database = BigInt.asUintN(DATABASE_BITS, id ^ (id >> NUMBER_BITS));
  return (database << NUMBER_BITS) | BigInt(`0x${timeline}`);
}

export const numberOf = (timeline: Timeline): number =>
  Number(BigInt.asUintN(Number(NUMBER_BITS), timeline));

/** The highest of the latest proven database. */
export const provenTimeline = (): Timeline => Atomics.load(highest, 0);

export function isOlder(timeline: Timeline, than = provenTimeline()): boolean {
  return timeline >> NUMBER_BITS === than >> NUMBER_BITS && timeline < than;
}

/** A commit on this timeline is on the replicas, if there are any. */
export function proveTimeline(timeline: Timeline): void {
  if (timeline === UNTOLD) return;
  for (let now = provenTimeline(); now !== timeline && !isOlder(timeline, now); ) {
    const found = Atomics.compareExchange(highest, 0, now, timeline);
    if (found === now) return;
    now = found;
  }
}
