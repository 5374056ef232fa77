/**
 * The tries of the steps of an instance, in the order of time. Reads only. They are put together from what the
 * work itself left: worker tasks, outputs of steps of the process, and audit entries of those of its tries that
 * another one followed. Each source is walked in its order, and no further than one page needs
 * (docs/decisions/0016-lists.md).
 */

import type { AttemptListQuery, StepAttempt } from '../../../schema/attempt.js';
import { type Filter, narrow } from '../../../src/db/reads/filters.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT } from '../../../src/db/reads/query.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { BLOCK_OUTPUTS } from '../output-tables.js';
import { standing } from '../tasks-as-they-stand.js';
import type { AttemptEvent } from '../worker-task.js';
import { OUTER_PASS, passesOf } from './pass-filters.js';

/** Of the definition of an instance: what tells steps of the process from those of workers. */
export interface KnownSteps {
  /** Blocks that hold others, and steps of workers: what they left is no try of the process. */
  readonly excluded: readonly string[];
  /** Steps of the process that may have been tried again. Without any, no audit is read. */
  readonly retried: readonly string[];
  readonly handlers: ReadonlyMap<string, string>;
  /** Those in several loops. */
  readonly nested: ReadonlySet<string>;
}

export interface AttemptRow {
  readonly source: StepAttempt['source'];
  readonly id: string;
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
  readonly state: StepAttempt['state'];
  readonly handler_name: string | null;
  readonly queue_name: string | null;
  readonly worker_id: string | null;
  readonly queued_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly timeout_ms: number | null;
  readonly params: string | null;
  readonly overlay: string | null;
  readonly output: string | null;
  readonly message: string | null;
  readonly retryable: boolean | null;
  readonly created_at: string;
}

/** An answer ends here, and says where to go on: outputs may be large. */
const PAGE_BYTES = 1024 * 1024;
/** What its blocks are, and whose it is. */
export const instanceBlocks = lookup<{
  readonly tenant_id: string;
  readonly definition: string | null;
  readonly injected: string | null;
}>(
  'reads_instance_blocks',
  'select i.tenant_id, (select definition from sequences where id = i.sequence_id) as definition, ' +
    '(select blocks from injected_blocks where instance_id = i.id) as injected ' +
    `from instances i where i.id = $1::uuid and ${IS_PRESENT}`,
);

const ORDERS = {
  oldest: orderBy(BLOCK_OUTPUTS, ['created_at', 'id'], 'ascending', 'a'),
  newest: orderBy(BLOCK_OUTPUTS, ['created_at', 'id'], 'descending', 'a'),
} as const;

const FILTERS = {
  block_id: { column: 'a.block_id', type: 'text' },
  iteration: { column: 'a.iteration', type: 'text' },
  outer_pass: OUTER_PASS,
  state: { column: 'a.state', type: 'text' },
} satisfies Record<string, Filter>;

/** `StepAttempt` records. */
export function attemptList(
  instanceId: string,
  { excluded, retried, handlers, nested }: KnownSteps,
  query: AttemptListQuery,
): PageRequest<AttemptRow> {
  const order = ORDERS[query.order];
  const whole = new Conditions();
  const instance = `${whole.param(instanceId)}::uuid`;
  const most = `${whole.param(query.limit)}::bigint`;
  const { block_id, state } = query;
  const passes = passesOf(query, block_id !== undefined && nested.has(block_id));
  const wanted = { ...passes, block_id, state };
  const branch = (source: string) => {
    const own = new Conditions(whole.values);
    narrow(own, FILTERS, wanted);
    if (query.cursor !== undefined) order.goOn(own, query.cursor);
    return `(select * from (${source}) a ${own.where} order by ${order.text} limit ${most})`;
  };
  const isAsked = (...states: readonly StepAttempt['state'][]) =>
    query.state === undefined || query.state.some((state) => states.includes(state));
  const has = query.include_payloads;
  const branches = [branch(tasksOf(instance, has))];
  const isOfWorkers = query.block_id !== undefined && excluded.includes(query.block_id);
  if (!isOfWorkers && isAsked('completed', 'failed')) {
    branches.push(branch(outputsOf(instance, `${whole.param(excluded)}::text[]`, has)));
  }
  const again = retried.filter((id) => query.block_id === undefined || query.block_id === id);
  if (again.length > 0 && isAsked('failed')) {
    branches.push(branch(retriesOf(instance, `${whole.param(again)}::text[]`)));
  }
  const text = `select a.* from (${branches.join(' union all ')}) a order by ${order.text} limit ${most}`;
  return {
    query: whole.query(text),
    toText: (row) => attemptText(row, handlers, has),
    cheaper: 'ask for one block, or for fewer passes of a loop',
    bytesMax: PAGE_BYTES,
    cursorAfter: order.cursorAfter,
  };
}

