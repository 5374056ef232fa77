/**
 * Receipts of effects (docs/migration.md), derived from worker tasks, outputs with an effect, open
 * steps, and tries without an output. Reported resolutions override them.
 */

import type { EffectReceipt } from '../../schema/continuity.js';
import type { EffectState } from '../../schema/continuity-words.js';
import type { OpenEffect } from '../../schema/execution.js';
import type { JsonValue } from '../../src/base/json.js';
import {
  type EffectOutcome,
  type EffectPlace,
  inProcessReceipt,
  type TaskFacts,
  taskReceipt,
} from '../../src/core/effects.js';
import { TRY_LATER } from '../../src/db/reads/lookup.js';
import { orderOf } from '../../src/db/reads/order.js';
import { Conditions, type PageBounds, type Query } from '../../src/db/reads/query.js';
import type { PageRequest } from '../../src/db/reads/reader.js';
import { TASKS } from '../instance/old-tables.js';
import { IS_REPORTED, IS_TOUCHED } from '../instance/task-tables.js';

/** JSON as text, and null where a source has no such fact. */
export interface EffectRow extends EffectPlace {
  readonly source: 'task' | 'open' | 'output' | 'try';
  readonly id: string;
  readonly handler_name: string | null;
  readonly params: string | null;
  readonly state: string;
  readonly is_reported: boolean;
  readonly is_touched: boolean;
  readonly output: string | null;
  /** The request of a step that ran in the process. */
  readonly facts: string | null;
  readonly created_at: string;
  readonly updated_at: string | null;
  readonly resolved_state: EffectState | null;
  readonly resolved_provider: string | null;
  readonly resolved_at: string | null;
}

/** More than any execution or capsule has. */
const RECEIPTS_MAX = 10_000;

const ORDER = orderOf([
  { name: 'created_at', type: 'timestamptz', column: 's.created_at' },
  { name: 'id', type: 'uuid', column: 's.id' },
]);

export function effectList(query: Query): PageRequest<EffectRow> {
  const toText = (row: EffectRow) => JSON.stringify(effectOfRow(row));
  const { cursorAfter } = ORDER;
  return { query, toText, cheaper: TRY_LATER, rowsMax: RECEIPTS_MAX, cursorAfter };
}

export function effectsOfInstance(
  instanceId: string,
  page: Pick<PageBounds, 'cursor' | 'limit'>,
): Query {
  const conditions = new Conditions();
  const id = `${conditions.param(instanceId)}::uuid`;
  return select(
    conditions,
    { own: `= ${id}`, holders: `(select ${id} as instance_id)` },
    ALL,
    page,
  );
}

/** Of all instances of the execution; the id of an instance that is not enrolled is its execution's. */
export function effectsOfExecution(executionId: string, tenant?: string | undefined): Query {
  const conditions = new Conditions();
  const own = instancesOf(conditions.param(executionId));
  if (tenant !== undefined) conditions.add(`i.tenant_id = ${conditions.param(tenant)}`);
  return select(conditions, own);
}

/** A superset of the effects that `isEffectInDoubt` selects. */
export function doubtfulEffects(executionId: string): Query {
  const conditions = new Conditions();
  const own = instancesOf(conditions.param(executionId));
  return select(conditions, own, {
    task: "t.state <> 'completed'",
    open: 'true',
    output: undefined,
    try: "e.state = 'unknown'",
  });
}

/** Open steps have no index by id: scans the steps that run in a process, or ran when it crashed. */
export function effectById(id: string): Query {
  const conditions = new Conditions();
  const wanted = `${conditions.param(id)}::uuid`;
  const sources = [
    `${TASK_WHERE}t.id = ${wanted}`,
    openSource('(select instance_id from timers where recover) h', '', `f.id = ${wanted}`),
    `${OUTPUT_WHERE}o.effect is not null and o.id = ${wanted}`,
    `${TRY_WHERE}e.id = ${wanted}`,
  ];
  return conditions.query(resolved(sources, ''));
}

const ENDED_AS: ReadonlyMap<string, EffectOutcome> = new Map([
  ['committed', 'success'],
  ['failed', 'failure'],
]);

export function effectOfRow(row: EffectRow): EffectReceipt {
  const { resolved_state, resolved_provider, resolved_at } = row;
  const resolution = resolved_state && {
    state: resolved_state,
    provider_receipt_id: resolved_provider,
    updated_at: resolved_at ?? row.created_at,
  };
  const output = parsed(row.output);
  if (row.source === 'task') {
    const handler_name = row.handler_name ?? '';
    const state = row.state as TaskFacts['state'];
    const params = parsed(row.params);
    return taskReceipt({ ...row, handler_name, state, params, output }, resolution);
  }
  const facts = parsed(row.facts) as unknown as OpenEffect;
  const outcome = row.source === 'open' ? 'in_flight' : (ENDED_AS.get(row.state) ?? 'lost');
  const handler_name = facts.handler_name ?? 'http_request';
  return inProcessReceipt({ ...facts, ...row, handler_name, outcome, output }, resolution);
}

function parsed(text: string | null): JsonValue {
  return text === null ? null : (JSON.parse(text) as JsonValue);
}

/** A further condition on each source; undefined: the source is not read. */
type Narrowed = Readonly<Record<EffectRow['source'], string | undefined>>;

const ALL: Narrowed = { task: 'true', open: 'true', output: 'true', try: 'true' };

interface Wanted {
  /** Compares the id of an instance. */
  readonly own: string;
  /** The same instances as rows of `instance_id`. */
  readonly holders: string;
}

