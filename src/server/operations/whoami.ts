/** What a key may do, told to who has it, in every state of the engine (docs/authorization.md). */

import type { WhoAmI } from '../../../schema/api-key.js';
import { CAPABILITIES } from '../../../schema/route-row.js';
import { isoTime } from '../../base/time.js';
import { capabilitiesOf, type ResidentKey } from '../../http/key-registry.js';
import { jsonReply, type Operation } from '../../http/operation.js';
import type { Config } from '../config.js';

export function whoami(
  config: Pick<Config, 'insecureAuth' | 'requireTenantHeader'>,
): Operation<'whoami'> {
  const shared = {
    is_insecure: config.insecureAuth,
    requires_tenant: config.requireTenantHeader,
  };
  const of = (key: ResidentKey | undefined): WhoAmI => {
    if (key === undefined) {
      return {
        is_root: true,
        ...shared,
        tenant_id: null,
        capabilities: [...CAPABILITIES],
        key: null,
      };
    }
    const { id, name, tenant, capabilities, expiresAt } = key;
    return {
      is_root: false,
      ...shared,
      tenant_id: tenant,
      capabilities: [...capabilitiesOf(capabilities)],
      key: { id, name, expires_at: expiresAt === undefined ? null : isoTime(expiresAt) },
    };
  };
  return async (_, { key }) => jsonReply(JSON.stringify(of(key)));
}
