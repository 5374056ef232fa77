/** The tenants that a cell has any rows of: who is served where is settled by it, so that it leaves nobody out. */

import { lookup } from '../db/reads/lookup.js';
import { type TenantRow, tenantsText } from '../db/reads/tenant-reads.js';
import type { Store } from '../db/store.js';
import { findingTables } from './tenant-rows.js';

/** As many as the second value, by their names, from the one after the first on. */
export const tenantsAfter = (store: Store) =>
  lookup<TenantRow>('reads_tenants_there', tenantsText(findingTables(store)));
