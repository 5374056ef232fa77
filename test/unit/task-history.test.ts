/** The history of a task, as it is told from its columns or stored. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Attempt, historyOf, isTold, shorten } from '../../actors/instance/worker-task.js';

const AT = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-01T00:00:05.000Z';

const PENDING = {
  id: '01950000-0000-7000-8000-000000000001',
  state: 'pending' as const,
  worker_id: null,
  claim_epoch: 0,
  claimed_at: null,
  completed_at: null,
  history: [] as Attempt[],
};
const CLAIMED = {
  ...PENDING,
  state: 'claimed' as const,
  worker_id: 'w',
  claim_epoch: 1,
  claimed_at: AT,
};
const COMPLETED = { ...CLAIMED, state: 'completed' as const, completed_at: LATER };
const RECLAIMED: Attempt = {
  id: '01950000-0000-7000-8000-000000000002',
  task_id: PENDING.id,
  claim_epoch: 1,
  worker_id: 'w',
  event: 'reclaimed',
  created_at: LATER,
};

const told = (task: Parameters<typeof historyOf>[0]) =>
  historyOf(task).map(({ event, claim_epoch, worker_id, created_at }) =>
    [event, claim_epoch, worker_id, created_at].join(' '),
  );

test('one claim and a completion are told from the columns of the task', () => {
  assert.deepEqual(told(PENDING), []);
  assert.deepEqual(told(CLAIMED), [`claimed 1 w ${AT}`]);
  assert.deepEqual(told(COMPLETED), [`claimed 1 w ${AT}`, `completed 1 w ${LATER}`]);
  assert.deepEqual(told({ ...CLAIMED, state: 'failed', completed_at: LATER }), [
    `claimed 1 w ${AT}`,
  ]);
});

test('what is told has the same ids each time, and each entry one of its own', () => {
  const ids = historyOf(COMPLETED).map(({ id }) => id);
  assert.deepEqual(
    historyOf(COMPLETED).map(({ id }) => id),
    ids,
  );
  assert.equal(historyOf(CLAIMED)[0]?.id, ids[0]);
  const others = historyOf({ ...COMPLETED, id: RECLAIMED.id }).map(({ id }) => id);
  assert.equal(new Set([...ids, ...others]).size, 4);
});

test('a stored history is shown as it is', () => {
  const history = [RECLAIMED];
  assert.deepEqual(historyOf({ ...COMPLETED, history }), history);
});

test('only the first claim and its completion go without an entry', () => {
  assert.ok(isTold(CLAIMED, 'claimed'));
  assert.ok(isTold(COMPLETED, 'completed'));
  assert.ok(!isTold({ ...CLAIMED, claim_epoch: 2 }, 'claimed'));
  assert.ok(!isTold({ ...CLAIMED, history: [RECLAIMED] }, 'claimed'));
  assert.ok(!isTold({ ...COMPLETED, history: [RECLAIMED] }, 'completed'));
  for (const event of ['reclaimed', 'failed', 'timed_out', 'cancelled'] as const) {
    assert.ok(!isTold(CLAIMED, event), event);
  }
});

test('a history that is full drops its oldest refusal first, then its oldest entry', () => {
  const entry = (event: Attempt['event'], claim_epoch: number): Attempt => ({
    ...RECLAIMED,
    event,
    claim_epoch,
  });
  const history = [
    entry('claimed', 1),
    entry('stale_mutation_rejected', 2),
    entry('completed', 3),
    entry('stale_mutation_rejected', 4),
  ];
  const left = () => {
    shorten(history);
    return history.map(({ claim_epoch }) => claim_epoch);
  };
  assert.deepEqual(left(), [1, 3, 4]);
  assert.deepEqual(left(), [1, 3]);
  assert.deepEqual(left(), [3]);
});
