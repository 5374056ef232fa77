/**
 * What the execution service reads: the rows that hang on one execution, by key. Reads only; every
 * statement is named and finds its rows by an index.
 */

import type pg from 'pg';
import type { EffectReceipt, Execution } from '../../schema/continuity.js';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import type { HandoffFacts } from '../../src/core/continuity/handoff-view.js';
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
import type { StoredRun } from '../../src/db/reads/replay-reads.js';
import { Runner, type Statement } from '../../src/db/runner.js';
import type { StoredRow } from '../../src/db/tables.js';
import {
  CAPSULE_SQL,
  type CheckpointRow,
  type FrozenInstanceRow,
  type ItemsRow,
  type OutputTotalsRow,
  type SequenceFactsRow,
} from './capsule-sql.js';
import {
  MIGRATION_SQL,
  type OutputKeyRow,
  type PlaceRow,
  type VersionRow,
} from './migration-sql.js';

export type ExecutionRow = Execution & { readonly version: number };

export type HandoffRow = HandoffFacts;

export type ProvenanceRow = StoredRow<'provenance_entries'>;
export type MigrationRow = StoredRow<'migrations'>;

export interface ImportRow {
  readonly tenant_id: string;
  readonly capsule_id: string;
  readonly destination_runtime_id: string;
  readonly instance_id: string;
  readonly continuity_id: string;
  readonly source_epoch: number;
}

/** Candidates of one placement. */
const CANDIDATES_MAX = 1_000;
/** How long ago a live runtime was observed at most. */
export const LIVE_MS = 5 * 60_000;
/** As the drivers of the other reads: longer than any of these takes. */
const QUERY_TIMEOUT_MS = 30_000;

const HANDOFF_COLUMNS =
  'id, continuity_id, tenant_id, source_runtime_id, destination_runtime_id, ' +
  'expected_epoch::float8 as expected_epoch, state, capsule_id, capsule_expires_at, ' +
  'placement_decision_id, preview_sha256, version, failure_code, terms, created_at, updated_at';

const EXECUTION_COLUMNS =
  'continuity_id, tenant_id, current_instance_id, owner_runtime_id, epoch::float8 as epoch, state, ' +
  'version::float8 as version, updated_at';

const IMPORT_COLUMNS =
  'tenant_id, capsule_id, destination_runtime_id, instance_id, continuity_id, ' +
  'source_epoch::float8 as source_epoch';

export const CONTINUITY_SQL = {
  execution: `select ${EXECUTION_COLUMNS} from continuity_executions where continuity_id = $1::uuid`,
  executionOf:
    `select ${EXECUTION_COLUMNS} from continuity_executions ` +
    'where tenant_id = $1::text and current_instance_id = $2::uuid',
  tenantOf: 'select tenant_id from instances where id = $1::uuid',
  handoff: `select ${HANDOFF_COLUMNS} from handoffs where id = $1::uuid`,
  handoffs:
    `select ${HANDOFF_COLUMNS} from handoffs where continuity_id = $1::uuid ` +
    'order by created_at, id',
  decision: 'select tenant_id, record from placement_decisions where id = $1::uuid',
  runtimes:
    'select capabilities from runtimes where tenant_id = $1::text ' +
    'and observed_at > $2::timestamptz and expires_at > $3::timestamptz ' +
    `order by observed_at desc, runtime_id limit ${CANDIDATES_MAX}`,
  runtime: 'select capabilities from runtimes where tenant_id = $1::text and runtime_id = $2::uuid',
  stateOf: 'select state from instances where id = $1::uuid',
  stateAt:
    'select i.state from continuity_locations l join instances i on i.id = l.instance_id ' +
    'where l.continuity_id = $1::uuid and l.epoch = $2::bigint',
  provenanceHead:
    'select continuity_id, seq, id, tenant_id, epoch::float8 as epoch, kind, redacted_summary, ' +
    'payload_sha256, previous_sha256, entry_sha256, signing_key_id, signature, created_at ' +
    'from provenance_entries where continuity_id = $1::uuid order by seq desc limit 1',
  migration:
    'select id, continuity_id, tenant_id, state, record, secrets, created_at, updated_at ' +
    'from migrations where id = $1::uuid',
  capsuleImport:
    `select ${IMPORT_COLUMNS} from capsule_imports where tenant_id = $1::text ` +
    'and capsule_id = $2::uuid and destination_runtime_id = $3::uuid',
  importOf: `select ${IMPORT_COLUMNS} from capsule_imports where instance_id = $1::uuid`,
  artifact:
    "select encode(content, 'base64') as content, sha256 from artifacts where key = $1::text",
  ...CAPSULE_SQL,
  ...MIGRATION_SQL,
} as const;

export class ContinuityRows {
  readonly #runner: Runner;

  constructor(pool: pg.Pool) {
    this.#runner = new Runner(pool, QUERY_TIMEOUT_MS);
  }

  execution(id: string): Promise<ExecutionRow | undefined> {
    return this.one<ExecutionRow>('execution', [id]);
  }

  /** The execution whose present instance this is. */
  executionOf(tenant: string, instance: string): Promise<ExecutionRow | undefined> {
    return this.one<ExecutionRow>('executionOf', [tenant, instance]);
  }

  /** Of an instance; undefined when there is none. */
  async tenantOf(instance: string): Promise<string | undefined> {
    return (await this.one<{ tenant_id: string }>('tenantOf', [instance]))?.tenant_id;
  }

  handoff(id: string): Promise<HandoffRow | undefined> {
    return this.one<HandoffRow>('handoff', [id]);
  }

