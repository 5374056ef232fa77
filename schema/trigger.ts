/** Wire shapes and routes of triggers, which start instances or publish events from outside (docs/triggers.md). */

import { changeOf, UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { EventReceipt } from './event.js';
import { SKIPPED } from './instance.js';
import { COLLECTED } from './pending-start.js';
import {
  created,
  did,
  ENABLED,
  firstShard,
  front,
  get,
  ok,
  type RouteRow,
  refusals,
} from './route-row.js';
import {
  TriggerPublish,
  TriggerSecret,
  TriggerVerification,
  TriggerVerify,
} from './trigger-parts.js';

const TRIGGER_TYPES = ['webhook', 'event'] as const;
export const NAMESPACE_DEFAULT = 'default';

export const SLUG_PATTERN = '^[A-Za-z0-9._~-]+$';
const Slug = t.noted(
  t.text({ pattern: SLUG_PATTERN, maxLength: t.NAME_LENGTH_MAX }),
  'Part of the address, unique on the server: letters, digits, dots, _, ~ and -.',
);
const TriggerType = t.oneOf(
  TRIGGER_TYPES,
  'webhook: a signed request to /webhooks/{slug}. event: every event with a given name.',
);
const Config = t.noted(
  t.JsonObjectSchema,
  'For event triggers: event_name, and optionally correlation_key to filter events.',
);

/** The members of an effect, and what authenticates callers. */
const EFFECT = {
  sequence_name: t.nullish(
    t.Name,
    'Name of the sequence, resolved at each fire. Exactly one of sequence_name and publish.',
  ),
  publish: t.optional(t.refOrNull(TriggerPublish), 'Publishes an event instead.'),
  verify: t.optional(
    t.refOrNull(TriggerVerify),
    'Of webhook triggers, instead of secret: how requests are verified.',
  ),
};

export const CreateTrigger = t.strictNamed('CreateTrigger', {
  slug: t.addressed(Slug),
  tenant_id: t.BodyTenant,
  ...EFFECT,
  version: t.nullish(t.Version, 'Pins this version. Default: as for an instance created by name.'),
  namespace: t.nullish(t.withDefault(t.Name, NAMESPACE_DEFAULT)),
  trigger_type: t.nullish(t.withDefault(TriggerType, 'webhook')),
  secret: t.nullish(TriggerSecret),
  config: t.nullish(Config),
  enabled: t.flag(true),
});
export type CreateTrigger = t.Static<typeof CreateTrigger>;

export const Trigger = t.named('Trigger', {
  slug: t.text(),
  tenant_id: t.text(),
  namespace: t.text(),
  sequence_name: t.nullable(t.text()),
  publish: t.refOrNull(TriggerPublish),
  version: t.nullable(t.integer()),
  trigger_type: t.oneOf(TRIGGER_TYPES),
  secret: t.nullable(t.text(`${t.REDACTED} if the trigger has a secret.`)),
  verify: t.refOrNull(TriggerVerification),
  config: t.JsonObjectSchema,
  enabled: t.boolean(),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type Trigger = t.Static<typeof Trigger>;

export const UpdateTrigger = changeOf('UpdateTrigger', Trigger, {
  ...UNCHANGED,
  ...EFFECT,
  version: t.nullish(t.Version),
  secret: t.nullish(TriggerSecret),
  config: t.nullish(Config),
  enabled: t.nullish(t.boolean()),
});
export type UpdateTrigger = t.Static<typeof UpdateTrigger>;

const TriggerParams = t.object({ slug: Slug });

/** A started instance, or the receipt of a published event. */
const OUTCOME = {
  trigger: t.text(),
  instance_id: t.optional(
    t.Uuid,
    'The instance that was started; with skipped, one that holds the key.',
  ),
  skipped: SKIPPED,
  ...COLLECTED,
  ...t.allOptional(EventReceipt.properties),
  duplicate: t.optional(t.boolean('True: the delivery had its effect before, and has no second.')),
};

export const TriggerFired = t.named('TriggerFired', {
  ...OUTCOME,
  sequence_name: t.optional(t.text()),
});
export type TriggerFired = t.Static<typeof TriggerFired>;

export const WebhookTaken = t.named('WebhookTaken', OUTCOME);
export type WebhookTaken = t.Static<typeof WebhookTaken>;

/** The only answers that Slack takes as success everywhere are 200 and empty. */
const SlackAnswer = t.text('For Slack: its challenge, or nothing.');

export const TRIGGER_ROWS = {
  'triggers.create': firstShard.post('/triggers', {
    summary: 'Create a trigger, which starts instances or publishes events from outside.',
    body: CreateTrigger,
    replies: created(Trigger, 404, 409, 413),
    action: did('trigger', 'created', { shows: ['trigger_type', 'sequence_name', 'enabled'] }),
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
    action: did('trigger', 'changed', {
      shows: ['enabled', 'sequence_name', 'version'],
      words: { enabled: ENABLED },
      isChange: true,
    }),
  }),
  'triggers.delete': firstShard.remove(
    '/triggers/{slug}',
    'Delete a trigger. Its instances continue.',
    { params: TriggerParams, action: did('trigger', 'deleted') },
  ),
  'triggers.fire': front.post('/triggers/{slug}/fire', {
    summary: 'Start an instance with the body as its context.data, or publish the event.',
    params: TriggerParams,
    body: t.JsonObjectSchema,
    bodySize: 'large',
    isBodyOptional: true,
    makes: 'instance',
    replies: { ...created(TriggerFired, 404, 413, 422), 202: TriggerFired },
  }),
  // Named `id` as for subscriptions: OpenAPI does not distinguish paths by parameter names.
  'triggers.receive': front.post('/webhooks/{id}', {
    summary: 'Start an instance or publish an event with a verified request.',
    params: t.object({ id: Slug }),
    body: t.JsonObjectSchema,
    isRaw: true,
    isPublic: true,
    makes: 'instance',
    replies: { 200: SlackAnswer, 202: WebhookTaken, ...refusals(400, 401, 404, 413, 422, 429) },
  }),
} as const satisfies Record<string, RouteRow>;
