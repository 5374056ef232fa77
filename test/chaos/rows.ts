/**
 * What a chaos run left in the database, read with plain SELECTs: one list per table, reduced to
 * the columns that the invariants speak about. A run has a tenant of its own.
 */

import type pg from 'pg';
import { TASKS as ALL_TASKS } from '../../actors/instance/old-tables.js';
import { OUTPUT_ROWS } from '../../actors/instance/output-tables.js';
import { entryOf } from '../helpers/entry.js';
import { LIMITED_BLOCK, RATE_LIMIT, SERVED_HANDLERS } from './shapes.js';

export interface InstanceRow {
  readonly id: string;
  readonly state: string;
  readonly failure_code: string | null;
  readonly token: string | null;
  /** Of its concurrency key, if it has one. */
  readonly limit_key: string | null;
  readonly limit: number | null;
  readonly patch: number | null;
  readonly note: number | null;
  readonly signal_count: number;
  readonly audit_count: number;
  readonly has_timer: boolean;
  readonly has_event_wait: boolean;
  readonly has_dead_letter: boolean;
}

export interface OutputRow {
  readonly instance_id: string;
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
  /** Null for a real output, a tag for bookkeeping such as `__error__`. */
  readonly output_ref: string | null;
  readonly output: unknown;
}

/** What a worker, an endpoint or a provider put in an output, by which it is recognised. */
export const markOf = ({ output }: Pick<OutputRow, 'output'>): unknown =>
  (output as { readonly mark?: unknown } | null)?.mark;

export interface TaskRow {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly attempt: number;
  readonly state: string;
  readonly withdrawn: boolean;
  readonly worker_id: string | null;
  readonly has_heartbeat: boolean;
  readonly claim_epoch: number;
  readonly checkpoint_seq: number;
  /** It stands in the table that queues are rebuilt from. */
  readonly is_open: boolean;
}

export interface SignalRow {
  readonly id: string;
  readonly instance_id: string;
  readonly seq: number;
  readonly signal_type: string;
  readonly status: string | null;
  readonly taken_by: string | null;
}

export interface KeyRow {
  readonly key: string;
  /** The instance that it stands for. */
  readonly id: string;
}

export interface EventRow {
  readonly id: string;
  readonly producer_event_id: string;
  readonly correlation_key: string | null;
  readonly takes: number;
}

/** A creation of a batch, by the instance that starts from it. */
export interface CollectedRow {
  readonly start: string;
  readonly token: string;
}

export interface AuditRow {
  readonly instance_id: string;
  readonly seq: number;
  /** Unix time in ms, with fractions. */
  readonly created_ms: number;
}

export interface Rows {
  readonly instances: readonly InstanceRow[];
  readonly outputs: readonly OutputRow[];
  readonly tasks: readonly TaskRow[];
  /** In the order of `seq` for each instance, as are the audit rows. */
  readonly signals: readonly SignalRow[];
  readonly audit: readonly AuditRow[];
  readonly keys: readonly KeyRow[];
  readonly events: readonly EventRow[];
  readonly collected: readonly CollectedRow[];
  /** Rows of other tables whose instance does not exist. */
  readonly orphans: readonly string[];
  /** Sentences about rates that were exceeded, and requests and waits of instances that have ended. */
  readonly breaches: readonly string[];
}

const INSTANCES = `
  select i.id, i.state, i.failure->>'code' as failure_code, i.metadata->>'token' as token,
         i.concurrency_key as limit_key, i.max_concurrency as limit,
         coalesce(i.data_patch->>'patch', i.data->>'patch')::int as patch,
         coalesce(i.data_patch->>'note', i.data->>'note')::int as note,
         i.signal_count, i.audit_count,
         t.instance_id is not null as has_timer, d.instance_id is not null as has_dead_letter,
         exists (select from event_waits w where w.instance_id = i.id) as has_event_wait
    from instances i
    left join timers t on t.instance_id = i.id
    left join dead_letters d on d.instance_id = i.id
   where i.tenant_id = $1::text`;

const OUTPUTS = `
  select o.instance_id, o.block_id, o.iteration, o.attempt, o.output_ref, o.output
    from ${OUTPUT_ROWS} o join instances i on i.id = o.instance_id
   where i.tenant_id = $1::text`;

