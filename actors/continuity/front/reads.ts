/**
 * The reads of executions for callers. Every statement uses an index; some are shared with the
 * execution service (`actors/continuity/rows.ts`).
 */

import type { Boundary, ProvenanceEntry } from '../../../schema/continuity.js';
import type { InstanceState } from '../../../schema/states.js';
import { unavailable } from '../../../src/base/errors.js';
import { isJsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import { LIMITS } from '../../../src/base/limits.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import type { PageRequest, Reader } from '../../../src/db/reads/reader.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import type { CHECKPOINTS } from '../../instance/output-tables.js';
import type { INSTANCES } from '../../instance/tables.js';
import { CHECKPOINT_COLUMNS, type CheckpointWireRow } from '../../instance/wire-texts.js';
import {
  CONTINUITY_SQL,
  type HandoffRow,
  LIVE_MS,
  type MigrationRow,
  type ProvenanceRow,
  type ShownExecutionRow,
} from '../rows.js';
import { CONTINUITY_LOCATIONS, PROVENANCE_ENTRIES, type RUNTIMES } from '../tables.js';

interface BoundaryKey
  extends StoredRow<typeof CONTINUITY_LOCATIONS>,
    StoredRow<typeof CHECKPOINTS, 'id'>,
    StoredRow<typeof INSTANCES, 'sequence_id'> {
  readonly sequence_version: number;
}

interface FoundKey extends BoundaryKey {
  readonly previous_id: string | null;
  readonly previous_instance_id: string | null;
}

const CHEAPER = 'ask for a smaller limit';
/** Checkpoints of up to 256 KiB hashed without a pause: 40 ms at worst. */
const HASHED_AT_ONCE = 8;
const LOCATION_COLUMNS = columnsBut(CONTINUITY_LOCATIONS);

/** The version of a deleted sequence is 0. */
const BOUNDARY_KEY =
  `${selected(LOCATION_COLUMNS, 'l')}, c.id, i.sequence_id, ` +
  'coalesce(s.version, 0) as sequence_version';

const BOUNDARIES =
  'from continuity_locations l join checkpoints c on c.instance_id = l.instance_id ' +
  'join instances i on i.id = l.instance_id left join sequences s on s.id = i.sequence_id ' +
  'where l.continuity_id = $1::uuid';

export const BOUNDARY_LOOKUPS = {
  first: lookup<BoundaryKey>(
    'reads_boundaries',
    `select ${BOUNDARY_KEY} ${BOUNDARIES} order by l.epoch, c.created_at, c.id limit $2::bigint`,
    CHEAPER,
  ),
  ofCheckpoint: lookup<FoundKey>(
    'reads_boundary',
    'select * from (select ' +
      `${BOUNDARY_KEY}, lag(c.id) over list as previous_id, ` +
      `lag(c.instance_id) over list as previous_instance_id ${BOUNDARIES} ` +
      'window list as (order by l.epoch, c.created_at, c.id)) found ' +
      'where id = $2::uuid order by epoch limit 1',
  ),
  checkpoints: lookup<CheckpointWireRow>(
    'reads_boundary_checkpoints',
    `select ${selected(CHECKPOINT_COLUMNS, 'c')} ` +
      'from unnest($1::uuid[], $2::uuid[]) as k(instance_id, id) ' +
      'join checkpoints c on c.instance_id = k.instance_id and c.id = k.id',
    CHEAPER,
  ),
} as const;

function shared<Row extends object>(name: keyof typeof CONTINUITY_SQL) {
  return lookup<Row>(`reads_continuity_${name}`, CONTINUITY_SQL[name]);
}

export const executionById = shared<ShownExecutionRow>('shownExecution');
export const handoffById = shared<HandoffRow>('handoff');
export const migrationById = shared<MigrationRow>('migration');
export const stateAt = shared<{ readonly state: InstanceState }>('stateAt');

export const locationList = list({
  columns: selected(LOCATION_COLUMNS),
  from: 'continuity_locations',
  of: filtersOf(CONTINUITY_LOCATIONS, ['continuity_id']),
  order: 'epoch',
  cheaper: TRY_LATER,
});

/** Empty for a foreign or unknown execution. */
export const provenanceList = list({
  columns: selected(columnsBut(PROVENANCE_ENTRIES)),
  from: 'provenance_entries',
  of: filtersOf(PROVENANCE_ENTRIES, ['continuity_id']),
  by: filtersOf(PROVENANCE_ENTRIES, ['tenant_id']),
  order: 'seq',
  toText: (row: ProvenanceRow) => JSON.stringify(entryOf(row)),
  cheaper: TRY_LATER,
});

/** Live runtimes, the latest observed first. */
export function runtimeList(
  tenant: string,
  now: UnixMs,
): PageRequest<StoredRow<typeof RUNTIMES, 'capabilities'>> {
  const values = [tenant, isoTime(now - LIVE_MS), isoTime(now)];
  return {
    query: { text: CONTINUITY_SQL.runtimes, values },
    toText: (row) => row.capabilities,
    cheaper: TRY_LATER,
  };
}

/** By epoch and time; a checkpoint appears once for each epoch of its instance. */
export async function boundaries(
  reads: Reader,
  executionId: string,
  limit: number,
): Promise<Boundary[]> {
  const endsAt = performance.now() + LIMITS.slowReadMs;
  const keys = await BOUNDARY_LOOKUPS.first.rows(reads, executionId, limit);
  const first = new Map(keys.map((key) => [key.id, key]));
  const unique = [...first.values()];
  const known = new Map<string, Boundary>();
  for (let at = 0; at < unique.length; at += HASHED_AT_ONCE) {
    if (performance.now() > endsAt) {
      throw unavailable('ENG_SLOW_READ', `the answer takes too long; ${CHEAPER}`);
    }
    for (const row of await checkpointsOf(reads, unique.slice(at, at + HASHED_AT_ONCE))) {
      const key = first.get(row.id);
      if (key !== undefined) known.set(row.id, boundaryOf(key, row));
    }
  }
  // A checkpoint that was pruned meanwhile has no boundary.
  return keys.flatMap(({ id, epoch }) => {
    const boundary = known.get(id);
    return boundary === undefined ? [] : [{ ...boundary, epoch }];
  });
}

/** The first boundary of the checkpoint, with the JSON text of its data and its predecessor's. */
export async function boundaryOfCheckpoint(
  reads: Reader,
  executionId: string,
  checkpointId: string,
) {
  const key = await BOUNDARY_LOOKUPS.ofCheckpoint.row(reads, executionId, checkpointId);
  if (key === undefined) return undefined;
  const { previous_id: previousId, previous_instance_id: instance_id } = key;
  const before =
    previousId === null || instance_id === null ? [] : [{ id: previousId, instance_id }];
  const rows = await checkpointsOf(reads, [key, ...before]);
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

function checkpointsOf(
  reads: Reader,
  keys: readonly Pick<CheckpointWireRow, 'id' | 'instance_id'>[],
): Promise<CheckpointWireRow[]> {
  const instances = keys.map((key) => key.instance_id);
  const ids = keys.map((key) => key.id);
  return BOUNDARY_LOOKUPS.checkpoints.rows(reads, instances, ids);
}

export function boundaryOf(key: BoundaryKey, row: CheckpointWireRow): Boundary {
  const { continuity_id, epoch, sequence_id, sequence_version } = key;
  const data = JSON.parse(textOf(row)) as JsonValue;
  return {
    checkpoint_id: row.id,
    instance_id: row.instance_id,
    continuity_id,
    epoch,
    sequence_id,
    sequence_version,
    block_id: blockIn(data) ?? 'unknown_boundary',
    checkpoint_sha256: canonicalSha256(data),
    provenance_head: null,
    created_at: row.created_at,
  };
}

/** The block that the data name by convention. */
function blockIn(data: JsonValue): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const names = [ownValue(data, 'safe_boundary'), ownValue(data, 'block_id')];
  return names.find((name) => typeof name === 'string');
}

function textOf({ checkpoint_data }: CheckpointWireRow): string {
  return checkpoint_data ?? 'null';
}

function entryOf({ seq: _, redacted_summary, ...entry }: ProvenanceRow): ProvenanceEntry {
  const record = entry as Omit<ProvenanceEntry, 'redacted_summary'>;
  return redacted_summary === null ? record : { ...record, redacted_summary };
}
