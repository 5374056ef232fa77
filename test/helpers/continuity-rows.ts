/** Rows of the tables of continuity in great numbers, and what is asked of them: for plans. */

import {
  doubtfulEffects,
  effectById,
  effectsOfExecution,
  effectsOfInstance,
} from '../../actors/continuity/effect-reads.js';
import {
  BOUNDARY_LOOKUPS,
  locationList,
  provenanceList,
  runtimeList,
} from '../../actors/continuity/front/reads.js';
import { CONTINUITY_SQL } from '../../actors/continuity/rows.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Query } from '../../src/db/reads/query.js';

const HASH = "repeat('a', 64)";

/**
 * Inserts for every table, of ids that `id` gives for a number `g`.
 *
 * @param at the time of row `g`
 */
export function continuityFill(rows: number, id: (number: string) => string, at: string): string[] {
  const tenant = "'tenant-' || g % 10";
  const from = `from generate_series(1, ${rows}) g`;
  return [
    "update block_outputs set effect = '{}' where attempt % 3 = 0",
    `insert into effect_receipts (
       id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state,
       destination_fingerprint, request_sha256, created_at, updated_at)
     select ${id('g')}, ${id('g / 5 + 1')}, ${id('g / 5 + 1')}, ${tenant}, 0, 'a', g % 5, 'http',
       'unknown', ${HASH}, ${HASH}, ${at}, ${at} ${from}`,
    `insert into effect_resolutions (id, instance_id, state, updated_at)
     select ${id('g')}, ${id('g / 5 + 1')}, 'verified', ${at} ${from}`,
    `insert into continuity_executions (
       continuity_id, tenant_id, current_instance_id, owner_runtime_id, epoch, state, version,
       updated_at)
     select ${id('g')}, ${tenant}, ${id('g')}, ${id('g')}, 0, 'owned', 0, ${at} ${from}`,
    `insert into continuity_locations (
       continuity_id, epoch, tenant_id, runtime_id, instance_id, entered_at)
     select ${id('g / 3')}, g % 3, ${tenant}, ${id('g')}, ${id('g')}, ${at} ${from}`,
    `insert into provenance_entries (
       continuity_id, seq, id, tenant_id, epoch, kind, payload_sha256, entry_sha256, created_at)
     select ${id('g / 5')}, g % 5, ${id('g')}, ${tenant}, 0, 'execution_created', ${HASH}, ${HASH},
       ${at} ${from}`,
    `insert into runtimes (tenant_id, runtime_id, capabilities, observed_at, expires_at)
     select ${tenant}, ${id('g')}, '{}', ${at}, ${at} ${from}`,
    `insert into placement_decisions (id, continuity_id, tenant_id, record, created_at)
     select ${id('g')}, ${id('g / 5')}, ${tenant}, '{}', ${at} ${from}`,
    `insert into handoffs (
       id, continuity_id, tenant_id, source_runtime_id, destination_runtime_id, expected_epoch, state,
       placement_decision_id, preview_sha256, version, terms, created_at, updated_at)
     select ${id('g')}, ${id('g / 5')}, ${tenant}, ${id('g')}, ${id('g')}, 0, 'requested', ${id('g')},
       ${HASH}, 0, '{}', ${at}, ${at} ${from}`,
    `insert into artifacts (
       key, instance_id, tenant_id, content_type, content, sha256, created_at)
     select 'key-' || g, ${id('g / 5')}, ${tenant}, 'c', ''::bytea, ${HASH}, ${at} ${from}`,
    `insert into capsule_imports (
       tenant_id, capsule_id, destination_runtime_id, instance_id, continuity_id, source_epoch,
       created_at)
     select ${tenant}, ${id('g')}, ${id('g')}, ${id('g')}, ${id('g')}, 0, ${at} ${from}`,
    `insert into migrations (
       id, continuity_id, tenant_id, state, record, secrets, created_at, updated_at)
     select ${id('g')}, ${id('g / 5')}, ${tenant}, 'planned', '{}', '{}', ${at}, ${at} ${from}`,
  ];
}

/** Everything that the execution service and the front thread read of executions. */
export function continuityQueries(
  id: string,
  time: string,
): (readonly [string, Query, { readonly mayNotAvoidSorting: string }])[] {
  const queries: (readonly [string, Query])[] = [
    ['effects of an instance', effectsOfInstance(id, { limit: 100 })],
    ['effects of an execution', effectsOfExecution(id, 'tenant-3')],
    ['effects of an execution in doubt', doubtfulEffects(id)],
    ['an effect', effectById(id)],
    ['locations', locationList({ continuity_id: id }).query],
    ['provenance', provenanceList({ continuity_id: id }).query],
    ['provenance of a tenant', provenanceList({ continuity_id: id, tenant_id: 'tenant-3' }).query],
    ['runtimes of a tenant', runtimeList('tenant-3', Date.parse(time) as UnixMs).query],
    ...Object.entries(BOUNDARY_LOOKUPS).map(
      ([name, { text }]) =>
        [`${name} of a caller`, { text, values: valuesOf(text, id, time) }] as const,
    ),
    ...Object.entries(CONTINUITY_SQL).map(
      ([name, text]) =>
        [`${name} of the execution service`, { text, values: valuesOf(text, id, time) }] as const,
    ),
  ];
  const few = { mayNotAvoidSorting: 'the rows of one execution or instance' };
  return queries.map(([what, query]) => [what, query, few]);
}

/** A value of each parameter's type, which the statement spells out. */
function valuesOf(text: string, id: string, time: string): unknown[] {
  const types = new Map([...text.matchAll(/\$(\d)::(\w+(?:\[\])?)/g)].map((it) => [it[1], it[2]]));
  const samples = { uuid: id, text: 'tenant-3', timestamptz: time, bigint: 1, 'uuid[]': [id] };
  return [...types].sort().map(([, type]) => samples[type as keyof typeof samples] ?? 1);
}
