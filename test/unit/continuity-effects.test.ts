/** The receipts of outside effects, read off the facts and what was found out later. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import {
  type EffectResolution,
  effectRequest,
  type InProcessFacts,
  inProcessReceipt,
  resolveEffect,
  type TaskFacts,
  taskReceipt,
} from '../../src/core/continuity/effects.js';
import { EFFECT_STATES, mayMoveEffect } from '../../src/core/continuity/states.js';
import { at, NOW } from '../helpers/continuity-facts.js';

const PLACE = {
  tenant_id: 't',
  continuity_id: 'c',
  epoch: 3,
  instance_id: 'i',
  block_id: 'b',
  attempt: 1,
};

const task = (more: Partial<TaskFacts> = {}): TaskFacts => ({
  ...PLACE,
  id: 'task-1',
  handler_name: 'ship',
  params: { url: 'https://x', amount: 3, idempotency_key: 'k-1' },
  state: 'pending',
  is_reported: false,
  is_touched: false,
  output: null,
  created_at: at(0),
  updated_at: null,
  ...more,
});

const inProcess = (more: Partial<InProcessFacts> = {}): InProcessFacts => ({
  ...PLACE,
  ...effectRequest('http_request', { url: 'https://x' }),
  id: 'effect-1',
  handler_name: 'http_request',
  outcome: 'in_flight',
  output: null,
  created_at: at(0),
  updated_at: null,
  ...more,
});

const resolution = (state: EffectResolution['state']): EffectResolution => ({
  state,
  provider_receipt_id: null,
  updated_at: at(5_000),
});

test('a queued task has a receipt that is prepared', () => {
  assert.deepEqual(taskReceipt(task()), {
    ...PLACE,
    id: 'task-1',
    kind: 'worker',
    state: 'prepared',
    destination_fingerprint: canonicalSha256({
      handler: 'ship',
      destination: { url: 'https://x' },
    }),
    idempotency_key: 'k-1',
    request_sha256: canonicalSha256({ handler: 'ship', params: task().params }),
    provider_receipt_id: null,
    created_at: at(0),
    updated_at: at(0),
  });
});

test('the state follows from what became of the task', () => {
  const state = (more: Partial<TaskFacts>) => taskReceipt(task(more)).state;
  const touched = { is_touched: true };
  const reported = { ...touched, is_reported: true };
  assert.equal(state({ state: 'pending' }), 'prepared');
  assert.equal(state({ state: 'claimed', ...touched }), 'dispatched');
  assert.equal(state({ state: 'completed', ...touched }), 'committed');
  // The word of a worker is known; a time-out or a cancellation behind its back is not.
  assert.equal(state({ state: 'failed', ...reported }), 'failed');
  assert.equal(state({ state: 'failed', ...touched }), 'unknown');
  assert.equal(state({ state: 'failed' }), 'abandoned');
  // Given back after silence.
  assert.equal(state({ state: 'pending', ...touched }), 'unknown');
});

test('a receipt changes when the task does', () => {
  const done = taskReceipt(task({ state: 'completed', updated_at: at(9) }));
  assert.deepEqual([done.created_at, done.updated_at], [at(0), at(9)]);
});

test('the fingerprint is over what says where the request goes, and nothing else', () => {
  const destination = {
    url: 'u',
    provider: 'p',
    model: 'm',
    topic: 't',
    queue: 'q',
    resource: 'r',
    endpoint: null,
  };
  const of = (handler: string, params: Parameters<typeof effectRequest>[1]) =>
    effectRequest(handler, params).destination_fingerprint;
  const expected = canonicalSha256({ handler: 'ship', destination });
  assert.equal(of('ship', destination), expected);
  assert.equal(of('ship', { amount: 1, ...destination }), expected);
  assert.notEqual(of('ship', { ...destination, url: 'v' }), expected);
  assert.notEqual(of('send', destination), expected);
  assert.equal(of('ship', ['url']), canonicalSha256({ handler: 'ship', destination: {} }));
});

test('an idempotency key is a text of at most 256 bytes', () => {
  const key = (idempotency_key: string | number | null) =>
    effectRequest('ship', { idempotency_key }).idempotency_key;
  assert.equal(key('é'.repeat(128)), 'é'.repeat(128));
  assert.equal(key(`${'é'.repeat(128)}x`), null);
  assert.equal(key(1), null);
  assert.equal(key(null), null);
  assert.equal(effectRequest('ship', null).idempotency_key, null);
});

test('the receipt id of the provider comes from the output of a completed task', () => {
  const given = (output: TaskFacts['output']) =>
    taskReceipt(task({ state: 'completed', output })).provider_receipt_id;
  assert.equal(given({ provider_receipt_id: 'a', receipt_id: 'b', request_id: 'c' }), 'a');
  assert.equal(given({ receipt_id: 'b', request_id: 'c' }), 'b');
  assert.equal(given({ provider_receipt_id: 1, request_id: 'c' }), 'c');
  assert.equal(given({ request_id: 'x'.repeat(257) }), null);
  assert.equal(given('a'), null);
  assert.equal(taskReceipt(task({ output: { request_id: 'c' } })).provider_receipt_id, null);
});

test('a step of the engine is dispatched, committed, failed or unknown', () => {
  const receipt = inProcessReceipt(inProcess());
  assert.deepEqual([receipt.kind, receipt.state], ['http', 'dispatched']);
  const output = { request_id: 'r-1', status: 200 };
  const done = inProcessReceipt(inProcess({ outcome: 'success', output, updated_at: at(7) }));
  const seen = [done.state, done.provider_receipt_id, done.updated_at];
  assert.deepEqual(seen, ['committed', 'r-1', at(7)]);
  assert.equal(inProcessReceipt(inProcess({ outcome: 'failure' })).state, 'failed');
  assert.equal(inProcessReceipt(inProcess({ outcome: 'lost' })).state, 'unknown');
});

test('an effect is resolved only to where its state leads', () => {
  const receipt = taskReceipt(task({ state: 'failed', is_touched: true }));
  for (const from of EFFECT_STATES) {
    for (const to of EFFECT_STATES) {
      const result = resolveEffect({ ...receipt, state: from }, to, undefined, NOW);
      assert.equal(result.ok, mayMoveEffect(from, to), `${from} to ${to}`);
      if (result.ok) assert.equal(result.value.state, to);
      else assert.match(result.message, new RegExp(`${from} cannot become ${to}$`));
    }
  }
});

test('what was stored of a resolution gives the same receipt again', () => {
  const facts = task({ state: 'failed', is_touched: true, updated_at: at(10) });
  const result = resolveEffect(taskReceipt(facts), 'verified', 'p-1', NOW + 20);
  assert.ok(result.ok);
  assert.deepEqual(taskReceipt(facts, result.value), result.value);
  assert.equal(result.value.updated_at, at(20));
});

test('the receipt id that is known stays when none is given', () => {
  const committed = taskReceipt(task({ state: 'completed', output: { receipt_id: 'r-1' } }));
  for (const [given, kept] of [
    [undefined, 'r-1'],
    [null, 'r-1'],
    ['r-2', 'r-2'],
  ] as const) {
    const result = resolveEffect(committed, 'compensated', given, NOW);
    assert.ok(result.ok);
    assert.equal(result.value.provider_receipt_id, kept);
  }
});

test('every resolution moves updated_at on, even within one instant', () => {
  const receipt = taskReceipt(task({ state: 'failed', is_touched: true, updated_at: at(10) }));
  const first = resolveEffect(receipt, 'committed', undefined, NOW + 10);
  assert.ok(first.ok);
  assert.equal(first.value.updated_at, at(11));
  const second = resolveEffect(first.value, 'compensated', undefined, NOW);
  assert.ok(second.ok);
  assert.equal(second.value.updated_at, at(12));
});

test('an effect that was resolved as unknown is committed when the worker reports it done', () => {
  const facts = task({ state: 'completed', output: { receipt_id: 'r-1' }, updated_at: at(9_000) });
  const receipt = taskReceipt(facts, resolution('unknown'));
  const seen = [receipt.state, receipt.provider_receipt_id, receipt.updated_at];
  assert.deepEqual(seen, ['committed', 'r-1', at(9_000)]);
});

test('a final resolution stays, whatever the engine sees later', () => {
  for (const state of ['compensated', 'abandoned', 'verified', 'committed'] as const) {
    for (const seen of ['pending', 'completed', 'failed'] as const) {
      // Only a committed effect that is seen as committed is what it was anyway.
      assert.equal(taskReceipt(task({ state: seen }), resolution(state)).state, state);
    }
  }
  const still = taskReceipt(task({ state: 'claimed' }), resolution('unknown'));
  assert.deepEqual([still.state, still.updated_at], ['unknown', at(5_000)]);
});

test('a resolution may be absent', () => {
  assert.deepEqual(taskReceipt(task(), null), taskReceipt(task()));
  assert.deepEqual(inProcessReceipt(inProcess(), null), inProcessReceipt(inProcess()));
  const resolved = inProcessReceipt(inProcess({ outcome: 'lost' }), resolution('compensated'));
  assert.equal(resolved.state, 'compensated');
});
