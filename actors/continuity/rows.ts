/**
 * The reads of the execution service: the rows of one execution, by key. Every statement is
 * prepared and uses an index. JSON is returned as text.
 */

import type pg from 'pg';
import { PAYLOAD_LIST_MAX } from '../../schema/capsule.js';
import type { EffectReceipt, Execution } from '../../schema/continuity.js';
import { isEffectInDoubt } from '../../schema/continuity-words.js';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import { owned } from '../../src/base/tenancy.js';
import { isoTime, laterOf, type UnixMs } from '../../src/base/time.js';
import type { Query } from '../../src/db/reads/query.js';
import { Runner } from '../../src/db/runner.js';
import {
  type ColumnOf,
  columnsBut,
  type StoredRow,
  selected,
  type Table,
} from '../../src/db/table.js';
import { SEQUENCES } from '../catalog/tables.js';
import { TASKS } from '../instance/old-tables.js';
import {
  BLOCK_OUTPUTS,
  CHECKPOINTS,
  ITERATION_SNAPSHOTS,
  OUTPUT_ROWS,
  SIGNALS,
} from '../instance/output-tables.js';
import { INSTANCES } from '../instance/tables.js';
import { REPLAY_SQL, type StoredRun } from '../release/replay-reads.js';
import { CANDIDATES_MAX, type HandoffFacts } from './core/handoff.js';
import {
  doubtfulEffects,
  type EffectRow,
  effectById,
  effectOfRow,
  effectsOfExecution,
} from './effect-reads.js';
import {
  type ARTIFACTS,
  CAPSULE_IMPORTS,
  CONTINUITY_EXECUTIONS,
  HANDOFFS,
  MIGRATIONS,
  PLACEMENT_DECISIONS,
  PROVENANCE_ENTRIES,
  RUNTIMES,
} from './tables.js';

/** Maximum age of the observation of a live runtime. */
export const LIVE_MS = 5 * 60_000;
const QUERY_TIMEOUT_MS = 30_000;
/** Detects more than a capsule can carry. */
const CARRIED_MAX = PAYLOAD_LIST_MAX + 1;

/** Carried by a capsule, or checked by a migration. */
const PLACE = [
  ...['tenant_id', 'sequence_id', 'namespace', 'state', 'next_fire_at', 'priority', 'timezone'],
  ...['timeout', 'metadata', 'data', 'data_patch', 'config', 'context_audit', 'runtime'],
  'execution',
  'parent_instance_id',
  'created_at',
] as const;
export type PlaceRow = Selected<typeof INSTANCES, (typeof PLACE)[number]> &
  StoredRow<typeof SEQUENCES, 'version' | 'definition'> & { readonly injected: string | null };

/** Types the rows of a statement. */
type Sql<Row> = string & { readonly row?: Row };
const sql = <Row>(text: string): Sql<Row> => text;

/** Columns with a closed set of values. */
type Words<T extends Table> = T extends typeof INSTANCES
  ? { readonly state: InstanceState }
  : T extends typeof HANDOFFS
    ? Pick<HandoffFacts, 'state'>
    : T extends typeof CONTINUITY_EXECUTIONS
      ? Pick<Execution, 'state'>
      : unknown;
type Selected<T extends Table, C extends ColumnOf<T>> = StoredRow<T, Exclude<C, keyof Words<T>>> &
  Pick<Words<T>, C & keyof Words<T>>;

function select<T extends Table, const C extends ColumnOf<T> = ColumnOf<T>>(
  table: T,
  rest: string,
  columns: readonly C[] = columnsBut(table) as C[],
  from = table.name,
): Sql<Selected<T, C>> {
  return `select ${selected(columns)} from ${from} ${rest}`;
}

const VERSION = ['id', 'tenant_id', 'namespace', 'name', 'version', 'definition'] as const;
const BY_ID = 'where id = $1::uuid';
const OF_EXECUTION = 'where continuity_id = $1::uuid';
const OF_INSTANCE = 'where instance_id = $1::uuid';
const CAPABILITIES = ['capabilities'] as const;
const OUTPUT_KEY = ['block_id', 'iteration', 'attempt'] as const;
const SIGNAL = ['signal_type', 'payload', 'created_at', 'sent_by', 'sent_groups'] as const;
const CURRENT = columnsBut(CONTINUITY_EXECUTIONS, 'ended');
const IMPORT = columnsBut(CAPSULE_IMPORTS, 'created_at');
/** Without ids and receipts. */
const OUTPUT = columnsBut(BLOCK_OUTPUTS, 'id', 'instance_id', 'effect');

