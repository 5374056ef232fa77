/**
 * What the execution service reads: the rows that hang on one execution, by key. Reads only; every
 * statement is named and finds its rows by an index. JSON comes as its text.
 */

import type pg from 'pg';
import { PAYLOAD_LIST_MAX } from '../../schema/capsule.js';
import type { EffectReceipt, Execution } from '../../schema/continuity.js';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import type { HandoffFacts } from '../../src/core/continuity/handoff-view.js';
import { CANDIDATES_MAX } from '../../src/core/continuity/placement.js';
import type { OutputText } from '../../src/core/continuity/sealed-payload.js';
import { isResolvedEffect } from '../../src/core/continuity/states.js';
import type { InstanceState } from '../../src/core/states.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import {
  doubtfulEffects,
  type EffectRow,
  effectById,
  effectOfRow,
  effectsOfExecution,
} from '../../src/db/reads/effect-reads.js';
import type { Query } from '../../src/db/reads/query.js';
import { REPLAY_SQL, type StoredRun } from '../../src/db/reads/replay-reads.js';
import {
  type ColumnOf,
  columnsBut,
  columnType,
  type StoredRow,
  type TableName,
} from '../../src/db/tables.js';
import { notFound } from '../../src/errors.js';

/** How long ago a live runtime was observed at most. */
export const LIVE_MS = 5 * 60_000;
/** As the drivers of the other reads: longer than any of these takes. */
const QUERY_TIMEOUT_MS = 30_000;
/** One more than a capsule can carry, so that it shows. */
const CARRIED_MAX = PAYLOAD_LIST_MAX + 1;

const INSTANCE = ['tenant_id', 'state'] as const;
/** Where an instance stands. */
const PLACE = [
  ...INSTANCE,
  'sequence_id',
  'next_fire_at',
  'data',
  'config',
  'context_audit',
  'runtime',
  'execution',
] as const;
const VERSION = ['id', 'tenant_id', 'namespace', 'name', 'version', 'definition'] as const;
const OUTPUT_KEY = ['block_id', 'iteration', 'attempt'] as const;
const ITEMS = ['key', 'items'] as const;
const FROZEN = [
  'sequence_id',
  'namespace',
  'priority',
  'timezone',
  'metadata',
  'data',
  'config',
  'context_audit',
  'runtime',
  'execution',
  'parent_instance_id',
] as const;

export type ExecutionRow = Execution & { readonly version: number };
export type HandoffRow = HandoffFacts;
export type ImportRow = Omit<StoredRow<'capsule_imports'>, 'created_at'>;
export type MigrationRow = StoredRow<'migrations'>;
export type ProvenanceRow = StoredRow<'provenance_entries'>;
export type VersionRow = StoredRow<'sequences', (typeof VERSION)[number]>;
export type OutputKeyRow = StoredRow<'block_outputs', (typeof OUTPUT_KEY)[number]>;
export type ItemsRow = StoredRow<'iteration_snapshots', (typeof ITEMS)[number]>;
export type PlaceRow = InState<(typeof PLACE)[number]>;
export type FrozenInstanceRow = StoredRow<'instances', (typeof FROZEN)[number]> &
  Pick<VersionRow, 'version' | 'definition'> & { readonly injected: string | null };

type InState<C extends ColumnOf<'instances'>> = StoredRow<'instances', Exclude<C, 'state'>> & {
  readonly state: InstanceState;
};

/** What each statement gives. */
interface RowOf {
  execution: ExecutionRow;
  instance: InState<(typeof INSTANCE)[number]>;
  stateAt: InState<'state'>;
  handoff: HandoffRow;
  handoffs: HandoffRow;
  decision: StoredRow<'placement_decisions'>;
  runtimes: StoredRow<'runtimes', 'capabilities'>;
  runtime: StoredRow<'runtimes', 'capabilities'>;
  provenanceHead: ProvenanceRow;
  migration: MigrationRow;
  capsuleImport: ImportRow;
  importOf: ImportRow;
  artifact: StoredRow<'artifacts', 'content'>;
  frozenInstance: FrozenInstanceRow;
  lastCheckpoint: StoredRow<'checkpoints'>;
  outputTotals: { readonly rows: number; readonly bytes: number };
  frozenOutputs: OutputText;
  items: ItemsRow;
  effectIds: { readonly id: string };
  place: PlaceRow;
  version: VersionRow;
  life: StoredRun;
  outputKeys: OutputKeyRow;
  outputBlocks: StoredRow<'block_outputs', 'block_id'>;
}
type Statement = keyof RowOf;

