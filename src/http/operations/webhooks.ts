/** Reads of the outbox and of the delivery log; redeliveries belong to the shards that send. */

import {
  deliveryAttempts,
  deliveryList,
  outboxList,
  previewText,
  webhookById,
  withoutNulls,
} from '../../db/reads/webhook-reads.js';
import { notFound } from '../../errors.js';
import { type FrontOperations, jsonReply, type Operation } from './operation.js';

const outbox: Operation<'webhooks.outbox'> = async (deps, call) =>
  jsonReply((await deps.reads.page(outboxList(call.query))).text);

const deliveries: Operation<'webhooks.deliveries'> = async (deps, call) =>
  jsonReply((await deps.reads.page(deliveryList(call.query))).text);

const delivery: Operation<'webhooks.delivery'> = async (deps, call) => {
  const id = call.params.delivery_id;
  const rows = await deliveryAttempts.rows(deps.reads, id);
  if (rows.length === 0) throw notFound(`delivery ${id}`);
  return jsonReply(`[${rows.map(withoutNulls).join(',')}]`);
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

export const webhookOperations = (isSigned: boolean) =>
  ({
    'webhooks.outbox': outbox,
    'webhooks.redeliverPreview': previewOf(isSigned),
    'webhooks.deliveries': deliveries,
    'webhooks.delivery': delivery,
  }) satisfies Partial<FrontOperations>;
