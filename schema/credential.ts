/** Wire shapes and routes of credentials, with which the steps of a tenant authenticate (docs/secrets.md). */

import { changeOf } from './change-shapes.js';
import * as t from './common.js';
import { created, did, ENABLED, firstShard, front, get, ok, type RouteRow } from './route-row.js';

const CREDENTIAL_KINDS = ['api_key', 'oauth2', 'basic'] as const;
/** In bytes: fits a key file or certificate. */
export const CREDENTIAL_VALUE_BYTES_MAX = 256 * 1024;
const REFRESH_URL_LENGTH_MAX = 2_000;

export const CREDENTIAL_ID_PATTERN = '^[A-Za-z0-9._-]+$';
const Id = t.noted(
  t.text({ pattern: CREDENTIAL_ID_PATTERN, maxLength: t.NAME_LENGTH_MAX }),
  'Used in templates as {{secrets.id}}. Letters, digits, dots, _ and -.',
);
const Value = t.secretText({
  minLength: 1,
  maxLength: CREDENTIAL_VALUE_BYTES_MAX,
  description:
    `The secret: a text of at most ${CREDENTIAL_VALUE_BYTES_MAX} bytes. If it is a ` +
    'JSON object, templates can use {{secrets.id.member}}. Never returned.',
});
const Kind = t.withDefault(t.oneOf(CREDENTIAL_KINDS, 'Kind, a label for people.'), 'api_key');
const SETTINGS = {
  description: t.nullish(t.text({ maxLength: t.KEY_LENGTH_MAX })),
  expires_at: t.nullish(t.Timestamp, 'Time from which steps cannot use the credential.'),
  refresh_url: t.nullish(
    t.text({ pattern: '\\S', maxLength: REFRESH_URL_LENGTH_MAX }),
    'Public address, for clients that renew the secret; with oauth2 only.',
  ),
  refresh_token: t.nullish(
    t.secretText({ minLength: 1, maxLength: CREDENTIAL_VALUE_BYTES_MAX }),
    'Refresh token, sealed like the value.',
  ),
};

export const CreateCredential = t.strictNamed('CreateCredential', {
  tenant_id: t.nullish(t.BodyTenant),
  id: t.nullish(t.addressed(Id), 'Default: the name.'),
  name: t.nullish(t.Name, 'Default: the id.'),
  value: Value,
  kind: t.nullish(Kind),
  ...SETTINGS,
});
export type CreateCredential = t.Static<typeof CreateCredential>;

export const Credential = t.named('Credential', 'A credential without its secrets.', {
  id: t.text(),
  tenant_id: t.text(),
  name: t.text(),
  kind: t.oneOf(CREDENTIAL_KINDS),
  description: t.nullable(t.text()),
  enabled: t.boolean(),
  expires_at: t.nullable(t.Timestamp),
  refresh_url: t.nullable(t.text()),
  has_refresh_token: t.boolean(),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type Credential = t.Static<typeof Credential>;

export const UpdateCredential = changeOf('UpdateCredential', Credential, {
  name: t.nullish(t.Name),
  value: t.optional(Value),
  kind: t.nullish(t.oneOf(CREDENTIAL_KINDS)),
  ...SETTINGS,
  enabled: t.nullish(t.boolean('False: steps cannot use the credential.')),
});
export type UpdateCredential = t.Static<typeof UpdateCredential>;

const CredentialParams = t.object({ id: Id });

const CredentialListQuery = t.object({
  ...t.TenantQuery.properties,
  kind: t.optional(t.oneOf(CREDENTIAL_KINDS)),
  ...t.ALL_BY_KEY,
});

export const CREDENTIAL_ROWS = {
  'credentials.create': firstShard.post('/credentials', {
    summary: 'Store a sealed secret for the steps of the tenant. It is never returned.',
    body: CreateCredential,
    replies: created(Credential, 409, 413),
    action: did('credential', 'created', { target: ['id', 'name'], shows: ['kind'] }),
  }),
  'credentials.list': get(
    '/credentials',
    'List the credentials of the tenant, oldest first, without their secrets.',
    t.list(Credential),
    { query: CredentialListQuery },
  ),
  'credentials.get': front.get('/credentials/{id}', {
    summary: 'Get a credential without its secret.',
    params: CredentialParams,
    replies: ok(Credential, 404),
  }),
  'credentials.update': firstShard.patch('/credentials/{id}', {
    summary: 'Change a credential. The next call of a step uses the new secret.',
    params: CredentialParams,
    body: UpdateCredential,
    repeats: 'the same fields get the same values',
    replies: ok(Credential, 404, 413),
    action: did('credential', 'changed', {
      shows: ['enabled'],
      words: { enabled: ENABLED },
      isChange: true,
    }),
  }),
  'credentials.delete': firstShard.remove(
    '/credentials/{id}',
    'Delete a credential. Steps that use it fail from then on.',
    { params: CredentialParams, action: did('credential', 'deleted') },
  ),
} as const satisfies Record<string, RouteRow>;
