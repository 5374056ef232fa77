/** A shard by itself: ended instances are removed with everything that belongs to them, and it drains in the end. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PurgeReply } from '../../actors/instance/purge.js';
import { eventually, type Json } from '../helpers/api.js';
import { type LocalShard, startShard } from '../helpers/shard.js';

const DAY_MS = 86_400_000;
const NOOP = { type: 'step', id: 'a', handler: 'noop' };
const EXTERNAL = { type: 'step', id: 'a', handler: 'ship' };

let shard: LocalShard;
before(async () => {
  shard = await startShard(new Map());
});
after(() => shard?.stop());

/** Rows that name an instance and stay: they are about deliveries, and have a life of their own. */
const KEPT_TABLES = ['webhook_outbox', 'webhook_deliveries'];

describe('a shard that is asked to remove instances', () => {
  async function purge(ids: readonly string[], beforeMs = Date.now() + DAY_MS): Promise<number> {
    return (
      (await shard.ask('instances.purge', '', { ids, before: beforeMs })) as unknown as PurgeReply
    ).removed;
  }

  /** Tables that still have rows of the instance. */
  async function tablesWith(id: string): Promise<string[]> {
    const { rows } = await shard.sql.query<{ table_name: string }>(
      `select table_name from information_schema.columns
       where table_schema = 'public' and column_name = 'instance_id' order by table_name`,
    );
    const found: string[] = [];
    for (const { table_name: table } of rows) {
      if (KEPT_TABLES.includes(table)) continue;
      const { rowCount } = await shard.sql.query(
        `select 1 from ${table} where instance_id = $1 limit 1`,
        [id],
      );
      if (rowCount !== 0) found.push(table);
    }
    return found;
  }

  async function stored(id: string): Promise<boolean> {
    const { rowCount } = await shard.sql.query('select 1 from instances where id = $1', [id]);
    return rowCount === 1;
  }

  async function completed(more: Json = {}): Promise<string> {
    const id = await shard.create(await shard.sequence([NOOP]), more);
    await shard.until(id, 'completed');
    return id;
  }

  test('removes completed and cancelled ones, and leaves the others', async () => {
    const ended = await completed();
    const sequence = await shard.sequence([EXTERNAL]);
    const [waiting, cancelled, failed] = [
      await shard.create(sequence),
      await shard.create(sequence),
      await shard.create(sequence),
    ];
    for (const id of [waiting, cancelled, failed]) await shard.until(id, 'waiting');
    await shard.ask('instances.patchState', cancelled, { state: 'cancelled' });
    await shard.ask('instances.patchState', failed, { state: 'failed' });
    assert.equal(await purge([ended, waiting, cancelled, failed]), 2);
    assert.deepEqual(await Promise.all([ended, waiting, cancelled, failed].map(stored)), [
      false,
      true,
      false,
      true,
    ]);
    await shard.until(waiting, 'waiting');
  });

  test('leaves no row in any table that names the instance', async () => {
    const sequence = await shard.sequence([
      { ...NOOP, id: 'first' },
      { type: 'step', id: 'line', handler: 'log', params: { message: 'here' } },
      {
        type: 'for_each',
        id: 'each',
        collection: 'items',
        body: [{ type: 'step', id: 'work', handler: 'ship' }],
      },
    ]);
    const id = await shard.create(sequence, {
      context: { data: { items: [1] } },
      concurrency_key: 'k',
      max_concurrency: 1,
    });
    await shard.until(id, 'waiting');
    await shard.ask('instances.injectBlocks', id, { blocks: [{ ...NOOP, id: 'extra' }] });
    await shard.ask('instances.saveCheckpoint', id, { checkpoint_data: { n: 1 } });
    await shard.ask('instances.signal', id, { signal_type: 'custom:x', payload: 1 });
    const before = await tablesWith(id);
    const tables = `audit_log block_outputs checkpoints injected_blocks iteration_snapshots
      signals step_logs worker_tasks`;
    for (const table of tables.split(/\s+/)) {
      assert.ok(before.includes(table), `${table} has no row to be removed`);
    }
    await shard.ask('instances.patchState', id, { state: 'cancelled' });
    await eventually(async () => assert.ok(!(await tablesWith(id)).includes('permits')));
    assert.equal(await purge([id]), 1);
    assert.deepEqual(await tablesWith(id), []);
  });

  test('leaves those alone that ended or were changed since', async () => {
    const id = await completed();
    assert.equal(await purge([id], Date.now() - DAY_MS), 0);
    assert.equal(await stored(id), true);
    const { state } = await shard.ask('instances.get', id);
    assert.equal(state, 'completed');
  });

  test('frees their idempotency keys: the next creation makes another instance', async () => {
    const id = await completed({ idempotency_key: 'order-1' });
    assert.equal(await purge([id]), 1);
    const sequence = await shard.sequence([NOOP]);
    const place = { sequence_id: sequence, tenant_id: 'tenant', namespace: 'test' };
    const again = await shard.ask('instances.create', '', { ...place, idempotency_key: 'order-1' });
    assert.deepEqual(again, { id, deduplicated: false });
    await shard.until(id, 'completed');
  });

  test('answers what is asked meanwhile when it is done: there is no such instance', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => completed()));
    const ask = (id: string) =>
      shard.ask('instances.get', id).then(
        () => 'found',
        () => 'gone',
      );
    const asked = ids.map(ask);
    const removed = purge(ids);
    const late = ids.map(ask);
    assert.equal(await removed, 20);
    assert.deepEqual([...new Set(await Promise.all(asked))], ['found']);
    assert.deepEqual([...new Set(await Promise.all(late))], ['gone']);
  });

  test('takes what a deleted sequence has left, and until then gives its keys to nobody', async () => {
    const sequence = await shard.sequence([NOOP]);
    const other = await shard.sequence([NOOP]);
    const ids = await Promise.all([
      ...Array.from({ length: 5 }, () => shard.create(sequence)),
      shard.create(sequence, { idempotency_key: 'kept' }),
    ]);
    for (const id of ids) await shard.until(id, 'completed');
    await shard.ask('catalog.delete', sequence, { cascade: false });
    assert.equal(await stored(ids[0]!), true);
    const place = { tenant_id: 'tenant', namespace: 'test' };
    const body = { ...place, sequence_id: other };
    const keyed = { ...body, idempotency_key: 'kept' };
    const definition = { ...place, id: sequence, name: 'same id', version: 1, blocks: [NOOP] };
    const again = () => shard.ask('instances.create', '', keyed);
    const batch = () => shard.ask('instances.createBatch', '', { instances: [body, keyed] });
    for (const refused of [() => shard.ask('instances.get', ids[0]!), again, batch]) {
      await assert.rejects(refused, /ENG_NOT_FOUND|is being removed/);
    }
    await assert.rejects(shard.ask('sequences.create', '', definition), /is being removed/);

    const removal = shard.ask('instances.purge', '', { ids, before: null });
    assert.deepEqual(await removal, { removed: ids.length });
    assert.deepEqual(await tablesWith(ids[0]!), []);
    assert.deepEqual(await batch(), { count: 2, created: 2 });
    assert.deepEqual(await again(), { id: ids.at(-1), deduplicated: true });
    await shard.ask('catalog.forget', sequence);
    assert.deepEqual(await shard.ask('sequences.create', '', definition), { id: sequence });
    await shard.until(await shard.create(sequence), 'completed');
  });
});

const POLL = { worker_id: 'w', wait_ms: 60_000 };

test('answers the polls that are parked, and those that come too late to be parked', async () => {
  const parked = shard.ask('workers.poll', '', { ...POLL, handler_name: 'early' });
  const known = shard.ask('workers.poll', '', { handler_name: 'known', worker_id: 'w' });
  assert.deepEqual(await known, []);
  shard.drain();
  const late = ['early', 'known', 'unknown'].map((handler_name) =>
    shard.ask('workers.poll', '', { ...POLL, handler_name }),
  );
  assert.deepEqual(await Promise.all([parked, ...late]), [[], [], [], []]);
});
