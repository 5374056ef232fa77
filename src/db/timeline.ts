/**
 * The timeline of the database that this process uses. After a fail-over, the old primary may not know yet
 * that another server was promoted, so both claim to be the primary. Each promotion begins a timeline with
 * a higher number; all threads leave sessions on a lower timeline than the proven one.
 *
 * A commit that waited for the replicas, if any, proves a timeline. The claim of a server proves nothing: a
 * server promoted by mistake must not take sessions from the one with replicas.
 */

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * The database in the upper bits, since an upgrade makes another; in the lower 32 its timeline; 0: unknown.
 */
export type Timeline = bigint;

const NUMBER_BITS = 32n;
/** The result fits a signed number of 64 bits. */
const DATABASE_BITS = 31;
export const UNKNOWN: Timeline = 0n;
const KEY = 'engine: proven timeline';

function memoryOfProcess(): SharedArrayBuffer {
  const found: unknown = getEnvironmentData(KEY);
  if (found instanceof SharedArrayBuffer) return found;
  const made = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  setEnvironmentData(KEY, made as unknown as Parameters<typeof setEnvironmentData>[1]);
  return made;
}

const highest = new BigInt64Array(memoryOfProcess());

/** @param timeline eight hexadecimal digits, as in names of WAL files */
export function timelineOf(system: string, timeline: string): Timeline {
  const id = BigInt(system);
  const database = BigInt.asUintN(DATABASE_BITS, id ^ (id >> NUMBER_BITS));
  return (database << NUMBER_BITS) | BigInt(`0x${timeline}`);
}

export const numberOf = (timeline: Timeline): number =>
  Number(BigInt.asUintN(Number(NUMBER_BITS), timeline));

/** The highest proven timeline of the latest database. */
export const provenTimeline = (): Timeline => Atomics.load(highest, 0);

export function isOlder(timeline: Timeline, than = provenTimeline()): boolean {
  return timeline >> NUMBER_BITS === than >> NUMBER_BITS && timeline < than;
}

/** The replicas, if any, have a commit on this timeline. */
export function proveTimeline(timeline: Timeline): void {
  if (timeline === UNKNOWN) return;
  for (let now = provenTimeline(); now !== timeline && !isOlder(timeline, now); ) {
    const found = Atomics.compareExchange(highest, 0, now, timeline);
    if (found === now) return;
    now = found;
  }
}
