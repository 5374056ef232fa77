/** Commands about who asks, and for whom. */

import type { Tenant } from '../../client/src/index.js';
import { type Command, listing, showing } from '../command.js';

export const TENANT_COMMANDS: readonly Command[] = [
  listing<Tenant>({
    name: 'tenants list',
    summary: 'List the tenants that have anything, by their names; it takes the root key.',
    columns: [{ head: 'TENANT', text: ({ tenant_id }) => tenant_id, isWhole: true }],
    ask: ({ client }, _given, limit) => client.tenants.list({ limit }),
  }),
  showing({
    name: 'whoami',
    summary: 'Show what the key may do, and for which tenant.',
    ask: ({ client }) => client.whoami(),
  }),
];
