/** How much one list may read, and how the connections of lists are shared among tenants. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { approvalCountQuery, approvalList } from '../../actors/instance/front/approvals.js';
import {
  candidateList,
  deadLetterList,
  FILTERS,
  type InstanceFilter,
  instanceList,
  withVersions,
} from '../../actors/instance/front/instance-reads.js';
import { taskList } from '../../actors/queue/front/workers.js';
import { releaseList } from '../../actors/release/front/operations.js';
import { deliveryList } from '../../actors/webhook/front/operations.js';
import { LIMITS } from '../../src/base/limits.js';
import { narrow } from '../../src/db/reads/filters.js';
import { Conditions, type Query } from '../../src/db/reads/query.js';
import type { Page, PageRequest } from '../../src/db/reads/reader.js';
import { createReads, READ_POOL_OPTIONS } from '../../src/db/reads.js';
import { column } from '../helpers/columns.js';
import { usePool } from '../helpers/database.js';
import { byDepth } from '../helpers/depth.js';

const TENANT = 'acme';
const ELDER = 'elder';
const SEQUENCE = '01950000-0000-7000-8000-000000000001';
const SUBSCRIPTION = '01950000-0000-7000-8000-000000000002';
/** More than two pages may look at. */
const ROWS = byDepth(60_000, 1_000_000);
/** Every so many rows one is in this state: the newest page that is walked has two, others have one. */
const RARE = 12_900;
const rare = (page: Partial<Parameters<typeof instanceList>[0]>) =>
  instanceList({ tenant_id: TENANT, state: ['failed'], ...page });

/** Three versions of a name, with 20 instances each, and more versions of another than are merged. */
const OLD = `
  with s as (
    insert into sequences (id, tenant_id, namespace, name, version, definition, created_at)
    select gen_random_uuid(), '${ELDER}', 'default', name, version, '{"blocks":[]}', '2024-01-01'
    from (values ('old', 3), ('often', 60)) names (name, versions),
      generate_series(1, versions) version
    returning id, name, version),
  i as (
    insert into instances (
      id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data,
      config, context_audit, runtime, execution, failure, signal_count, audit_count, created_at, updated_at)
    select gen_random_uuid(), s.id, '${ELDER}', (array['default', 'other'])[1 + g % 2],
      (array['failed', 'waiting'])[1 + g % 2], null, 1, 'UTC', json_build_object('g', g % 3), '{}', '{}', '[]',
      '{}', '{"n":{}}', '{"code":"worker_failed","message":"order 7","block_id":"a"}', 0, 0,
      timestamptz '2024-01-01' + (g * 7 + s.version) % 31 * interval '1 minute', '2024-01-01'
    from s, generate_series(1, 20) g
    returning *)
  insert into dead_letters (instance_id, tenant_id, created_at, failed_at, reason, sequence_id,
    failure_code, block_id, folded_reason)
  select i.id, i.tenant_id, i.created_at, i.created_at, 'order 7', nullif(i.sequence_id, first.id),
    'worker_failed', 'a', 'order #'
  from i, (select id from s where name = 'old' and version = 1) first where i.state = 'failed'`;

const { pool } = usePool(fill, READ_POOL_OPTIONS);
const reads = createReads(pool);

