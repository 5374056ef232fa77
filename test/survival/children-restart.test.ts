/** Parents and children outlive SIGKILL, and hear of each other although nobody has told them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useApi({ env: { ENGINE_SHARDS: '3' } });

async function family(tenant: Tenant, handler: string) {
  await tenant.sequence([step('ask', handler)], { name: 'child' });
  const block = { type: 'sub_sequence', id: 'child', sequence_name: 'child' };
  const parent = await tenant.run([block, step('after', 'noop')]);
  const child = await eventually(async () => {
    const [one] = expectStatus(
      await tenant.get<TaskInstance[]>(`/instances/${parent}/children`),
      200,
    );
    assert.ok(one !== undefined);
    return one.id;
  });
  await tenant.until(child, 'waiting');
  await tenant.until(parent, 'waiting');
  return { parent, child };
}

test('a parent goes on with the end of its child after the server was killed', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const { parent, child } = await family(tenant, handler);
  await api.restart();
  await tenant.complete(await tenant.task(handler));
  await tenant.until(child, 'completed');
  await tenant.until(parent, 'completed');
});

test('a note whose hint was lost is found at the start, in either direction', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const up = await family(tenant, handler);
  const blocks = [{ type: 'sub_sequence', id: 'child', sequence_name: 'child' }];
  const other = await tenant.runUntil('waiting', blocks);
  // Its version is looked up first.
  const last = await eventually(async () => {
    const path = `/instances/${other}/children`;
    const [child] = expectStatus(await tenant.get<TaskInstance[]>(path), 200);
    assert.ok(child !== undefined);
    return child.id;
  });
  await tenant.until(last, 'waiting');
  await api.engine.kill();
  const note = '01950000-0000-7000-8000-00000000000';
  await api.sql.query("update instances set state = 'cancelled' where id = $1", [up.child]);
  await api.sql.query(
    "insert into kin_notes (to_id, from_id, id, word) values ($1, $2, $3, 'cancelled'), ($4, $5, $6, 'cancel')",
    [up.parent, up.child, `${note}1`, last, other, `${note}2`],
  );
  await api.restart();
  const { failure } = await tenant.until(up.parent, 'failed');
  assert.equal(failure?.code, 'child_failed');
  await tenant.until(last, 'cancelled');
  await eventually(async () =>
    assert.deepEqual((await api.sql.query('select * from kin_notes')).rows, []),
  );
});

test('a note to an instance that is not there any more goes', async () => {
  const gone = '01950000-0000-7000-8000-000000000099';
  await api.sql.query(
    "insert into kin_notes (to_id, from_id, id, word) values ($1, $1, $1, 'cancel')",
    [gone],
  );
  await eventually(async () =>
    assert.deepEqual((await api.sql.query('select * from kin_notes')).rows, []),
  );
});
