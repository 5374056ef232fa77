/** Routes of releases, and the outcomes of what they have routed. */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { newHandler, sleep, step } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { canary, expectedVariant, pair, promoted, stampOf, versions } from '../helpers/routed.js';
import { subject, untilKilled } from '../helpers/survival.js';

export const releases = subject();
const { survives } = releases;

survives('the routes of releases, and the keys of what they created', async (tenant) => {
  const [v1, v2] = await pair(tenant);
  const [w1, w2] = await pair(tenant);
  const promotion = await promoted(tenant, v1, v2);
  const split = await canary(tenant, w1, w2, 50);
  const create = async (idempotency_key: string) => {
    const body = tenant.creation(w1, { idempotency_key });
    const reply = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', body);
    return expectStatus(reply, 201);
  };
  const keys = Array.from({ length: 12 }, (_, at) => `key-${at}`);
  const first = await Promise.all(keys.map(create));
  return async () => {
    assert.deepEqual(
      await Promise.all(keys.map(create)),
      first.map(({ id }) => ({ id, deduplicated: true })),
    );
    const routed = await tenant.instance(await tenant.create(v1));
    assert.equal(stampOf(routed), `candidate of ${promotion}`);
    for (let at = 12; at < 24; at += 1) {
      const { id } = await create(`key-${at}`);
      const { metadata, sequence_id } = await tenant.instance(id);
      const variant = expectedVariant(split, `key-${at}`, 50);
      assert.equal(stampOf({ metadata }), `${variant} of ${split}`);
      assert.equal(sequence_id, variant === 'candidate' ? w2 : w1);
    }
  };
});

survives('one outcome of a release for each ended instance', async (tenant, { sql }) => {
  const handler = newHandler();
  const blocks = [step('a', handler), sleep('b', 20)];
  const [v1 = '', v2 = ''] = await versions(tenant, { blocks }, { blocks });
  const release = await canary(tenant, v1, v2, 50);
  const ids = await Promise.all(Array.from({ length: 40 }, () => tenant.create(v1)));
  /** Half of what is open is done, the other half fails; what the kill cuts off is left open. */
  const work = async () => {
    const tasks = await tenant.poll(handler, { limit: 10 });
    await Promise.allSettled(
      tasks.map((task, at) =>
        at % 2 === 0 ? tenant.complete(task) : tenant.fail(task, 'no', false),
      ),
    );
  };
  const retry = () =>
    Promise.allSettled(ids.slice(0, 20).map((id) => tenant.post(`/instances/${id}/retry`)));
  let working: Promise<unknown>;
  return {
    atTheKill: async () => {
      working = untilKilled(10, async () => {
        await Promise.all([work(), retry(), pause(50)]);
      });
    },
    check: async () => {
      await working;
      await retry();
      await work();
      await tenant.signal(ids.at(-1) ?? '', 'cancel').catch(() => undefined);
      await Promise.all(
        ids.map(async (id) => {
          const { state } = await tenant.instance(id);
          if (state === 'running') await tenant.until(id, 'completed');
        }),
      );
      const { rows } = await sql.query(
        'select i.id, o.instance_id from release_outcomes o full join instances i ' +
          'on i.id = o.instance_id and i.state = o.state and i.sequence_id = o.sequence_id ' +
          'and i.created_at = o.created_at and i.release_id = o.release_id ' +
          'where coalesce(i.release_id, o.release_id) = $1 and (i.id is null or ' +
          "o.instance_id is null and i.state in ('completed', 'failed', 'cancelled'))",
        [release],
      );
      assert.deepEqual(rows, []);
      const text = 'select 1 from release_outcomes where release_id = $1';
      assert.notEqual((await sql.query(text, [release])).rowCount, 0);
    },
  };
});
