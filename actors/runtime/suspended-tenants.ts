/**
 * Tenants this cell does not own: moving in, moving out, or gone. Nothing of such a tenant is committed,
 * started or kept in memory on this shard (docs/operate/moving-tenants.md).
 */

import { unavailable } from '../../src/base/errors.js';

/** The error returned for requests of such a tenant. */
export const TENANT_SUSPENDED = unavailable(
  'ENG_TENANT_MOVING',
  'the tenant is on its way to another resident; ask again',
);

/** Keys in memory without rows: their tenant is unknown, and rows may have been added. */
export function reloadOwnerless(host: {
  readonly residents: Iterable<{
    readonly id: string;
    readonly state: { readonly tenant: string | undefined } | undefined;
  }>;
  reload(id: string): void;
}): void {
  for (const { id, state } of [...host.residents]) {
    if (state !== undefined && state.tenant === undefined) host.reload(id);
  }
}

export class SuspendedTenants {
  readonly #tenants = new Set<string>();

  get isEmpty(): boolean {
    return this.#tenants.size === 0;
  }

  has(tenant: string | null | undefined): boolean {
    return this.#tenants.size > 0 && tenant != null && this.#tenants.has(tenant);
  }

  add(tenant: string): void {
    this.#tenants.add(tenant);
  }

  remove(tenant: string): void {
    this.#tenants.delete(tenant);
  }
}
