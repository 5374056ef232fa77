/** Rows as the loader reads them: JSON columns as text, timestamps as RFC 3339. */

import type { CronSchedule } from '../../schema/cron.js';
import type { ReleaseState, Variant } from '../../schema/release-states.js';
import type { InstanceState, TaskState } from '../../schema/states.js';
import type { JsonValue } from '../../src/base/json.js';
import type { UnixMs } from '../../src/base/time.js';
import type { StoredSecret } from '../../src/core/stored-secret.js';
import type { WebhookEvent } from '../../src/core/webhook.js';
import { columnsBut, type StoredRow } from '../../src/db/tables.js';

/** What is read of an instance that comes to life. */
export const INSTANCE_COLUMNS = columnsBut(
  'instances',
  'creation_audit',
  'creation_data',
  'cron_schedule_id',
  'failure',
);
export const TASK_COLUMNS = columnsBut('worker_tasks', 'ownership_epoch');
/** Of an output as it is shown. */
export const OUTPUT_COLUMNS = columnsBut('block_outputs', 'try', 'effect');
export const WEBHOOK_COLUMNS = columnsBut('webhook_outbox');

export interface InstanceRow
  extends Omit<
    StoredRow<'instances', (typeof INSTANCE_COLUMNS)[number]>,
    'state' | 'release_variant'
  > {
  readonly state: InstanceState;
  readonly release_variant: Variant | null;
  readonly injected: string | null;
}

export interface WorkerTaskRow
  extends Omit<StoredRow<'worker_tasks', (typeof TASK_COLUMNS)[number]>, 'state'> {
  readonly state: TaskState;
}

/** Whom a tenant wants to be told of which events. */
export interface Subscription
  extends Omit<StoredRow<'webhook_subscriptions'>, 'events' | 'secret'> {
  readonly events: readonly WebhookEvent[];
  readonly secret: StoredSecret;
}

export type TriggerRow = StoredRow<'triggers'>;

/** A trigger that is fired by events with some name. */
export type EventTriggerRow = StoredRow<'triggers', 'slug' | 'config'>;

export type BulkJobRow = StoredRow<'bulk_jobs'>;

export type CredentialRow = StoredRow<'credentials'>;

/** Where a webhook goes; null: to an address of the deployment. */
export interface WebhookTarget {
  readonly url: string;
  readonly subscription: string | null;
}

export type SubscriptionRow = StoredRow<'webhook_subscriptions'>;

export function subscriptionOf({ events, secret, ...row }: SubscriptionRow): Subscription {
  return {
    ...row,
    events: JSON.parse(events) as WebhookEvent[],
    secret: JSON.parse(secret) as StoredSecret,
  };
}

export interface WebhookRow extends Omit<StoredRow<'webhook_outbox'>, 'event_type' | 'status'> {
  readonly event_type: WebhookEvent;
  readonly status: 'pending' | 'in_flight' | 'parked';
}

/** The row of the instance in `timers`, as last written; undefined when there is none. */
export interface StoredTimer {
  readonly fireAt: UnixMs | null;
  readonly recover: boolean;
}

export interface LoadedInstance {
  readonly row: InstanceRow;
  readonly timer: StoredTimer | undefined;
  readonly tasks: readonly WorkerTaskRow[];
  readonly snapshots: ReadonlyMap<string, JsonValue[]>;
  /** Those that are kept for a wait, oldest first. */
  readonly signals: readonly KeptSignalRow[];
}

export type KeptSignalRow = StoredRow<
  'signals',
  'seq' | 'id' | 'signal_type' | 'payload' | 'sent_by'
>;

/** Which outputs of a run of a for_each are asked for. */
export interface ItemsAsk {
  readonly instance: string;
  /** How the iterations of its items begin, and at which place these count the items, from 1. */
  readonly prefix: string;
  readonly depth: number;
  readonly blocks: readonly string[];
  /** Null: the last output of each item, by whichever of the blocks; else the last of each of them. */
  readonly items: readonly number[] | null;
}

export interface ItemOutputRow
  extends StoredRow<'block_outputs', 'block_id' | 'iteration' | 'output' | 'output_ref'> {
  readonly item: number;
  /** False: there is more than is collected, and no other row. */
  readonly fits: boolean;
}

export type SequenceRow = StoredRow<
  'sequences',
  'id' | 'tenant_id' | 'namespace' | 'name' | 'version' | 'deprecated' | 'definition'
