/**
 * `GET /instances/{id}/attempts`: attempts of steps by time, merged from worker tasks, outputs of
 * steps that ran in the process, and audit entries of retried attempts. Each source is walked in
 * its order, and no further than one page needs (docs/decisions/0016-lists.md).
 */

import {
  type AttemptListQuery,
  ITERATION_RANGE_MAX,
  type StepAttempt,
} from '../../../schema/attempt.js';
import type { Block } from '../../../schema/blocks.js';
import { type BuiltinName, isBuiltin } from '../../../schema/handlers.js';
import { invalid } from '../../../src/base/errors.js';
import { kindOf } from '../../../src/core/blocks/kinds.js';
import { type Filters, type Narrowing, narrow } from '../../../src/db/reads/filters.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT } from '../../../src/db/reads/query.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { type Operation, pageReply } from '../../../src/http/operation.js';
import { treeOf } from '../../release/core/block-tree.js';
import { TASKS } from '../old-tables.js';
import { BLOCK_OUTPUTS, OUTPUT_ROWS } from '../output-tables.js';
import type { AttemptEvent } from '../worker-task.js';
import { ENTRY_ID, entriesOf } from './audit-reads.js';

export const instanceAttempts: Operation<'instances.attempts'> = async (deps, call) => {
  const { query, params, tenant } = call;
  const row = await rowOf(deps.reads, instanceBlocks, 'instance', params.id, tenant);
  const definition = JSON.parse(row.definition ?? '{}') as { readonly blocks?: readonly Block[] };
  const injected = JSON.parse(row.injected ?? '[]') as readonly Block[];
  const steps = stepsOf([...(definition.blocks ?? []), ...injected]);
  return pageReply(
    call,
    { ...query, offset: 0 },
    await deps.reads.page(attemptList(params.id, steps, query)),
  );
};

function stepsOf(blocks: readonly Block[]): KnownSteps {
  const excluded: string[] = [];
  const retried: string[] = [];
  const handlers = new Map<string, string>();
  const loopsAround = new Map<string, number>();
  for (const [id, { block, parent }] of treeOf(blocks)) {
    const isLooped = parent !== undefined && kindOf(parent).repeats !== 'never';
    loopsAround.set(id, (loopsAround.get(parent?.id ?? '') ?? 0) + (isLooped ? 1 : 0));
    if (block.type === 'step') handlers.set(id, block.handler);
    if (!isOfProcess(block)) excluded.push(id);
    else if (mayBeRetried(block)) retried.push(id);
  }
  const nested = new Set([...loopsAround].flatMap(([id, loops]) => (loops > 1 ? [id] : [])));
  return { excluded, retried, handlers, nested };
}

function isOfProcess(block: Block): boolean {
  return block.type === 'step' ? isBuiltin(block.handler) : block.type === 'sub_sequence';
}

/** Other handlers never fail, or fail permanently. */
function mayBeRetried(block: Block): boolean {
  return block.type === 'step' && (block.retry != null || FALLIBLE.has(block.handler));
}

const FALLIBLE: ReadonlySet<string> = new Set(['http_request', 'fail'] satisfies BuiltinName[]);

interface KnownSteps {
  /** Blocks that run nothing in the process: containers, and steps of workers. */
  readonly excluded: readonly string[];
  /** Steps of the process that may have been retried. If there are none, no audit is read. */
  readonly retried: readonly string[];
  readonly handlers: ReadonlyMap<string, string>;
  /** Steps in several loops. */
  readonly nested: ReadonlySet<string>;
}

type Payload = 'params' | 'overlay' | 'output';

export interface AttemptRow extends Omit<StepAttempt, 'task_id' | 'error' | Payload> {
  readonly params: string | null;
  readonly overlay: string | null;
  readonly output: string | null;
  readonly message: string | null;
  readonly retryable: boolean | null;
  readonly created_at: string;
}