const OF_INSTANCE = 'where instance_id = $1::uuid';
const IMPORT = selected('capsule_imports', columnsBut('capsule_imports', 'created_at'));
const FROZEN_OUTPUTS = columnsBut('block_outputs', 'id', 'instance_id', 'effect');

export const CONTINUITY_SQL: Readonly<Record<Statement, string>> = {
  execution: `${selected('continuity_executions')} where continuity_id = $1::uuid`,
  instance: `${selected('instances', INSTANCE)} where id = $1::uuid`,
  // Of the instance that an execution was at an epoch.
  stateAt:
    'select i.state from continuity_locations l join instances i on i.id = l.instance_id ' +
    'where l.continuity_id = $1::uuid and l.epoch = $2::bigint',
  handoff: `${selected('handoffs')} where id = $1::uuid`,
  handoffs: `${selected('handoffs')} where continuity_id = $1::uuid order by created_at, id`,
  decision: `${selected('placement_decisions')} where id = $1::uuid`,
  // The live ones, those seen last first.
  runtimes:
    'select capabilities from runtimes where tenant_id = $1::text ' +
    'and observed_at > $2::timestamptz and expires_at > $3::timestamptz ' +
    `order by observed_at desc, runtime_id limit ${CANDIDATES_MAX}`,
  runtime: 'select capabilities from runtimes where tenant_id = $1::text and runtime_id = $2::uuid',
  provenanceHead:
    `${selected('provenance_entries')} where continuity_id = $1::uuid ` +
    'order by seq desc limit 1',
  migration: `${selected('migrations')} where id = $1::uuid`,
  capsuleImport:
    `${IMPORT} where tenant_id = $1::text and capsule_id = $2::uuid ` +
    'and destination_runtime_id = $3::uuid',
  importOf: `${IMPORT} ${OF_INSTANCE}`,
  artifact: "select encode(content, 'base64') as content from artifacts where key = $1::text",

  // What a capsule carries of an instance that is fenced, so that its rows stay as they are.
  frozenInstance:
    `select ${FROZEN.map((column) => `i.${column}`).join(', ')}, b.blocks as injected, ` +
    's.version, s.definition from instances i cross join lateral (select version, definition ' +
    'from sequences where id = i.sequence_id offset 0) s ' +
    'left join injected_blocks b on b.instance_id = i.id where i.id = $1::uuid',
  lastCheckpoint: `${selected('checkpoints')} ${OF_INSTANCE} order by created_at desc, id desc limit 1`,
  outputTotals:
    'select count(*)::float8 as rows, coalesce(sum(output_size), 0)::float8 as bytes ' +
    `from block_outputs ${OF_INSTANCE}`,
  frozenOutputs:
    `${selected('block_outputs', FROZEN_OUTPUTS)} ${OF_INSTANCE} ` +
    `order by created_at, id limit ${CARRIED_MAX}`,
  items: `${selected('iteration_snapshots', ITEMS)} ${OF_INSTANCE} order by key`,
  // Each receipt is where its facts lie.
  effectIds:
    `select id from worker_tasks ${OF_INSTANCE} ` +
    `union all select id from block_outputs ${OF_INSTANCE} and effect is not null ` +
    `union all select id from effect_receipts ${OF_INSTANCE} order by id limit ${CARRIED_MAX}`,

  // What a migration looks at.
  place: `${selected('instances', PLACE)} where id = $1::uuid`,
  version: `${selected('sequences', VERSION)} where id = $1::uuid`,
  life: REPLAY_SQL.run,
  outputKeys:
    `${selected('block_outputs', OUTPUT_KEY)} ${OF_INSTANCE} ` +
    'order by block_id, iteration, attempt',
  outputBlocks:
    `select distinct block_id from block_outputs ${OF_INSTANCE} ` +
    'and output_ref is null order by block_id',
};

