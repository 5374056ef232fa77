/** A shard reads what belongs to it, and nothing of the others: by the real statements. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OVERDUE_ROWS_MAX } from '../../actors/instance/loads.js';
import { openLoads } from '../../actors/shard/loads.js';
import { column } from '../helpers/columns.js';
import { usePool } from '../helpers/database.js';

/** Rows of other shards, which come before the own ones in every order. */
const OTHERS = OVERDUE_ROWS_MAX + 200;
const SHARDS = 3;
const FIRST = '00000000-0000-0000-0000-000000000000';
const AT = Date.parse('2026-01-01T00:00:00Z');

/** Number 1 is of shard 1, number 2 of shard 2, and so on. */
const uuid = (number: number) => `01950000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
const OWN = [3 * OTHERS + 1, 3 * OTHERS + 4, 3 * OTHERS + 0x3_0007].map(uuid);

const { pool } = usePool(fill);
const loader = openLoads(pool, { shard: 1, shards: SHARDS });

async function fill(): Promise<void> {
  const others = Array.from({ length: OTHERS }, (_, n) => uuid(3 * n + (n % 2 === 0 ? 0 : 2)));
  const ids = [...others, ...OWN];
  const at = "timestamptz '2026-01-01' + n * interval '1 ms'";
  for (const sql of [
    `insert into timers (instance_id, fire_at, recover) select id, ${at}, true`,
    `insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name,
       params, attempt, priority, rank, state, worker_id, claim_epoch, claimed_at, heartbeat_at,
       checkpoint_seq, history, created_at)
     select id, id, 't', 'a', 0, '', 'h', '{}', 0, 1, 2, 'claimed', 'w', 1, ${at}, ${at}, 0, '[]', ${at}`,
    `insert into permit_requests (instance_id, key_id, max_concurrency, number, created_at)
     select id, id, 1, 1, ${at}`,
    `insert into cron_schedules (id, tenant_id, namespace, sequence_id, cron_expr, timezone, enabled,
       metadata, overlap_policy, skipped_fires, next_fire_at, created_at, updated_at)
     select id, 't', 'n', id, '@daily', 'UTC', true, '{}', 'allow', 0, ${at}, ${at}, ${at}`,
    // The first address has nothing of this shard; all others have something of every shard.
    `insert into webhook_outbox (id, url, event_type, instance_id, tenant_id, body, attempts, status,
       next_attempt_at, created_at)
     select id, case when n <= ${OTHERS / 2} then 'http://a' else 'http://b' end,
       'instance.failed', id, 't', '{}', 0, 'pending', ${at}, ${at}`,
  ]) {
    await pool.query(`${sql} from unnest($1::uuid[]) with ordinality as r(id, n)`, [ids]);
  }
}

test('timers that are due', async () => {
  const found: string[] = [];
  await loader.dueTimers(Number.NEGATIVE_INFINITY, AT + 60_000, (_at, { instance }) =>
    found.push(instance),
  );
  assert.deepEqual(found, OWN);
});

test('overdue timers, however many of other shards are overdue before them', async () => {
  const overdue = await loader.overdueTimers(Number.NEGATIVE_INFINITY, AT + 60_000);
  assert.deepEqual(column(overdue, 'instance'), OWN);
});

test('instances to recover', async () => {
  const found: string[] = [];
  await loader.recoverable(({ instance }) => found.push(instance));
  assert.deepEqual(found, OWN);
});

test('claims to watch', async () => {
  const found: string[] = [];
  await loader.claimedTasks((_task, instance, heartbeatAt, tenant) => {
    assert.ok(heartbeatAt > AT);
    assert.equal(tenant, 't');
    found.push(instance);
  });
  assert.deepEqual(found.sort(), OWN);
});

test('concurrency keys, page by page', async () => {
  const first = await loader.permitKeys(FIRST, 2);
  assert.deepEqual(first, OWN.slice(0, 2));
  assert.deepEqual(await loader.permitKeys(first.at(-1)!, 2), OWN.slice(2));
});

test('schedules, page by page', async () => {
  const first = await loader.dueSchedules({ next_fire_at: '-infinity', id: FIRST }, AT + 60_000, 2);
  const rest = await loader.dueSchedules(first.at(-1)!, AT + 60_000, 2);
  assert.deepEqual(column([...first, ...rest], 'id'), OWN);
});

test('webhooks, and only addresses that it has some for', async () => {
  assert.deepEqual(await loader.webhookUrls('', 10), ['http://b']);
  const start = { at: '-infinity', id: FIRST };
  assert.deepEqual(column(await loader.dueWebhooks('http://b', start, 10), 'id'), OWN);
  assert.deepEqual(await loader.dueWebhooks('http://a', start, 10), []);
});
