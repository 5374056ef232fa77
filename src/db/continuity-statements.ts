/**
 * The SQL of the writer for continuity: ownership, effects, executions and what hangs on them. As in
 * `statements.ts`, $1 of each is the JSON text of an array of rows.
 */

import type { MutationKind } from '../core/unit.js';

export const CONTINUITY_TEXTS = {
  'instance.ownership': `
update instances i set
  continuity_id = r.continuity_id, ownership_epoch = r.ownership_epoch, fence = r.fence
from json_to_recordset($1::json) as r(
  id uuid, continuity_id uuid, ownership_epoch bigint, fence json)
where i.id = r.id`,

  'effect.insert': `
insert into effect_receipts (
  id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state,
  destination_fingerprint, idempotency_key, request_sha256, provider_receipt_id, created_at,
  updated_at)
select
  id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state,
  destination_fingerprint, idempotency_key, request_sha256, provider_receipt_id, created_at,
  updated_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, continuity_id uuid, tenant_id text, epoch bigint, block_id text,
  attempt integer, kind text, state text, destination_fingerprint text, idempotency_key text,
  request_sha256 text, provider_receipt_id text, created_at timestamptz, updated_at timestamptz)
on conflict (id) do nothing`,

  'effectResolution.set': `
insert into effect_resolutions (id, instance_id, state, provider_receipt_id, updated_at)
select id, instance_id, state, provider_receipt_id, updated_at
from json_to_recordset($1::json) as r(
  id uuid, instance_id uuid, state text, provider_receipt_id text, updated_at timestamptz)
on conflict (id) do update set
  state = excluded.state, provider_receipt_id = excluded.provider_receipt_id,
  updated_at = excluded.updated_at`,

  'execution.insert': `
insert into continuity_executions (
  continuity_id, tenant_id, current_instance_id, owner_runtime_id, epoch, state, version, updated_at)
select
  continuity_id, tenant_id, current_instance_id, owner_runtime_id, epoch, state, 0, updated_at
from json_to_recordset($1::json) as r(
  continuity_id uuid, tenant_id text, current_instance_id uuid, owner_runtime_id uuid,
  epoch bigint, state text, updated_at timestamptz)`,

  // Fails with 22P02 when the row has another version than the one that was decided on, and with it
  // the whole unit.
  'execution.update': `
with changed as (
  update continuity_executions e set
    current_instance_id = r.current_instance_id, owner_runtime_id = r.owner_runtime_id,
    epoch = r.epoch, state = r.state, version = e.version + 1, updated_at = r.updated_at
  from json_to_recordset($1::json) as r(
    continuity_id uuid, current_instance_id uuid, owner_runtime_id uuid, epoch bigint,
    state text, version bigint, updated_at timestamptz)
  where e.continuity_id = r.continuity_id and e.version = r.version
  returning 1
)
select (case when count(*) = json_array_length($1::json) then '1' else 'stale' end)::integer
from changed`,

  'location.insert': `
insert into continuity_locations (
  continuity_id, epoch, tenant_id, runtime_id, instance_id, handoff_id, entered_at)
select continuity_id, epoch, tenant_id, runtime_id, instance_id, handoff_id, entered_at
from json_to_recordset($1::json) as r(
  continuity_id uuid, epoch bigint, tenant_id text, runtime_id uuid, instance_id uuid,
  handoff_id uuid, entered_at timestamptz)`,

  'provenance.insert': `
insert into provenance_entries (
  continuity_id, seq, id, tenant_id, epoch, kind, redacted_summary, payload_sha256,
  previous_sha256, entry_sha256, signing_key_id, signature, created_at)
select
  continuity_id, seq, id, tenant_id, epoch, kind, redacted_summary, payload_sha256,
  previous_sha256, entry_sha256, signing_key_id, signature, created_at
from json_to_recordset($1::json) as r(
  continuity_id uuid, seq integer, id uuid, tenant_id text, epoch bigint, kind text,
  redacted_summary text, payload_sha256 text, previous_sha256 text, entry_sha256 text,
  signing_key_id text, signature text, created_at timestamptz)`,

  // What was observed earlier does not replace what was observed later.
  'runtime.set': `
insert into runtimes (tenant_id, runtime_id, capabilities, observed_at, expires_at)
select distinct on (tenant_id, runtime_id)
  tenant_id, runtime_id, capabilities, observed_at, expires_at
from json_to_recordset($1::json) as r(
  tenant_id text, runtime_id uuid, capabilities json, observed_at timestamptz,
  expires_at timestamptz)
order by tenant_id, runtime_id, observed_at desc, row_number() over () desc
on conflict (tenant_id, runtime_id) do update set
  capabilities = excluded.capabilities, observed_at = excluded.observed_at,
  expires_at = excluded.expires_at
where excluded.observed_at >= runtimes.observed_at`,

  'placement.insert': `
insert into placement_decisions (id, continuity_id, tenant_id, record, created_at)
select id, continuity_id, tenant_id, record, created_at
from json_to_recordset($1::json) as r(
  id uuid, continuity_id uuid, tenant_id text, record json, created_at timestamptz)`,

  'handoff.set': `
insert into handoffs (
  id, continuity_id, tenant_id, source_runtime_id, destination_runtime_id, expected_epoch, state,
  capsule_id, capsule_expires_at, placement_decision_id, preview_sha256, version, failure_code,
  terms, created_at, updated_at)
select
  id, continuity_id, tenant_id, source_runtime_id, destination_runtime_id, expected_epoch, state,
  capsule_id, capsule_expires_at, placement_decision_id, preview_sha256, version, failure_code,
  terms, created_at, updated_at
from json_to_recordset($1::json) as r(
  id uuid, continuity_id uuid, tenant_id text, source_runtime_id uuid,
  destination_runtime_id uuid, expected_epoch bigint, state text, capsule_id uuid,
  capsule_expires_at timestamptz, placement_decision_id uuid, preview_sha256 text,
  version integer, failure_code text, terms json, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set
  state = excluded.state, capsule_id = excluded.capsule_id,
  capsule_expires_at = excluded.capsule_expires_at, version = excluded.version,
  failure_code = excluded.failure_code, updated_at = excluded.updated_at`,

  'artifact.insert': `
insert into artifacts (key, instance_id, tenant_id, content_type, content, sha256, created_at)
select key, instance_id, tenant_id, content_type, decode(content, 'base64'), sha256, created_at
from json_to_recordset($1::json) as r(
  key text, instance_id uuid, tenant_id text, content_type text, content text, sha256 text,
  created_at timestamptz)`,

  'capsuleImport.insert': `
insert into capsule_imports (
  tenant_id, capsule_id, destination_runtime_id, instance_id, continuity_id, source_epoch,
  created_at)
select
  tenant_id, capsule_id, destination_runtime_id, instance_id, continuity_id, source_epoch,
  created_at
from json_to_recordset($1::json) as r(
  tenant_id text, capsule_id uuid, destination_runtime_id uuid, instance_id uuid,
  continuity_id uuid, source_epoch bigint, created_at timestamptz)`,

  'migration.set': `
insert into migrations (
  id, continuity_id, tenant_id, state, record, secrets, created_at, updated_at)
select id, continuity_id, tenant_id, state, record, secrets, created_at, updated_at
from json_to_recordset($1::json) as r(
  id uuid, continuity_id uuid, tenant_id text, state text, record json, secrets json,
  created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set
  state = excluded.state, record = excluded.record, updated_at = excluded.updated_at`,
} as const satisfies Partial<Record<MutationKind, string>>;
