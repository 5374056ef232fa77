/** What a herd of instances that are due at once leaves to requests, and to the other tenants. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Rows } from '../../actors/runtime/loader.js';
import type { LoadedInstance } from '../../actors/runtime/rows.js';
import { LIMITS } from '../../src/limits.js';
import { HandShard, rowsOf, sequenceOf } from '../helpers/hand-shard.js';

let shard: HandShard;
afterEach(() => shard.shard.stop());

/** What the clock of a new shard shows. */
const START = 1_700_000_000_000;
const NORMAL = 2;
const HERD = 2 * LIMITS.dueLoadsMax;
const NOOP = [{ type: 'step', id: 'a', handler: 'noop' }];

/** Rows that come when the test lets them come: there are none, as of instances that are gone. */
class SlowRows {
  readonly asked: string[] = [];
  #waiting: (() => void)[] = [];

  readonly instances: Rows['instances'] = (ids) => {
    this.asked.push(...ids);
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(new Map<string, LoadedInstance>()));
    });
  };

  come(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

function idsOf(tenant: string, count: number): string[] {
  const digits = (number: number) => number.toString(16).padStart(12, '0');
  const owner = tenant.charCodeAt(0).toString(16).padStart(4, '0');
  return Array.from(
    { length: count },
    (_, at) => `01950000-0000-7000-8${owner.slice(1)}-${digits(at)}`,
  );
}

function due(tenant: string, count: number): string[] {
  const ids = idsOf(tenant, count);
  for (const instance of ids) {
    shard.hint({ kind: 'wake', instance, at: 0, rank: NORMAL, tenant });
  }
  return ids;
}

test('of those that are due only so many are read at once, each of them once', async () => {
  const rows = new SlowRows();
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances });
  await shard.start();
  const ids = due('a', HERD);
  await shard.run();
  assert.equal(rows.asked.length, LIMITS.dueLoadsMax);
  await shard.run();
  assert.equal(rows.asked.length, LIMITS.dueLoadsMax, 'nothing came of the first ones yet');
  rows.come();
  await shard.run();
  assert.deepEqual(rows.asked.toSorted(), ids);
});

test('those of a tenant that has a few are read among the first, whatever another one has', async () => {
  const rows = new SlowRows();
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances });
  await shard.start();
  due('a', HERD);
  const few = due('b', 10);
  await shard.run();
  assert.ok(few.every((id) => rows.asked.includes(id)));
});

/** Without the one that notes how much was created. */
function unitsOfInstances(): number {
  return shard.units.filter((unit) => rowsOf([unit], 'activity.set').length === 0).length;
}

test('instances that are due wait for the commits of those before them, and requests do not', async () => {
  shard = new HandShard(sequenceOf(NOOP));
  await shard.start();
  const dueAt = new Date(shard.now + 30_000).toISOString();
  const herd = LIMITS.dueUnitsMax + 44;
  for (let at = 0; at < herd; at += 1) shard.create({ next_fire_at: dueAt });
  await shard.run();
  await shard.ack();
  await shard.pass(30_000);
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax);
  const request = shard.create();
  await shard.run();
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax + 1);
  await shard.ack();
  assert.equal(shard.answer(request), 201);
  assert.equal(unitsOfInstances(), 44, 'the others went on when the first were committed');
});

test('instances are read shortly before they are due, a few at a time, and once', async () => {
  const rows = new SlowRows();
  const count = LIMITS.aheadLoadsMax + 10;
  const ids = idsOf('a', count);
  const dueTimers: Rows['dueTimers'] = async (from, to, each) => {
    const dueAt = START + LIMITS.timerLeadMs + 5_000;
    if (from >= dueAt || to < dueAt) return;
    for (const instance of ids) each(dueAt, { instance, rank: NORMAL, tenant: 'a' });
  };
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances, dueTimers });
  await shard.start();
  await shard.pass(4_999);
  assert.deepEqual(rows.asked, [], 'not before their time');
  await shard.pass(1);
  assert.equal(rows.asked.length, LIMITS.aheadLoadsMax);
  rows.come();
  await shard.run();
  assert.deepEqual(rows.asked.toSorted(), ids);
});

test('nothing is read ahead while instances wait that are due', async () => {
  const rows = new SlowRows();
  const [soon] = idsOf('b', 1) as [string];
  const dueTimers: Rows['dueTimers'] = async (from, _to, each) => {
    if (from < START) each(START + 5_000, { instance: soon, rank: NORMAL, tenant: 'b' });
  };
  shard = new HandShard({ ...sequenceOf(NOOP), instances: rows.instances, dueTimers });
  due('a', LIMITS.dueLoadsMax + 1);
  await shard.start();
  assert.ok(!rows.asked.includes(soon));
  rows.come();
  await shard.run();
  assert.equal(rows.asked.at(-1), soon, 'behind the last that is due');
});

test('while another tenant asks, fewer of those that are due are under way', async () => {
  shard = new HandShard(sequenceOf(NOOP));
  await shard.start();
  const dueAt = new Date(shard.now + 30_000).toISOString();
  const herd = LIMITS.dueUnitsMax + 2 * LIMITS.dueUnitsSharedMax;
  for (let at = 0; at < herd; at += 1) shard.create({ next_fire_at: dueAt });
  await shard.run();
  await shard.ack();
  await shard.pass(30_000);
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsMax);
  shard.ask('instances.get', '01950000-0000-7000-8000-000000000000', {}, 'b');
  await shard.run();
  await shard.ack();
  assert.equal(unitsOfInstances(), LIMITS.dueUnitsSharedMax);
});