const TASKS = `
  select t.id, t.instance_id, t.block_id, t.attempt, t.state, t.withdrawn, t.worker_id,
         t.heartbeat_at is not null as has_heartbeat, t.claim_epoch, t.checkpoint_seq,
         t.rank is not null as is_open
    from ${ALL_TASKS} t
   where t.tenant_id = $1::text`;

const SIGNALS = `
  select s.id, s.instance_id, s.seq, s.signal_type, s.status, s.taken_by
    from signals s join instances i on i.id = s.instance_id
   where i.tenant_id = $1::text order by s.instance_id, s.seq`;

const AUDIT = `
  select instance_id, seq, (extract(epoch from created_at) * 1000)::float8 as created_ms
    from audit_log where tenant_id = $1::text order by instance_id, seq`;

const KEYS = `
  select idempotency_key as key, id from instances
   where tenant_id = $1::text and idempotency_key is not null
  union
  select idempotency_key, instance_id from instance_keys where tenant_id = $1::text`;

const EVENTS = `
  select e.id, e.producer_event_id, e.correlation_key,
         (select count(*) from event_takes t where t.event_id = e.id)::int as takes
    from events e where e.tenant_id = $1::text`;

const COLLECTED = `
  select i.id as start, item ->> 'token' as token
    from instances i join sequences s on s.id = i.sequence_id,
         json_array_elements(i.data -> 'items') item
   where i.tenant_id = $1::text and s.definition -> 'batch' is not null
  union all
  select pending_id, data ->> 'token' from collected_items where tenant_id = $1::text`;

const ORPHANS = `
  select 'timer of instance ' || t.instance_id as what
    from timers t left join instances i on i.id = t.instance_id where i.id is null
  union all
  select 'task ' || t.id from ${ALL_TASKS} t
    left join instances i on i.id = t.instance_id where i.id is null
  union all
  select 'output of instance ' || o.instance_id from block_outputs o
    left join instances i on i.id = o.instance_id where i.id is null
  union all
  select 'signal ' || s.id from signals s
    left join instances i on i.id = s.instance_id where i.id is null
  union all
  select 'wait of instance ' || w.instance_id
    from (select instance_id from event_waits union all select instance_id from cancel_waits
          union all select instance_id from start_requests
          union all select instance_id from permit_requests) w
    left join instances i on i.id = w.instance_id where i.id is null`;

/** As of one moment: more instances run or wait under a key than may. */
const OVERBOOKED = `
  select i.concurrency_key || ' has ' || count(*) || ' of ' || max(i.max_concurrency) as what
    from instances i
   where i.tenant_id = $1::text and i.concurrency_key is not null
     and i.state in ('running', 'waiting')
   group by i.concurrency_key having count(*) > max(i.max_concurrency)`;

/** A stored runtime is an array, or spelled out (`runtime-text.ts`). */
const STARTED_AT = "coalesce(i.runtime ->> 0, i.runtime ->> 'started_at')";

/**
 * Two processes, one after the other, take their time from the database each for itself, which
 * differs by a few milliseconds.
 */
const BREACHES = `
  select 'rate limit exceeded at ' || created_at as what from (
    select o.created_at,
           o.created_at - lag(o.created_at, ${RATE_LIMIT.max_count}) over (order by o.created_at) as gap
      from ${OUTPUT_ROWS} o join instances i on i.id = o.instance_id
     where i.tenant_id = $1::text and o.block_id = '${LIMITED_BLOCK}') tries
   where gap < interval '${RATE_LIMIT.window_seconds} s' - interval '50 ms'
  union all
  select 'throttle of ' || name || ' exceeded at ' || at from (
    select started.*, at - lag(at, most) over (partition by name, key order by at) as gap
      from (select s.name, i.metadata ->> 'key' as key,
                   coalesce(nullif(${STARTED_AT}, '0')::timestamptz, i.created_at) as at,
                   (s.definition -> 'throttle' ->> 'limit')::int as most,
                   (s.definition -> 'throttle' ->> 'per_ms')::int as per_ms
              from instances i join sequences s on s.id = i.sequence_id
             where i.tenant_id = $1::text and s.definition -> 'throttle' is not null
               and ${STARTED_AT} is not null) started) starts
   where gap < per_ms * interval '1 ms' - interval '50 ms'
  union all
  select i.state || ' instance ' || i.id || ' awaits an event that cancels it'
    from cancel_waits w join instances i on i.id = w.instance_id
   where i.tenant_id = $1::text and i.state in ('completed', 'failed', 'cancelled')
  union all
  select 'slot wanted by ' || i.state || ' instance ' || i.id
    from permit_requests r join instances i on i.id = r.instance_id
   where i.tenant_id = $1::text and (i.state in ('completed', 'failed', 'cancelled')
     or (i.state = 'paused' and i.execution ->> 'r' is null))`;

