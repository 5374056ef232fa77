/** The texts that a worker task becomes: what is put together by hand has all that its tables and shapes name. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  endRow,
  newTask,
  taskRow,
  type WorkerTaskRecord,
  wireTask,
} from '../../actors/instance/worker-task.js';
import { WorkerTask } from '../../schema/worker.js';
import { MUTATIONS } from '../../src/db/mutations.js';
import { readRow } from '../helpers/unit-rows.js';

const ID = '01950000-0000-7000-8000-000000000001';
const AT = '2026-01-02T03:04:05.678Z';

/** Every text of a caller has what JSON escapes. */
const FULL: WorkerTaskRecord = {
  ...newTask(
    ID,
    { id: ID, tenant_id: 't "1"', priority: 1 },
    {
      node: 3,
      iteration: '0.1',
      attempt: 1,
      blockId: 'block "1"',
      handler: 'handler\n1',
      external: true,
      queueName: 'queue\\1',
      params: { amount: 5, note: 'ä "b"' },
      timeoutMs: 5_000_000_000,
      overlay: { item: 'i "1"' },
      secrets: [],
    },
    undefined,
    Date.parse(AT),
  ),
  state: 'failed',
  worker_id: 'w "1"',
  claim_epoch: 2,
  claimed_at: AT,
  heartbeat_at: AT,
  completed_at: AT,
  output: '{"paid":true}',
  error_message: 'no "no"',
  error_retryable: false,
  checkpoint_seq: 4,
  resume_checkpoint: { page: 3 },
};

const CONTEXT = { data: { a: 'ä' }, config: { b: 1 } };

test('the record of a task has the fields of its shape, in their order', () => {
  const record = JSON.parse(wireTask(FULL, CONTEXT, 'trace "1"'));
  assert.deepEqual(Object.keys(record), Object.keys(WorkerTask.properties));
  const { block_id, handler_name, queue_name, worker_id, error_message } = FULL;
  assert.deepEqual(record, {
    ...record,
    ...{ block_id, handler_name, queue_name, worker_id, error_message },
    params: { amount: 5, note: 'ä "b"' },
    context: { data: { a: 'ä', item: 'i "1"' }, config: { b: 1 } },
    output: { paid: true },
    resume_checkpoint: { page: 3 },
    traceparent: 'trace "1"',
  });
});

test('what a task does not have is left out of its record, or null', () => {
  const task = { ...FULL, queue_name: null, resume_checkpoint: null, output: null, overlay: null };
  const record = JSON.parse(wireTask({ ...task, worker_id: null, claimed_at: null }, CONTEXT));
  for (const name of ['queue_name', 'resume_checkpoint', 'traceparent']) {
    assert.equal(name in record, false);
  }
  assert.deepEqual([record.output, record.worker_id, record.claimed_at], [null, null, null]);
  assert.deepEqual(record.context, CONTEXT);
});

test('the row of its end has the columns that its end changes', () => {
  const row = JSON.parse(endRow(FULL));
  assert.deepEqual(Object.keys(row), Object.keys(MUTATIONS['task.end'].fields));
  const { id, state, worker_id, claim_epoch, error_message, history } = FULL;
  const expected = { id, state, worker_id, claim_epoch, error_message, history };
  assert.deepEqual(row, { ...row, ...expected, output: { paid: true } });
});

test('its own row has what it was made of', () => {
  const task = { ...FULL, handler_name: 'h', queue_name: null };
  const row = readRow('task.insert', taskRow(task, 7));
  assert.deepEqual(row, {
    ...task,
    params: { amount: 5, note: 'ä "b"' },
    output: { paid: true },
    ownership_epoch: 7,
  });
});
