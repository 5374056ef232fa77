/** The tables of executions: owners, locations, handoffs, migrations, provenance, capsules. Pure. */

import { insert, mutations, set, special } from '../../src/db/mutation.js';
import { belonging, type Table, table } from '../../src/db/table.js';

export const CONTINUITY_EXECUTIONS = table(
  'continuity_executions',
  ['continuity_id'],
  {
    continuity_id: 'uuid',
    tenant_id: 'text',
    current_instance_id: 'uuid',
    owner_runtime_id: 'uuid',
    epoch: 'bigint',
    state: 'text',
    version: 'bigint',
    updated_at: 'timestamptz',
    ended: 'text?',
  },
  {
    unique: { continuity_executions_by_instance: ['tenant_id', 'current_instance_id'] },
    // An execution outlives its instance and keeps its final state.
    keptOfInstances: `executions_ended as (
  update continuity_executions e set
    ended = i.state, updated_at = greatest(e.updated_at, i.updated_at)
  from instances i, doomed d
  where i.id = d.id and i.continuity_id is not null
    and i.state in ('completed', 'failed', 'cancelled')
    and e.tenant_id = i.tenant_id and e.current_instance_id = i.id
)`,
  },
);

const { tenant_id: _tenant, ended: _ended, ...UPDATED } = CONTINUITY_EXECUTIONS.columns;

export const EXECUTION = mutations('execution', {
  insert: insert(CONTINUITY_EXECUTIONS, { without: ['ended'], defaults: { version: 0 } }),
  // Fails the whole unit, with 22P02, when the row has another version.
  update: special(
    CONTINUITY_EXECUTIONS,
    'barrier',
    UPDATED,
    (rows) => `
with changed as (
  update continuity_executions e set
    current_instance_id = r.current_instance_id, owner_runtime_id = r.owner_runtime_id,
    epoch = r.epoch, state = r.state, version = e.version + 1, updated_at = r.updated_at
  from ${rows}
  where e.continuity_id = r.continuity_id and e.version = r.version
  returning 1
)
select (case when count(*) = json_array_length($1::json) then '1' else 'stale' end)::integer
from changed`,
  ),
});

/** Rows that are moved and deleted with their execution. */
function ofExecution<const C extends Table['columns'], const Key extends keyof C & string>(
  name: string,
  key: readonly Key[],
  columns: C,
): Table<C, Key> {
  return table(name, key, columns, { follows: 'of its executions' });
}

export const CONTINUITY_LOCATIONS = ofExecution(
  'continuity_locations',
  ['continuity_id', 'epoch'],
  {
    continuity_id: 'uuid',
    tenant_id: 'text',
    epoch: 'bigint',
    runtime_id: 'uuid',
    instance_id: 'uuid',
    handoff_id: 'uuid?',
    entered_at: 'timestamptz',
  },
);
export const LOCATION = mutations('location', { insert: insert(CONTINUITY_LOCATIONS) });

export const PROVENANCE_ENTRIES = ofExecution('provenance_entries', ['continuity_id', 'seq'], {
  continuity_id: 'uuid',
  seq: 'integer',
  id: 'uuid',
  tenant_id: 'text',
  epoch: 'bigint',
  kind: 'text',
  redacted_summary: 'text?',
  payload_sha256: 'text',
  previous_sha256: 'text?',
  entry_sha256: 'text',
  signing_key_id: 'text?',
  signature: 'text?',
  created_at: 'timestamptz',
});
export const PROVENANCE = mutations('provenance', { insert: insert(PROVENANCE_ENTRIES) });

export const RUNTIMES = table('runtimes', ['tenant_id', 'runtime_id'], {
  tenant_id: 'text',
  runtime_id: 'uuid',
  capabilities: 'json',
  observed_at: 'timestamptz',
  expires_at: 'timestamptz',
});
export const RUNTIME = mutations('runtime', {
  // An earlier observation does not replace a later one.
  set: special(
    RUNTIMES,
    'insert',
    RUNTIMES.columns,
    (rows) => `
insert into runtimes (tenant_id, runtime_id, capabilities, observed_at, expires_at)
select distinct on (tenant_id, runtime_id)
  tenant_id, runtime_id, capabilities, observed_at, expires_at
from ${rows}
order by tenant_id, runtime_id, observed_at desc, row_number() over () desc
on conflict (tenant_id, runtime_id) do update set
  capabilities = excluded.capabilities, observed_at = excluded.observed_at,
  expires_at = excluded.expires_at
where excluded.observed_at >= runtimes.observed_at`,
  ),
});

export const PLACEMENT_DECISIONS = ofExecution('placement_decisions', ['id'], {
  id: 'uuid',
  continuity_id: 'uuid',
  tenant_id: 'text',
  record: 'json',
  created_at: 'timestamptz',
});
export const PLACEMENT = mutations('placement', { insert: insert(PLACEMENT_DECISIONS) });

export const HANDOFFS = ofExecution('handoffs', ['id'], {
  id: 'uuid',
  continuity_id: 'uuid',
  tenant_id: 'text',
  source_runtime_id: 'uuid',
  destination_runtime_id: 'uuid',
  expected_epoch: 'bigint',
  state: 'text',
  capsule_id: 'uuid?',
  capsule_expires_at: 'timestamptz?',
  placement_decision_id: 'uuid',
  preview_sha256: 'text',
  version: 'integer',
  failure_code: 'text?',
  terms: 'json',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});
export const HANDOFF = mutations('handoff', {
  set: set(HANDOFFS, [
    ...(['state', 'capsule_id', 'capsule_expires_at'] as const),
    ...(['version', 'failure_code', 'updated_at'] as const),
  ]),
});

export const ARTIFACTS = belonging('artifacts', ['key'], {
  key: 'text',
  instance_id: 'uuid',
  tenant_id: 'text',
  content_type: 'text',
  content: 'bytea',
  sha256: 'text',
  created_at: 'timestamptz',
});
export const ARTIFACT = mutations('artifact', { insert: insert(ARTIFACTS) });

export const CAPSULE_IMPORTS = table(
  'capsule_imports',
  ['tenant_id', 'capsule_id', 'destination_runtime_id'],
  {
    tenant_id: 'text',
    capsule_id: 'uuid',
    destination_runtime_id: 'uuid',
    instance_id: 'uuid',
    continuity_id: 'uuid',
    source_epoch: 'bigint',
    created_at: 'timestamptz',
  },
);
export const CAPSULE_IMPORT = mutations('capsuleImport', { insert: insert(CAPSULE_IMPORTS) });

export const MIGRATIONS = table(
  'migrations',
  ['id'],
  {
    id: 'uuid',
    continuity_id: 'uuid',
    tenant_id: 'text',
    state: 'text',
    record: 'json',
    secrets: 'json',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  },
  { instance: 'continuity_id' },
);
export const MIGRATION = mutations('migration', {
  set: set(MIGRATIONS, ['state', 'record', 'updated_at']),
});

const EFFECT_RESOLUTIONS = belonging('effect_resolutions', ['id'], {
  id: 'uuid',
  instance_id: 'uuid',
  state: 'text',
  provider_receipt_id: 'text?',
  updated_at: 'timestamptz',
});
export const EFFECT_RESOLUTION = mutations('effectResolution', {
  set: set(EFFECT_RESOLUTIONS, ['state', 'provider_receipt_id', 'updated_at']),
});

export const CONTINUITY_STORE = [
  ...[EXECUTION, LOCATION, PROVENANCE, RUNTIME, PLACEMENT],
  ...[HANDOFF, ARTIFACT, CAPSULE_IMPORT, MIGRATION, EFFECT_RESOLUTION],
];