/** Outputs may be large, and a page can end early because it has a cursor. */
const PAGE_BYTES = 1024 * 1024;

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
  outer_iteration: { column: "split_part(a.iteration, '.', 1)", type: 'text' },
  state: { column: 'a.state', type: 'text' },
} satisfies Filters<string>;

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
  const isNested = block_id !== undefined && nested.has(block_id);
  const wanted = { ...iterationsOf(query, isNested), block_id, state };
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
    cheaper: 'ask for one block, or for fewer iterations of a loop',
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
  const record: Omit<StepAttempt, Payload> = {
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

/**
 * @param isNested the block is in several loops: the first of its counters is compared
 * @throws EngineError 400 for too many iterations, or without a block
 */
function iterationsOf(
  { block_id, iteration, iteration_from: from, iteration_to: to }: AttemptListQuery,
  isNested: boolean,
): Narrowing<'iteration' | 'outer_iteration'> {
  if (from === undefined && to === undefined) return { iteration };
  if (from === undefined) throw invalid('iteration_to is given without iteration_from');
  if (block_id === undefined) throw invalid('iteration_from is given without block_id');
  if (iteration !== undefined) throw invalid('iteration and iteration_from are both given');
  const count = (to ?? from) - from + 1;
  if (count < 1 || count > ITERATION_RANGE_MAX) {
    throw invalid(`iteration_to must be iteration_from or up to ${ITERATION_RANGE_MAX - 1} more`);
  }
  const iterations = Array.from({ length: count }, (_, at) => String(from + at));
  return isNested ? { outer_iteration: iterations } : { iteration: iterations };
}

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
    `when ${hasEvent('cancelled')} then 'cancelled' else t.state end as state, ` +
    't.handler_name, t.queue_name, t.worker_id, t.created_at as queued_at, t.claimed_at as started_at, ' +
    't.completed_at as ended_at, t.timeout_ms, ' +
    `${payload('t.params', hasPayloads)} as params, ${payload('t.overlay', hasPayloads)} as overlay, ` +
    `${payload('t.output', hasPayloads)} as output, ` +
    't.error_message as message, t.error_retryable as retryable ' +
    `from ${TASKS} t where t.instance_id = ${instance}`
  );
}

function ofProcess(started: string, ended: string): string {
  return (
    `null as handler_name, null as queue_name, null as worker_id, null::timestamptz as queued_at, ` +
    `${started} as started_at, ${ended} as ended_at, null::bigint as timeout_ms, ` +
    'null::json as params, null::json as overlay'
  );
}

function outputsOf(instance: string, excluded: string, hasPayloads: boolean): string {
  const isError = "b.output_ref = '__error__'";
  return (
    "select 'process' as source, b.id, b.created_at, b.block_id, b.iteration, b.try as attempt, " +
    `case when ${isError} then 'failed' else 'completed' end as state, ` +
    `${ofProcess("(b.effect ->> 'created_at')::timestamptz", 'b.created_at')}, ` +
    `${payload('b.output', hasPayloads)} as output, ` +
    `case when ${isError} then coalesce(b.output ->> 'message', '') end as message, ` +
    `case when ${isError} then (b.output ->> 'retryable')::boolean end as retryable ` +
    `from ${OUTPUT_ROWS} b where b.instance_id = ${instance} ` +
    `and (b.output_ref is null or ${isError}) and b.block_id <> all(${excluded})`
  );
}

/** Entries of the creating unit are in the row of the instance; receipts have the start times. */
function retriesOf(instance: string, steps: string): string {
  const units =
    `(select created_at, entries from audit_log where instance_id = ${instance} ` +
    `and entries::text like '%"step_retried"%') union all ` +
    `select created_at, creation_audit from instances where id = ${instance}`;
  return (
    `select 'process' as source, ${ENTRY_ID} as id, u.created_at, ` +
    "e.entry ->> 'block_id' as block_id, r.iteration, r.attempt, 'failed' as state, " +
    `${ofProcess('s.created_at', 'u.created_at')}, null::json as output, ` +
    "coalesce(e.entry -> 'details' ->> 'message', '') as message, true as retryable " +
    `from (${units}) u ${entriesOf('u.entries')} ` +
    "cross join lateral (select coalesce(e.entry -> 'details' ->> 'iteration', '') as iteration, " +
    "(e.entry -> 'details' ->> 'attempt')::integer as attempt) r " +
    'left join lateral (select created_at from effect_receipts ' +
    `where instance_id = ${instance} and block_id = e.entry ->> 'block_id' ` +
    'and iteration = r.iteration and attempt = r.attempt limit 1) s on true ' +
    "where e.entry ->> 'event_type' = 'step_retried' " +
    `and e.entry ->> 'block_id' = any(${steps})`
  );
}
