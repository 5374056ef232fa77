/**
 * Commits rows for the front thread, on the first shard: API keys (`front/api-keys.ts`) and tenant limits
 * (`actors/limits/front/tenant-limits.ts`). Each change is one unit, and its response follows when that is durable.
 */

import type { StoredRow, WrittenRow } from '../../src/db/table.js';
import type { Call, Operations } from '../runtime/operation.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import type { Turn } from '../runtime/turn.js';
import { API_KEY, type API_KEYS, TENANT_LIMIT, type TENANT_LIMITS } from './tables.js';

export type KeyRow = Omit<StoredRow<typeof API_KEYS>, 'capabilities'> & {
  readonly capabilities: readonly string[];
};

export type KeyUse = StoredRow<typeof API_KEYS, 'id' | 'last_used_at'>;

export function keyOperations(deps: ServiceDeps) {
  const commit = committer('api-keys', deps);
  return {
    'keys.insert': {
      serve: ({ request, body: row }: Call<KeyRow>) =>
        commit(request, row.tenant_id, (turn) => turn.put(API_KEY.insert, row.id, row)),
    },
    // The unit has the tenant of the key, so that the revocation fails while the tenant is suspended.
    'keys.revoke': {
      serve: ({ request, tenant, body: use }: Call<KeyUse>) =>
        commit(request, tenant, (turn) =>
          turn.put(API_KEY.update, use.id, { ...use, revoked: true }),
        ),
    },
    // Cannot undo a revocation: units commit in order, and the front reports no use after a revocation.
    'keys.used': {
      serve: ({ request, body: uses }: Call<readonly KeyUse[]>) =>
        commit(request, undefined, (turn) => {
          for (const use of uses) turn.put(API_KEY.update, use.id, { ...use, revoked: false });
        }),
    },
  } satisfies Operations;
}

export function tenantLimitOperations(deps: ServiceDeps) {
  const commit = committer('tenant-limits', deps);
  return {
    'tenantLimits.store': {
      serve: ({ request, body: row }: Call<WrittenRow<typeof TENANT_LIMITS>>) =>
        commit(request, row.tenant_id, (turn) => turn.put(TENANT_LIMIT.set, row.tenant_id, row)),
    },
    'tenantLimits.remove': {
      serve: ({ request, target: tenant_id }: Call<undefined>) =>
        commit(request, tenant_id, (turn) =>
          turn.put(TENANT_LIMIT.clear, tenant_id, { tenant_id }),
        ),
    },
  } satisfies Operations;
}

function committer(name: string, deps: ServiceDeps) {
  const service = new Service(name, deps);
  return (request: number, tenant: string | undefined, put: (turn: Turn) => void): void =>
    service.serve(request, (turn) => {
      turn.tenant = tenant;
      put(turn);
      turn.reply(request, 204, '');
    });
}
