/**
 * Executions and what hangs on them, as callers read them. Reads only; every statement finds its
 * rows by an index, and those that the execution service uses too are its own (`actors/continuity/rows.ts`).
 */

import {
  CONTINUITY_SQL,
  type ExecutionRow,
  type HandoffRow,
  LIVE_MS,
  type MigrationRow,
  type ProvenanceRow,
} from '../../../actors/continuity/rows.js';
import type { Boundary, Execution, Location, ProvenanceEntry } from '../../../schema/continuity.js';
import { checkpointBoundary } from '../../core/continuity/checkpoint-boundary.js';
import type { JsonValue } from '../../core/json.js';
import type { InstanceState } from '../../core/states.js';
import { isoTime, type UnixMs } from '../../core/time.js';
import { unavailable } from '../../errors.js';
import type { Query } from './query.js';
import type { Reader } from './reader.js';

/** A checkpoint at one of the places where the execution has been. */
interface BoundaryKey extends Location {
  /** Of the checkpoint. */
  readonly id: string;
  readonly sequence_id: string;
  readonly sequence_version: number;
}

interface FoundKey extends BoundaryKey {
  readonly previous_id: string | null;
  readonly previous_instance_id: string | null;
}

interface CheckpointRow {
  readonly id: string;
  readonly instance_id: string;
  /** Null is the JSON value null. */
  readonly checkpoint_data: string | null;
  readonly created_at: string;
}

/** One boundary with its data, and what stands before it in the list. */
export interface FoundBoundary {
  readonly boundary: Boundary;
  /** JSON text, as it was saved. */
  readonly data: string;
  readonly previousId: string | null;
  /** JSON text; `{}` before the first. */
  readonly previousData: string;
}

const CHEAPER_LOOKUP = 'try again later';
const CHEAPER_LIST = 'ask for a smaller limit';

/** Checkpoints that are hashed in one piece, of 256 KiB each at most: some 40 ms at worst. */
const HASHED_AT_ONCE = 8;

/** The version is 0 of a sequence that was deleted after all its instances had ended. */
const BOUNDARY_KEY =
  'l.continuity_id, l.tenant_id, l.epoch::float8 as epoch, l.runtime_id, l.instance_id, ' +
  'l.handoff_id, l.entered_at, c.id, i.sequence_id, coalesce(s.version, 0) as sequence_version';

const BOUNDARIES =
  'from continuity_locations l join checkpoints c on c.instance_id = l.instance_id ' +
  'join instances i on i.id = l.instance_id left join sequences s on s.id = i.sequence_id ' +
  'where l.continuity_id = $1::uuid';

export const CONTINUITY_READ_SQL = {
  boundaries: `select ${BOUNDARY_KEY} ${BOUNDARIES} order by l.epoch, c.created_at, c.id limit $2::bigint`,
  boundary:
    'select * from (select ' +
    `${BOUNDARY_KEY}, lag(c.id) over list as previous_id, ` +
    `lag(c.instance_id) over list as previous_instance_id ${BOUNDARIES} ` +
    'window list as (order by l.epoch, c.created_at, c.id)) found ' +
    'where id = $2::uuid order by epoch limit 1',
  checkpoints:
    'select c.id, c.instance_id, c.checkpoint_data, c.created_at ' +
    'from unnest($1::uuid[], $2::uuid[]) as k(instance_id, id) ' +
    'join checkpoints c on c.instance_id = k.instance_id and c.id = k.id',
} as const;

export class ContinuityReads {
  readonly #reader: Reader;
  readonly #slowReadMs: number;

  /** @param slowReadMs how long one answer may take in all */
  constructor(reader: Reader, slowReadMs: number) {
    this.#reader = reader;
    this.#slowReadMs = slowReadMs;
  }

  /** Undefined when the tenant ('' is any) has none of that id. */
  async execution(id: string, tenant: string): Promise<Execution | undefined> {
    const row = await this.#one<ExecutionRow>('execution', [id], tenant);
    if (row === undefined) return undefined;
    const { version: _, ...execution } = row;
    return execution;
  }

