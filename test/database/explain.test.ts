/**
 * The plans of every hot statement over 20,000 rows a table or more: nothing reads a whole table,
 * nothing sorts one, and updates stay heap-only. Statements that are prepared by name are looked at
 * twice: planned for their values, and as the plan for any values that Postgres may keep after five
 * runs.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { actionList } from '../../actors/action/front/operations.js';
import {
  failedOfCauseQuery,
  failuresQuery,
  runsOfNamesQuery,
} from '../../actors/activity/front/failures.js';
import {
  minutesQuery,
  outcomesQuery,
  queueMinutesQuery,
} from '../../actors/activity/front/operations.js';
import { openNodesQuery, slowestQuery, stepsQuery } from '../../actors/activity/front/steps.js';
import {
  bulkJobList,
  bulkJobStanding,
  openBulkJobs,
  restingBulkJobs,
  retryOutcome,
} from '../../actors/bulk/front/room.js';
import { keyList, keyState, liveKeys } from '../../actors/catalog/front/api-keys.js';
import {
  SEQUENCE_LOOKUPS,
  sequenceList,
  versionList,
} from '../../actors/catalog/front/sequence-reads.js';
import { effectList, effectsOfInstance } from '../../actors/continuity/effect-reads.js';
import { firingEvents } from '../../actors/event/front/firing.js';
import { eventList } from '../../actors/event/front/operations.js';
import { FEED_START } from '../../actors/feed/core/change-cursor.js';
import { changesQuery, windowQuery } from '../../actors/feed/front/change-reads.js';
import {
  approvalById,
  approvalCountQuery,
  approvalList,
  openApprovers,
  promptsOf,
} from '../../actors/instance/front/approvals.js';
import {
  type AttemptRow,
  attemptList,
  instanceBlocks,
} from '../../actors/instance/front/attempts.js';
import { auditList, transitionList } from '../../actors/instance/front/audit-reads.js';
import {
  candidateList,
  childList,
  countsQuery,
  deadLetterList,
  instanceById,
  instanceList,
  instanceTenant,
} from '../../actors/instance/front/instance-reads.js';
import { checkpointList, signalList } from '../../actors/instance/front/instances.js';
import { lineList, tenantLogQuery } from '../../actors/instance/front/logs.js';
import { entryList, outputList, outputsAfter } from '../../actors/instance/front/outputs.js';
import { orphans } from '../../actors/instance/front/removal.js';
import { searchStatements } from '../../actors/instance/front/search.js';
import {
  instancesThere,
  openTaskCount,
  rateLimitList,
  scheduleCount,
  TENANTS_TEXT,
  tenantLimitRows,
} from '../../actors/limits/front/reads.js';
import { pendingStartList } from '../../actors/pending-start/front/operations.js';
import { taskHistory, taskList } from '../../actors/queue/front/workers.js';
import { decisionList, releaseById, releaseList } from '../../actors/release/front/operations.js';
import { sampledRuns, storedRun, storedStart } from '../../actors/release/replay-reads.js';
import {
  nextScheduleList,
  scheduleById,
  scheduleList,
} from '../../actors/schedule/front/operations.js';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import {
  deliveryAttempts,
  deliveryList,
  outboxList,
  webhookById,
  webhookTenant,
} from '../../actors/webhook/front/operations.js';
import {
  FAILURES_COMPARED_MAX,
  FAILURES_LOOKED_AT_MAX,
  RUNS_LOOKED_AT_MAX,
  VERSIONS_COMPARED_MAX,
} from '../../schema/statistics.js';
import type { Query } from '../../src/db/reads/query.js';
import type { PageRequest } from '../../src/db/reads/reader.js';
import { WRITER_SETTINGS } from '../../src/db/statements.js';
import { metricSample } from '../../src/server/operations/metrics.js';
import { continuityFill, continuityQueries } from '../helpers/continuity-rows.js';
import { useSession } from '../helpers/database.js';
import { GATED_STATEMENTS, STATEMENTS } from '../helpers/store.js';

const ROWS = 20_000;
/** Of the tables whose lists would be sorted if they were shorter. */
const MANY = 100_000;
const TENANTS = 5;
const SEQUENCES = 50;
/** Rows of one instance in the tables whose rows are many per instance. */
const ROWS_OF_BUSY = 500;

const { client } = useSession(fill);

// ---------------------------------------------------------------- the rows