>;

/** Where a name leads: to the sequence with this id; null: to none while its versions are on hold. */
export type NamedId = string | null | undefined;

/** A sequence as callers name it. */
export interface SequenceName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** Null: the version that new executions get (docs/releases.md). */
  readonly version: number | null;
}

/** Of one sequence. */
export interface InstanceCounts {
  readonly live: number;
  readonly failed: number;
  /** Completed or cancelled. */
  readonly ended: number;
}

/** A row of `block_outputs` as it can be copied. */
export type StoredOutput = StoredRow<
  'block_outputs',
  'block_id' | 'iteration' | 'attempt' | 'try' | 'output' | 'output_ref' | 'output_size'
>;

export type ListedOutput = StoredRow<'block_outputs', (typeof OUTPUT_COLUMNS)[number]>;

/** Who holds a slot of a concurrency key, by the table of slots. */
export interface PermitHolderRow extends StoredRow<'permits', 'instance_id' | 'number'> {
  /** The number of the instance's present wish; null when it has none any more. */
  readonly wanted: number | null;
  /** The instance waits for it: it may not have heard that it has it. */
  readonly is_awaited: boolean;
  /** Of the instance; null when its row is gone. */
  readonly tenant_id: string | null;
}

export type KinNoteRow = StoredRow<'kin_notes'>;

/** What an instance came to, and how many outputs it has. */
export interface ChildEndRow {
  readonly state: InstanceState;
  /** JSON text. */
  readonly failure: string | null;
  /** Each time that it fails has its own. */
  readonly failed_at: string | null;
  /** Failed, and a retry has something to clean up. */
  readonly owes: boolean;
  readonly rows: number;
  readonly bytes: number;
}

export interface PermitWaiterRow
  extends StoredRow<
    'permit_requests',
    'instance_id' | 'number' | 'max_concurrency' | 'created_at'
  > {
  /** Of the instance; null when its row is gone. */
  readonly tenant_id: string | null;
}

/** An event that waits for a wait, or has been told to some that have not answered. */
export type EventRow = StoredRow<
  'events',
  'id' | 'tenant_id' | 'seq' | 'payload' | 'status' | 'matched' | 'targets' | 'expires_at'
>;

export type EventWaitRow = StoredRow<'event_waits', 'id' | 'instance_id'>;

export type EventTakeRow = StoredRow<'event_takes', 'event_id' | 'wait_id'> & {
  readonly outcome: 'taken' | 'refused';
};

export type RateLimitRow = StoredRow<
  'rate_limits',
  'tenant_id' | 'limit_key' | 'max_count' | 'window_seconds' | 'updated_at'
>;

export type RateGrantRow = StoredRow<'rate_grants', 'granted_at' | 'count'>;

/** A row of `cron_schedules`. */
export type ScheduleRow = Omit<CronSchedule, 'metadata' | 'context'> & {
  readonly metadata: string;
  readonly context: string;
};

export function scheduleOf({ metadata, context, ...row }: ScheduleRow): CronSchedule {
  return {
    ...row,
    metadata: JSON.parse(metadata) as CronSchedule['metadata'],
    context: JSON.parse(context) as CronSchedule['context'],
  };
}

/** An instance with something to do. */
export interface DueTimer {
  readonly instance: string;
  readonly rank: number;
  /** Whose it is; '': nobody says so. */
  readonly tenant: string;
}

/** When an enabled schedule fires. */
export interface DueSchedule {
  readonly id: string;
  readonly next_fire_at: string;
}

export type OpenTaskRow = StoredRow<
  'open_tasks',
  'task_id' | 'instance_id' | 'tenant_id' | 'queue_name' | 'rank' | 'created_at'
>;

/** Which waiting tasks a poll may get. */
export interface PollScope {
  readonly handler: string;
  /** '' for all. */
  readonly tenant: string;
  /** '' for any, and for tasks that name none. */
  readonly queue: string;
}

/** A place in the order in which tasks are offered: by priority, then by age. */
export interface TaskPlace {
  readonly rank: number;
  readonly createdAt: UnixMs;
  readonly id: string;
}

/** A release by its state alone. */
export interface ReleaseStateRow {
  readonly id: string;
  readonly state: ReleaseState;
}

export interface OpenReleaseRow extends ReleaseStateRow {
  /** Of its candidate. */
  readonly is_deprecated: boolean;
}
