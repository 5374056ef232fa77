/** Statements of webhooks and subscriptions. */

import type { StoredSecret } from '../../src/core/sealing/sealing.js';
import type { WebhookEvent, WebhookRow } from '../../src/core/webhook.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import { isOwn, NO_ID, type Queries } from '../runtime/queries.js';
import { WEBHOOK_OUTBOX, WEBHOOK_SUBSCRIPTIONS } from './tables.js';

export type SubscriptionRow = StoredRow<typeof WEBHOOK_SUBSCRIPTIONS>;

export interface Subscription extends Omit<SubscriptionRow, 'events' | 'secret'> {
  readonly events: readonly WebhookEvent[];
  readonly secret: StoredSecret;
}

/** An address of the deployment has no subscription. */
export type WebhookTarget = { readonly url: string; readonly subscription: string | null };

/** The place of a row in the queue of its address, by the time of the next attempt. */
export type WebhookPlace = { readonly at: string; readonly id: string };

export function subscriptionOf({ events, secret, ...row }: SubscriptionRow): Subscription {
  return {
    ...row,
    events: JSON.parse(events) as WebhookEvent[],
    secret: JSON.parse(secret) as StoredSecret,
  };
}

const OUTBOX = selected(columnsBut(WEBHOOK_OUTBOX));
const SUBSCRIPTION_COLUMNS = selected(columnsBut(WEBHOOK_SUBSCRIPTIONS));

export const WEBHOOK_SQL = {
  // Finds the next address by the index, however many webhooks the last one has.
  webhookUrls:
    'with recursive urls(url) as (' +
    '(select url from webhook_outbox where next_attempt_at is not null and url > $1 ' +
    'order by url limit 1) ' +
    'union all select (select w.url from webhook_outbox w where w.next_attempt_at is not null ' +
    'and w.url > u.url order by w.url limit 1) from urls u where u.url is not null) ' +
    'select u.url from urls u where u.url is not null and exists (' +
    'select 1 from webhook_outbox w where w.url = u.url and w.next_attempt_at is not null ' +
    `and ${isOwn('w.id', '$3', '$4')} offset 0) limit $2`,
  dueWebhooks:
    `select ${OUTBOX} from webhook_outbox where url = $1 ` +
    'and next_attempt_at is not null and (next_attempt_at, id) > ($2::timestamptz, $3::uuid) ' +
    `and ${isOwn('id', '$5', '$6')} order by next_attempt_at, id limit $4`,
  webhook: `select ${OUTBOX} from webhook_outbox where id = $1::uuid`,
  subscription: `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions where id = $1::uuid`,
  subscriptions:
    `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions ` +
    'where tenant_id = any($1::text[])',
  allSubscriptions:
    `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions where id > $1::uuid ` +
    'order by id limit $2',
  oldestDelivery: 'select attempted_at from webhook_deliveries order by attempted_at, id limit 1',
} as const;

export function webhookLoads(queries: Queries) {
  const sql = queries.of(WEBHOOK_SQL);
  return {
    /** Addresses of the shard with pending webhooks, in order. */
    async webhookUrls(after: string, limit: number): Promise<string[]> {
      return (await sql.own<{ url: string }>('webhookUrls', [after, limit])).map((row) => row.url);
    },
    /** Pending webhooks of the shard for an address, by time, without parked ones. */
    dueWebhooks: (url: string, after: WebhookPlace, limit: number) =>
      sql.own<WebhookRow>('dueWebhooks', [url, after.at, after.id, limit]),
    webhook: (id: string) => sql.one<WebhookRow>('webhook', [id]),
    subscription: (id: string) => sql.one<SubscriptionRow>('subscription', [id]),
    subscriptions: (tenants: readonly string[]) =>
      sql.all<SubscriptionRow>('subscriptions', [tenants]),
    allSubscriptions: (after: string | undefined, limit: number) =>
      sql.all<SubscriptionRow>('allSubscriptions', [after ?? NO_ID, limit]),
    oldestDelivery: () => sql.time('oldestDelivery', 'attempted_at'),
  };
}

export type WebhookLoads = ReturnType<typeof webhookLoads>;
