/** Wire shapes and routes of triggers, which start instances from outside (docs/triggers.md). */

import { changeOf, UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { created, firstShard, front, get, ok, type RouteRow, refusals } from './route-row.js';

const TRIGGER_TYPES = ['webhook', 'event'] as const;
export const NAMESPACE_DEFAULT = 'default';

export const SLUG_PATTERN = '^[A-Za-z0-9._~-]+$';
const Slug = t.noted(
  t.text({ pattern: SLUG_PATTERN, maxLength: t.NAME_LENGTH_MAX }),
  'Part of the address, unique on the server: letters, digits, dots, _, ~ and -.',
);
const Secret = t.secretText({
  minLength: 1,
  maxLength: t.KEY_LENGTH_MAX,
  description: 'Authenticates callers. Never returned.',
});
const TriggerType = t.oneOf(
  TRIGGER_TYPES,
  'webhook: a signed request to /webhooks/{slug}. event: every event with a given name.',
);
const Config = t.noted(
  t.JsonObjectSchema,
  'For event triggers: event_name, and optionally correlation_key to filter events.',
);

export const CreateTrigger = t.strictNamed('CreateTrigger', {
  slug: t.addressed(Slug),
  tenant_id: t.BodyTenant,
  sequence_name: t.noted(t.Name, 'Name of the sequence, resolved at each fire.'),
  version: t.nullish(t.Version, 'Pins this version. Default: as for an instance created by name.'),
  namespace: t.nullish(t.withDefault(t.Name, NAMESPACE_DEFAULT)),
  trigger_type: t.nullish(t.withDefault(TriggerType, 'webhook')),
  secret: t.nullish(Secret),
  config: t.nullish(Config),
  enabled: t.flag(true),
});
export type CreateTrigger = t.Static<typeof CreateTrigger>;

export const Trigger = t.named('Trigger', {
  slug: t.text(),
  tenant_id: t.text(),
  namespace: t.text(),
  sequence_name: t.text(),
  version: t.nullable(t.integer()),
  trigger_type: t.oneOf(TRIGGER_TYPES),
  secret: t.nullable(t.text(`${t.REDACTED} if the trigger has a secret.`)),
  config: t.JsonObjectSchema,
  enabled: t.boolean(),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type Trigger = t.Static<typeof Trigger>;

export const UpdateTrigger = changeOf('UpdateTrigger', Trigger, {
  ...UNCHANGED,
  sequence_name: t.optional(t.Name),
  version: t.nullish(t.Version),
  secret: t.nullish(Secret),
  config: t.nullish(Config),
  enabled: t.nullish(t.boolean()),
});
export type UpdateTrigger = t.Static<typeof UpdateTrigger>;

const TriggerParams = t.object({ slug: Slug });

export const TriggerFired = t.named('TriggerFired', {
  instance_id: t.Uuid,
  trigger: t.text(),
  sequence_name: t.text(),
});
export type TriggerFired = t.Static<typeof TriggerFired>;

export const WebhookTaken = t.named('WebhookTaken', { instance_id: t.Uuid, trigger: t.text() });
export type WebhookTaken = t.Static<typeof WebhookTaken>;

export const TRIGGER_ROWS = {
  'triggers.create': firstShard.post('/triggers', {
    summary: 'Create a trigger, which starts instances of a sequence from outside.',
    body: CreateTrigger,
    replies: created(Trigger, 404, 409, 413),
  }),
  'triggers.list': get('/triggers', 'List triggers of a tenant, oldest first.', t.list(Trigger), {
    query: t.object({
      ...t.TenantQuery.properties,
      namespace: t.optional(t.text()),
      sequence_name: t.optional(t.text()),
      trigger_type: t.optional(TriggerType),
      ...t.ALL_BY_KEY,
    }),
  }),
  'triggers.get': front.get('/triggers/{slug}', {
    summary: 'Get a trigger.',
    params: TriggerParams,
    replies: ok(Trigger, 404),
  }),
  'triggers.update': firstShard.patch('/triggers/{slug}', {
    summary: 'Change a trigger.',
    params: TriggerParams,
    body: UpdateTrigger,
    repeats: 'the same fields get the same values',
    replies: ok(Trigger, 404, 409, 413),
  }),
  'triggers.delete': firstShard.remove(
    '/triggers/{slug}',
    'Delete a trigger. Its instances continue.',
    { params: TriggerParams },
  ),
  'triggers.fire': front.post('/triggers/{slug}/fire', {
    summary: 'Start an instance now; the body is its context.data.',
    params: TriggerParams,
    body: t.JsonObjectSchema,
    bodySize: 'large',
    isBodyOptional: true,
    makes: 'instance',
    replies: created(TriggerFired, 404, 413, 422),
  }),
  // Named `id` as for subscriptions: OpenAPI does not distinguish paths by parameter names.
  'triggers.receive': front.post('/webhooks/{id}', {
    summary: 'Start an instance with a signed request; the body is its context.data.',
    params: t.object({ id: Slug }),
    body: t.JsonObjectSchema,
    isRaw: true,
    isPublic: true,
    makes: 'instance',
    replies: { 202: WebhookTaken, ...refusals(400, 401, 404, 413, 422, 429) },
  }),
} as const satisfies Record<string, RouteRow>;
