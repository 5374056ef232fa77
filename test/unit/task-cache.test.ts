/** What an instance's actor keeps of its worker tasks, and how it finds the last one of a step. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskCache } from '../../actors/instance/memory.js';
import { newTask, type WorkerTaskRecord } from '../../actors/instance/worker-task.js';
import type { Dispatch } from '../../src/core/progress.js';

const OWNER = { id: 'instance', tenant_id: 't', priority: 1 };

function task(id: string, blockId = 'a', iteration = ''): WorkerTaskRecord {
  const dispatch: Dispatch = {
    node: 0,
    iteration,
    attempt: 0,
    blockId,
    handler: 'h',
    external: true,
    queueName: null,
    params: {},
    timeoutMs: null,
    overlay: null,
  };
  return newTask(id, OWNER, dispatch, undefined, 0);
}

function shelfOf(...tasks: readonly WorkerTaskRecord[]): TaskCache {
  const shelf = new TaskCache();
  for (const one of tasks) shelf.set(one.id, one);
  return shelf;
}

const last = (shelf: TaskCache, blockId = 'a', iteration = '') =>
  shelf.lastOf({ blockId, iteration })?.id;

test('the last task of a step is the newest one of its block and iteration', () => {
  const shelf = shelfOf(task('1'), task('2'), task('3', 'b'), task('4', 'a', '0'));
  assert.equal(last(shelf), '2');
  assert.equal(last(shelf, 'b'), '3');
  assert.equal(last(shelf, 'a', '0'), '4');
  assert.equal(last(shelf, 'a', '1'), undefined);
});

test('a task that comes back for a late call does not hide the one that is open', () => {
  const shelf = shelfOf(task('2'));
  shelf.set('1', { ...task('1'), state: 'failed' });
  assert.equal(last(shelf), '2');
});

test('a record that is replaced is the one that is found', () => {
  const shelf = shelfOf(task('1'));
  shelf.set('1', { ...task('1'), node: 9 });
  assert.equal(shelf.lastOf({ blockId: 'a', iteration: '' })?.node, 9);
});

test('of the tasks that ended some are kept, the oldest go first, and open ones stay', () => {
  const open = task('open', 'open');
  const shelf = shelfOf(open);
  for (let i = 10; i < 60; i += 1) {
    const ended = task(String(i), `b${i}`);
    shelf.set(ended.id, ended);
    ended.state = 'completed';
    shelf.ended(ended.id);
  }
  assert.equal(shelf.size, 33);
  assert.equal(last(shelf, 'b10'), undefined);
  assert.equal(last(shelf, 'b59'), '59');
  assert.equal(last(shelf, 'open'), 'open');
});

test('those that were read from rows make room like the others', () => {
  const shelf = shelfOf(
    ...Array.from({ length: 40 }, (_, i) => ({
      ...task(String(10 + i)),
      state: 'failed' as const,
    })),
  );
  assert.equal(shelf.size, 40);
  shelf.set('60', task('60', 'b'));
  shelf.ended('60');
  assert.equal(shelf.size, 32);
  assert.equal(shelf.has('10'), false);
});
