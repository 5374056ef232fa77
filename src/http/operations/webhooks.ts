/** Reads of the outbox and of the delivery log; redeliveries belong to the shards that send. */

import { notFound } from '../../errors.js';
import { type FrontOperations, jsonReply, type Operation } from './operation.js';

const outbox: Operation<'webhooks.outbox'> = async (deps, call) => {
  const { limit } = call.query;
  return jsonReply(await deps.reads.webhooks.outbox(limit));
};

const deliveries: Operation<'webhooks.deliveries'> = async (deps, call) => {
  const { query } = call;
  return jsonReply(await deps.reads.webhooks.deliveries(query));
};

const delivery: Operation<'webhooks.delivery'> = async (deps, call) => {
  const id = call.params.delivery_id;
  const text = await deps.reads.webhooks.attempts(id);
  if (text === undefined) throw notFound(`delivery ${id}`);
  return jsonReply(text);
};

/** @param isSigned the deployment has a secret */
const previewOf =
  (isSigned: boolean): Operation<'webhooks.redeliverPreview'> =>
  async (deps, call) => {
    const { id } = call.params;
    const text = await deps.reads.webhooks.preview(id, isSigned);
    if (text === undefined) throw notFound(`webhook ${id}`);
    return jsonReply(text);
  };

export const webhookOperations = (isSigned: boolean) =>
  ({
    'webhooks.outbox': outbox,
    'webhooks.redeliverPreview': previewOf(isSigned),
    'webhooks.deliveries': deliveries,
    'webhooks.delivery': delivery,
  }) satisfies Partial<FrontOperations>;