async function fill(connectionString: string): Promise<void> {
  // The pool of reads gives up after 10 s, which so many rows may take.
  const admin = new pg.Client(connectionString);
  await admin.connect();
  const id = "('01950000-0000-7000-8000-' || lpad(to_hex(g), 12, '0'))::uuid";
  const at = "timestamptz '2025-01-01' + g * interval '1 second'";
  await admin.query(`insert into instances (
      id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data,
      config, context_audit, runtime, execution, signal_count, audit_count, created_at, updated_at)
    select ${id}, '${SEQUENCE}', '${TENANT}', 'default',
      case when g % ${RARE} = 4501 then 'failed' else 'completed' end, null, 1, 'UTC', '{}', '{}', '{}',
      '[]', '{}', '{"n":{}}', 0, 0, ${at}, ${at}
    from generate_series(1, ${ROWS}) g`);
  await admin.query(`insert into dead_letters (instance_id, tenant_id, created_at, failed_at, reason)
    select ${id}, '${TENANT}', ${at}, ${at}, 'no' from generate_series(1, ${ROWS}) g`);
  await admin.query(`insert into worker_tasks (
      id, instance_id, tenant_id, block_id, node, iteration, handler_name, params, attempt, priority,
      rank, state, claim_epoch, checkpoint_seq, history, created_at)
    select ${id}, ${id}, '${TENANT}', 'a', 0, '', 'h', '{}', 0, 1, 1, 'pending', 1, 0, '[]', ${at}
    from generate_series(1, ${ROWS}) g`);
  await admin.query(`insert into approvals (
      id, instance_id, tenant_id, namespace, sequence_id, block_id, path, iteration, prompt, gate,
      waiting_since)
    select ${id}, ${id}, '${TENANT}', 'default', '${SEQUENCE}', 'a', 'a', '', '', '{}', ${at}
    from generate_series(1, ${ROWS}) g`);
  await admin.query(`insert into webhook_deliveries (
      id, delivery_id, url, event_type, instance_id, attempt_number, attempted_at, duration_ms,
      success, signed, subscription_id)
    select ${id}, ${id}, 'http://sink.example', 'instance.failed', ${id}, 1, ${at}, 5, true, false,
      '${SUBSCRIPTION}' from generate_series(1, ${ROWS}) g`);
  await admin.query(`insert into releases (
      id, tenant_id, namespace, sequence_name, baseline_sequence_id, baseline_version,
      candidate_sequence_id, candidate_version, state, canary_percent, gates, in_flight_policy,
      created_at, updated_at)
    select ${id}, '${TENANT}', 'default', 'order', ${id}, 1, ${id}, 2, 'draft', 0, '[]', 'pin', ${at},
      ${at} from generate_series(1, ${ROWS}) g`);
  await admin.query(OLD);
  await admin.query('analyze');
  await admin.end();
}

/** The pages that somebody gets who follows the cursors. */
async function follow(limit: number): Promise<Page[]> {
  const pages: Page[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await reads.page(rare({ limit, cursor }));
    pages.push(page);
    if (!page.isCut && page.count < limit) return pages;
    cursor = page.cursor;
  }
}

const idsOf = (pages: readonly Page[]) =>
  pages.flatMap(({ text }) => column(JSON.parse(text) as { id: string }[], 'id'));

test('who follows the cursors of a list with a rare filter gets every row once, and some pages early', async () => {
  const { rows } = await pool.query<{ id: string }>(
    `select id from instances where tenant_id = '${TENANT}' and state = 'failed' order by created_at desc`,
  );
  assert.equal(rows.length, Math.ceil(ROWS / RARE));
  for (const limit of [1, 2, 100]) {
    const pages = await follow(limit);
    assert.deepEqual(idsOf(pages), column(rows, 'id'), `pages of ${limit}`);
    if (limit > 1) assert.ok(pages.some(({ isWalked, count }) => isWalked && count < limit));
  }
});

type List = (cursor: string | undefined) => PageRequest<never>;

/** Follows the cursors of a list that finds nothing; each page looks at this many rows. */
async function assertEmpty(list: List, most: number): Promise<void> {
  let looked = 0;
  for (let cursor: string | undefined; ; looked += 1) {
    const page = await reads.page(list(cursor));
    assert.equal(page.text, '[]');
    if (!page.isCut) break;
    cursor = page.cursor;
  }
  assert.equal(looked, Math.floor(ROWS / most));
}

test('a filter that matches nothing gives empty pages with a cursor, and ends', async () => {
  const asked = { tenant_id: TENANT, failure: 'no such reason', limit: 100 };
  for (const [list, most] of [
    [instanceList, LIMITS.rowsWalkedMax],
    [deadLetterList, LIMITS.rowsFetchedMax],
  ] as const) {
    await assertEmpty((cursor) => list({ ...asked, cursor }), most);
  }
});

