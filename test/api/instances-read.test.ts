/** What can be read about one instance: outputs, tree, children, audit, timeline. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditEntry, Timeline, TreeNode } from '../../schema/instance.js';
import { newHandler, step, useTenant } from '../helpers/api.js';
import { column, columns } from '../helpers/columns.js';

const tenant = useTenant();

test('outputs are listed oldest first, with size, attempt and no markers', async () => {
  const id = await tenant.run([
    step('first', 'transform', { params: { text: 'é' } }),
    step('second', 'noop'),
  ]);
  await tenant.until(id, 'completed');
  const reply = await tenant.get<Record<string, unknown>[]>(`/instances/${id}/outputs`);
  const rows = reply.body.map(({ id: _, created_at: __, ...rest }) => rest);
  assert.deepEqual(rows, [
    {
      instance_id: id,
      block_id: 'first',
      output: { text: 'é' },
      output_ref: null,
      output_size: Buffer.byteLength('{"text":"é"}'),
      attempt: 0,
    },
    {
      instance_id: id,
      block_id: 'second',
      output: {},
      output_ref: null,
      output_size: 2,
      attempt: 0,
    },
  ]);
});

test('outputs are visible while later steps still run, in pages too', async () => {
  const handler = newHandler();
  const id = await tenant.run([step('a', 'noop'), step('b', 'noop'), step('c', handler)]);
  assert.deepEqual(column(await tenant.outputs(id), 'block_id'), ['a', 'b']);
  const page = await tenant.get<{ block_id: string }[]>(
    `/instances/${id}/outputs?offset=1&limit=1`,
  );
  assert.deepEqual(column(page.body, 'block_id'), ['b']);
});

test('the tree of a step-only sequence has a node for each step', async () => {
  const handler = newHandler();
  const id = await tenant.run([step('a', 'noop'), step('b', handler), step('c', 'noop')]);
  const tree = async () =>
    (await tenant.get<TreeNode[]>(`/instances/${id}/tree`)).body.map((node) => [
      node.block_id,
      node.block_type,
      node.state,
      node.parent_id,
      node.branch_index,
      node.started_at !== null,
      node.completed_at !== null,
    ]);
  assert.deepEqual(await tree(), [
    ['a', 'step', 'completed', null, null, true, true],
    ['b', 'step', 'waiting', null, null, true, false],
    ['c', 'step', 'pending', null, null, false, false],
  ]);
  await tenant.fail(await tenant.task(handler), 'no');
  await tenant.until(id, 'failed');
  assert.deepEqual(
    (await tree()).map((node) => node.slice(0, 3)),
    [
      ['a', 'step', 'completed'],
      ['b', 'step', 'failed'],
      ['c', 'step', 'skipped'],
    ],
  );
});

test('the tree of nested blocks names parents and branches', async () => {
  const id = await tenant.run([
    {
      type: 'parallel',
      id: 'p',
      branches: [[step('p0', 'noop')], [step('p1', 'noop')]],
    },
  ]);
  await tenant.until(id, 'completed');
  const { body } = await tenant.get<TreeNode[]>(`/instances/${id}/tree`);
  const root = body.find((node) => node.block_id === 'p');
  assert.deepEqual(columns(body, 'block_id', 'parent_id', 'branch_index'), [
    ['p', null, null],
    ['p0', root?.id, 0],
    ['p1', root?.id, 1],
  ]);
  assert.equal(new Set(body.map((node) => node.id)).size, 3);
});

test('an instance that started none has no children', async () => {
  const id = await tenant.run([step('a', 'noop')]);
  assert.deepEqual((await tenant.get(`/instances/${id}/children`)).body, []);
});

test('the audit lists state transitions, newest first, that link into each other', async () => {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'completed');
  const { body } = await tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
  const moves = body.filter((entry) => entry.event_type === 'state_transition').reverse();
  assert.ok(moves.length >= 2);
  assert.equal(moves.at(-1)?.to_state, 'completed');
  for (const [index, move] of moves.entries()) {
    if (index > 0) assert.equal(move.from_state, moves[index - 1]?.to_state);
    assert.equal(move.instance_id, id);
    assert.equal(move.tenant_id, tenant.name);
  }
  assert.ok(
    moves.some((move) => move.to_state === 'waiting'),
    JSON.stringify(body),
  );
  const times = body.map((entry) => entry.created_at);
  assert.deepEqual(times, [...times].sort().reverse());
});

test('the timeline tells transitions and outputs in order, in pages, without outputs on demand', async () => {
  const id = await tenant.run(['a', 'b', 'c'].map((name) => step(name, 'noop')));
  await tenant.until(id, 'completed');
  const get = async (query: string) =>
    (await tenant.get<Timeline>(`/instances/${id}/timeline${query}`)).body;
  const whole = await get('');
  assert.equal(whole.instance.id, id);
  assert.equal(whole.instance.state, 'completed');
  assert.deepEqual(column(whole.entries, 'block_id'), ['a', 'b', 'c']);
  assert.equal(whole.has_more, false);
  assert.equal(whole.limit, 200);
  assert.equal(whole.state_transitions.at(-1)?.to_state, 'completed');
  const page = await get('?limit=2&include_outputs=false');
  assert.equal(page.has_more, true);
  assert.ok(page.entries.every((entry) => entry.output === undefined));
  const rest = await get('?limit=2&offset=2');
  assert.deepEqual(columns(rest.entries, 'block_id', 'output'), [['c', {}]]);
  assert.equal(rest.has_more, false);
  for (const query of ['?limit=0', '?limit=x', '?include_outputs=maybe', '?offset=-1']) {
    assert.equal((await tenant.get(`/instances/${id}/timeline${query}`)).status, 400, query);
  }
});
