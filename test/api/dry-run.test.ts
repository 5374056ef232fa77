/** Dry runs of definitions that are not stored, on the initial data of an instance. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DryRun } from '../../schema/dry-run.js';
import type { TreeNode } from '../../schema/instance.js';
import { type Json, newHandler, sleep, step, transform, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant();

const ask = (id: string, blocks: readonly Json[], more: Json = {}) =>
  tenant.post<DryRun & { error: string }>(`/instances/${id}/dry-run`, {
    ...{ tenant_id: '', namespace: 'default', name: 'edited', version: 1, blocks, ...more },
  });
const dryRun = async (id: string, blocks: readonly Json[]) =>
  expectStatus(await ask(id, blocks), 200);
const statesOf = (tree: readonly TreeNode[]) =>
  Object.fromEntries(tree.map(({ block_id, state }) => [block_id, state]));
const everything = async () => [
  (await tenant.get('/instances?limit=1000')).body,
  (await tenant.get('/sequences?limit=1000')).body,
];

test('an unstored definition runs on the data that the instance started with, without effects', async () => {
  const id = await tenant.runUntil('waiting', [step('rest', newHandler())], { n: 1 });
  const change = { signal_type: 'update_context', payload: { n: 2 } };
  expectStatus(await tenant.post(`/instances/${id}/signals`, change), 201);
  const handler = newHandler();
  const before = await everything();
  const { state, failure, data, tree, outputs } = await dryRun(id, [
    transform('a', { n: '{{ data.n }}' }),
    sleep('day', 86_400_000),
    step('charge', handler, { params: { amount: '{{ outputs.a.n }}' } }),
    { type: 'sub_sequence', id: 'child', sequence_name: 'not there' },
    step('ask', 'noop', {
      wait_for_input: { prompt: 'ok?', choices: [{ label: 'Yes', value: 'yes' }] },
    }),
  ]);
  assert.deepEqual([state, failure, data.n], ['completed', null, 1]);
  assert.deepEqual(outputs.a, { n: 1 });
  assert.deepEqual(outputs.charge, { dry_run: true, handler, would: { params: { amount: 1 } } });
  const done = 'completed';
  assert.deepEqual(statesOf(tree), { a: done, day: done, charge: done, child: done, ask: done });
  assert.deepEqual(await everything(), before);
});

test('a failure of an unstored definition names its block', async () => {
  const id = await tenant.runUntil('completed', [step('a', 'noop')]);
  const blocks = [step('a', 'noop'), step('b', 'fail', { params: { message: 'no' } })];
  const { state, failure, tree } = await dryRun(id, blocks);
  assert.deepEqual([state, failure?.block_id], ['failed', 'b']);
  assert.equal(statesOf(tree).b, 'failed');
});

test('a definition or data that cannot run is refused with the reason', async () => {
  const id = await tenant.runUntil('completed', [step('a', 'noop')], { n: 1 });
  const twice = expectStatus(await ask(id, [step('a', 'noop'), step('a', 'noop')]), 400);
  assert.match(twice.error, /a/);
  const input_schema = { type: 'object', required: ['order'] };
  const refused = expectStatus(await ask(id, [step('a', 'noop')], { input_schema }), 422);
  assert.match(refused.error, /order/);
  const unknown = '0195ffff-0000-7000-8000-000000000000';
  expectStatus(await ask(unknown, [step('a', 'noop')]), 404);
});
