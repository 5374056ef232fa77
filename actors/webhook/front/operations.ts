/** Reads of subscriptions, the outbox, and the delivery log. */

import { notFound } from '../../../src/base/errors.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  type CallById,
  type FrontDeps,
  jsonReply,
  listBy,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import {
  deliveryAttempts,
  deliveryList,
  outboxList,
  previewText,
  subscriptionById,
  subscriptionList,
  subscriptionText,
  webhookById,
  withoutNulls,
} from './reads.js';

const outbox: Operation<'webhooks.outbox'> = async (deps, call) =>
  jsonReply((await deps.reads.page(outboxList(call.query))).text);

const deliveries: Operation<'webhooks.deliveries'> = async (deps, call) =>
  pageReply(call, { ...call.query, offset: 0 }, await deps.reads.page(deliveryList(call.query)));

const delivery: Operation<'webhooks.delivery'> = async (deps, call) => {
  const id = call.params.delivery_id;
  const rows = await deliveryAttempts.rows(deps.reads, id);
  if (rows.length === 0) throw notFound(`delivery ${id}`);
  return jsonReply(`[${rows.map(withoutNulls).join(',')}]`);
};

const subscriptionNamed = (deps: FrontDeps, { params, tenant }: CallById) =>
  rowOf(deps.reads, subscriptionById, 'webhook subscription', params.id, tenant);

const subscription: Operation<'webhooks.subscription'> = async (deps, call) =>
  jsonReply(subscriptionText(await subscriptionNamed(deps, call)));

const ownDeliveries: Operation<'webhooks.subscriptionDeliveries'> = async (deps, call) => {
  const { id } = await subscriptionNamed(deps, call);
  const query = { ...call.query, offset: 0, subscription_id: id };
  return pageReply(call, query, await deps.reads.page(deliveryList(query)));
};

/** @param isSigned the deployment has a secret */
const previewOf =
  (isSigned: boolean): Operation<'webhooks.redeliverPreview'> =>
  async (deps, call) => {
    const { id } = call.params;
    const row = await webhookById.row(deps.reads, id);
    if (row === undefined) throw notFound(`webhook ${id}`);
    return jsonReply(previewText(row, isSigned));
  };

export function openWebhookFront({ settings }: Pick<FrontKernel, 'settings'>) {
  return {
    operations: {
      'webhooks.subscriptions': listBy(subscriptionList),
      'webhooks.subscription': subscription,
      'webhooks.subscriptionDeliveries': ownDeliveries,
      'webhooks.outbox': outbox,
      'webhooks.redeliverPreview': previewOf(settings.webhookSecret !== undefined),
      'webhooks.deliveries': deliveries,
      'webhooks.delivery': delivery,
    },
  } satisfies FrontRoom;
}