const SELECTIONS: readonly InstanceFilter[] = [
  {},
  { namespace: 'other' },
  { state: ['waiting'], metadata: { g: '1' } },
  { created_after: '2024-01-01T00:05:00Z', created_before: '2024-01-01T00:20:00Z' },
  { sequence_version: 2 },
  { state: ['failed'], failure_code: 'worker_failed', failure_reason: 'order #' },
  { failure_block: 'nowhere' },
];

for (const [what, list] of [
  ['instances', instanceList],
  ['failed instances', deadLetterList],
] as const) {
  for (const filter of SELECTIONS) {
    test(`${what} of the versions of a name are found directly, in order and once: ${JSON.stringify(filter)}`, async () => {
      const asked = { tenant_id: ELDER, sequence_name: 'old', ...filter };
      const isOfFailed = list === deadLetterList;
      const expected = await idsByNestedQuery(isOfFailed ? { ...asked, state: ['failed'] } : asked);
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const wanted = list({ ...(await withVersions(reads, asked)), cursor, limit: 7 });
        const page = await reads.page(wanted);
        found.push(...idsOf([page]));
        cursor = page.cursor;
        if (!page.isCut && page.count < 7) break;
        if (!isOfFailed) assert.ok(!page.isWalked, 'nothing else is looked at');
      }
      assert.deepEqual(found, expected);
    });
  }
}

test('of a name without versions nothing is looked at, and one of very many is looked for among all', async () => {
  const asked = { tenant_id: ELDER, limit: 5 };
  const nobody = await withVersions(reads, { ...asked, sequence: 'nobody' });
  for (const list of [instanceList, deadLetterList]) {
    assert.equal((await reads.page(list(nobody))).text, '[]');
  }
  assert.equal((await rowsRead(instanceList(nobody).query)) <= 1, true);
  const often = { ...asked, sequence_name: 'often', created_before: '2024-02-01T00:00:00Z' };
  const page = await reads.page(instanceList(await withVersions(reads, often)));
  assert.deepEqual(idsOf([page]), (await idsByNestedQuery(often)).slice(0, 5));
});

/** The same selection by one plain statement over everything. */
async function idsByNestedQuery(filter: InstanceFilter): Promise<readonly string[]> {
  const conditions = new Conditions();
  narrow(conditions, FILTERS, filter);
  const { rows } = await pool.query<{ id: string }>(
    `select i.id from instances i ${conditions.where} order by i.created_at desc, i.id desc`,
    conditions.values,
  );
  return column(rows, 'id');
}

test('who counts goes on by a cursor where a page ends early, and an offset beyond it is refused', async () => {
  const all = idsOf(await follow(100));
  const page = await reads.page(rare({ offset: 1, limit: 100 }));
  assert.ok(page.isWalked);
  const told = idsOf([page, await reads.page(rare({ limit: 100, cursor: page.cursor }))]);
  assert.ok(told.length > 1);
  assert.deepEqual(told, all.slice(1, 1 + told.length));
  await assert.rejects(reads.page(rare({ offset: 100, limit: 100 })), { code: 'ENG_SLOW_READ' });
});

