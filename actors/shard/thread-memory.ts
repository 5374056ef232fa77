/**
 * Heap limits of the threads. Node.js allows each thread as much as a process: together they could exceed the
 * container's limit, which kills all of them. A thread that exceeds its own limit ends alone and is replaced.
 */

import { totalmem } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { LIMITS } from '../../src/base/limits.js';

/** For the front thread without a heap limit, memory outside the heaps, and a small Postgres. */
const RESERVED_MIB = 256;
/** The share of heaps in the rest; buffers, stacks, compiled code and young objects take the remainder. */
const HEAP_SHARE = 0.75;
/** Threads do not start with much less. */
const HEAP_MIB_MIN = 64;
/**
 * For young objects of a shard, three times what is allocated between two collections. In 96 MiB instead of V8's 48, half
 * as many of the instances of large batches become old before they end.
 */
const YOUNG_MIB = 96;
/** With 2 GiB or more, V8 lets a heap grow fourfold before it looks for what is dead there; below it, twofold at most. */
const HEAP_MIB_MAX = 2_000;

/**
 * Each thread copies its young objects itself. V8 shares that among four helpers of the process, which wait for each other
 * where the cores are in use, and the engine has a thread for every core. With other processes on the machine the helpers
 * took a quarter of the processor time of a round, else it makes no difference. Flags count for the whole process.
 */
export function collectInThread(): void {
  setFlagsFromString('--no-parallel-scavenge');
}

/** The limit of the container, or else the memory of the machine. */
export function memoryMib(): number {
  // 0 if the system does not report it; more than the machine has if there is no limit.
  const allowed = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return Math.floor(Math.min(allowed, totalmem()) / 2 ** 20);
}

/** The heap limit of each thread, in MiB. */
export function threadHeapMib(memory: number, threads: number): number {
  const share = Math.floor(((memory - RESERVED_MIB) * HEAP_SHARE) / threads);
  return Math.min(Math.max(share, HEAP_MIB_MIN), HEAP_MIB_MAX);
}

/** For `resourceLimits`: undefined, which is V8's own size, where young objects would take most of what the heaps leave. */
export function threadYoungMib(memory: number, threads: number): number | undefined {
  const share = ((memory - RESERVED_MIB) * (1 - HEAP_SHARE)) / threads;
  return share >= 2 * YOUNG_MIB ? YOUNG_MIB : undefined;
}

/** The rest is for work in progress and code; a nearly full heap is collected all the time. */
const RESIDENT_SHARE = 0.25;

/** The memory limit of the actors of one kind, in bytes. */
export function residentBytesMax(heapMib: number): number {
  return Math.min(heapMib * 2 ** 20 * RESIDENT_SHARE, LIMITS.residentBytesMax);
}
