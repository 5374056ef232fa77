/** Wire shapes and routes of triggers, which start instances from outside (docs/triggers.md). */

import { type Static, Type } from '@sinclair/typebox';
import { changeOf, UNCHANGED } from './change-shapes.js';
import {
  ALL_BY_KEY,
  addressed,
  BodyTenant,
  flag,
  JsonObjectSchema,
  KEY_LENGTH_MAX,
  NAME_LENGTH_MAX,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  REDACTED,
  secretText,
  TenantQuery,
  Timestamp,
  Uuid,
  Version,
  withDefault,
} from './common.js';
import { get, listOf, type RouteRow, read, refusals } from './route-row.js';
import { strictNamed } from './strict.js';

const TRIGGER_TYPES = ['webhook', 'event'] as const;
export const NAMESPACE_DEFAULT = 'default';

export const SLUG_PATTERN = '^[A-Za-z0-9._~-]+$';
const Slug = noted(
  Type.String({ pattern: SLUG_PATTERN, maxLength: NAME_LENGTH_MAX }),
  'Part of the address, unique on the server: letters, digits, dots, _, ~ and -.',
);
const Secret = secretText({
  minLength: 1,
  maxLength: KEY_LENGTH_MAX,
  description: 'Authenticates callers. Never returned.',
});
const TriggerType = oneOfWords(
  TRIGGER_TYPES,
  'webhook: a signed request to /webhooks/{slug}. event: every event with a given name.',
);
const Config = noted(
  JsonObjectSchema,
  'For event triggers: event_name, and optionally correlation_key to filter events.',
);

export const CreateTrigger = strictNamed('CreateTrigger', {
  slug: addressed(Slug),
  tenant_id: BodyTenant,
  sequence_name: noted(Name, 'Resolved at each fire.'),
  version: optional(
    noted(Version, 'Pins this version. Default: chosen as for an instance created by name.'),
  ),
  namespace: optional(withDefault(Name, NAMESPACE_DEFAULT)),
  trigger_type: optional(withDefault(TriggerType, 'webhook')),
  secret: optional(Secret),
  config: optional(Config),
  enabled: flag(true),
});
export type CreateTrigger = Static<typeof CreateTrigger>;

export const Trigger = named('Trigger', {
  slug: Type.String(),
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_name: Type.String(),
  version: orNull(Type.Integer()),
  trigger_type: oneOfWords(TRIGGER_TYPES),
  secret: orNull(Type.String({ description: `${REDACTED} if there is one.` })),
  config: JsonObjectSchema,
  enabled: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Trigger = Static<typeof Trigger>;

export const UpdateTrigger = changeOf('UpdateTrigger', Trigger, {
  ...UNCHANGED,
  sequence_name: Type.Optional(Name),
  version: optional(Version),
  secret: optional(Secret),
  config: optional(Config),
  enabled: optional(Type.Boolean()),
});
export type UpdateTrigger = Static<typeof UpdateTrigger>;

const TriggerParams = Type.Object({ slug: Slug });

const TriggerListQuery = Type.Object({
  ...TenantQuery.properties,
  namespace: Type.Optional(Type.String()),
  sequence_name: Type.Optional(Type.String()),
  trigger_type: Type.Optional(TriggerType),
  ...ALL_BY_KEY,
});

export const TriggerFired = named('TriggerFired', {
  instance_id: Uuid,
  trigger: Type.String(),
  sequence_name: Type.String(),
});
export type TriggerFired = Static<typeof TriggerFired>;

export const WebhookTaken = named('WebhookTaken', {
  instance_id: Uuid,
  trigger: Type.String(),
});
export type WebhookTaken = Static<typeof WebhookTaken>;

const bySlug = { path: '/triggers/{slug}', params: TriggerParams } as const;

export const TRIGGER_ROWS = {
  'triggers.create': {
    method: 'POST',
    path: '/triggers',
    summary: 'Create a trigger, which starts instances of a sequence from outside.',
    owner: 'first-shard',
    body: CreateTrigger,
    replies: { 201: Trigger, ...refusals(400, 404, 409, 413) },
  },
  'triggers.list': get('/triggers', 'List triggers of a tenant, oldest first.', listOf(Trigger), {
    query: TriggerListQuery,
  }),
  'triggers.get': {
    ...read,
    ...bySlug,
    summary: 'Get a trigger.',
    replies: { 200: Trigger, ...refusals(400, 404) },
  },
  'triggers.update': {
    method: 'PATCH',
    ...bySlug,
    summary: 'Change a trigger.',
    owner: 'first-shard',
    body: UpdateTrigger,
    repeats: 'the same fields get the same values',
    replies: { 200: Trigger, ...refusals(400, 404, 409, 413) },
  },
  'triggers.delete': {
    method: 'DELETE',
    ...bySlug,
    summary: 'Delete a trigger. Its instances continue.',
    owner: 'first-shard',
    replies: { 204: null, ...refusals(400, 404) },
  },
  'triggers.fire': {
    method: 'POST',
    path: '/triggers/{slug}/fire',
    summary: 'Start an instance now; the body is its context.data.',
    owner: 'front',
    params: TriggerParams,
    body: JsonObjectSchema,
    bodySize: 'large',
    isBodyOptional: true,
    makes: 'instance',
    replies: { 201: TriggerFired, ...refusals(400, 404, 413, 422) },
  },
  'triggers.receive': {
    method: 'POST',
    // Named `id` as for subscriptions: OpenAPI does not distinguish paths by parameter names.
    path: '/webhooks/{id}',
    summary: 'Start an instance with a signed request; the body is its context.data.',
    owner: 'front',
    params: Type.Object({ id: Slug }),
    body: JsonObjectSchema,
    isRaw: true,
    isPublic: true,
    makes: 'instance',
    replies: { 202: WebhookTaken, ...refusals(400, 401, 404, 413, 422, 429) },
  },
} as const satisfies Record<string, RouteRow>;