test('no statement of a list with filters looks at more rows than its bound', async () => {
  const { firstRowsWalkedMax: first } = LIMITS;
  const nothing = { tenant_id: TENANT, failure: 'no such reason', limit: 100 };
  const requests: PageRequest<never>[] = [
    instanceList(nothing),
    instanceList({ tenant_id: 'other', sequence_id: SEQUENCE, limit: 100 }),
    deadLetterList(nothing),
    candidateList({ ...nothing, is_open: true }),
    taskList({ tenant_id: TENANT, worker_id: 'nobody', offset: 0, limit: 100 }),
    taskList({ tenant_id: TENANT, state: ['failed'], offset: 0, limit: 100 }),
    taskList({ tenant_id: TENANT, state: ['pending'], handler_name: 'g', offset: 0, limit: 100 }),
    taskList({ tenant_id: TENANT, state: ['claimed'], worker_id: 'nobody', offset: 0, limit: 100 }),
    approvalList({ tenant_id: TENANT, namespace: 'other', limit: 100 }),
    approvalList({ sequence_name: 'other', limit: 100 }),
    deliveryList({ subscription_id: SUBSCRIPTION, delivered: false, limit: 100 }),
    deliveryList({ url: 'http://nobody.example', limit: 100 }),
    releaseList({ tenant_id: TENANT, state: 'canary', limit: 100 }),
    releaseList({ sequence_name: 'other', limit: 100 }),
  ];
  for (const request of requests) {
    assert.ok(request.walk !== undefined);
    assert.ok((await rowsRead(request.query)) <= first);
    const { rows } = await pool.query<object>(request.query.text, [...request.query.values]);
    const cursor = request.cursorAfter?.(rows.at(-1) as never) as string;
    const isFetched = request.query.text.includes('left join lateral');
    const most = isFetched ? LIMITS.rowsFetchedMax : LIMITS.rowsWalkedMax;
    assert.ok((await rowsRead(request.walk.on(cursor, 0))) <= most - first);
  }
});

test('approvals are counted among as many as a list looks at', async () => {
  const query = approvalCountQuery({ tenant_id: TENANT, namespace: 'other' });
  assert.ok((await rowsRead(query)) <= LIMITS.rowsWalkedMax);
});

test('who follows the cursors of open tasks, approvals and deliveries with a filter that matches nothing comes to an end', async () => {
  const page = { offset: 0, limit: 100 };
  const { rowsWalkedMax, rowsFetchedMax } = LIMITS;
  const lists: readonly (readonly [List, most: number])[] = [
    [
      (cursor) =>
        taskList({ tenant_id: TENANT, state: ['pending'], handler_name: 'g', ...page, cursor }),
      rowsFetchedMax,
    ],
    [
      (cursor) => approvalList({ tenant_id: TENANT, namespace: 'other', ...page, cursor }),
      rowsFetchedMax,
    ],
    [(cursor) => deliveryList({ url: 'http://nobody.example', ...page, cursor }), rowsWalkedMax],
  ];
  for (const [list, most] of lists) await assertEmpty(list, most);
});

interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** The most rows that the statement takes from one table, those included that it throws away. */
async function rowsRead({ text, values }: Query): Promise<number> {
  const explained = await pool.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, timing off, format json) ${text}`,
    [...values],
  );
  const [{ Plan: plan }] = JSON.parse(explained.rows[0]?.['QUERY PLAN'] ?? '') as [{ Plan: Plan }];
  const most = (node: Plan): number => {
    const { 'Actual Rows': rows, 'Actual Loops': loops, 'Rows Removed by Filter': removed } = node;
    const own = node['Relation Name'] === undefined ? 0 : (rows + (removed ?? 0)) * loops;
    return Math.max(own, ...(node.Plans ?? []).map(most));
  };
  return most(plan);
}

test('a tenant whose reads hang has half of the connections, and others read at once', async () => {
  const holder = await pool.connect();
  await holder.query('select pg_advisory_lock(1)');
  try {
    const hang = () =>
      reads.of('a').rowsOf({ text: 'select pg_advisory_xact_lock_shared(1)', values: [] }, 'x');
    const { readsPerTenantMax: atOnce, readsWaitingPerTenantMax: waiting } = LIMITS;
    const refusal = { code: 'ENG_TENANT_SHARE', status: 429, retryAfterMs: 1_000 };
    const hanging = Array.from({ length: atOnce }, hang);
    const tired = Array.from({ length: waiting }, () => assert.rejects(hang(), refusal));
    await assert.rejects(hang(), refusal);
    const told = await reads.of('b').rowsOf({ text: 'select 1 as one', values: [] }, 'x');
    assert.deepEqual(told, [{ one: 1 }]);
    // Those that wait give up before the first ones have come to an end.
    await Promise.all(tired);
    await holder.query('select pg_advisory_unlock(1)');
    await Promise.all(hanging);
  } finally {
    holder.release();
  }
});
