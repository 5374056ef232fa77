/** Tables of concurrency slots, rate limits, and grants. */

import { clear, insert, mutations, set, special } from '../../src/db/mutation.js';
import { table } from '../../src/db/table.js';

export const PERMITS = table(
  'permits',
  ['instance_id'],
  { instance_id: 'uuid', key_id: 'uuid', number: 'integer' },
  { ofTenant: 'instance_id in (select id from instances where tenant_id = $T)' },
);

export const PERMIT = mutations('permit', { clear: clear(PERMITS), set: set(PERMITS, ['number']) });

export const RATE_LIMITS = table('rate_limits', ['id'], {
  id: 'uuid',
  tenant_id: 'text',
  limit_key: 'text',
  max_count: 'integer',
  window_seconds: 'integer',
  updated_at: 'timestamptz',
});

export const RATE_LIMIT = mutations('rateLimit', {
  clear: clear(RATE_LIMITS),
  set: set(RATE_LIMITS, ['max_count', 'window_seconds', 'updated_at']),
});

export const RATE_GRANTS = table(
  'rate_grants',
  ['limit_id', 'granted_at', 'id'],
  {
    limit_id: 'uuid',
    granted_at: 'timestamptz',
    id: 'uuid',
    count: 'integer',
    tenant_id: 'text?',
  },
  {
    // Grants from before migration 0046 have no tenant.
    ofTenant: '(tenant_id = $T or limit_id in (select id from rate_limits where tenant_id = $T))',
    follows: 'rate_limits',
  },
);

export const RATE_GRANT = mutations('rateGrant', {
  prune: special(
    RATE_GRANTS,
    'latest',
    { limit_id: 'uuid', before: 'timestamptz' },
    (rows) => `
delete from rate_grants g using ${rows}
where g.limit_id = r.limit_id and g.granted_at < r.before`,
  ),
  insert: insert(RATE_GRANTS),
});

export const START_GRANTS = table(
  'start_grants',
  ['key_id', 'granted_at', 'id'],
  { key_id: 'uuid', granted_at: 'timestamptz', id: 'uuid', tenant_id: 'text', count: 'integer' },
  { follows: 'instances' },
);

export const START_GRANT = mutations('startGrant', {
  prune: special(
    START_GRANTS,
    'latest',
    { key_id: 'uuid', before: 'timestamptz' },
    (rows) => `
delete from start_grants g using ${rows}
where g.key_id = r.key_id and g.granted_at < r.before`,
  ),
  insert: insert(START_GRANTS),
});

export const LIMIT_STORE = [PERMIT, RATE_LIMIT, RATE_GRANT, START_GRANT];
