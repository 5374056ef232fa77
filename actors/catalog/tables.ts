/** Tables of sequences, API keys, and tenant limits. Pure. */

import { clear, insert, mutations, set, special, update } from '../../src/db/mutation.js';
import { table } from '../../src/db/table.js';

/** Deleted sequences whose instances are still being removed. */
export const SEQUENCE_TOMBSTONES = table(
  'sequence_tombstones',
  ['id'],
  { id: 'uuid', created_at: 'timestamptz' },
  { ofTenant: 'id in (select sequence_id from instances where tenant_id = $T)' },
);

export const SEQUENCES = table(
  'sequences',
  ['id'],
  {
    id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    name: 'text',
    version: 'integer',
    deprecated: 'boolean',
    hold: 'boolean',
    status: 'text',
    definition: 'json',
    created_at: 'timestamptz',
  },
  { unique: { sequences_by_name: ['tenant_id', 'namespace', 'name', 'version'] } },
);

export const SEQUENCE = mutations('sequence', {
  insert: {
    ...insert(SEQUENCES, {
      defaults: { deprecated: 'false', hold: 'false', status: "'production'" },
    }),
    gate: { unless: SEQUENCE_TOMBSTONES },
  },
  update: update(SEQUENCES, ['deprecated']),
  hold: update(SEQUENCES, ['hold']),
  // Deletes dependent rows, too. Instances are removed later, while the tombstone exists.
  delete: special(SEQUENCES, 'barrier', { id: 'uuid' }, (rows, tables) => {
    const deletions = tables.flatMap(({ name, sequence: column }) => {
      if (column === undefined) return [];
      return `${name}_gone as (\n  delete from ${name} t using ${rows} where t.${column} = r.id\n)`;
    });
    return `
with ${deletions.join(', ')}
delete from sequences s using ${rows} where s.id = r.id`;
  }),
});

export const TOMBSTONE = mutations('tombstone', {
  clear: clear(SEQUENCE_TOMBSTONES),
  set: set(SEQUENCE_TOMBSTONES, ['created_at']),
});

export const API_KEYS = table(
  'api_keys',
  ['id'],
  {
    id: 'text',
    tenant_id: 'text',
    name: 'text',
    capabilities: 'json',
    secret_hash: 'text',
    created_at: 'timestamptz',
    last_used_at: 'timestamptz?',
    expires_at: 'timestamptz?',
    revoked: 'boolean',
    groups: 'text',
  },
  { unique: { api_keys_by_secret: ['secret_hash'] } },
);

export const API_KEY = mutations('apiKey', {
  insert: insert(API_KEYS),
  update: update(API_KEYS, ['last_used_at', 'revoked']),
});

export const TENANT_LIMITS = table('tenant_limits', ['tenant_id'], {
  tenant_id: 'text',
  limits: 'json',
  set_at: 'timestamptz',
});

export const TENANT_LIMIT = mutations('tenantLimits', {
  clear: clear(TENANT_LIMITS),
  set: set(TENANT_LIMITS, ['limits', 'set_at']),
});

export const CATALOG_STORE = [SEQUENCE, TOMBSTONE, API_KEY, TENANT_LIMIT];