  /** Of one execution, oldest first. */
  handoffs(execution: string): Promise<HandoffRow[]> {
    return this.all<HandoffRow>('handoffs', [execution]);
  }

  decision(id: string): Promise<{ tenant_id: string; record: string } | undefined> {
    return this.one('decision', [id]);
  }

  /** The live ones, those seen last first. */
  async runtimes(tenant: string, now: UnixMs): Promise<RuntimeCapabilities[]> {
    const values = [tenant, isoTime(now - LIVE_MS), isoTime(now)];
    const rows = await this.all<{ capabilities: string }>('runtimes', values);
    return rows.map(({ capabilities }) => JSON.parse(capabilities) as RuntimeCapabilities);
  }

  /** As it was registered last; whether it is live is another question. */
  async runtime(tenant: string, id: string): Promise<RuntimeCapabilities | undefined> {
    const row = await this.one<{ capabilities: string }>('runtime', [tenant, id]);
    return row && (JSON.parse(row.capabilities) as RuntimeCapabilities);
  }

  /** Of an instance; undefined when there is none here. */
  async stateOf(instance: string): Promise<InstanceState | undefined> {
    return (await this.one<{ state: InstanceState }>('stateOf', [instance]))?.state;
  }

  /** Of the instance that the execution was at an epoch; undefined when that is not here. */
  async stateAt(execution: string, epoch: number): Promise<InstanceState | undefined> {
    const row = await this.one<{ state: InstanceState }>('stateAt', [execution, epoch]);
    return row?.state;
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
    return (await this.#runner.all<EffectRow>(query)).map(effectOfRow);
  }

  provenanceHead(execution: string): Promise<ProvenanceRow | undefined> {
    return this.one<ProvenanceRow>('provenanceHead', [execution]);
  }

  migration(id: string): Promise<MigrationRow | undefined> {
    return this.one<MigrationRow>('migration', [id]);
  }

  capsuleImport(tenant: string, capsule: string, runtime: string): Promise<ImportRow | undefined> {
    return this.one<ImportRow>('capsuleImport', [tenant, capsule, runtime]);
  }

  /** By which the instance came here. */
  importOf(instance: string): Promise<ImportRow | undefined> {
    return this.one<ImportRow>('importOf', [instance]);
  }

  async artifact(key: string): Promise<{ content: Buffer; sha256: string } | undefined> {
    const row = await this.one<{ content: string; sha256: string }>('artifact', [key]);
    return row && { content: Buffer.from(row.content, 'base64'), sha256: row.sha256 };
  }

  // ---------------------------------------------------------------- what a capsule carries

  /** With its own blocks and its sequence; undefined when it is not here. */
  frozenInstance(id: string): Promise<FrozenInstanceRow | undefined> {
    return this.one<FrozenInstanceRow>('frozenInstance', [id]);
  }

  /** The one that an instance saved last. */
  lastCheckpoint(instance: string): Promise<CheckpointRow | undefined> {
    return this.one<CheckpointRow>('lastCheckpoint', [instance]);
  }

  /** How many outputs an instance has, and their bytes. */
  async outputTotals(instance: string): Promise<OutputTotalsRow> {
    return (await this.one<OutputTotalsRow>('frozenTotals', [instance])) ?? { rows: 0, bytes: 0 };
  }

  /** Oldest first; as many as a capsule can carry, and one more. */
  frozenOutputs(instance: string): Promise<OutputText[]> {
    return this.all<OutputText>('frozenOutputs', [instance]);
  }

  frozenItems(instance: string): Promise<ItemsRow[]> {
    return this.all<ItemsRow>('frozenItems', [instance]);
  }

  /** Of all receipts of an instance; as many as a capsule can carry, and one more. */
  async effectIds(instance: string): Promise<string[]> {
    return (await this.all<{ id: string }>('effectIds', [instance])).map(({ id }) => id);
  }

  sequenceFacts(id: string): Promise<SequenceFactsRow | undefined> {
    return this.one<SequenceFactsRow>('sequenceFacts', [id]);
  }

  // ---------------------------------------------------------------- what a migration looks at

  /** Where an instance stands; undefined when it is not here. */
  place(instance: string): Promise<PlaceRow | undefined> {
    return this.one<PlaceRow>('place', [instance]);
  }

  version(sequence: string): Promise<VersionRow | undefined> {
    return this.one<VersionRow>('version', [sequence]);
  }

  /** What an instance has left behind so far. */
  life(instance: string): Promise<StoredRun | undefined> {
    return this.one<StoredRun>('life', [instance]);
  }

  /** Of every output of an instance. */
  outputKeys(instance: string): Promise<OutputKeyRow[]> {
    return this.all<OutputKeyRow>('outputKeys', [instance]);
  }

  /** The blocks of an instance that gave an output. */
  async outputBlocks(instance: string): Promise<string[]> {
    const rows = await this.all<{ block_id: string }>('outputBlocks', [instance]);
    return rows.map(({ block_id }) => block_id);
  }

  protected one<Row extends object>(
    name: keyof typeof CONTINUITY_SQL,
    values: readonly unknown[],
  ): Promise<Row | undefined> {
    return this.#runner.one(statementOf(name, values));
  }

  protected all<Row extends object>(
    name: keyof typeof CONTINUITY_SQL,
    values: readonly unknown[],
  ): Promise<Row[]> {
    return this.#runner.all(statementOf(name, values));
  }
}

function statementOf(name: keyof typeof CONTINUITY_SQL, values: readonly unknown[]): Statement {
  return { name: `continuity_${name}`, text: CONTINUITY_SQL[name], values };
}