export const CONTINUITY_SQL = {
  execution: select(CONTINUITY_EXECUTIONS, OF_EXECUTION, CURRENT),
  shownExecution: sql<ShownExecutionRow>(
    `select ${selected(columnsBut(CONTINUITY_EXECUTIONS), 'e')}, ` +
      'i.state as instance_state, i.updated_at as instance_updated_at ' +
      'from continuity_executions e left join lateral (select state, updated_at from instances ' +
      'where id = e.current_instance_id offset 0) i on true where e.continuity_id = $1::uuid',
  ),
  instance: select(INSTANCES, BY_ID, ['tenant_id', 'state']),
  // The parent and children of an instance.
  kin: select(INSTANCES, BY_ID, ['parent_instance_id', 'execution']),
  // The state of the execution's instance at an epoch.
  stateAt: sql<{ readonly state: InstanceState }>(
    'select i.state from continuity_locations l join instances i on i.id = l.instance_id ' +
      'where l.continuity_id = $1::uuid and l.epoch = $2::bigint',
  ),
  handoff: select(HANDOFFS, BY_ID),
  handoffs: select(HANDOFFS, `${OF_EXECUTION} order by created_at, id`),
  decision: select(PLACEMENT_DECISIONS, BY_ID),
  // Live, the latest observed first.
  runtimes: select(
    RUNTIMES,
    'where tenant_id = $1::text and observed_at > $2::timestamptz and expires_at > $3::timestamptz ' +
      `order by observed_at desc, runtime_id limit ${CANDIDATES_MAX}`,
    CAPABILITIES,
  ),
  runtime: select(RUNTIMES, 'where tenant_id = $1::text and runtime_id = $2::uuid', CAPABILITIES),
  provenanceHead: select(PROVENANCE_ENTRIES, `${OF_EXECUTION} order by seq desc limit 1`),
  migration: select(MIGRATIONS, BY_ID),
  capsuleImport: select(
    CAPSULE_IMPORTS,
    'where tenant_id = $1::text and capsule_id = $2::uuid and destination_runtime_id = $3::uuid',
    IMPORT,
  ),
  importOf: select(CAPSULE_IMPORTS, OF_INSTANCE, IMPORT),
  artifact: sql<StoredRow<typeof ARTIFACTS, 'content'>>(
    "select encode(content, 'base64') as content from artifacts where key = $1::text",
  ),
  // With its injected blocks and its version.
  place: sql<PlaceRow>(
    `select ${selected(PLACE, 'i')}, b.blocks as injected, ` +
      's.version, s.definition from instances i cross join lateral (select version, definition ' +
      'from sequences where id = i.sequence_id offset 0) s ' +
      'left join injected_blocks b on b.instance_id = i.id where i.id = $1::uuid',
  ),
  lastCheckpoint: select(CHECKPOINTS, `${OF_INSTANCE} order by created_at desc, id desc limit 1`),
  outputTotals: sql<{ readonly bytes: number }>(
    `select coalesce(sum(output_size), 0)::float8 as bytes from ${OUTPUT_ROWS} b ${OF_INSTANCE}`,
  ),
  outputs: select(
    BLOCK_OUTPUTS,
    `${OF_INSTANCE} order by created_at, id limit ${CARRIED_MAX}`,
    OUTPUT,
    `${OUTPUT_ROWS} b`,
  ),
  items: select(ITERATION_SNAPSHOTS, `${OF_INSTANCE} order by key`, ['key', 'items']),
  signals: select(SIGNALS, `${OF_INSTANCE} and status = 'kept' order by seq`, SIGNAL),
  // Receipts are derived from these tables (`effect-reads.ts`).
  effectIds: sql<{ readonly id: string }>(
    `select id from ${TASKS} t ${OF_INSTANCE} ` +
      `union all select id from block_outputs ${OF_INSTANCE} and effect is not null ` +
      `union all select id from effect_receipts ${OF_INSTANCE} order by id limit ${CARRIED_MAX}`,
  ),
  version: select(SEQUENCES, BY_ID, VERSION),
  versionNamed: select(
    SEQUENCES,
    'where tenant_id = $1::text and namespace = $2::text and name = $3::text and version = $4::int',
    VERSION,
  ),
  life: sql<StoredRun>(REPLAY_SQL.run),
  outputKeys: select(
    BLOCK_OUTPUTS,
    `${OF_INSTANCE} order by ${OUTPUT_KEY.join(', ')}`,
    OUTPUT_KEY,
    `${OUTPUT_ROWS} b`,
  ),
  // Without records of tries.
  outputBlocks: sql<StoredRow<typeof BLOCK_OUTPUTS, 'block_id'>>(
    `select distinct block_id from ${OUTPUT_ROWS} b ${OF_INSTANCE} ` +
      'and output_ref is null order by block_id',
  ),
};
type Statement = keyof typeof CONTINUITY_SQL;
type RowOf<Name extends Statement> = NonNullable<(typeof CONTINUITY_SQL)[Name]['row']>;
export type ExecutionRow = RowOf<'execution'>;
export type HandoffRow = RowOf<'handoff'>;
export type ImportRow = RowOf<'importOf'>;
export type MigrationRow = RowOf<'migration'>;
export type OutputKeyRow = RowOf<'outputKeys'>;
export type ProvenanceRow = RowOf<'provenanceHead'>;
export type VersionRow = RowOf<'version'>;