/** An instance belongs to at most one execution; one that is not enrolled has its own id. */
function instancesOf(execution: string): Wanted {
  const ids =
    'select l.instance_id from continuity_locations l ' +
    `where l.continuity_id = ${execution}::uuid union select s.id from instances s ` +
    `where s.id = ${execution}::uuid and coalesce(s.continuity_id, s.id) = ${execution}::uuid`;
  return { own: `= any(array(${ids}))`, holders: `(${ids})` };
}

function select(
  conditions: Conditions,
  wanted: Wanted,
  narrowed: Narrowed = ALL,
  { cursor, limit }: Pick<PageBounds, 'cursor' | 'limit'> = {},
): Query {
  const { where } = conditions;
  const filter = where === '' ? '' : ` and ${where.slice('where '.length)}`;
  const { task, open, output, try: tries } = narrowed;
  const { own, holders } = wanted;
  const sources = [
    task && `${TASK_WHERE}t.instance_id ${own} and ${task}${filter}`,
    open && openSource(`${holders} h`, filter, open),
    output && `${OUTPUT_WHERE}o.instance_id ${own} and o.effect is not null and ${output}${filter}`,
    tries && `${TRY_WHERE}e.instance_id ${own} and ${tries}${filter}`,
  ];
  const present = sources.filter((source) => source !== undefined);
  const place = new Conditions(conditions.values);
  if (cursor !== undefined) ORDER.goOn(place, cursor);
  const end = ` order by ${ORDER.text} ${place.page({ limit })}`;
  // Reads at most one page of each source.
  const parts =
    limit == null
      ? present
      : present.map((source) => `(select * from (${source}) s ${place.where}${end})`);
  return conditions.query(resolved(parts, end));
}

function resolved(sources: readonly string[], order: string): string {
  return (
    `select s.*, r.state as resolved_state, r.provider_receipt_id as resolved_provider, ` +
    `r.updated_at as resolved_at from (${sources.join(' union all ')}) s ` +
    'left join lateral (select state, provider_receipt_id, updated_at from effect_resolutions ' +
    `where id = s.id offset 0) r on true${order}`
  );
}

const SCOPE = 'i.tenant_id, coalesce(i.continuity_id, i.id) as continuity_id';
/** A lookup by key per row: for a plain join, Postgres may scan the whole table. */
const OF_INSTANCE = 'cross join lateral (select id, tenant_id, continuity_id from instances';

const TASK_WORDS = `${IS_REPORTED} as is_reported, ${IS_TOUCHED} as is_touched`;
const NO_TASK = 'false as is_reported, false as is_touched';

const TASK_WHERE =
  `select 'task' as source, t.id, ${SCOPE}, ` +
  'coalesce(t.ownership_epoch, 0)::float8 as epoch, t.instance_id, t.block_id, t.attempt, ' +
  `t.handler_name, t.params, t.state, ${TASK_WORDS}, t.output, null::json as facts, ` +
  't.created_at, t.completed_at as updated_at ' +
  `from ${TASKS} t ${OF_INSTANCE} where id = t.instance_id offset 0) i where `;

/** @param holders rows of `h` with ids of instances that may have open steps */
function openSource(holders: string, filter: string, condition: string): string {
  return (
    `select 'open' as source, f.id, ${SCOPE}, f.epoch, i.id as instance_id, f.block_id, ` +
    'f.attempt, f.handler_name, null::json as params, null as state, ' +
    `${NO_TASK}, ` +
    'null::json as output, f.facts, f.created_at, null::timestamptz as updated_at ' +
    `from ${holders} cross join lateral (select id, tenant_id, continuity_id, execution ` +
    'from instances where id = h.instance_id ' +
    "and state in ('scheduled', 'running', 'waiting', 'paused') offset 0) i cross join lateral (" +
    "select (n.value -> 'u' ->> 'id')::uuid as id, (n.value -> 'u' ->> 'epoch')::float8 as epoch, " +
    "n.value -> 'u' ->> 'block_id' as block_id, (n.value ->> 'a')::integer as attempt, " +
    "n.value -> 'u' ->> 'handler_name' as handler_name, n.value -> 'u' as facts, " +
    "(n.value -> 'u' ->> 'created_at')::timestamptz as created_at " +
    "from json_each(i.execution -> 'o') n where n.value -> 'u' is not null) f " +
    `where ${condition}${filter}`
  );
}

const OUTPUT_WHERE =
  `select 'output' as source, o.id, ${SCOPE}, (o.effect ->> 'epoch')::float8 as epoch, ` +
  'o.instance_id, o.block_id, o.try as attempt, null as handler_name, null::json as params, ' +
  `o.effect ->> 'state' as state, ${NO_TASK}, ` +
  "json_build_object('provider_receipt_id', o.effect ->> 'provider_receipt_id') as output, " +
  "o.effect as facts, (o.effect ->> 'created_at')::timestamptz as created_at, " +
  // Not the later creation of the row: the receipt keeps its time when the row is deleted.
  "(o.effect ->> 'updated_at')::timestamptz as updated_at from block_outputs o " +
  `${OF_INSTANCE} where id = o.instance_id offset 0) i where `;

const TRY_WHERE =
  `select 'try' as source, e.id, ${SCOPE}, e.epoch::float8 as epoch, e.instance_id, ` +
  'e.block_id, e.attempt, null as handler_name, null::json as params, e.state, ' +
  `${NO_TASK}, ` +
  "json_build_object('provider_receipt_id', e.provider_receipt_id) as output, " +
  "json_build_object('request_sha256', e.request_sha256, 'destination_fingerprint', " +
  "e.destination_fingerprint, 'idempotency_key', e.idempotency_key) as facts, " +
  'e.created_at, e.updated_at from effect_receipts e ' +
  `${OF_INSTANCE} where id = e.instance_id offset 0) i where `;
