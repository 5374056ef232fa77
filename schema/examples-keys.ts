/** Examples of keys and of what is set for tenants. */

import type { JsonValue } from '../src/base/json.js';
import { EXAMPLE_TENANT, KEY_ID } from './example-ids.js';

const key = { tenant_id: EXAMPLE_TENANT, name: 'billing workers', capabilities: ['worker'] };

export const KEY_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  MintKey: key,
  KeyMinted: { id: KEY_ID, ...key, secret: `sk_${'0123456789abcdef'.repeat(4)}` },
  ApiKey: { id: KEY_ID, ...key, revoked: false },
  WhoAmI: {
    is_root: false,
    is_insecure: false,
    tenant_id: key.tenant_id,
    requires_tenant: true,
    capabilities: key.capabilities,
    key: { id: KEY_ID, name: key.name, expires_at: null },
  },
  PutTenantLimits: { rows_per_second: 200, queue_depth_max: 10_000 },
};
