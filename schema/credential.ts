/** Wire shapes and routes of credentials: what the steps of a tenant authenticate with (docs/secrets.md). */

import { type Static, Type } from '@sinclair/typebox';
import { changeOf } from './change-shapes.js';
import {
  addressed,
  Cursor,
  KEY_LENGTH_MAX,
  NAME_LENGTH_MAX,
  Name,
  named,
  noted,
  Offset,
  oneOfWords,
  optional,
  orNull,
  secretText,
  TenantName,
  TenantQuery,
  Timestamp,
  withDefault,
} from './common.js';
import { listOf, type RouteRow, read, refusals } from './route-row.js';
import { strict } from './strict.js';

export const CREDENTIAL_KINDS = ['api_key', 'oauth2', 'basic'] as const;
/** In bytes: a key file or certificate fits in. */
export const CREDENTIAL_VALUE_BYTES_MAX = 256 * 1024;
const REFRESH_URL_LENGTH_MAX = 2_000;

export const CREDENTIAL_ID_PATTERN = '^[A-Za-z0-9._-]+$';
const Id = Type.String({
  pattern: CREDENTIAL_ID_PATTERN,
  maxLength: NAME_LENGTH_MAX,
  description: 'By which templates name it: {{secrets.id}}. Letters, digits, dots, _ and -.',
});
const Value = secretText({
  minLength: 1,
  maxLength: CREDENTIAL_VALUE_BYTES_MAX,
  description:
    `The secret: a text, at most ${CREDENTIAL_VALUE_BYTES_MAX} bytes. Of one that is a JSON object, ` +
    'templates may name a member: {{secrets.id.member}}. No answer ever has it.',
});
const Kind = withDefault(
  oneOfWords(CREDENTIAL_KINDS, 'For people; nothing follows from it.'),
  'api_key',
);
const Description = Type.String({ maxLength: KEY_LENGTH_MAX });
const ExpiresAt = noted(Timestamp, 'From then on it is as if it did not exist.');
const RefreshUrl = Type.String({
  pattern: '\\S',
  maxLength: REFRESH_URL_LENGTH_MAX,
  description: 'Kept for those who renew it, with oauth2 only. A public address.',
});
const RefreshToken = secretText({
  minLength: 1,
  maxLength: CREDENTIAL_VALUE_BYTES_MAX,
  description: 'Kept like the value, and as secret.',
});

export const CreateCredential = strict(
  named('CreateCredential', {
    tenant_id: optional(
      noted(TenantName, 'The same as in the header x-tenant-id when that is sent.'),
    ),
    id: optional(noted(addressed(Id), 'The name when absent.')),
    name: optional(noted(Name, 'The id when absent.')),
    value: Value,
    kind: optional(Kind),
    description: optional(Description),
    expires_at: optional(ExpiresAt),
    refresh_url: optional(RefreshUrl),
    refresh_token: optional(RefreshToken),
  }),
);
export type CreateCredential = Static<typeof CreateCredential>;

export const Credential = named('Credential', 'Without what is secret in it.', {
  id: Type.String(),
  tenant_id: Type.String(),
  name: Type.String(),
  kind: oneOfWords(CREDENTIAL_KINDS),
  description: orNull(Type.String()),
  enabled: Type.Boolean(),
  expires_at: orNull(Timestamp),
  refresh_url: orNull(Type.String()),
  has_refresh_token: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Credential = Static<typeof Credential>;

export const UpdateCredential = changeOf('UpdateCredential', Credential, {
  name: optional(Name),
  value: Type.Optional(Value),
  kind: optional(oneOfWords(CREDENTIAL_KINDS)),
  description: optional(Description),
  expires_at: optional(ExpiresAt),
  refresh_url: optional(RefreshUrl),
  refresh_token: optional(RefreshToken),
  enabled: optional(
    Type.Boolean({ description: 'While false it is as if the credential did not exist.' }),
  ),
});
export type UpdateCredential = Static<typeof UpdateCredential>;

export const CredentialParams = Type.Object({ id: Id });
export type CredentialParams = Static<typeof CredentialParams>;

/** No default limit (docs/decisions/0016-lists.md): a reply that was cut says so by its link. */
export const CredentialListQuery = Type.Object({
  ...TenantQuery.properties,
  kind: Type.Optional(oneOfWords(CREDENTIAL_KINDS)),
  offset: Offset,
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  cursor: Cursor,
});
export type CredentialListQuery = Static<typeof CredentialListQuery>;

// ---------------------------------------------------------------- routes

export const CREDENTIAL_ROWS = {
  'credentials.create': {
    method: 'POST',
    path: '/credentials',
    summary: 'Keep a secret for the steps of the tenant, sealed. No answer ever shows it.',
    owner: 'first-shard',
    body: CreateCredential,
    replies: { 201: Credential, ...refusals(400, 409, 413) },
  },
  'credentials.list': {
    ...read,
    path: '/credentials',
    summary: 'List the credentials of the tenant, oldest first, without their secrets.',
    query: CredentialListQuery,
    replies: { 200: listOf(Credential), ...refusals(400) },
  },
  'credentials.get': {
    ...read,
    path: '/credentials/{id}',
    summary: 'Get a credential without its secret.',
    params: CredentialParams,
    replies: { 200: Credential, ...refusals(400, 404) },
  },
  'credentials.update': {
    method: 'PATCH',
    path: '/credentials/{id}',
    summary: 'Change a credential; the next call of a step has the new secret.',
    owner: 'first-shard',
    params: CredentialParams,
    body: UpdateCredential,
    repeats: 'the same fields get the same values',
    replies: { 200: Credential, ...refusals(400, 404, 413) },
  },
  'credentials.delete': {
    method: 'DELETE',
    path: '/credentials/{id}',
    summary: 'Delete a credential; steps that name it fail from now on.',
    owner: 'first-shard',
    params: CredentialParams,
    replies: { 204: null, ...refusals(400, 404) },
  },
} as const satisfies Record<string, RouteRow>;
