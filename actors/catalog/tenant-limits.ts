/**
 * The writer's side of the limits of tenants, on the first shard: each change is one commit unit, and its
 * answer leaves when that is durable. They are applied by the front thread alone (`actors/limits/front/tenant-limit-registry.ts`),
 * which is the only one who asks here; so nothing is kept, and what comes has been checked.
 */

import { Service, type ServiceDeps } from '../runtime/service.js';
import { TENANT_LIMIT } from './tables.js';

/** A row of `tenant_limits`. */
export interface TenantLimitsRow {
  readonly tenant_id: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly set_at: string;
}

export class TenantLimitRows {
  readonly #service: Service;

  constructor(deps: ServiceDeps) {
    this.#service = new Service('tenant-limits', deps);
  }

  put(request: number, row: TenantLimitsRow): void {
    this.#service.serve(request, (turn) => {
      turn.tenant = row.tenant_id;
      turn.put(TENANT_LIMIT.set, row.tenant_id, row);
      turn.reply(request, 204, '');
    });
  }

  delete(request: number, tenant: string): void {
    this.#service.serve(request, (turn) => {
      turn.tenant = tenant;
      turn.put(TENANT_LIMIT.clear, tenant, { tenant_id: tenant });
      turn.reply(request, 204, '');
    });
  }
}
