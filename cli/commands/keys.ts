/** Commands for keys of tenants; they need the root key. */

import type { ApiKey, MintKey } from '../../client/src/index.js';
import { acting, type Command, listing } from '../command.js';
import { usageError } from '../exit.js';
import { ago, memberText } from '../table.js';

type Capability = MintKey['capabilities'][number];

/** The type makes the list complete; the schemas with the list take long to load. */
const CAPABILITIES = Object.keys({
  operator: true,
  worker: true,
  device: true,
  publisher: true,
  approver: true,
  auditor: true,
  starter: true,
  events: true,
  secrets: true,
} satisfies Record<Capability, true>);

export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys create',
    summary: 'Create a key of the tenant. Its secret is printed once, alone on standard output.',
    args: [{ name: 'name', about: 'A descriptive name.' }],
    options: [
      {
        flags: '--can <capabilities>',
        about: 'Its capabilities.',
        choices: CAPABILITIES,
        isMany: true,
      },
      {
        flags: '--group <name>',
        about: 'A group for which it answers approvals.',
        isMany: true,
      },
      { flags: '--expires-at <time>', about: 'RFC 3339; default never.' },
    ],
    run: async (session, given) => {
      const { out, client, tenant } = session;
      const capabilities = given.texts('can') as readonly Capability[];
      if (capabilities.length === 0)
        throw usageError('--can is required: the capabilities of the key');
      const minted = await client.apiKeys.mint({
        tenant_id: tenant,
        name: given.arg(),
        capabilities,
        groups: given.texts('group'),
        expires_at: given.text('expires-at'),
      });
      if (out.isJson) out.json(minted);
      else {
        out.note(
          `${minted.id} has the capabilities ${capabilities.join(', ')} for ${memberText(minted.tenant_id)}.`,
        );
        out.line(minted.secret);
      }
      return undefined;
    },
  },
  listing<ApiKey>({
    name: 'keys list',
    summary: 'List the keys of the tenant, oldest first.',
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'NAME', text: ({ name }) => name || '-' },
      { head: 'CAN', text: ({ capabilities }) => capabilities.join(', ') },
      { head: 'GROUPS', text: ({ groups }) => groups.join(', ') || '-' },
      {
        head: 'STATE',
        text: ({ revoked }) => (revoked ? 'revoked' : 'active'),
        tone: ({ revoked }) => (revoked ? 'quiet' : undefined),
      },
      { head: 'USED', text: ({ last_used_at }, now) => ago(last_used_at, now) },
      { head: 'EXPIRES', text: ({ expires_at }, now) => ago(expires_at, now) },
    ],
    ask: ({ client, tenant }, _given, limit) => client.apiKeys.list({ tenant_id: tenant, limit }),
  }),
  acting({
    name: 'keys revoke',
    summary: 'Revoke a key, at once and permanently.',
    args: [{ name: 'id', about: 'The id of a key: ak_…' }],
    ask: ({ client }, given) => client.apiKeys.revoke(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was revoked.`,
  }),
];