/** Numbers of 64 bits as numbers: the driver gives texts. */
function selected<T extends TableName>(
  table: T,
  columns: readonly ColumnOf<T>[] = columnsBut(table),
): string {
  const list = columns.map((column) =>
    columnType(table, column).base === 'bigint' ? `${column}::float8 as ${column}` : column,
  );
  return `select ${list.join(', ')} from ${table}`;
}

export class ContinuityRows {
  readonly #pool: Pick<pg.Pool, 'query'>;

  constructor(pool: Pick<pg.Pool, 'query'>) {
    this.#pool = pool;
  }

  /** The first row that the statement gives for its parameters. */
  async one<Name extends Statement>(
    name: Name,
    ...values: readonly (string | number)[]
  ): Promise<RowOf[Name] | undefined> {
    return (await this.all(name, ...values))[0];
  }

  all<Name extends Statement>(
    name: Name,
    ...values: readonly (string | number)[]
  ): Promise<RowOf[Name][]> {
    return this.#query({ name: `continuity_${name}`, text: CONTINUITY_SQL[name], values });
  }

  /** Whether there is such an instance in this database. */
  async isHere(instance: string): Promise<boolean> {
    return (await this.one('instance', instance)) !== undefined;
  }

  /** The live ones, those seen last first. */
  async runtimes(tenant: string, now: UnixMs): Promise<RuntimeCapabilities[]> {
    const rows = await this.all('runtimes', tenant, isoTime(now - LIVE_MS), isoTime(now));
    return rows.map(capabilitiesIn);
  }

  /** As it was registered last; whether it is live is another question. */
  async runtime(tenant: string, id: string): Promise<RuntimeCapabilities | undefined> {
    const row = await this.one('runtime', tenant, id);
    return row && capabilitiesIn(row);
  }

  /** The sealed payload of a capsule; undefined when it is not stored here. */
  async artifact(key: string): Promise<Buffer | undefined> {
    const row = await this.one('artifact', key);
    return row && Buffer.from(row.content, 'base64');
  }

  /** Effects of the execution in doubt, of all its instances, in a fixed order. */
  async unresolvedEffects({ continuity_id }: ExecutionRow): Promise<EffectReceipt[]> {
    const doubtful = await this.#effects(doubtfulEffects(continuity_id));
    return doubtful.filter(({ state }) => !isResolvedEffect(state));
  }

  /** Every effect of the execution, of all its instances that are here, oldest first. */
  effects(execution: string): Promise<EffectReceipt[]> {
    return this.#effects(effectsOfExecution(execution));
  }

  async effect(id: string): Promise<EffectReceipt | undefined> {
    return (await this.#effects(effectById(id)))[0];
  }

  async #effects(query: Query): Promise<EffectReceipt[]> {
    return (await this.#query<EffectRow>(query)).map(effectOfRow);
  }

  async #query<Row extends object>(query: Query & { readonly name?: string }): Promise<Row[]> {
    const timed = { ...query, values: [...query.values], query_timeout: QUERY_TIMEOUT_MS };
    return (await this.#pool.query<Row>(timed as pg.QueryConfig)).rows;
  }
}

function capabilitiesIn({ capabilities }: RowOf['runtime']): RuntimeCapabilities {
  return JSON.parse(capabilities) as RuntimeCapabilities;
}

/** @throws EngineError 404 when there is none, or the tenant ('' is any) has none */
export function owned<Row extends { readonly tenant_id: string }>(
  row: Row | undefined,
  tenant: string,
  what: string,
): Row {
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) throw notFound(what);
  return row;
}
