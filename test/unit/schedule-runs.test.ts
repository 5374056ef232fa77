/** How an instance of a schedule goes on: behind the commit that creates it, without being read again. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { LoadedInstance } from '../../actors/runtime/rows.js';
import { HandShard, rowsOf, SEQUENCE, sequenceOf, TENANT } from '../helpers/hand-shard.js';

let shard: HandShard;
const asked: string[] = [];
afterEach(() => shard.shard.stop());

/** A schedule of every second whose first instance was decided, and is not committed. */
async function fired(): Promise<void> {
  asked.length = 0;
  shard = new HandShard({
    ...sequenceOf([{ type: 'step', id: 'a', handler: 'noop' }]),
    instances: async (ids) => {
      asked.push(...ids);
      return new Map<string, LoadedInstance>();
    },
  });
  await shard.start();
  const body = { tenant_id: TENANT, namespace: 'n', sequence_id: SEQUENCE };
  const request = shard.ask('cron.create', '', { ...body, cron_expr: '* * * * * ? *' });
  await shard.run();
  await shard.ack();
  assert.equal(shard.answer(request), 201);
  await shard.pass(1_000);
  await shard.pass(10);
  assert.equal(rowsOf(shard.units, 'instance.insert').length, 1);
}

test('an instance of a schedule goes on when it is committed, and is not read for it', async () => {
  await fired();
  const [born] = rowsOf(shard.units, 'instance.insert');
  await shard.ack();
  const ended = [...rowsOf(shard.units, 'instance.update'), ...rowsOf(shard.units, 'instance.end')];
  assert.deepEqual(asked, []);
  assert.ok(
    shard.units.some(({ mutations }) => mutations.includes(born?.id as string)),
    `its next unit is made: ${JSON.stringify(ended)}`,
  );
});

test('an instance of a schedule that was there already is not taken for the one that was not made', async () => {
  await fired();
  await shard.ack(({ seq }) => ({ seq, outcome: 'exists' }));
  assert.equal(rowsOf(shard.units, 'instance.insert').length, 0);
  await shard.pass(10);
  assert.deepEqual(
    shard.units.filter(({ mutations }) => mutations.length > 0),
    [],
  );
});
