/** Routes and outcomes after the process was killed: the rows say everything. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newHandler, step, useApi } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import {
  canary,
  expectedVariant,
  pair,
  promoted,
  stampOf,
  versions,
} from '../../helpers/routed.js';

const api = useApi({ env: { ENGINE_SHARDS: '3' } });

test('creations are routed as before a kill, and keys answer as before', async () => {
  const tenant = api.tenant();
  const [v1, v2] = await pair(tenant);
  const [w1, w2] = await pair(tenant);
  const promotion = await promoted(tenant, v1, v2);
  const split = await canary(tenant, w1, w2, 50);
  const keys = Array.from({ length: 12 }, (_, at) => `key-${at}`);
  const create = async (idempotency_key: string) => {
    const reply = await tenant.post<{ id: string; deduplicated: boolean }>(
      '/instances',
      tenant.creation(w1, { idempotency_key }),
    );
    return expectStatus(reply, 201);
  };
  const first = await Promise.all(keys.map(create));
  await api.restart();
  assert.deepEqual(
    await Promise.all(keys.map(create)),
    first.map(({ id }) => ({ id, deduplicated: true })),
  );
  assert.equal(
    stampOf(await tenant.instance(await tenant.create(v1))),
    `candidate of ${promotion}`,
  );
  for (let at = 12; at < 24; at += 1) {
    const { id } = await create(`key-${at}`);
    const { metadata, sequence_id } = await tenant.instance(id);
    const variant = expectedVariant(split, `key-${at}`, 50);
    assert.equal(stampOf({ metadata }), `${variant} of ${split}`);
    assert.equal(sequence_id, variant === 'candidate' ? w2 : w1);
  }
});

test('there is one outcome for each ended instance, whatever was cut off', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const blocks = [step('a', handler), step('b', 'sleep', { params: { duration_ms: 20 } })];
  const [v1, v2] = await versions(tenant, { blocks }, { blocks });
  assert.ok(v1 && v2);
  const release = await canary(tenant, v1, v2, 50);
  const ids = await Promise.all(Array.from({ length: 40 }, () => tenant.create(v1)));
  /** Half of what is open is done, the other half fails; what a kill cuts off is left open. */
  const work = async () => {
    const tasks = await tenant.poll(handler, { limit: 40 });
    await Promise.allSettled(
      tasks.map((task, at) =>
        at % 2 === 0 ? tenant.complete(task) : tenant.fail(task, 'no', false),
      ),
    );
  };
  const retry = () =>
    Promise.allSettled(ids.slice(0, 20).map((id) => tenant.post(`/instances/${id}/retry`)));
  await work();
  const cutOff = Promise.allSettled([retry(), work()]);
  await api.restart();
  await cutOff;
  await retry();
  await work();
  await tenant.signal(ids.at(-1) ?? '', 'cancel').catch(() => undefined);
  await Promise.all(
    ids.map(async (id) => {
      const { state } = await tenant.instance(id);
      if (state === 'running') await tenant.until(id, 'completed');
    }),
  );
  const { rows } = await api.sql.query(
    'select i.id, o.instance_id from release_outcomes o full join instances i ' +
      'on i.id = o.instance_id and i.state = o.state and i.sequence_id = o.sequence_id ' +
      'and i.created_at = o.created_at and i.release_id = o.release_id ' +
      'where coalesce(i.release_id, o.release_id) = $1 and (i.id is null or ' +
      "o.instance_id is null and i.state in ('completed', 'failed', 'cancelled'))",
    [release],
  );
  assert.deepEqual(rows, []);
  const { rows: ended } = await api.sql.query<{ count: number }>(
    'select count(*)::int as count from release_outcomes where release_id = $1',
    [release],
  );
  assert.ok((ended[0]?.count ?? 0) > 0);
});