/** Ids as they are in `fill`: number 1 is the busy instance. */
const uuid = (number: number) => `01950000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
const UUID_OF = (number: string) =>
  `('01950000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;

const SOME_IDS = [5, 700, 4_000, 10_001, 19_999].map(uuid);
const BUSY = uuid(1);
const A_SEQUENCE = uuid(7);
const VERSIONS = [7, 12, 17].map(uuid);
/** Of concurrency and throttles. */
const KEYS = VERSIONS;
const A_TIME = '2025-01-01T12:00:00.000Z';
const A_LATER_TIME = '2025-01-01T13:00:00.000Z';
const WAITING = ['handler-3', 2, A_TIME, uuid(43_200), 5_000];
const END_OF_ROWS = Date.parse('2026-01-01T00:00:00Z');

const STEPS = {
  excluded: ['l'],
  retried: ['a'],
  handlers: new Map<string, string>(),
  nested: new Set<string>(),
};
const TRIES = { order: 'oldest', include_payloads: true, limit: 100 } as const;

/** Behind one that lies in the middle. */
function placeOfTry(): string {
  const { cursorAfter } = attemptList(BUSY, STEPS, TRIES);
  assert.ok(cursorAfter !== undefined);
  return cursorAfter({ created_at: A_TIME, id: uuid(200) } as AttemptRow);
}

/** `g` counts the rows of a table, which span a day whether there are many or more. */
const AT = "timestamptz '2025-01-01' + g * interval '5 seconds'";
const AT_SECONDS = "timestamptz '2025-01-01' + g * interval '1 second'";
const ID = UUID_OF('g');
const TENANT = `'tenant-' || g % ${TENANTS}`;
const SEQUENCE = UUID_OF(`1 + g % ${SEQUENCES}`);
const OWNER = UUID_OF(`greatest(1, g - ${ROWS_OF_BUSY})`);
const FILL = [
  `insert into sequences (id, tenant_id, namespace, name, version, definition, created_at)
    select ${ID}, ${TENANT}, 'default', 'name-' || g / 50, g % 50, '{"blocks":[]}', ${AT}
    from generate_series(1, 10000) g`,
  `insert into sequence_tombstones (id, created_at)
    select ${ID}, ${AT} from generate_series(20000, 30000) g`,
  `insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority,
    timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key,
    max_concurrency, idempotency_key, parent_instance_id, signal_count, audit_count, created_at,
    updated_at)
    select ${ID}, ${SEQUENCE}, ${TENANT}, 'default',
    (array['scheduled', 'running', 'waiting', 'completed', 'failed'])[1 + g % 5], null, 1, 'UTC',
    '{}', '{"order":{"id":1,"lines":[1,2,3]}}', '{}', '[]', '{}', '{"n":{}}', null, null, null,
    case when g % 10 = 0 then ${UUID_OF('g / 20 + 1')} end, 0, 0, ${AT_SECONDS}, ${AT_SECONDS}
    from generate_series(1, ${MANY}) g`,
  `insert into timers (instance_id, fire_at, recover)
    select ${ID}, ${AT}, g % 100 = 0`,
  `insert into dead_letters (instance_id, tenant_id, created_at, failed_at, reason, namespace,
    sequence_id, failure_code, block_id, handler, folded_reason)
    select ${ID}, ${TENANT}, ${AT_SECONDS}, ${AT_SECONDS}, 'no ' || g, 'default', ${SEQUENCE},
      'worker_failed', 'a', 'h', 'no #'
    from generate_series(1, ${MANY}) g`,
  `insert into block_outputs (id, instance_id, block_id, iteration, attempt, try, output,
    output_ref, output_size, created_at)
    select ${ID}, ${OWNER}, 'a', '', g, 0, '{}', null, 2, ${AT}`,
  `insert into signals (id, instance_id, seq, signal_type, payload, created_at, status)
    select ${ID}, ${OWNER}, g, 'custom:a', '{}', ${AT_SECONDS}, case when g % 10 = 0 then 'kept' end
    from generate_series(1, ${MANY}) g`,
  `insert into events (id, key_id, seq, tenant_id, event_name, producer_event_id, payload, status,
    matched, targets, created_at, expires_at, ended_at, fires)
    select ${ID}, ${UUID_OF('g / 3')}, g, ${TENANT}, 'name-' || g / 50, g, '{}',
    case when g % 10 = 0 then 'pending' else 'consumed' end, 0,
    case when g % 100 = 1 then json '[]' end, ${AT}, ${AT} + interval '1 day',
    case when g % 10 <> 0 then ${AT} end, case when g % 100 = 2 then json '["paid"]' end`,
  `insert into event_waits (instance_id, id, key_id)
    select ${ID}, ${ID}, ${UUID_OF('g / 2')}`,
  `insert into event_takes (instance_id, event_id, wait_id, block_id, outcome, taken_at)
    select ${ID}, ${ID}, ${ID}, 'a', 'taken', ${AT}`,
  `insert into cancel_waits (instance_id, key_id)
    select ${ID}, ${UUID_OF('g / 2')}`,
  `insert into search_terms (instance_id, term, tenant_id, created_at)
    select ${ID}, 'order-' || g, ${TENANT}, ${AT} from generate_series(1, ${MANY}) g`,
  `insert into event_cancels (instance_id, event_id, outcome)
    select ${ID}, ${ID}, case when g % 10 > 0 then 'cancelled' end`,
  // Most of them are closed.
  `insert into approvals (id, instance_id, tenant_id, namespace, sequence_id, block_id, path,
    iteration, prompt, gate, waiting_since, outcome)
    select ${ID}, ${ID}, ${TENANT}, 'default', ${SEQUENCE}, 'a', 'a', '', '', '{}', ${AT_SECONDS},
    case when g % 10 > 0 then 'answered' end from generate_series(0, ${MANY - 1}) g`,
  `insert into iteration_snapshots (instance_id, key, items)
    select ${ID}, '0', '[]'`,
  `insert into audit_log (instance_id, seq, tenant_id, entries, created_at)
    select ${OWNER}, g, 'tenant-1', '[{"event_type":"state_transition"},{"event_type":"step"}]',
    ${AT}`,
  `insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name,
    queue_name, params, overlay, attempt, timeout_ms, priority, rank, state, worker_id, claim_epoch,
    claimed_at, heartbeat_at, checkpoint_seq, history, created_at)
    select ${ID}, ${ID}, 'tenant-' || g / 10 % ${TENANTS}, 'a', 0, '', 'handler-' || g % 10,
    case when g / 50 % 2 = 0 then 'queue-' || g / 100 % 4 end, '{}', null, 0, null, g % 4,
    case when g % 3 = 0 then 3 - g % 4 end,
    case when g % 3 > 0 then 'completed' when g % 100 = 0 then 'claimed' else 'pending' end,
    case when g % 3 > 0 or g % 100 = 0 then 'worker-' || g % 40 end, 0,
    case when g % 3 > 0 or g % 100 = 0 then ${AT_SECONDS} end, null, 0, '[]', ${AT_SECONDS}
    from generate_series(1, ${MANY}) g`,
  // As many from before.
  `insert into worker_tasks_before (id, instance_id, tenant_id, block_id, node, iteration,
    handler_name, queue_name, params, attempt, priority, state, claim_epoch, checkpoint_seq,
    history, created_at)
    select overlay(id::text placing 'b' from 1)::uuid, instance_id, tenant_id, block_id, node,
    iteration, handler_name, queue_name, params, attempt, priority,
    case when rank is null then state else 'pending' end, claim_epoch, 0, history, created_at
    from worker_tasks`,
  `insert into open_tasks (task_id, instance_id, tenant_id, handler_name, queue_name, rank,
    created_at, worker_id, claim_epoch, claimed_at, heartbeat_at, checkpoint_seq)
    select overlay(id::text placing 'b' from 1)::uuid, instance_id, tenant_id, handler_name,
    queue_name, rank, created_at, worker_id, 1, claimed_at, heartbeat_at, 0
    from worker_tasks where rank is not null`,
  `insert into permit_requests (instance_id, key_id, max_concurrency, number, created_at, has_slot)
    select ${ID}, ${UUID_OF('1 + g % 100')}, 2, 1, ${AT}, g % 3 = 0`,
  `insert into permits (instance_id, key_id, number)
    select instance_id, key_id, number from permit_requests where not has_slot
    order by created_at limit 20000`,
  `insert into start_requests (instance_id, key_id, max_starts, per_ms, burst, created_at)
    select ${ID}, ${UUID_OF('1 + g % 100')}, 2, 1000, 2, ${AT}`,
  `insert into start_grants (key_id, granted_at, id, tenant_id, count)
    select ${UUID_OF('1 + g % 100')}, ${AT}, ${ID}, 'tenant-' || g % 100, 1`,
  `insert into kin_notes (to_id, from_id, id, word)
    select ${ID}, ${UUID_OF('g + 1')}, ${UUID_OF('g + 2')}, 'pause'`,
  `insert into rate_limits (id, tenant_id, limit_key, max_count, window_seconds, updated_at)
    select ${ID}, 'tenant-' || g % 100, 'key-' || g, 10, 60, ${AT}
    from generate_series(1, 10000) g`,
  `insert into rate_grants (limit_id, granted_at, id, count)
    select ${UUID_OF('1 + g % 100')}, ${AT}, ${ID}, 1`,
  `insert into checkpoints (id, instance_id, checkpoint_data, created_at)
    select ${ID}, ${OWNER}, '{}', ${AT}`,
  `insert into step_logs (id, instance_id, tenant, entries, created_at)
    select ${ID}, ${OWNER}, ${TENANT}, '[{"level":"info"}]', ${AT_SECONDS}
    from generate_series(1, ${MANY}) g`,
  `insert into injected_blocks (instance_id, blocks)
    select ${ID}, '[]'`,
  `insert into pending_starts (id, key_id, tenant_id, namespace, sequence, kind, creation, count,
    bytes, created_at, starts_at)
    select ${ID}, ${UUID_OF('g / 2')}, ${TENANT}, 'default', 'name-' || g % 50, 'debounce', '{}', 1,
    0, ${AT_SECONDS}, ${AT_SECONDS} from generate_series(1, ${MANY}) g`,
  `insert into collected_items (pending_id, seq, tenant_id, data)
    select ${UUID_OF('g / 10')}, g, ${TENANT}, '{}' from generate_series(1, ${MANY}) g`,
  `insert into collected_waits (pending_id, seq, key_id, tenant_id)
    select ${UUID_OF('g / 10')}, g, ${UUID_OF('g / 2')}, ${TENANT} from generate_series(1, ${MANY}) g`,
  `insert into collected_cancels (pending_id, event_id, seq, tenant_id)
    select ${UUID_OF('g / 10')}, ${UUID_OF('g / 2')}, g, ${TENANT} from generate_series(1, ${MANY}) g`,
  `insert into instance_keys (id, instance_id, tenant_id, idempotency_key, created_at)
    select ${ID}, ${UUID_OF('g / 2')}, ${TENANT}, 'key-' || g, ${AT}
    from generate_series(1, ${MANY}) g`,
  `insert into cron_schedules (id, tenant_id, namespace, sequence_id, cron_expr, timezone,
    enabled, metadata, overlap_policy, skipped_fires, next_fire_at, created_at, updated_at)
    select ${ID}, ${TENANT}, 'default', ${ID}, '@daily', 'UTC', true, '{}', 'allow', 0, ${AT},
    ${AT}, ${AT} from generate_series(1, 10000) g`,
  `insert into api_keys (id, tenant_id, name, capabilities, secret_hash, created_at, revoked)
    select 'ak_' || g, ${TENANT}, '', '["operator"]', 'hash-' || g, ${AT}, false
    from generate_series(1, 10000) g`,
  `insert into actions (id, tenant_id, at, by, operation, kind, target, details)
    select ${ID}, ${TENANT}, ${AT}, 'key-' || g % 7, 'sequences.deprecate', 'kind-' || g % 9, ${ID}, '{}'
    from generate_series(1, 20000) g`,
  `insert into activity (tenant_id, at, shard, created, completed, failed, cancelled, durations)
    select ${TENANT}, ${AT}, 0, 1, 1, 0, 0, '[]' from generate_series(1,
    20000) g on conflict do nothing`,
  `insert into queue_minutes (tenant_id, handler_name, queue_name, at, shard, arrived, taken, withdrawn, ended,
    longest_wait)
    select ${TENANT}, 'h-' || g % 10, '', ${AT}, 0, 1, 1, 0, 1, 10 from generate_series(1,
    20000) g on conflict do nothing`,
  `insert into step_activity (tenant_id, sequence_id, at, shard, blocks)
    select ${TENANT}, ${UUID_OF('g % 100')}, ${AT}, 0, '[]' from generate_series(1,
    20000) g on conflict do nothing`,
  `insert into bulk_jobs (id, tenant_id, operation, request, state, matched, applied, skipped,
    failed, created_at, updated_at, ended_at)
    select ${ID}, ${TENANT}, 'state', '{}', 'completed', 0, 0, 0, 0, ${AT}, ${AT},
    case when g % 1000 > 0 then ${AT} end from generate_series(1, 20000) g`,
  `insert into bulk_changes (job_id, instance_id)
    select ${UUID_OF('g % 100')}, ${ID} from generate_series(1, 20000) g`,
  `insert into bulk_retries (job_id, instance_id, retried_at)
    select ${UUID_OF('g % 100')}, ${ID}, ${AT} from generate_series(1, 20000) g`,
  `insert into tenant_limits (tenant_id, limits, set_at)
    select 'tenant-' || g, '{}', ${AT} from generate_series(1, 10000) g`,
  `insert into webhook_outbox (id, url, event_type, instance_id, tenant_id, body, attempts,
    status, next_attempt_at, created_at, subscription_id)
    select ${ID}, 'http://sink-' || g % 10 || '.example', 'instance.failed', ${ID}, ${TENANT},
    '{}', 0, case when g % 7 = 0 then 'parked' else 'pending' end,
    case when g % 7 > 0 then ${AT_SECONDS} end, ${AT_SECONDS},
    case when g % 2 = 0 then ${UUID_OF('g % 1000')} end
    from generate_series(1, ${MANY}) g`,
  `insert into credentials (tenant_id, id, name, kind, value, enabled, created_at, updated_at)
    select 'tenant-' || n % 300, 'secret-' || n, 'n', 'api_key', '{}', true, now(), now()
    from generate_series(1, 20000) n`,
  `insert into triggers (slug, tenant_id, namespace, sequence_name, trigger_type, config,
    event_name, enabled, created_at, updated_at)
    select 'slug-' || n, 'tenant-' || n % 300, 'n', 's-' || n, 'webhook', '{}',
    case when n % 3 = 0 then 'paid-' || n % 500 end, true, now() - n * interval '1 s', now()
    from generate_series(1, 20000) n`,
  `insert into worker_endpoints (tenant_id, name, handlers, url, secret, concurrency, timeout_ms,
    enabled, receives_secrets, created_at, updated_at)
    select 'tenant-' || n % 300, 'e-' || n, '["h"]', 'http://x.example', '{}', 1, 1, true, false,
    now(), now() from generate_series(1, 20000) n`,
  `insert into webhook_subscriptions (id, tenant_id, url, events, secret, created_at, updated_at)
    select ${ID}, 'tenant-' || g % 1000, 'http://sink.example', '[]', '{}', ${AT}, ${AT}
    from generate_series(1, 10000) g`,
  `insert into webhook_deliveries (id, delivery_id, url, event_type, instance_id, attempt_number,
    attempted_at, duration_ms, success, signed, subscription_id)
    select ${ID}, ${UUID_OF('g / 3')}, 'http://sink.example', 'instance.failed', ${ID}, g % 3,
    ${AT}, 5, g % 3 = 2, false, case when g % 2 = 0 then ${UUID_OF('g % 1000')} end`,
  `insert into releases (id, tenant_id, namespace, sequence_name, baseline_sequence_id,
    baseline_version, candidate_sequence_id, candidate_version, state, canary_percent, gates,
    in_flight_policy, created_at, updated_at)
    select ${ID}, ${TENANT}, 'default', 'name-' || g / 50, ${ID}, 1, ${UUID_OF('g + 1')}, 2,
    case g % 500 when 0 then 'canary' when 1 then 'promoted' when 2 then 'validating'
      else (array['draft', 'ready', 'rolled_back', 'failed'])[1 + g % 4] end,
    0, '[]', 'pin', ${AT}, ${AT} from generate_series(1, 10000) g`,
  `insert into release_decisions (id, release_id, from_state, to_state, actor, reason, decided_at)
    select ${ID}, ${UUID_OF('1 + g / 10')}, 'draft', 'ready', 'operator', 'asked for', ${AT}`,
  `insert into release_outcomes (instance_id, release_id, sequence_id, state, created_at)
    select ${ID}, ${UUID_OF('1 + g % 100')}, ${UUID_OF('1 + g % 2')},
    (array['completed', 'failed', 'cancelled'])[1 + g % 3], ${AT}`,
];

async function fill(): Promise<void> {
  // Nothing of this has to survive.
  await client.query('set synchronous_commit = off');
  // All have as many rows but those that say something else.
  const rows = ` from generate_series(1, ${ROWS}) g`;
  const own = FILL.map((text) => (/\bfrom\b/.test(text) ? text : text + rows));
  for (const text of [...own, ...continuityFill(10_000, UUID_OF, AT)]) await client.query(text);
  await client.query('vacuum analyze');
  // A vacuum keeps old versions while it runs: an update then finds no room in its page.
  for (const table of ['instances', 'worker_tasks']) {
    await client.query(`alter table ${table} set (autovacuum_enabled = off)`);
  }
}

// ---------------------------------------------------------------- plans

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Plan Rows': number;
  readonly Plans?: readonly Node[];
}

