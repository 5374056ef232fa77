/** How the memory of a container is divided among the threads. */

import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import { memoryMib, residentBytesMax, threadHeapMib } from '../../src/thread-memory.js';

test('threads share what the front and what is no heap leave them, within bounds', () => {
  const cases: readonly [memory: number, threads: number, heapMib: number][] = [
    [128, 2, 64],
    [512, 3, 64],
    [1_024, 2, 288],
    [2_048, 5, 268],
    [16_384, 9, 1_344],
    [262_144, 3, 4_096],
  ];
  for (const [memory, threads, heapMib] of cases) {
    assert.equal(threadHeapMib(memory, threads), heapMib);
  }
});

test('a machine without a limit for the process counts with all of its memory', () => {
  const memory = memoryMib();
  assert.ok(memory > 0 && memory <= totalmem() / 2 ** 20);
});

test('actors take a quarter of a heap, and no more than collections stay short with', () => {
  assert.equal(residentBytesMax(288), 72 * 2 ** 20);
  assert.equal(residentBytesMax(4_096), 512 * 2 ** 20);
});
