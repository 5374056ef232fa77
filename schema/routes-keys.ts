/** Rows of the operations on keys of tenants; only the root key may use them. */

import * as key from './api-key.js';
import { listOf, type RouteRow, refusals } from './route-row.js';

export const KEY_ROWS = {
  'apiKeys.mint': {
    method: 'POST',
    path: '/api-keys',
    summary: 'Make a key for a tenant. Its secret is shown in this answer only.',
    owner: 'front',
    body: key.MintKey,
    isTenantless: true,
    replies: { 201: key.KeyMinted, ...refusals(400, 409) },
  },
  'apiKeys.list': {
    method: 'GET',
    path: '/api-keys',
    summary: 'List the keys of a tenant, oldest first.',
    owner: 'front',
    query: key.KeyListQuery,
    isTenantless: true,
    replies: { 200: listOf(key.ApiKey), ...refusals(400) },
  },
  'apiKeys.revoke': {
    method: 'DELETE',
    path: '/api-keys/{id}',
    summary: 'Revoke a key, at once and for good.',
    owner: 'front',
    params: key.KeyParams,
    isTenantless: true,
    replies: { 204: null, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
