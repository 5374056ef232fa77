/**
 * How much heap the threads of the engine may have. Node.js gives each thread the share of a whole
 * process: together they could outgrow the container, whose end by the system takes all of them. A
 * thread that meets its own limit ends alone and is replaced.
 */

import { totalmem } from 'node:os';
import { LIMITS } from '../../src/base/limits.js';

/** For the front, which has no limit of its own, for what is no heap, and for a small Postgres. */
const RESERVED_MIB = 256;

/** Of the rest; buffers, stacks, compiled code and young objects of the threads take the others. */
const HEAP_SHARE = 0.75;

/** A thread does not start with much less. */
const HEAP_MIB_MIN = 64;

/** More makes single collections so long that the shard stands still meanwhile. */
const HEAP_MIB_MAX = 4_096;

/** What the container allows, or else what the machine has. */
export function memoryMib(): number {
  // 0 when the system does not say, and more than any machine has when there is no limit.
  const allowed = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(allowed, totalmem()) / 2 ** 20);
}

/** What each of so many threads may have of that memory, in MiB. */
export function threadHeapMib(memory: number, threads: number): number {
  const share = Math.floor(((memory - RESERVED_MIB) * HEAP_SHARE) / threads);
  return Math.min(Math.max(share, HEAP_MIB_MIN), HEAP_MIB_MAX);
}

/**
 * Of the heap of a shard: the rest is for what is under way, for code, and for what is no actor. Collections
 * need room, too: a heap that is nearly full is collected all the time.
 */
const RESIDENT_SHARE = 0.25;

/** What the actors of one kind may take of such a heap, in bytes. */
export function residentBytesMax(heapMib: number): number {
  return Math.min(heapMib * 2 ** 20 * RESIDENT_SHARE, LIMITS.residentBytesMax);
}
