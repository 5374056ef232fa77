/** Reads of subscriptions, the outbox and the delivery log. Lists show a delivery by its last attempt. */

import { notFound } from '../../../src/base/errors.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type CallById,
  type FrontDeps,
  jsonReply,
  listBy,
  pageReply,
} from '../../../src/http/operation.js';
import { WEBHOOK_DELIVERIES, WEBHOOK_OUTBOX, WEBHOOK_SUBSCRIPTIONS } from '../tables.js';

const OUTBOX_COLUMNS = columnsBut(WEBHOOK_OUTBOX, 'tenant_id');
type OutboxRow = StoredRow<typeof WEBHOOK_OUTBOX, (typeof OUTBOX_COLUMNS)[number]>;
const CHEAPER = 'ask for a smaller limit, or for fewer conditions';

/** `OutboxEntry` records, oldest first. */
export const outboxList = list({
  columns: selected(OUTBOX_COLUMNS),
  from: 'webhook_outbox',
  order: 'created_at, id',
  toText: outboxText,
  cheaper: CHEAPER,
});

export const webhookTenant = lookup<{ readonly tenant_id: string }>(
  'read_webhook_tenant',
  'select tenant_id from webhook_outbox where id = $1::uuid',
);

export const webhookById = lookup<OutboxRow>(
  'read_webhook',
  `select ${selected(OUTBOX_COLUMNS)} from webhook_outbox where id = $1::uuid`,
);

type LastAttempt = object & StoredRow<typeof WEBHOOK_DELIVERIES, 'attempted_at' | 'id'>;

/** `DeliverySummary` records, newest first. `offset 0` keeps the planner from joining the other attempts. */
export const deliveryList = list({
  columns:
    'd.delivery_id, d.url, d.event_type, d.instance_id, d.attempt_number as attempts, ' +
    'd.success as delivered, (select f.attempted_at from webhook_deliveries f ' +
    'where f.delivery_id = d.delivery_id order by f.attempt_number limit 1) ' +
    'as first_attempted_at, d.attempted_at as last_attempted_at, d.status_code, d.error_class, ' +
    'd.subscription_id, d.attempted_at, d.id',
  from: 'webhook_deliveries d',
  by: {
    ...filtersOf(WEBHOOK_DELIVERIES, ['url', 'event_type', 'error_class', 'subscription_id'], 'd'),
    delivered: filtersOf(WEBHOOK_DELIVERIES, ['success'], 'd').success,
  },
  always:
    'not exists (select 1 from webhook_deliveries l where l.delivery_id = d.delivery_id ' +
    'and l.attempt_number > d.attempt_number offset 0)',
  walk: {
    table: 'webhook_deliveries d',
    alias: 'd',
    along: ['subscription_id'],
    isOfAll: true,
    within: [],
  },
  order: orderBy(WEBHOOK_DELIVERIES, ['attempted_at', 'id'], 'descending', 'd'),
  toText: ({ attempted_at: _, id: __, ...row }: LastAttempt) => JSON.stringify(row),
  cheaper: CHEAPER,
});

/** The attempts of one delivery, oldest first. */
export const deliveryAttempts = lookup<object>(
  'read_webhook_attempts',
  `select ${selected(columnsBut(WEBHOOK_DELIVERIES))} from webhook_deliveries ` +
    'where delivery_id = $1::uuid order by attempt_number',
);

const SUBSCRIPTION_COLUMNS = columnsBut(WEBHOOK_SUBSCRIPTIONS, 'secret');
type SubscriptionRow = StoredRow<
  typeof WEBHOOK_SUBSCRIPTIONS,
  (typeof SUBSCRIPTION_COLUMNS)[number]
>;

/** `WebhookSubscription` records, oldest first. */
export const subscriptionList = list({
  columns: selected(SUBSCRIPTION_COLUMNS),
  from: 'webhook_subscriptions',
  by: filtersOf(WEBHOOK_SUBSCRIPTIONS, ['tenant_id']),
  order: 'created_at, id',
  toText: subscriptionText,
});

export const subscriptionById = lookup<SubscriptionRow>(
  'read_webhook_subscription',
  `select ${selected(SUBSCRIPTION_COLUMNS)} from webhook_subscriptions where id = $1::uuid`,
);

function subscriptionText({ events, ...row }: SubscriptionRow): string {
  return JSON.stringify({ ...row, events: JSON.parse(events) });
}

/** The body is JSON from the engine, inserted verbatim. */
function outboxText({ body, last_error, ...row }: OutboxRow): string {
  return `${withoutNulls({ ...row, last_error }).slice(0, -1)},"payload":${body}}`;
}

/** `DeliveryAttempt`: members without a value are left out. */
function withoutNulls(row: object): string {
  return JSON.stringify(row, (_name, value: unknown) => value ?? undefined);
}

const subscriptionNamed = ({ reads }: FrontDeps, { params, tenant }: CallById) =>
  rowOf(reads, subscriptionById, 'webhook subscription', params.id, tenant);

export function openWebhookFront({ settings }: Pick<FrontKernel, 'settings'>) {
  return {
    operations: {
      'webhooks.subscriptions': listBy(subscriptionList),
      'webhooks.subscription': async (deps, call) =>
        jsonReply(subscriptionText(await subscriptionNamed(deps, call))),
      'webhooks.subscriptionDeliveries': async (deps, call) => {
        const { id } = await subscriptionNamed(deps, call);
        const query = { ...call.query, offset: 0, subscription_id: id };
        return pageReply(call, query, await deps.reads.page(deliveryList(query)));
      },
      'webhooks.outbox': async ({ reads }, { query }) =>
        jsonReply((await reads.page(outboxList(query))).text),
      'webhooks.redeliverPreview': async ({ reads }, { params: { id } }) => {
        const row = await webhookById.row(reads, id);
        if (row === undefined) throw notFound(`webhook ${id}`);
        const { url, event_type, last_error } = row;
        const preview = {
          url,
          event_type,
          payload_bytes: Buffer.byteLength(row.body),
          will_be_signed: settings.webhookSecret !== undefined || row.subscription_id !== null,
          previous_delivery_id: row.delivery_id ?? undefined,
          previous_attempts: row.attempts,
          last_error,
        };
        return jsonReply(JSON.stringify(preview));
      },
      'webhooks.deliveries': async ({ reads }, call) => {
        const query = { ...call.query, offset: 0 };
        return pageReply(call, query, await reads.page(deliveryList(query)));
      },
      'webhooks.delivery': async ({ reads }, { params: { delivery_id: id } }) => {
        const rows = await deliveryAttempts.rows(reads, id);
        if (rows.length === 0) throw notFound(`delivery ${id}`);
        return jsonReply(`[${rows.map(withoutNulls).join(',')}]`);
      },
    },
  } satisfies FrontRoom;
}
