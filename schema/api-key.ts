/** Wire shapes and routes of tenant keys (docs/authorization.md). */

import * as t from './common.js';
import { CAPABILITIES, created, did, front, get, type RouteRow } from './route-row.js';

/** A longer list would only repeat capabilities. */
const KEY_CAPABILITIES_MAX = 32;

const KEY_GROUPS_MAX = 50;

const CapabilityWord = t.oneOf(CAPABILITIES);
const Groups = t.list(t.text(), 'Groups for which the key answers approvals.');

/** Required, so that no key gets rights by default or by a misspelt member. */
export const MintKey = t.strictNamed('MintKey', {
  tenant_id: t.TenantName,
  name: t.nullish(t.text({ maxLength: t.NAME_LENGTH_MAX, default: '' })),
  capabilities: t.list(CapabilityWord, { minItems: 1, maxItems: KEY_CAPABILITIES_MAX }),
  groups: t.nullish(
    t.list(t.GroupName, { maxItems: KEY_GROUPS_MAX, uniqueItems: true }),
    'Groups for which the key answers approvals; only with the capability approver.',
  ),
  expires_at: t.nullish(t.Timestamp),
});
export type MintKey = t.Static<typeof MintKey>;

const KeyId = t.text('Id of a key: ak_ and 32 hexadecimal digits.');

export const KeyMinted = t.named('KeyMinted', {
  id: KeyId,
  tenant_id: t.text(),
  name: t.text(),
  capabilities: t.list(CapabilityWord),
  groups: Groups,
  secret: t.text('The key: sk_ and 64 hexadecimal digits; shown only in this response.'),
  created_at: t.Timestamp,
  expires_at: t.nullable(t.Timestamp),
});
export type KeyMinted = t.Static<typeof KeyMinted>;

export const ApiKey = t.named('ApiKey', {
  id: KeyId,
  tenant_id: t.text(),
  name: t.text(),
  capabilities: t.list(CapabilityWord),
  groups: Groups,
  created_at: t.Timestamp,
  last_used_at: t.nullable(t.Timestamp),
  expires_at: t.nullable(t.Timestamp),
  revoked: t.boolean(),
});
export type ApiKey = t.Static<typeof ApiKey>;

export const WhoAmI = t.named('WhoAmI', {
  is_root: t.boolean('Whether the key is the root key, or the server requires no keys.'),
  is_insecure: t.boolean('Whether the server requires no keys (--insecure-auth).'),
  tenant_id: t.nullable(t.text(), 'Tenant of the key; null: any, named by x-tenant-id.'),
  requires_tenant: t.boolean('Whether requests must name a tenant (ENGINE_REQUIRE_TENANT_HEADER).'),
  capabilities: t.list(CapabilityWord, 'Capabilities of the key; the root key has all.'),
  key: t.refOrNull(
    t.object({ id: KeyId, name: t.text(), groups: Groups, expires_at: t.nullable(t.Timestamp) }),
  ),
});
export type WhoAmI = t.Static<typeof WhoAmI>;

/** Any text: a malformed id is not found, as an unknown one. */
const KeyParams = t.object({ id: t.text({ maxLength: t.NAME_LENGTH_MAX }) });

export const KEY_ROWS = {
  whoami: front.get('/whoami', {
    summary: "Get the tenant and capabilities of the request's key.",
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: WhoAmI },
  }),
  'apiKeys.mint': front.post('/api-keys', {
    summary: 'Create a key for a tenant. Only this response has its secret.',
    body: MintKey,
    isTenantless: true,
    replies: created(KeyMinted, 409),
    action: did('api_key', 'created', { shows: ['name', 'capabilities', 'groups', 'expires_at'] }),
  }),
  'apiKeys.list': get('/api-keys', 'List the keys of a tenant, oldest first.', t.list(ApiKey), {
    query: t.object({ tenant_id: t.Name, ...t.ALL_BY_KEY }),
    isTenantless: true,
  }),
  'apiKeys.revoke': front.remove('/api-keys/{id}', 'Revoke a key immediately and permanently.', {
    params: KeyParams,
    isTenantless: true,
    action: did('api_key', 'revoked'),
  }),
} as const satisfies Record<string, RouteRow>;