  /** `ContinuityLocation` records by epoch. */
  async locations(executionId: string): Promise<string> {
    const page = await this.#reader.page<Location>({
      query: locationsQuery(executionId),
      toText: (row) => JSON.stringify(row),
      cheaper: CHEAPER_LOOKUP,
    });
    return page.text;
  }

  /** The first boundaries by epoch and time; a checkpoint once for each epoch of its instance. */
  async boundaries(executionId: string, limit: number): Promise<Boundary[]> {
    const endsAt = performance.now() + this.#slowReadMs;
    const keys = await this.#reader.rows<BoundaryKey>({
      name: 'reads_boundaries',
      text: CONTINUITY_READ_SQL.boundaries,
      values: [executionId, limit],
      cheaper: CHEAPER_LIST,
    });
    const first = new Map(keys.map((key) => [key.id, key]));
    const unique = [...first.values()];
    const known = new Map<string, Boundary>();
    for (let at = 0; at < unique.length; at += HASHED_AT_ONCE) {
      if (performance.now() > endsAt) {
        throw unavailable('ENG_SLOW_READ', `the answer takes too long; ${CHEAPER_LIST}`);
      }
      for (const row of await this.#checkpoints(unique.slice(at, at + HASHED_AT_ONCE))) {
        const key = first.get(row.id);
        if (key !== undefined) known.set(row.id, boundaryOf(key, row));
      }
    }
    // What was pruned in between has no boundary any more.
    return keys.flatMap(({ id, epoch }) => {
      const boundary = known.get(id);
      return boundary === undefined ? [] : [{ ...boundary, epoch }];
    });
  }

  /** The first boundary of that checkpoint; undefined when the execution has none. */
  async boundary(executionId: string, checkpointId: string): Promise<FoundBoundary | undefined> {
    const [key] = await this.#reader.rows<FoundKey>({
      name: 'reads_boundary',
      text: CONTINUITY_READ_SQL.boundary,
      values: [executionId, checkpointId],
      cheaper: CHEAPER_LOOKUP,
    });
    if (key === undefined) return undefined;
    const { previous_id: previousId, previous_instance_id: instance_id } = key;
    const before =
      previousId === null || instance_id === null ? [] : [{ id: previousId, instance_id }];
    const rows = await this.#checkpoints([key, ...before]);
    const row = rows.find(({ id }) => id === key.id);
    if (row === undefined) return undefined;
    const previous = rows.find(({ id }) => id === previousId);
    return {
      boundary: boundaryOf(key, row),
      data: textOf(row),
      previousId,
      previousData: previous === undefined ? '{}' : textOf(previous),
    };
  }

  /**
   * `ProvenanceEntry` records in the order of the chain; none of a foreign or unknown execution.
   *
   * @param bytesMax default: the size of an answer
   */
  async provenance(executionId: string, tenant: string, bytesMax?: number): Promise<string> {
    const page = await this.#reader.page<ProvenanceRow>({
      query: provenanceQuery(executionId, tenant),
      toText: (row) => JSON.stringify(entryOf(row)),
      cheaper: CHEAPER_LOOKUP,
      ...(bytesMax === undefined ? {} : { bytesMax }),
    });
    return page.text;
  }

  /** `RuntimeCapabilities` of the live ones, those seen last first. */
  async runtimes(tenant: string, now: UnixMs): Promise<string> {
    const page = await this.#reader.page<{ readonly capabilities: string }>({
      query: runtimesQuery(tenant, now),
      toText: (row) => row.capabilities,
      cheaper: CHEAPER_LOOKUP,
    });
    return page.text;
  }

  /** Undefined when the tenant ('' is any) has none of that id. */
  handoff(id: string, tenant: string): Promise<HandoffRow | undefined> {
    return this.#one<HandoffRow>('handoff', [id], tenant);
  }

  /** Of the instance that the execution was at an epoch; undefined when that is not here. */
  async stateAt(executionId: string, epoch: number): Promise<InstanceState | undefined> {
    const [row] = await this.#rows<{ readonly state: InstanceState }>('stateAt', [
      executionId,
      epoch,
    ]);
    return row?.state;
  }

  /** Undefined when the tenant ('' is any) has none of that id. */
  migration(id: string, tenant: string): Promise<MigrationRow | undefined> {
    return this.#one<MigrationRow>('migration', [id], tenant);
  }

  #checkpoints(
    keys: readonly { readonly id: string; readonly instance_id: string }[],
  ): Promise<CheckpointRow[]> {
    return this.#reader.rows<CheckpointRow>({
      name: 'reads_boundary_checkpoints',
      text: CONTINUITY_READ_SQL.checkpoints,
      values: [keys.map((key) => key.instance_id), keys.map((key) => key.id)],
      cheaper: CHEAPER_LIST,
    });
  }

  async #one<Row extends { readonly tenant_id: string }>(
    name: keyof typeof CONTINUITY_SQL,
    values: readonly unknown[],
    tenant: string,
  ): Promise<Row | undefined> {
    const [row] = await this.#rows<Row>(name, values);
    return row === undefined || (tenant !== '' && row.tenant_id !== tenant) ? undefined : row;
  }

  #rows<Row extends object>(
    name: keyof typeof CONTINUITY_SQL,
    values: readonly unknown[],
  ): Promise<Row[]> {
    return this.#reader.rows<Row>({
      name: `reads_continuity_${name}`,
      text: CONTINUITY_SQL[name],
      values,
      cheaper: CHEAPER_LOOKUP,
    });
  }
}

export function locationsQuery(executionId: string): Query {
  return {
    text:
      'select continuity_id, tenant_id, epoch::float8 as epoch, runtime_id, instance_id, ' +
      'handoff_id, entered_at from continuity_locations where continuity_id = $1::uuid ' +
      'order by epoch',
    values: [executionId],
  };
}

/** @param tenant '' is any */
export function provenanceQuery(executionId: string, tenant: string): Query {
  return {
    text:
      'select continuity_id, seq, id, tenant_id, epoch::float8 as epoch, kind, ' +
      'redacted_summary, payload_sha256, previous_sha256, entry_sha256, signing_key_id, ' +
      'signature, created_at from provenance_entries where continuity_id = $1::uuid ' +
      `${tenant === '' ? '' : 'and tenant_id = $2::text '}order by seq`,
    values: tenant === '' ? [executionId] : [executionId, tenant],
  };
}

export function runtimesQuery(tenant: string, now: UnixMs): Query {
  return { text: CONTINUITY_SQL.runtimes, values: [tenant, isoTime(now - LIVE_MS), isoTime(now)] };
}

function boundaryOf(key: BoundaryKey, row: CheckpointRow): Boundary {
  const data = JSON.parse(textOf(row)) as JsonValue;
  const sequence = { id: key.sequence_id, version: key.sequence_version };
  return checkpointBoundary({ ...row, checkpoint_data: data }, key, sequence);
}

function textOf({ checkpoint_data }: CheckpointRow): string {
  return checkpoint_data ?? 'null';
}

/** The wire record: a summary only where there is one. */
function entryOf({ seq: _, redacted_summary, ...entry }: ProvenanceRow): ProvenanceEntry {
  const record = entry as Omit<ProvenanceEntry, 'redacted_summary'>;
  return redacted_summary === null ? record : { ...record, redacted_summary };
}
