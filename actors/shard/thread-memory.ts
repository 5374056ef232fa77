/**
 * Heap limits of the threads. Node.js gives each thread the share of a whole process: together they could
 * exceed the container's limit, which kills all of them. A thread that exceeds its own limit ends alone and
 * is replaced.
 */

import { totalmem } from 'node:os';
import { LIMITS } from '../../src/base/limits.js';

/** For the front thread, which has no limit, for memory outside the heaps, and for a small Postgres. */
const RESERVED_MIB = 256;

/** Of the rest; buffers, stacks, compiled code and young objects take the remainder. */
const HEAP_SHARE = 0.75;

/** A thread does not start with much less. */
const HEAP_MIB_MIN = 64;

/** With more, a single garbage collection stops the shard for too long. */
const HEAP_MIB_MAX = 4_096;

/** The limit of the container, or else the memory of the machine. */
export function memoryMib(): number {
  // 0 when the system does not report it, and more than any machine has when there is no limit.
  const allowed = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(allowed, totalmem()) / 2 ** 20);
}

/** The limit of each of this many threads, in MiB. */
export function threadHeapMib(memory: number, threads: number): number {
  const share = Math.floor(((memory - RESERVED_MIB) * HEAP_SHARE) / threads);
  return Math.min(Math.max(share, HEAP_MIB_MIN), HEAP_MIB_MAX);
}

/**
 * Of the heap of a shard: the rest is for work in progress, code, and other objects. Garbage collection
 * needs room too: a heap that is nearly full is collected all the time.
 */
const RESIDENT_SHARE = 0.25;

/** The limit of the actors of one kind in such a heap, in bytes. */
export function residentBytesMax(heapMib: number): number {
  return Math.min(heapMib * 2 ** 20 * RESIDENT_SHARE, LIMITS.residentBytesMax);
}
