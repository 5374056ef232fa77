/** The tables with the owner of their rows and what they hold (docs/architecture.md). */

import { STORE } from '../../actors/shard/store.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

type Row = readonly [tables: string, owner: string, holds: string];

const INSTANCE = 'the instance';
const EXECUTION = 'the execution service';
const FIRST = (actor: string) => `${actor} of the first shard`;

const ROWS: readonly Row[] = [
  ['instances', INSTANCE, 'no index has a changing column, so that updates stay heap-only'],
  ['timers', INSTANCE, 'one narrow row for each instance with something to do at a known time'],
  [
    'worker_tasks',
    INSTANCE,
    'one row of a task from its creation to its end, with a packed history; while it is open it has a rank, and is in ' +
      'a partial index for each kind of poll and the list; a claim changes no indexed column',
  ],
  [
    'worker_tasks_before open_tasks',
    INSTANCE,
    'tasks from before migration 0040, moved to `worker_tasks` before they change, or in the background',
  ],
  [
    'dead_letters',
    INSTANCE,
    'failed instances, newest first, with the columns that group failures',
  ],
  [
    'checkpoints step_logs injected_blocks',
    INSTANCE,
    'what callers and steps store with an instance',
  ],
  [
    'block_outputs signals audit_log iteration_snapshots',
    INSTANCE,
    'append-only; audit entries are packed by unit, and those of the creation are in `instances.creation_audit`; the outputs of the unit that completes an instance are in `instances.end_outputs`',
  ],
  [
    'event_waits event_takes',
    INSTANCE,
    'steps that wait for events, and the events that they took',
  ],
  [
    'search_terms',
    INSTANCE,
    'the values by which an instance is found, where its sequence has searchable members',
  ],
  ['cancel_waits', INSTANCE, 'the events that cancel live instances'],
  [
    'event_cancels',
    'the event key, then the instance',
    'instances that events cancel: inserted with the event, completed by the instance',
  ],
  [
    'collected_waits',
    'the key of collected creations',
    'the events that take out creations that are still collected',
  ],
  [
    'collected_cancels',
    'the event key, then the key of collected creations',
    'orders to take such creations out: inserted with the event, removed by the unit that carries them out',
  ],
  ['events', 'the event key', 'events with their targets, and the triggers yet to fire'],
  ['approvals', INSTANCE, 'gates, open and closed; partial indexes serve the list of open ones'],
  [
    'kin_notes',
    'the sender, then the receiver',
    'messages between parents and children until they are taken',
  ],
  [
    'permit_requests',
    INSTANCE,
    'requests for slots of concurrency keys, in the order of admission; `has_slot`: the creation took the slot',
  ],
  ['permits', 'the concurrency key', 'slots of instances that waited'],
  ['start_requests', INSTANCE, 'instances that a throttle puts off, in the order of their starts'],
  ['start_grants', 'the throttle', 'starts in its window'],
  [
    'rate_limits rate_grants',
    'the rate limit',
    'limits, and the grants in their windows; patterns: RatePatternRows of the first shard, replicated to every shard',
  ],
  [
    'pending_starts collected_items',
    'the key of collected creations',
    'instances that are yet to start, with the creations of their sequence; removed by the unit that starts them',
  ],
  [
    'instance_keys',
    'the key of collected creations, then the instance',
    'idempotency keys of collected creations; removed with their instance',
  ],
  ['cron_schedules', 'the schedule', 'schedules with the next or current fire'],
  ['sequences', FIRST('Catalog'), 'immutable definitions'],
  [
    'sequence_tombstones',
    FIRST('Catalog'),
    'deleted sequences whose instances are still being removed',
  ],
  [
    'releases release_decisions',
    FIRST('Releases'),
    'the state of a release, and each change of it; decisions are never updated',
  ],
  [
    'release_outcomes',
    INSTANCE,
    'the ends of instances that a release routed, by which gates are judged',
  ],
  [
    'effect_receipts effect_resolutions',
    INSTANCE,
    'receipts whose facts are in no other table, and how unknown effects were resolved',
  ],
  [
    'continuity_executions',
    EXECUTION,
    'the owner and epoch of an execution; its version guards each unit about it',
  ],
  [
    'continuity_locations provenance_entries placement_decisions handoffs migrations capsule_imports artifacts',
    EXECUTION,
    'decisions about the execution, and the sealed capsules',
  ],
  [
    'runtimes',
    'any shard',
    'the last report of each runtime; the statement keeps the later of two',
  ],
  [
    'api_keys',
    FIRST('keyOperations'),
    'keys of tenants, by the hash of the secret; revoked ones stay',
  ],
  [
    'tenant_limits',
    FIRST('tenantLimitOperations'),
    'limits of tenants; the front thread has all of them in memory',
  ],
  ['bulk_jobs', FIRST('BulkJobs'), 'changes of many instances, in the request or after its answer'],
  [
    'bulk_changes',
    'the instance, then BulkJobs',
    'instances that a job has changed and not yet counted',
  ],
  [
    'bulk_retries',
    'the instance, then BulkJobs',
    'instances that a job has retried, of the last seven days; their states are its outcome',
  ],
  ['credentials', FIRST('Credentials'), 'sealed credentials of steps, read for each call'],
  ['triggers', FIRST('Triggers'), 'triggers, read for each fire and each event'],
  ['webhook_outbox', 'the instance, then Webhooks', 'one row for each undelivered webhook'],
  [
    'webhook_subscriptions',
    FIRST('Subscriptions'),
    'subscriptions; every shard has all of them in memory',
  ],
  [
    'worker_endpoints',
    FIRST('Endpoints'),
    'worker endpoints; each is in the memory of the shard that serves it',
  ],
  ['webhook_deliveries', 'Webhooks', 'delivery attempts of the last seven days'],
  [
    'activity',
    'each shard',
    'created and ended instances by tenant and minute, of the last seven days',
  ],
  [
    'queue_minutes',
    'each shard',
    'tasks that came, were taken and ended by queue and minute, of the last seven days',
  ],
  [
    'step_activity',
    'each shard',
    'ended blocks by version and five minutes, of the last seven days',
  ],
  [
    'actions',
    'the owner of what a request changes',
    'what requests of people and keys have changed; never updated',
  ],
  ['workers', 'the queues', 'when each worker was last seen, written at most every 15 s'],
  [
    'change_mark',
    'the first shard',
    'one row: the time before which the change feed may have been read',
  ],
  ['lanes engine_lease schema_migrations', 'lease, migration', 'ownership'],
  ['tenant_moves', 'the command, then the owner', 'tenants that leave, arrive or have left'],
  [
    'lane_flushes',
    'writer',
    'the last 1,000 to 2,000 committed flushes of each lane, never updated',
  ],
];

/** @throws Error for a table without a row */
export function tableRegions(): Regions {
  const named = ROWS.flatMap(([tables]) => tables.split(' '));
  const missing = Object.keys(STORE.tables).filter((name) => !named.includes(name));
  if (missing.length > 0) throw new Error(`nothing says who owns ${missing.join(', ')}`);
  const rows = ROWS.map(([tables, owner, holds]) => [
    tables.split(' ').map(code).join(', '),
    owner,
    holds,
  ]);
  return { tables: table(['table', 'owner', 'holds'], rows) };
}