/**
 * Neither ended nor waiting for somebody who will not come: running, due, with an open task that is
 * served, or with an event that has arrived; and creations that are collected. `scheduled` in the far future is waiting.
 */
const UNSETTLED = `
  select 'instance ' || i.id || ' is ' || i.state || ' (due ' || coalesce(i.next_fire_at::text, '-')
         || ')' as what
    from instances i
   where i.tenant_id = $1::text
     and (i.state = 'running'
       or (i.state = 'scheduled'
         and coalesce(i.next_fire_at, now()) < now() + interval '10 minutes')
       or (i.state = 'waiting' and not exists (
         select from ${ALL_TASKS} t
          where t.instance_id = i.id and t.rank is not null and t.handler_name <> all($2::text[]))
         and not exists (select from event_waits w where w.instance_id = i.id)))
  union all
  select 'slot of instance ' || p.instance_id || ' is taken'
    from permits p join instances i on i.id = p.instance_id
   where i.tenant_id = $1::text and i.state not in ('running', 'waiting')
     and i.execution ->> 'r' is null
  union all
  select 'instance ' || p.id || ' of ' || p.sequence || ' has not started' || coalesce(': ' || p.error, '')
    from pending_starts p where p.tenant_id = $1::text
  union all
  select 'event ' || e.id || ' has not reached its instances' from events e
   where e.tenant_id = $1::text and (e.targets is not null
     or exists (select from event_waits w where w.key_id = e.key_id and e.status = 'pending')
     or exists (select from event_cancels c where c.event_id = e.id and c.outcome is null))
   limit 20`;

/** All tables as of one moment: the engine goes on working meanwhile. */
export async function readRows(pool: pg.Pool, tenant: string): Promise<Rows> {
  const client = await pool.connect();
  const read = async <T extends pg.QueryResultRow>(sql: string) =>
    (await client.query<T>(sql, [tenant])).rows;
  try {
    await client.query('begin isolation level repeatable read read only');
    const orphans = await client.query<{ what: string }>(ORPHANS);
    const breaches = await read<{ what: string }>(BREACHES);
    const rows: Rows = {
      instances: await read<InstanceRow>(INSTANCES),
      outputs: await read<OutputRow>(OUTPUTS),
      tasks: await read<TaskRow>(TASKS),
      signals: await read<SignalRow>(SIGNALS),
      audit: await read<AuditRow>(AUDIT),
      keys: await read<KeyRow>(KEYS),
      events: await read<EventRow>(EVENTS),
      collected: await read<CollectedRow>(COLLECTED),
      orphans: orphans.rows.map(({ what }) => what),
      breaches: breaches.map(({ what }) => what),
    };
    await client.query('commit');
    return rows;
  } finally {
    client.release();
  }
}

/** Keys that have more instances at work than they may, at this moment. Empty: none has. */
export async function readOverbooked(pool: pg.Pool, tenant: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ what: string }>(OVERBOOKED, [tenant]);
  return rows.map(({ what }) => what);
}

/** What has not come to rest first of all, for a reader. Empty: everything has. */
export async function readUnsettled(pool: pg.Pool, tenant: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ what: string }>(UNSETTLED, [tenant, SERVED_HANDLERS]);
  return rows.map(({ what }) => what);
}

/** Items under their key, in their order. */
export function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) entryOf(groups, keyOf(item), (): T[] => []).push(item);
  return groups;
}
