/** What becomes of refusals by the database, and how a pause and a retry treat why an instance failed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import { failureOf, newRecord } from '../../actors/instance/record.js';
import type { Turn } from '../../actors/runtime/turn.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { failing, planOf, work } from '../helpers/player.js';
import { created, told } from '../helpers/turns.js';

const ENV = instanceEnv();

function actorOf(...blocks: Parameters<typeof planOf>[0]): LiveInstance {
  const record = newRecord(newInstance(ENV.ids.next(1), {}), ENV.now());
  return liveInstance(record, planOf(blocks), ENV);
}

/** What the turn writes into the column; undefined: it leaves it as it is. */
function written(turn: Turn): { code: string } | null | undefined {
  const at = turn.mutations.indexOf(MUTATION_KINDS.indexOf('instance.failure'));
  return at < 0 ? undefined : JSON.parse(String(turn.mutations[at + 2])).failure;
}

test('a step whose outcome the database refuses fails of that', () => {
  const actor = actorOf(work('a'));
  assert.equal(written(created(actor)), undefined);
  const step = { node: 0, iteration: '', attempt: 0 };
  const turn = told(actor, { kind: 'unit.refused', step, code: 'data_refused', reason: 'no' });
  assert.equal(written(turn)?.code, 'data_refused');
  assert.equal(failureOf(actor.record)?.path, 'a');
});

test('an instance that the database refuses as a whole names no block', () => {
  const actor = actorOf(work('a'));
  created(actor);
  told(actor, { kind: 'unit.refused', step: undefined, code: 'data_refused', reason: 'no' });
  const { block_id, code, message } = failureOf(actor.record)!;
  assert.deepEqual([block_id, code, message], [null, 'data_refused', 'no']);
});

test('the column is written by a failure and by what takes it back, and by nothing else', () => {
  const actor = actorOf(failing('a'));
  // The row of the creation carries it.
  assert.equal(written(created(actor)), undefined);
  const call = { request: 1, tenant: '', target: '', traceparent: undefined };
  const signal = (signal_type: string) =>
    written(told(actor, { kind: 'signal', ...call, body: { signal_type } }));
  assert.equal(signal('custom:x'), undefined);
  assert.equal(signal('pause'), undefined);
  assert.equal(signal('resume'), null);
  assert.equal(written(told(actor, { kind: 'wake', recovered: false }))?.code, 'handler_failed');
  assert.equal(signal('cancel'), null);
});
