/** Instances by their ids, their parent, the version of their sequence and what they wait for, in lists and in changes of many. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BatchActionResult } from '../../schema/edits.js';
import type { BulkUpdated, TaskInstance } from '../../schema/instance.js';
import { beforeWith, newHandler, sleep, step, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();
const tenant = api.tenant();

let external: string[] = [];
let sleeping: string;
let parent: string;

beforeWith(api, async () => {
  const first = await tenant.sequence([step('a', newHandler())], { name: 'pay', version: 1 });
  const second = await tenant.sequence([step('a', newHandler())], { name: 'pay', version: 2 });
  external = await Promise.all([first, first, second].map((sequence) => tenant.create(sequence)));
  sleeping = await tenant.run([sleep('nap', 600_000)]);
  await tenant.sequence([step('c', 'noop')], { name: 'child' });
  parent = await tenant.runUntil('completed', [
    { type: 'sub_sequence', id: 's', sequence_name: 'child' },
  ]);
  await Promise.all(external.map((id) => tenant.until(id, 'waiting')));
});

const list = async (query: string) => {
  const reply = await tenant.get<TaskInstance[]>(`/instances${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.map(({ id }) => id).sort();
};

describe('instances are selected', () => {
  test('by their ids, in lists and in changes of many alike', async () => {
    const chosen = external.slice(0, 2);
    assert.deepEqual(await list(`?ids=${chosen.join(',')}`), [...chosen].sort());
    assert.deepEqual(await list(`?ids=${chosen.join(',')}&state=completed`), []);
    const filter = { tenant_id: tenant.name, ids: chosen };
    const dry = { filter, state: 'paused', dry_run: true };
    const counted = await tenant.patch<BulkUpdated>('/instances/bulk/state', dry);
    assert.deepEqual(counted.body, { count: 2, updated: 0, dry_run: true });
    const action = { filter, action: 'pause' };
    const paused = await tenant.post<BatchActionResult>('/instances/batch-action', action);
    assert.deepEqual([paused.body.matched, paused.body.applied], [2, 2]);
    assert.deepEqual(await list('?state=paused'), [...chosen].sort());
    await tenant.post('/instances/batch-action', { filter, action: 'resume' });
    const none = { filter: { tenant_id: tenant.name, ids: [] }, action: 'cancel' };
    assert.equal((await tenant.post('/instances/batch-action', none)).status, 400);
  });

  test('by the ids of another tenant nothing is found', async () => {
    const other = api.tenant();
    const reply = await other.get<TaskInstance[]>(`/instances?ids=${external[0]}`);
    assert.deepEqual(reply.body, []);
  });

  test('by the version of their sequence and by their parent', async () => {
    assert.deepEqual(await list('?sequence_name=pay&sequence_version=2'), external.slice(2));
    const children = await list(`?parent_instance_id=${parent}`);
    assert.equal(children.length, 1);
    assert.deepEqual(await list(`?parent_instance_id=${parent}&state=failed`), []);
  });

  test('by what their steps wait for', async () => {
    assert.deepEqual(await list('?waiting_for=task'), [...external].sort());
    assert.deepEqual(await list('?waiting_for=sleep'), [sleeping]);
    assert.deepEqual(await list('?waiting_for=approval'), []);
    assert.equal((await tenant.get('/instances?waiting_for=godot')).status, 400);
  });
});