/** Names in 404 messages. */
const OWNED = {
  execution: 'execution',
  handoff: 'handoff',
  decision: 'placement decision',
  migration: 'migration',
} as const;

export class ContinuityRows {
  readonly #runner: Runner;

  constructor(pool: pg.Pool) {
    this.#runner = new Runner(pool, QUERY_TIMEOUT_MS);
  }

  async one<Name extends Statement>(
    name: Name,
    ...values: readonly (string | number)[]
  ): Promise<RowOf<Name> | undefined> {
    return (await this.all(name, ...values))[0];
  }

  all<Name extends Statement>(
    name: Name,
    ...values: readonly (string | number)[]
  ): Promise<RowOf<Name>[]> {
    return this.#runner.all({ name: `continuity_${name}`, text: CONTINUITY_SQL[name], values });
  }

  /** Rejects with 404 when the tenant ('' is any) has none of that id. */
  async owned<Name extends keyof typeof OWNED>(
    name: Name,
    tenant: string,
    id: string,
  ): Promise<RowOf<Name>> {
    const row: RowOf<Name> | undefined = await this.one(name, id);
    return owned(row, tenant, `${OWNED[name]} ${id}`);
  }

  async isHere(instance: string): Promise<boolean> {
    return (await this.one('instance', instance)) !== undefined;
  }

  async runtimes(tenant: string, now: UnixMs): Promise<RuntimeCapabilities[]> {
    const rows = await this.all('runtimes', tenant, isoTime(now - LIVE_MS), isoTime(now));
    return rows.map(capabilitiesIn);
  }

  /** The latest registration, live or not. */
  async runtime(tenant: string, id: string): Promise<RuntimeCapabilities | undefined> {
    const row = await this.one('runtime', tenant, id);
    return row && capabilitiesIn(row);
  }

  /** The sealed payload of a capsule, if it is stored here. */
  async artifact(key: string): Promise<Buffer | undefined> {
    const row = await this.one('artifact', key);
    return row && Buffer.from(row.content, 'base64');
  }

  /** Of all instances of the execution, in a fixed order. */
  async unresolvedEffects({ continuity_id }: ExecutionRow): Promise<EffectReceipt[]> {
    const doubtful = await this.#effects(doubtfulEffects(continuity_id));
    return doubtful.filter(({ state }) => isEffectInDoubt(state));
  }

  /** Of all instances of the execution that are here, oldest first. */
  effects(execution: string): Promise<EffectReceipt[]> {
    return this.#effects(effectsOfExecution(execution));
  }

  async effect(id: string): Promise<EffectReceipt | undefined> {
    return (await this.#effects(effectById(id)))[0];
  }

  async #effects(query: Query): Promise<EffectReceipt[]> {
    return (await this.#runner.all<EffectRow>(query)).map(effectOfRow);
  }
}

function capabilitiesIn({ capabilities }: RowOf<'runtime'>): RuntimeCapabilities {
  return JSON.parse(capabilities) as RuntimeCapabilities;
}

/** The instance is null when it is not here. */
export interface ShownExecutionRow
  extends Omit<StoredRow<typeof CONTINUITY_EXECUTIONS>, 'state' | 'ended'> {
  readonly state: Execution['state'];
  readonly ended: Execution['state'] | null;
  readonly instance_state: InstanceState | null;
  readonly instance_updated_at: string | null;
}

/** An execution ends with its instance. Its end is stored when the instance is deleted. */
export function executionView(row: ShownExecutionRow): Execution {
  const { version: _, ended, instance_state, instance_updated_at, ...execution } = row;
  // In transfer, the instance is fenced and cannot have ended.
  if (execution.state !== 'owned') return execution;
  if (instance_state === null) return { ...execution, state: ended ?? 'owned' };
  if (!isEnded(instance_state)) return execution;
  return {
    ...execution,
    state: instance_state as Execution['state'],
    updated_at: laterOf(execution.updated_at, instance_updated_at ?? ''),
  };
}
