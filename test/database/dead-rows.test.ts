/**
 * What statements look at while somebody holds an old snapshot: dead rows stay in their tables and indexes, and once
 * these are analysed the planner knows of the few live ones alone. A row is found by its key all the same.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import { withClient } from '../../src/db/pool.js';
import { WRITER_SETTINGS } from '../../src/db/statements.js';
import { useSession } from '../helpers/database.js';
import { STATEMENTS } from '../helpers/store.js';

const DEAD = 20_000;
const LIVE = 10;
/** Of rows that are looked up: a few blocks of each index and one of the table, for each of ten. */
const BLOCKS_MAX = 400;

const ID = "('01950000-0000-7000-8000-' || lpad(to_hex(g), 12, '0'))::uuid";
const FILL = [
  `insert into timers (instance_id, fire_at) select ${ID}, now() from generate_series(1, ${DEAD}) g`,
  `insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name, params, attempt,
    priority, rank, state, claim_epoch, checkpoint_seq, history, created_at)
    select ${ID}, ${ID}, 't', 'a', 0, '', 'h', '{}', 0, 0, 3, 'pending', 0, 0, '[]', now()
    from generate_series(1, ${DEAD}) g`,
  `insert into injected_blocks (instance_id, blocks) select ${ID}, '[]' from generate_series(1, ${DEAD}) g`,
];
const FILL_OF_LIVE = [
  `insert into instances (id, sequence_id, tenant_id, namespace, state, priority, timezone, metadata, data,
  config, context_audit, runtime, execution, signal_count, audit_count, created_at, updated_at)
  select id, id, 't', 'n', 'waiting', 0, 'UTC', '{}', '{}', '{}', '[]', '{}', '{}', 0, 0, now(), now()
  from unnest($1::uuid[]) id`,
];
const TABLES = { timers: 'instance_id', worker_tasks: 'id', injected_blocks: 'instance_id' };
const IDS = Array.from({ length: LIVE }, (_, at) => uuid(DEAD - at));

const { client, database } = useSession(fill);

async function fill(): Promise<void> {
  for (const table of Object.keys(TABLES)) {
    await client.query(`alter table ${table} set (autovacuum_enabled = off)`);
  }
  for (const text of FILL) await client.query(text);
  for (const text of FILL_OF_LIVE) await client.query(text, [IDS]);
}

interface Node extends Readonly<Record<string, unknown>> {
  readonly Plans?: readonly Node[];
}

/** A part of a statement that changes rows does not count to the whole. */
function blocksIn(node: Node): number {
  const own = Number(node['Shared Hit Blocks']) + Number(node['Shared Read Blocks']);
  return Math.max(own, ...(node.Plans ?? []).map(blocksIn));
}

/** Blocks that one execution looks at, of which nothing is left. */
async function blocksOf(session: pg.Client, type: string, text: string, value: string) {
  await session.query('begin');
  await session.query(`prepare looked_at (${type}) as ${text}`);
  const { rows } = await session.query<{ 'QUERY PLAN': unknown }>(
    `explain (analyze, buffers, format json) execute looked_at('${value}')`,
  );
  await session.query('rollback; deallocate looked_at');
  // The engine's own sessions leave JSON as it is.
  const told = rows[0]!['QUERY PLAN'];
  const [{ Plan }] = (typeof told === 'string' ? JSON.parse(told) : told) as [{ Plan: Node }];
  return blocksIn(Plan);
}

const handedIn = (key: string, more: object = {}) =>
  JSON.stringify(IDS.map((id) => ({ [key]: id, ...more })));
const CLAIM = { worker_id: 'w', claim_epoch: 1, claimed_at: 'now', checkpoint_seq: 0 };
const ENDED = { ...CLAIM, state: 'completed', withdrawn: false, lost_claims: 0, history: [] };
const WRITTEN: readonly [kind: keyof typeof STATEMENTS, rows: string][] = [
  ['timer.clear', handedIn('instance_id')],
  [
    'task.claim',
    handedIn('id', { ...CLAIM, state: 'claimed', lost_claims: 0, heartbeat_at: 'now' }),
  ],
  ['task.rank', handedIn('id', { rank: 1 })],
  ['task.end', handedIn('id', ENDED)],
];

test('a row among dead ones is found by its key, also when the planner assumes only live ones', async (t) => {
  const holder = new pg.Client(database.connectionString);
  await holder.connect();
  t.after(() => holder.end());
  await holder.query('begin isolation level repeatable read; select 1');
  for (const [table, key] of Object.entries(TABLES)) {
    await client.query(`delete from ${table} where not ${key} = any($1::uuid[])`, [IDS]);
  }
  const loading = { applicationName: 'dead-rows', isPlannedOnce: true };
  const look = async () => {
    const found: [string, number][] = [];
    await client.query(WRITER_SETTINGS);
    for (const [kind, rows] of WRITTEN) {
      found.push([kind, await blocksOf(client, 'json', STATEMENTS[kind]!.text, rows)]);
    }
    const { connectionString } = database;
    await withClient({ connectionString, ...loading }, async (session) => {
      const ids = `{${IDS.join(',')}}`;
      found.push(['load', await blocksOf(session, 'uuid[]', LOAD_SQL.instances, ids)]);
    });
    return found.map(([name, blocks]) => `${name} ${blocks <= BLOCKS_MAX ? 'by key' : blocks}`);
  };
  const before = await look();
  await client.query('analyze');
  const byKey = [...WRITTEN.map(([kind]) => kind), 'load'].map((name) => `${name} by key`);
  assert.deepEqual([before, await look()], [byKey, byKey]);
});

function uuid(number: number): string {
  return `01950000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}
