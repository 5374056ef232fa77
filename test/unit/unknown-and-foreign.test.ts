/**
 * What is asked of the database for a thing of another tenant, and for one that is not there: the same, or the
 * time of the answer would tell them apart.
 */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Rows } from '../../actors/runtime/loader.js';
import type { ShardOperation } from '../../actors/shard/operations.js';
import type { Json } from '../helpers/api.js';
import { HandShard, rowsOf, sequenceOf } from '../helpers/hand-shard.js';

const NOTHING = '0195ffff-0000-7000-8000-00000000dead';

let shard: HandShard;
let reads: string[] = [];
let instance: string;
let task: string;

beforeEach(async () => {
  const noted = <Result>(name: string, result: Result) => {
    return async (ids: readonly string[]) => {
      reads.push(`${name} of ${ids.length}`);
      return result;
    };
  };
  const rows: Partial<Rows> = {
    ...sequenceOf([{ type: 'step', id: 'a', handler: 'ship' }]),
    instances: noted('instances', new Map()),
    taskOwners: noted('taskOwners', new Map()),
  };
  shard = new HandShard(rows);
  await shard.start();
  // With the first one the plan is there, so that the second one opens its task at once.
  for (let count = 0; count < 2; count += 1) {
    shard.units = [];
    shard.create();
    await shard.run();
    instance = String((rowsOf(shard.units, 'instance.insert')[0] as Json).id);
    task = String(rowsOf(shard.units, 'task.insert')[0]?.id ?? '');
    await shard.ack();
  }
});
afterEach(() => shard.shard.stop());

async function asked(operation: ShardOperation, target: string, tenant: string, body: Json) {
  reads = [];
  const request = shard.ask(operation, target, body, tenant);
  await shard.run();
  const reply = shard.replies.get(request);
  const answer =
    reply !== undefined && 'error' in reply
      ? { code: reply.error.code, message: reply.error.message.replace(target, 'it') }
      : shard.answer(request);
  return { answer, reads: [...reads], units: shard.units.length };
}

describe('of an instance or a task in memory another tenant is told what it is told of none', () => {
  const rows: readonly (readonly [ShardOperation, Json, 'instance' | 'task'])[] = [
    ['instances.get', {}, 'instance'],
    ['instances.tree', {}, 'instance'],
    ['instances.signal', { signal_type: 'pause' }, 'instance'],
    ['instances.retry', {}, 'instance'],
    ['instances.standing', {}, 'instance'],
    ['workers.heartbeat', { worker_id: 'w' }, 'task'],
    ['workers.complete', { worker_id: 'w', output: {} }, 'task'],
  ];
  for (const [operation, body, of] of rows) {
    test(`${operation}, after the same reads`, async () => {
      const known = of === 'instance' ? instance : task;
      assert.ok(known, 'there is one');
      const unknown = await asked(operation, NOTHING, 'other', body);
      const foreign = await asked(operation, known, 'other', body);
      const again = await asked(operation, known, 'other', body);
      assert.deepEqual(foreign, unknown);
      assert.deepEqual(again, unknown);
      assert.deepEqual(unknown.reads, [`${of === 'instance' ? 'instances' : 'taskOwners'} of 1`]);
      assert.equal((unknown.answer as Json).code, 'ENG_NOT_FOUND');
      // The owner needs no read: the thing is there.
      assert.deepEqual((await asked(operation, known, 'tenant', body)).reads, []);
    });
  }
});
