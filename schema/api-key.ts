/** Wire shapes and routes of tenant keys (docs/authorization.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  ALL_BY_KEY,
  NAME_LENGTH_MAX,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  TenantName,
  Timestamp,
} from './common.js';
import { CAPABILITIES, get, listOf, type RouteRow, read, refusals, remove } from './route-row.js';
import { strictNamed } from './strict.js';

/** A longer list would only repeat capabilities. */
const KEY_CAPABILITIES_MAX = 32;

const CapabilityWord = oneOfWords(CAPABILITIES);

/** Required, so that no key gets rights by default or by a misspelt member. */
export const MintKey = strictNamed('MintKey', {
  tenant_id: TenantName,
  name: optional(Type.String({ maxLength: NAME_LENGTH_MAX, default: '' })),
  capabilities: Type.Array(CapabilityWord, { minItems: 1, maxItems: KEY_CAPABILITIES_MAX }),
  expires_at: optional(Timestamp),
});
export type MintKey = Static<typeof MintKey>;

const KeyId = Type.String({ description: 'ak_ and 32 hexadecimal digits.' });

export const KeyMinted = named('KeyMinted', {
  id: KeyId,
  tenant_id: Type.String(),
  name: Type.String(),
  capabilities: Type.Array(CapabilityWord),
  secret: noted(Type.String(), 'sk_ and 64 hexadecimal digits; shown only in this response.'),
  created_at: Timestamp,
  expires_at: orNull(Timestamp),
});
export type KeyMinted = Static<typeof KeyMinted>;

const KeyListQuery = Type.Object({
  tenant_id: Name,
  ...ALL_BY_KEY,
});

export const ApiKey = named('ApiKey', {
  id: KeyId,
  tenant_id: Type.String(),
  name: Type.String(),
  capabilities: Type.Array(CapabilityWord),
  created_at: Timestamp,
  last_used_at: orNull(Timestamp),
  expires_at: orNull(Timestamp),
  revoked: Type.Boolean(),
});
export type ApiKey = Static<typeof ApiKey>;

export const WhoAmI = named('WhoAmI', {
  is_root: Type.Boolean({ description: 'The root key, or a server that requires no keys.' }),
  is_insecure: Type.Boolean({ description: 'The server requires no keys (--insecure-auth).' }),
  tenant_id: noted(orNull(Type.String()), 'Tenant of the key; null: any, named by x-tenant-id.'),
  requires_tenant: Type.Boolean({
    description: 'Requests must name a tenant in x-tenant-id (ENGINE_REQUIRE_TENANT_HEADER).',
  }),
  capabilities: noted(Type.Array(CapabilityWord), 'Root has all.'),
  key: Type.Union([
    Type.Object({ id: KeyId, name: Type.String(), expires_at: orNull(Timestamp) }),
    Type.Null(),
  ]),
});
export type WhoAmI = Static<typeof WhoAmI>;

/** Any text: a malformed id is not found, as an unknown one. */
const KeyParams = Type.Object({ id: Type.String({ maxLength: NAME_LENGTH_MAX }) });

export const KEY_ROWS = {
  whoami: {
    ...read,
    path: '/whoami',
    summary: "Get the tenant and capabilities of the request's key.",
    isTenantless: true,
    isAlwaysServed: true,
    replies: { 200: WhoAmI },
  },
  'apiKeys.mint': {
    method: 'POST',
    path: '/api-keys',
    summary: 'Create a key for a tenant. Only this response has its secret.',
    owner: 'front',
    body: MintKey,
    isTenantless: true,
    replies: { 201: KeyMinted, ...refusals(400, 409) },
  },
  'apiKeys.list': get('/api-keys', 'List the keys of a tenant, oldest first.', listOf(ApiKey), {
    query: KeyListQuery,
    isTenantless: true,
  }),
  'apiKeys.revoke': remove('/api-keys/{id}', 'Revoke a key immediately and permanently.', {
    owner: 'front',
    params: KeyParams,
    isTenantless: true,
  }),
} as const satisfies Record<string, RouteRow>;
