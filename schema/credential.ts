/** Wire shapes and routes of credentials, with which the steps of a tenant authenticate (docs/secrets.md). */

import { type Static, Type } from '@sinclair/typebox';
import { changeOf } from './change-shapes.js';
import {
  ALL_BY_KEY,
  addressed,
  BodyTenant,
  KEY_LENGTH_MAX,
  NAME_LENGTH_MAX,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  secretText,
  TenantQuery,
  Timestamp,
  withDefault,
} from './common.js';
import { get, listOf, type RouteRow, read, refusals, remove } from './route-row.js';
import { strictNamed } from './strict.js';

const CREDENTIAL_KINDS = ['api_key', 'oauth2', 'basic'] as const;
/** In bytes: fits a key file or certificate. */
export const CREDENTIAL_VALUE_BYTES_MAX = 256 * 1024;
const REFRESH_URL_LENGTH_MAX = 2_000;

export const CREDENTIAL_ID_PATTERN = '^[A-Za-z0-9._-]+$';
const Id = noted(
  Type.String({ pattern: CREDENTIAL_ID_PATTERN, maxLength: NAME_LENGTH_MAX }),
  'Used in templates as {{secrets.id}}. Letters, digits, dots, _ and -.',
);
const Value = secretText({
  minLength: 1,
  maxLength: CREDENTIAL_VALUE_BYTES_MAX,
  description:
    `The secret: a text of at most ${CREDENTIAL_VALUE_BYTES_MAX} bytes. If it is a ` +
    'JSON object, templates can use {{secrets.id.member}}. Never returned.',
});
const Kind = withDefault(oneOfWords(CREDENTIAL_KINDS, 'A label for people.'), 'api_key');
const Description = Type.String({ maxLength: KEY_LENGTH_MAX });
const ExpiresAt = noted(Timestamp, 'From then on steps cannot use it.');
const RefreshUrl = noted(
  Type.String({ pattern: '\\S', maxLength: REFRESH_URL_LENGTH_MAX }),
  'With oauth2 only: stored for clients that renew it. A public address.',
);
const RefreshToken = secretText({
  minLength: 1,
  maxLength: CREDENTIAL_VALUE_BYTES_MAX,
  description: 'Sealed like the value.',
});

export const CreateCredential = strictNamed('CreateCredential', {
  tenant_id: optional(BodyTenant),
  id: optional(noted(addressed(Id), 'Default: the name.')),
  name: optional(noted(Name, 'Default: the id.')),
  value: Value,
  kind: optional(Kind),
  description: optional(Description),
  expires_at: optional(ExpiresAt),
  refresh_url: optional(RefreshUrl),
  refresh_token: optional(RefreshToken),
});
export type CreateCredential = Static<typeof CreateCredential>;

export const Credential = named('Credential', 'A credential without its secrets.', {
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
  enabled: optional(Type.Boolean({ description: 'False: steps cannot use it.' })),
});
export type UpdateCredential = Static<typeof UpdateCredential>;

const CredentialParams = Type.Object({ id: Id });

const CredentialListQuery = Type.Object({
  ...TenantQuery.properties,
  kind: Type.Optional(oneOfWords(CREDENTIAL_KINDS)),
  ...ALL_BY_KEY,
});

export const CREDENTIAL_ROWS = {
  'credentials.create': {
    method: 'POST',
    path: '/credentials',
    summary: 'Store a sealed secret for the steps of the tenant. It is never returned.',
    owner: 'first-shard',
    body: CreateCredential,
    replies: { 201: Credential, ...refusals(400, 409, 413) },
  },
  'credentials.list': get(
    '/credentials',
    'List the credentials of the tenant, oldest first, without their secrets.',
    listOf(Credential),
    { query: CredentialListQuery },
  ),
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
    summary: 'Change a credential. The next call of a step uses the new secret.',
    owner: 'first-shard',
    params: CredentialParams,
    body: UpdateCredential,
    repeats: 'the same fields get the same values',
    replies: { 200: Credential, ...refusals(400, 404, 413) },
  },
  'credentials.delete': remove(
    '/credentials/{id}',
    'Delete a credential. Steps that use it fail from then on.',
    { owner: 'first-shard', params: CredentialParams },
  ),
} as const satisfies Record<string, RouteRow>;