function attemptText(
  row: AttemptRow,
  handlers: KnownSteps['handlers'],
  hasPayloads: boolean,
): string {
  const { source, id, message, retryable } = row;
  const record: Omit<StepAttempt, 'params' | 'overlay' | 'output'> = {
    id,
    source,
    block_id: row.block_id,
    iteration: row.iteration,
    attempt: row.attempt,
    state: row.state,
    handler_name: row.handler_name ?? handlers.get(row.block_id) ?? null,
    queue_name: row.queue_name,
    task_id: source === 'task' ? id : null,
    worker_id: row.worker_id,
    queued_at: row.queued_at,
    started_at: row.started_at,
    ended_at: row.ended_at,
    timeout_ms: row.timeout_ms,
    error: message === null ? null : { message, retryable },
  };
  const text = JSON.stringify(record);
  if (!hasPayloads) return text;
  const payloads =
    (row.params === null ? '' : `,"params":${row.params}`) +
    (row.overlay === null ? '' : `,"overlay":${row.overlay}`) +
    `,"output":${row.output ?? 'null'}`;
  return `${text.slice(0, -1)}${payloads}}`;
}

// ---------------------------------------------------------------- sources

/** Of a task that ended; those entries are in its own row. */
function hasEvent(event: AttemptEvent): string {
  return (
    "(t.state = 'failed' and exists (select 1 from json_array_elements(t.history) h " +
    `where h ->> 'event' = '${event}'))`
  );
}

function payload(column: string, isRead: boolean): string {
  return isRead ? column : 'null::json';
}

function tasksOf(instance: string, hasPayloads: boolean): string {
  return (
    "select 'task' as source, t.id, t.created_at, t.block_id, t.iteration, t.attempt, " +
    `case when ${hasEvent('timed_out')} then 'timed_out' ` +
    `when ${hasEvent('cancelled')} then 'cancelled' else ${standing('state')} end as state, ` +
    `t.handler_name, t.queue_name, ${standing('worker_id')} as worker_id, ` +
    `t.created_at as queued_at, ${standing('claimed_at')} as started_at, ` +
    't.completed_at as ended_at, t.timeout_ms, ' +
    `${payload('t.params', hasPayloads)} as params, ${payload('t.overlay', hasPayloads)} as overlay, ` +
    `${payload('t.output', hasPayloads)} as output, ` +
    't.error_message as message, t.error_retryable as retryable ' +
    'from worker_tasks t left join lateral (select * from open_tasks where task_id = t.id offset 0) o ' +
    `on true where t.instance_id = ${instance}`
  );
}

/** What is of no worker. */
function ofProcess(started: string, ended: string): string {
  return (
    `null as handler_name, null as queue_name, null as worker_id, null::timestamptz as queued_at, ` +
    `${started} as started_at, ${ended} as ended_at, null::bigint as timeout_ms, ` +
    'null::json as params, null::json as overlay'
  );
}

function outputsOf(instance: string, strangers: string, hasPayloads: boolean): string {
  const isError = "b.output_ref = '__error__'";
  return (
    "select 'process' as source, b.id, b.created_at, b.block_id, b.iteration, b.try as attempt, " +
    `case when ${isError} then 'failed' else 'completed' end as state, ` +
    `${ofProcess("(b.effect ->> 'created_at')::timestamptz", 'b.created_at')}, ` +
    `${payload('b.output', hasPayloads)} as output, ` +
    `case when ${isError} then coalesce(b.output ->> 'message', '') end as message, ` +
    `case when ${isError} then (b.output ->> 'retryable')::boolean end as retryable ` +
    `from block_outputs b where b.instance_id = ${instance} ` +
    `and (b.output_ref is null or ${isError}) and b.block_id <> all(${strangers})`
  );
}

/** Those of the unit that created the instance lie in its own row. When a request left is in its receipt. */
function retriesOf(instance: string, steps: string): string {
  const units =
    `(select created_at, entries from audit_log where instance_id = ${instance} ` +
    `and entries::text like '%"step_retried"%') union all ` +
    `select created_at, creation_audit from instances where id = ${instance}`;
  return (
    "select 'process' as source, (e.entry ->> 'id')::uuid as id, u.created_at, " +
    "e.entry ->> 'block_id' as block_id, r.iteration, r.attempt, 'failed' as state, " +
    `${ofProcess('s.created_at', 'u.created_at')}, null::json as output, ` +
    "coalesce(e.entry -> 'details' ->> 'message', '') as message, true as retryable " +
    `from (${units}) u cross join lateral json_array_elements(u.entries) as e(entry) ` +
    "cross join lateral (select coalesce(e.entry -> 'details' ->> 'iteration', '') as iteration, " +
    "(e.entry -> 'details' ->> 'attempt')::integer as attempt) r " +
    'left join lateral (select created_at from effect_receipts ' +
    `where instance_id = ${instance} and block_id = e.entry ->> 'block_id' ` +
    'and iteration = r.iteration and attempt = r.attempt limit 1) s on true ' +
    "where e.entry ->> 'event_type' = 'step_retried' " +
    `and e.entry ->> 'block_id' = any(${steps})`
  );
}