interface Expectation {
  /**
   * Sorts are refused unless a sentence says why one is needed; it may then sort as many rows as
   * one instance has in `fill`, never a table.
   */
  readonly mayNotAvoidSorting?: string;
  /** Where these are more than those of one instance. */
  readonly sortedRowsMax?: number;
  /** Tables that are read whole on purpose, by an index or not. */
  readonly readsWhole?: readonly string[];
}

const SMALL_TABLES = new Set(
  'workers lanes engine_lease schema_migrations sequence_tombstones'.split(' '),
);
/** The index itself is the condition: only rows that are looked for are in it. */
const PARTIAL_INDEXES = new Set(['timers_recover']);

type Planning = 'custom' | 'generic';

async function planOf({ text, values }: Query, planning: Planning): Promise<Node> {
  await client.query(`set plan_cache_mode = force_${planning}_plan`);
  await client.query(`prepare looked_at as ${text}`);
  try {
    const list = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`;
    const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: Node }[] }>(
      `explain (format json) execute looked_at${list}`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
    assert.ok(plan !== undefined);
    return plan;
  } finally {
    await client.query('deallocate looked_at');
  }
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return pg.escapeLiteral(Array.isArray(value) ? `{${value.join(',')}}` : String(value));
}

/** What is wrong with a plan, one sentence each. */
function problemsOf(node: Node, expected: Expectation, isLimited = false): string[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Cond': condition } = node;
  const problems: string[] = [];
  const isBig = table !== '' && !SMALL_TABLES.has(table) && !expected.readsWhole?.includes(table);
  if (type === 'Seq Scan' && isBig) problems.push(`reads all of ${table}`);
  const isIndexScan = type === 'Index Scan' || type === 'Index Only Scan';
  if (isIndexScan && isBig && condition === undefined && !isLimited) {
    const index = node['Index Name'] ?? '';
    if (!PARTIAL_INDEXES.has(index)) problems.push(`reads all of ${table} by ${index}`);
  }
  if (type === 'Sort' || type === 'Incremental Sort') {
    if (expected.mayNotAvoidSorting === undefined) problems.push(`has a ${type}`);
    // An incremental sort takes rows as its limit asks for them.
    else if (type === 'Sort' && node['Plan Rows'] > (expected.sortedRowsMax ?? 2 * ROWS_OF_BUSY)) {
      problems.push(`sorts ${node['Plan Rows']} rows`);
    }
  }
  const limitsBelow = type === 'Limit' || (isLimited && type !== 'Sort');
  for (const child of node.Plans ?? []) problems.push(...problemsOf(child, expected, limitsBelow));
  return problems;
}

async function assertPlan(
  query: Query,
  expected: Expectation = {},
  plannings: readonly Planning[] = ['custom'],
): Promise<void> {
  for (const planning of plannings) {
    const plan = await planOf(query, planning);
    const problems = problemsOf(plan, expected);
    const shown = JSON.stringify(plan, null, 1);
    assert.deepEqual(problems, [], `${planning} plan of ${query.text}\n${shown}`);
  }
}

// ---------------------------------------------------------------- the statements

describe('what actors load', () => {
  /** A shard, and how many there are. */
  const PLACE = [1, 4];
  const PAIRS = [
    [1, 1, 2, 2],
    [BUSY, BUSY, uuid(700), uuid(700)],
    ['a', 'b', 'a', 'b'],
  ];
  const PARAMETERS: Readonly<Record<keyof typeof LOAD_SQL, readonly unknown[]>> = {
    instances: [SOME_IDS],
    endedInstances: [SOME_IDS, A_TIME],
    outputs: PAIRS,
    allOutputs: [[BUSY, ...SOME_IDS]],
    outputTotals: PAIRS,
    itemOutputs: [
      ...[
        [1, 2],
        [BUSY, BUSY],
        ['""', '""'],
        [1, 1],
      ],
      ...['{"[\\"a\\"]","[\\"a\\",\\"b\\"]"}', '{null,"[3]"}'],
    ],
    outputRows: [BUSY, ['a', 'b']],
    keyedInstances: [SOME_IDS],
    startOfInstance: [SOME_IDS],
    startsOfKey: [SOME_IDS],
    keyOfStart: [uuid(77)],
    creationOfStart: [SOME_IDS],
    itemsOfStart: [SOME_IDS],
    ordersOfStart: [SOME_IDS],
    orderedStarts: [uuid(7), 1_000, ...PLACE],
    lateOrders: [SOME_IDS],
    dueStarts: [A_TIME, uuid(500), '2025-01-01T12:01:00.000Z', 1_000, ...PLACE],
    task: [uuid(77)],
    taskOwners: [SOME_IDS],
    tasksToMove: [uuid(77), 500],
    sequence: [A_SEQUENCE],
    orphanedInstances: [SOME_IDS],
    instanceCounts: [A_SEQUENCE],
    dueTimers: [A_TIME, '2025-01-01T12:01:00.000Z', ...PLACE],
    overdueTimers: [A_TIME, '2025-01-01T12:01:00.000Z', ...PLACE],
    recover: PLACE,
    claimedTasks: PLACE,
    familyMessages: [uuid(0), uuid(0), uuid(9_000), 500, ...PLACE],
    childEnds: [SOME_IDS],
    childOutputs: [SOME_IDS],
    readyTasks: WAITING,
    readyTasksOfTenant: [...WAITING, 'tenant-3'],
    readyTasksOfQueue: [...WAITING, 'queue-3'],
    readyTasksOfTenantQueue: [...WAITING, 'tenant-3', 'queue-3'],
    permitKeys: [uuid(0), 100, ...PLACE],
    permitKeysWithWork: [KEYS],
    permitHolders: [KEYS],
    permitWaiters: [KEYS, 1_000],
    startKeys: [uuid(0), 100, ...PLACE],
    startWaiters: [KEYS, 1_000],
    startGrants: [KEYS, [A_TIME, A_TIME, A_TIME]],
    openEvents: [SOME_IDS],
    eventWaits: [SOME_IDS],
    eventTakes: [SOME_IDS],
    storedEvent: [uuid(77)],
    dueEventKeys: [uuid(0), A_TIME, 100, ...PLACE],
    eventListeners: [
      ['tenant-3', 'tenant-4'],
      ['paid-3', 'paid-4'],
      [uuid(7), uuid(8)],
      [uuid(9), uuid(10)],
    ],
    pendingCancels: [uuid(7), uuid(8), 500, ...PLACE],
    oldestEndedEvent: [],
    rateLimit: [uuid(7)],
    rateGrants: [uuid(7), A_TIME],
    ratePatterns: [['tenant-3', 'tenant-4']],
    allRatePatterns: ['tenant-3', uuid(7), 100],
    grantedLimits: [uuid(7), A_TIME, 100],
    schedules: [SOME_IDS],
    dueSchedules: [A_TIME, uuid(500), '2025-01-01T12:01:00.000Z', 1_000, ...PLACE],
    activeRuns: [SOME_IDS],
    checkpoints: [[BUSY, ...SOME_IDS]],
    newestCheckpoint: [BUSY],
    endedBlocks: [[BUSY, ...SOME_IDS]],
    doubtfulEffect: [BUSY],
    webhookUrls: ['', 100, ...PLACE],
    bulkJob: [uuid(77)],
    openBulkJobs: ['tenant-3'],
    oldBulkJobs: ['tenant-3', A_TIME, 100],
    credentials: [
      ['tenant-3', 'tenant-4'],
      ['stripe', 'mail'],
    ],
    credentialCount: ['tenant-3'],
    endpoints: [['tenant-3']],
    allEndpoints: ['', '', 1_000],
    endpointAt: [5_000],
    trigger: ['slug-77'],
    subscription: [uuid(77)],
    subscriptions: [['tenant-3', 'tenant-4']],
    allSubscriptions: [uuid(7), 100],
    dueWebhooks: ['http://sink-3.example', A_TIME, uuid(43_200), 500, ...PLACE],
    webhook: [uuid(77)],
    oldestAction: [],
    oldestActivity: [],
    oldestRetry: [],
    oldestSteps: [],
    oldestQueueMinutes: [],
    oldestDelivery: [],
    namedSequence: [
      ['tenant-3', 'tenant-3'],
      ['ns', 'ns'],
      ['name-7', 'name-8'],
      [7, 2],
    ],
    leadingReleases: [uuid(77)],
    routingReleases: [],
    release: [uuid(77)],
    routingRelease: [uuid(77)],
    releaseNaming: [uuid(77)],
    openReleases: [],
    releaseOutcomes: [uuid(7), A_TIME, uuid(8), '2024-12-01T00:00:00.000Z', 100],
  };
  const OF_ONE_INSTANCE = {
    mayNotAvoidSorting: 'the rows of one instance, for the latest of each',
  };
  const FEW_LEFT = { mayNotAvoidSorting: 'when fewer tasks are left than a page holds' };
  const EXPECTED: Partial<Record<keyof typeof LOAD_SQL, Expectation>> = {
    instances: { mayNotAvoidSorting: 'the tasks and signals of one instance, in their order' },
    outputs: OF_ONE_INSTANCE,
    namedSequence: { mayNotAvoidSorting: 'the versions of each name' },
    allOutputs: OF_ONE_INSTANCE,
    itemOutputs: OF_ONE_INSTANCE,
    outputRows: { mayNotAvoidSorting: 'the rows of one instance, to copy them in their order' },
    claimedTasks: { readsWhole: ['open_tasks', 'worker_tasks'] },
    childOutputs: { mayNotAvoidSorting: 'the rows of one instance, in their order' },
    permitHolders: { mayNotAvoidSorting: 'the few instances that hold slots of one key' },
    permitWaiters: { mayNotAvoidSorting: 'when fewer instances wait than a page holds' },
    startWaiters: { mayNotAvoidSorting: 'when fewer instances wait than a page holds' },
    startGrants: { mayNotAvoidSorting: 'the rows of one key, with an index that has their order' },
    releaseOutcomes: { mayNotAvoidSorting: 'the runs that a sample lacks, to sum them by state' },
    eventListeners: { mayNotAvoidSorting: 'the triggers that one event fires' },
    rateGrants: { mayNotAvoidSorting: 'the rows of one limit, with an index that has their order' },
    readyTasks: FEW_LEFT,
    readyTasksOfTenant: FEW_LEFT,
    readyTasksOfQueue: FEW_LEFT,
    readyTasksOfTenantQueue: FEW_LEFT,
  };
  for (const name of Object.keys(LOAD_SQL) as (keyof typeof LOAD_SQL)[]) {
    test(`${name} is found by an index`, async () => {
      const query = { text: LOAD_SQL[name], values: PARAMETERS[name] };
      await assertPlan(query, EXPECTED[name], ['custom', 'generic']);
    });
  }
});

describe('what the writer runs', () => {
  before(() => client.query(WRITER_SETTINGS));
  after(() => client.query('reset all'));

  const gated = Object.entries(GATED_STATEMENTS).map(
    ([kind, it]) => [`gated ${kind}`, it] as const,
  );
  const EXPECTED: Partial<Record<string, Expectation>> = {
    'runtime.set': { mayNotAvoidSorting: 'the rows that are handed in, to take the last seen' },
    'taskBefore.move': { mayNotAvoidSorting: 'the ids that are handed in, to lock in one order' },
  };
  for (const [kind, { text }] of [...Object.entries(STATEMENTS), ...gated]) {
    test(`${kind} finds its rows by an index`, async () => {
      await assertPlan({ text, values: ['[]'] }, EXPECTED[kind] ?? {}, ['custom', 'generic']);
    });
  }
});

describe('what the front thread reads', () => {
  const tenant = 'tenant-3';
  const ofTenant = { tenant_id: tenant };
  const ofBusy = { instance_id: BUSY };
  const first = { offset: 0, limit: 100 };
  const page = { ...ofTenant, ...first };
  const deep = { offset: 1_000, limit: 500 };
  const AT_NOON = {
    ...{ created_at: A_TIME, waiting_since: A_TIME, next_fire_at: A_TIME },
    ...{ id: uuid(43_200), instance_id: uuid(43_200) },
  };
  const NAME_7 = { tenant_id: tenant, namespace: 'default', name: 'name-7', version: 3 };
  const behind = <Row>({ cursorAfter }: PageRequest<Row>, row: object) => ({
    cursor: cursorAfter?.(row as Row & object),
  });
  /** The page of a list of a tenant that begins behind a row. */
  const later = <Row>(
    list: (asked: typeof page & { cursor?: string | undefined }) => PageRequest<Row>,
    row: object = AT_NOON,
  ) => list({ ...page, ...behind(list(page), row) });
  const after = { id: uuid(8_003), created_at: '2025-01-01T11:06:55Z' };
  const open = { ...ofTenant, is_open: true } as const;
  const behindNoon = behind(candidateList(open), AT_NOON);
  const asManyAsLookedAt = {
    mayNotAvoidSorting: 'as many as are looked at',
    sortedRowsMax: FAILURES_LOOKED_AT_MAX + 1,
  };
  const ofCause = { ...ofTenant, failure_code: 'x', failure_reason: 'y' };
  const RUNS_MERGED_MAX = VERSIONS_COMPARED_MAX * FAILURES_COMPARED_MAX;
  const asManyRuns = {
    mayNotAvoidSorting: 'as many as are looked at',
    sortedRowsMax: RUNS_LOOKED_AT_MAX,
  };
  // Postgres assumes a hundred members of an object.
  const ofOpenNodes = { ...asManyRuns, sortedRowsMax: 100 * RUNS_LOOKED_AT_MAX };
  const version7 = { id: uuid(7), tenant_id: 'tenant-7', namespace: 'default', name: 'name-7' };
  const ofOneInstance = 'the rows of one instance: an index in their order would slow every step';
  const oneByOne = 'the entries that one audit row packs';
  const sameTime = 'the entries of one millisecond';
  const ofOneName = 'the versions of one name';
  const named7 = { ...ofTenant, namespace: 'default', name: 'name-7' };

  const LISTS: readonly (readonly [
    what: string,
    asked: Query | { readonly query: Query },
    /** Why it sorts, where it does. */
    expected?: string | Expectation,
  ])[] = [
    ...continuityQueries(uuid(9), A_TIME),
    ['instances of a tenant', instanceList(page)],
    ['instances of a tenant, deep', instanceList({ ...ofTenant, ...deep })],
    ['instances of a tenant in a state', instanceList({ ...page, state: ['failed'] })],
    ['instances of a sequence', instanceList({ sequence_id: A_SEQUENCE, ...first })],
    ['instances of a sequence of a tenant', instanceList({ ...page, sequence_id: A_SEQUENCE })],
    [
      'instances of a sequence name of a tenant',
      instanceList({ ...page, sequence_name: 'name-1' }),
      'a name has several versions, each with an order of its own',
    ],
    ['instances of the versions of a name', instanceList({ ...page, sequence_ids: VERSIONS })],
    [
      'instances of the versions of a name in a state, behind a place',
      later((asked) => instanceList({ ...asked, sequence_ids: VERSIONS, state: ['failed'] })),
    ],
    [
      'dead letters of the versions of a name, of which the others are not fetched',
      deadLetterList({ ...page, sequence_ids: VERSIONS, failure_code: 'x' }),
    ],
    [
      'instances of a tenant that were created between two times',
      instanceList({ ...page, created_after: A_TIME, created_before: A_LATER_TIME }),
    ],
    [
      'instances of a tenant that changed or failed somehow, which walks them in their order',
      instanceList({ ...page, updated_after: A_TIME, failure: 'declined' }),
    ],
    ['instances of a tenant behind a place', later(instanceList)],
    [
      'dead letters of a tenant behind a place, up to a time',
      deadLetterList({ ...page, created_after: A_TIME, ...behind(deadLetterList(first), AT_NOON) }),
    ],
    ['events of a tenant', eventList({ ...page, status: 'pending' })],
    ['events of a tenant behind a place', later(eventList)],
    [
      'the instances that a search finds',
      {
        text: searchStatements.foundInstances.text,
        values: [tenant, uuid(8_000), uuid(8_001), SOME_IDS, 'order-1', 'order-1\u{10ffff}', null],
      },
    ],
    [
      'recent instances that a search reads through',
      { text: searchStatements.recentInstances.text, values: [tenant, 'order-1', null] },
    ],
    ['pending starts of a tenant', pendingStartList({ ...page, sequence: 'name-7' })],
    ['pending starts of a tenant behind a place', later(pendingStartList)],
    ['events that have yet to fire', { text: firingEvents.text, values: [A_TIME, uuid(7), 20] }],
    ['signals of an instance', signalList({ ...ofBusy, status: 'kept', ...first })],
    ['instances of deleted sequences', { text: orphans.text, values: [1_000] }],
    ['dead letters of a tenant', deadLetterList(page)],
    ['dead letters of a tenant, deep', deadLetterList({ ...ofTenant, ...deep })],
    ['children of an instance', childList({ parent_instance_id: uuid(500), ...first })],
    ['the first window of a bulk change', candidateList({ ...open, limit: 500 })],
    ['a later window of a bulk change', candidateList({ ...open, ...behindNoon, limit: 500 })],
    [
      'a window of a bulk change of a sequence',
      candidateList({ ...open, sequence_id: A_SEQUENCE, ...behindNoon, limit: 500 }),
      'when fewer are left than a window holds',
    ],
    ['outputs of an instance', outputList(ofBusy), ofOneInstance],
    ['tries of the steps of an instance', attemptList(BUSY, STEPS, TRIES), ofOneInstance],
    [
      'later tries of a block of an instance',
      attemptList(BUSY, STEPS, { ...TRIES, block_id: 'a', cursor: placeOfTry() }),
      ofOneInstance,
    ],
    ['instances by their ids', instanceList({ ...page, ids: SOME_IDS }), 'as many as are named'],
    [
      'children of an instance by a filter',
      instanceList({ parent_instance_id: uuid(500), state: ['failed'], ...first }),
    ],
    ['entries of a timeline', entryList({ ...ofBusy, ...first }), ofOneInstance],
    ['the first window of an action', candidateList({ ...ofTenant, limit: 500 })],
    ['a later window of an action', candidateList({ ...ofTenant, ...behindNoon, limit: 500 })],
    [
      'a window of a retry',
      candidateList({ ...ofTenant, state: ['failed'], ...behindNoon, limit: 500 }),
    ],
    ['jobs of a tenant', bulkJobList(page)],
    ['a job and what it has changed', { text: bulkJobStanding.text, values: [uuid(77)] }],
    [
      'the oldest open job of each tenant',
      { text: openBulkJobs.text, values: [A_TIME, 1_000] },
      'the few open jobs',
    ],
    ['the next resting job', { text: restingBulkJobs.text, values: [A_TIME] }],
    ['what a job has retried', { text: retryOutcome.text, values: [uuid(77)] }, 'the few states'],
    ['all outputs of an instance, for a stream', outputsAfter(BUSY, undefined), ofOneInstance],
    ['the later outputs of an instance, for a stream', outputsAfter(BUSY, after), ofOneInstance],
    ['checkpoints of an instance', checkpointList({ ...ofBusy, limit: 100 })],
    [
      'lines that the steps of an instance logged',
      lineList({ instance_id: uuid(10_000), ...first }),
      'the lines of one instance: workers say from when they are',
    ],
    [
      'the newest log lines of a tenant',
      tenantLogQuery({ tenant: 'tenant-1', limit: 100 }),
      { mayNotAvoidSorting: 'the lines of the rows that are read', sortedRowsMax: 100_000 },
    ],
    ['instances of a tenant by state', countsQuery(ofTenant)],
    [
      'instances of a sequence by state',
      countsQuery({ sequence_id: A_SEQUENCE }),
      asManyAsLookedAt,
    ],
    [
      'instances of the versions of a name by state',
      countsQuery({ ...ofTenant, sequence_ids: VERSIONS }),
      asManyAsLookedAt,
    ],
    ['rate limits of a tenant', rateLimitList(ofTenant), 'the limits of one tenant'],
    ['the audit of an instance', auditList(BUSY, { limit: 200 }), oneByOne],
    ['the transitions of an instance', transitionList(BUSY), oneByOne],
    ['changes from the start', changesQuery('tenant-1', FEED_START, END_OF_ROWS, 501), sameTime],
    [
      'changes of a tenant behind a place',
      changesQuery('tenant-1', { at: Date.parse(A_TIME), id: uuid(7) }, END_OF_ROWS, 101),
      sameTime,
    ],
    ['instances that a page of changes walks past', windowQuery(tenant, 0, END_OF_ROWS)],
    ['approvals of a tenant', approvalList(page)],
    ['approvals of all tenants', approvalList(first)],
    ['approvals of a tenant behind a place', later(approvalList)],
    ['approvals in a namespace, which walks all', approvalList({ ...page, namespace: 'other' })],
    ['how many approvals a tenant has', approvalCountQuery(ofTenant)],
    [
      'approvals of some approvers, each a stretch of the index',
      approvalList({ ...page, approvers: ['finance', 'legal'] }),
    ],
    [
      'how many approvals some approvers have',
      approvalCountQuery({ ...ofTenant, approvers: ['finance', 'legal'] }),
    ],
    [
      'what an instance asks',
      { text: promptsOf.text, values: [uuid(9), 100] },
      'what one instance asks at once',
    ],
    ['the outbox', outboxList({ limit: 100 })],
    ['deliveries', deliveryList({ limit: 100 })],
    [
      'deliveries of a subscription that failed, which walks them in their order',
      deliveryList({ limit: 100, subscription_id: uuid(2), delivered: false }),
      'the few deliveries of one subscription',
    ],
    [
      'deliveries that failed at an address',
      deliveryList({ limit: 100, url: 'http://sink.example', delivered: false }),
    ],
    ['tasks of a tenant', taskList({ ...ofTenant, offset: 0, limit: 50 })],
    ['open tasks of a tenant', taskList({ ...page, state: ['pending', 'claimed'], limit: 50 })],
    [
      'open tasks of a tenant by handler, which walks them in their order',
      taskList({ ...page, state: ['pending'], handler_name: 'h' }),
    ],
    ['tasks of a tenant behind a place', later(taskList)],
    ['definitions of a tenant behind a place', later(sequenceList, NAME_7), ofOneName],
    ['tasks that a worker has had, which walks all', taskList({ ...page, worker_id: 'w-3' })],
    ['tasks by handler and state', taskList({ ...page, handler_name: 'h', state: ['failed'] })],
    ['tasks of a tenant, deep', taskList({ ...ofTenant, ...deep })],
    ['keys of a tenant', keyList(page, () => undefined)],
    ['schedules of a tenant', scheduleList(page)],
    ['what fires next of a tenant', nextScheduleList(page)],
    ['what fires next of all tenants', nextScheduleList(first)],
    ['what fires next of a tenant behind a place', later(nextScheduleList)],
    ['failures of a tenant', failuresQuery(ofTenant, Date.parse(A_TIME)), asManyAsLookedAt],
    [
      'those of a name',
      failuresQuery({ ...ofTenant, sequence_name: 'n' }, Date.parse(A_TIME)),
      asManyAsLookedAt,
    ],
    [
      'failures of a period',
      failuresQuery({ ...ofTenant, failed_after: A_TIME }, Date.parse(A_LATER_TIME)),
      // The tenant has hardly more of them.
      { ...asManyAsLookedAt, sortedRowsMax: 1.5 * FAILURES_LOOKED_AT_MAX },
    ],
    ['instances that failed of one cause', failedOfCauseQuery(ofCause), asManyAsLookedAt],
    [
      'runs that they are compared with',
      runsOfNamesQuery([[tenant], ['default'], ['name-7']], ['block-1'], A_TIME),
      { mayNotAvoidSorting: 'the newest of each version', sortedRowsMax: RUNS_MERGED_MAX },
    ],
    ['the actions of a tenant', actionList(page).query],
    ['the actions of all tenants', actionList({ ...page, tenant_id: undefined }).query],
    ['the actions of a key', actionList({ ...page, by: 'key-3', since: A_TIME }).query],
    ['the actions of a kind', actionList({ ...page, kind: 'kind-4' }).query],
    ['the actions about an object', actionList({ ...page, target: uuid(77) }).query],
    ['the activity of a tenant', minutesQuery('tenant-3', Date.parse(A_TIME))],
    ['the activity of all tenants', minutesQuery(undefined, Date.parse(A_TIME))],
    [
      'the minutes of a queue',
      queueMinutesQuery({ tenant_id: 'tenant-7', handler_name: 'h-1' }, '', Date.parse(A_TIME)),
    ],
    ['the steps of a version', stepsQuery(version7, Date.parse(A_TIME), false)],
    [
      'the steps of all versions of a name',
      stepsQuery(version7, Date.parse(A_TIME), true),
      'the intervals of a few versions',
    ],
    ['what the newest instances of a version are at', openNodesQuery(A_SEQUENCE), ofOpenNodes],
    [
      'the slowest of the newest instances of a version',
      slowestQuery(A_SEQUENCE, undefined, 20, Date.parse(A_TIME)),
      asManyRuns,
    ],
    [
      'the slowest of them at a block',
      slowestQuery(A_SEQUENCE, [3, 4], 20, Date.parse(A_TIME)),
      asManyRuns,
    ],
    [
      'what ended of a release over time',
      outcomesQuery(uuid(7), Date.parse(A_TIME), 60),
      'as many as are looked at',
    ],
    [
      'audit of an instance behind a place',
      auditList(BUSY, {
        limit: 200,
        ...behind(auditList(BUSY, { limit: 1 }), { seq: 5, place: 1 }),
      }),
      oneByOne,
    ],
    [
      'effects of an instance behind a place',
      effectsOfInstance(BUSY, {
        limit: 100,
        ...behind(effectList(effectsOfInstance(BUSY, {})), AT_NOON),
      }),
      ofOneInstance,
    ],
    ['releases of a tenant', releaseList({ ...ofTenant, limit: 100 })],
    ['releases of all tenants', releaseList({ limit: 1_000 })],
    ['canaries of a tenant', releaseList({ ...ofTenant, state: 'canary', limit: 100 })],
    ['decisions about a release', decisionList({ release_id: uuid(7) })],
    ['what a run left', { text: storedRun.text, values: [BUSY] }, 'the rows of one instance'],
    ['sequences of a tenant', sequenceList(page)],
    ['sequences of all tenants', sequenceList(first)],
    [
      'the newest versions',
      sequenceList({ ...page, newest_only: true, include_definition: false }),
    ],
    ['sequences of a tenant by name', sequenceList({ ...page, name: 'name-7' }), ofOneName],
    ['sequences of a tenant by a part of it', sequenceList({ ...page, name_contains: 'NAME-7' })],
    ['the newest version of a name', versionList({ ...named7, limit: 1 })],
    ['versions of a name', versionList(named7), ofOneName],
  ];
  for (const [what, asked, expected] of LISTS) {
    const query = 'query' in asked ? asked.query : asked;
    const sorting = typeof expected === 'string' ? { mayNotAvoidSorting: expected } : expected;
    test(`${what}: found by an index, in its order`, () => assertPlan(query, sorting));
  }

  const named = [tenant, 'default', 'name-7'];
  const LOOKUPS: readonly (readonly [what: string, query: Query])[] = [
    ['the tenant of an instance', { text: instanceTenant.text, values: [BUSY] }],
    ['a webhook', { text: webhookById.text, values: [uuid(9)] }],
    ['the tenant of a webhook', { text: webhookTenant.text, values: [uuid(9)] }],
    ['the attempts of a delivery', { text: deliveryAttempts.text, values: [uuid(9)] }],
    ['an instance', { text: instanceById.text, values: [BUSY] }],
    ['the blocks of an instance', { text: instanceBlocks.text, values: [BUSY] }],
    ['the history of a task', { text: taskHistory.text, values: [uuid(9)] }],
    ['what gauges show', { text: metricSample.text, values: [A_TIME] }],
    ['the tenants', { text: TENANTS_TEXT, values: ['', 100] }],
    ['limits of tenants', { text: tenantLimitRows.text, values: ['t', 5_000] }],
    ['schedules of a tenant', { text: scheduleCount.text, values: ['t', 10_000] }],
    ['instances by their ids', { text: instancesThere.text, values: [[A_SEQUENCE], 't'] }],
    ['open tasks of a tenant', { text: openTaskCount.text, values: ['t', 10_000] }],
    ['live keys', { text: liveKeys.text, values: ['ak_5', 5_000] }],
    ['a key', { text: keyState.text, values: ['ak_5'] }],
    ['an approval', { text: approvalById.text, values: [uuid(9)] }],
    ['the approvers of a tenant', { text: openApprovers.text, values: ['tenant-1'] }],
    ['a schedule', { text: scheduleById.text, values: [uuid(9)] }],
    ['a release', { text: releaseById.text, values: [uuid(9)] }],
    ['the start of an instance', { text: storedStart.text, values: [uuid(9)] }],
    ['ended runs of a sequence', { text: sampledRuns.text, values: [A_SEQUENCE, tenant, 50] }],
    ['a sequence', { text: SEQUENCE_LOOKUPS.byId.text, values: [A_SEQUENCE] }],
    ['a sequence in brief', { text: SEQUENCE_LOOKUPS.brief.text, values: [A_SEQUENCE] }],
    ['one version of a name', { text: SEQUENCE_LOOKUPS.version.text, values: [...named, 3] }],
  ];
  for (const [what, query] of LOOKUPS) {
    test(`${what}: found by a key`, () => assertPlan(query, {}, ['custom', 'generic']));
  }
});

// ---------------------------------------------------------------- updates

describe('updates stay heap-only', () => {
  type Updates = { readonly all: number; readonly hot: number };

  async function updatesOf(table: string): Promise<Updates> {
    await client.query('select pg_stat_force_next_flush()');
    const { rows } = await client.query<Updates>(
      'select n_tup_upd::integer as all, n_tup_hot_upd::integer as hot ' +
        'from pg_stat_user_tables where relname = $1',
      [table],
    );
    assert.ok(rows[0] !== undefined);
    return rows[0];
  }

  /** Rows of one test are so far apart that each page has room for the one new row it gets. */
  const APART = 50;

  /**
   * Updates each of many rows once, to one of several forms. Once, because a second new row may
   * need the room of the first: that depends on what else reads the database at that moment, which
   * is not what this is about.
   *
   * @param first The number of the first row; tests of one table take rows of their own.
   */
  async function assertHot(
    table: string,
    first: number,
    text: string,
    rowOf: (number: number, form: number) => object,
  ): Promise<void> {
    const before = await updatesOf(table);
    const rows = Array.from({ length: ROWS / APART }, (_, at) => rowOf(first + at * APART, at % 5));
    await client.query(text, [JSON.stringify(rows)]);
    const { all, hot } = await updatesOf(table);
    assert.deepEqual([all - before.all, hot - before.hot], [rows.length, rows.length]);
  }

  const instance = (number: number) => ({
    id: uuid(number),
    state: 'running',
    runtime: {},
    execution: {},
    signal_count: 0,
    audit_count: number,
    updated_at: A_TIME,
  });
  const times = { claimed_at: A_TIME, heartbeat_at: A_TIME };
  const claim = { worker_id: 'worker-1', lost_claims: 0, ...times };

  test('of instances', () =>
    assertHot('instances', 1, STATEMENTS['instance.update']!.text, (number, form) => ({
      ...instance(number),
      state: form % 2 === 0 ? 'running' : 'waiting',
      next_fire_at: form % 2 === 0 ? A_TIME : null,
      runtime: { attempt: form, current_step: 'a' },
      execution: { n: { 0: { b: form, p: 'task' } } },
      signal_count: form,
    })));

  test('of contexts', () =>
    assertHot('instances', 1 + APART / 2, STATEMENTS['instance.change']!.text, (number, form) => ({
      ...instance(number),
      data: { order: { id: form, lines: [1, 2, 3] } },
    })));

  test('of patches', () =>
    assertHot(
      'instances',
      1 + Math.floor(APART / 4),
      STATEMENTS['instance.patch']!.text,
      (number, form) => ({
        ...instance(number),
        data_patch: { order: { id: form, lines: [1, 2, 3] } },
      }),
    ));

  test('of claims', () =>
    // Every third task is open.
    assertHot('worker_tasks', 4, STATEMENTS['task.claim']!.text, (number, form) => ({
      ...claim,
      id: uuid(number - (number % 3)),
      state: 'claimed',
      claim_epoch: form,
      checkpoint_seq: form,
    })));
});

describe('where one sequence has everything', () => {
  const [tenant_id, limit] = ['tenant-1', 50];
  const LISTS: readonly (readonly [string, Query])[] = [
    ['the instances', instanceList({ tenant_id, limit }).query],
    ['those of the sequence', instanceList({ sequence_id: A_SEQUENCE, limit }).query],
    ['the failed ones', deadLetterList({ tenant_id, limit }).query],
  ];

  before(async () => {
    await client.query('begin');
    const changed = `set sequence_id = '${A_SEQUENCE}', tenant_id = 'tenant-1'`;
    await client.query(`update instances ${changed}`);
    await client.query('analyze instances');
  });

  after(() => client.query('rollback'));

  for (const [what, query] of LISTS) {
    test(`a page of ${what} is read from an index`, () => assertPlan(query));
  }
});
