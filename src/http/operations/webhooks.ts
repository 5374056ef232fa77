/** Reads of the outbox and of the delivery log; redeliveries belong to the shards that send. */

import type { RouteId } from '../../../schema/routes.js';
import { notFound } from '../../errors.js';
import { jsonReply, type Operation, queryOf } from './operation.js';

const outbox: Operation = async (deps, call) => {
  const { limit } = queryOf(deps, call, 'webhooks.outbox');
  return jsonReply(await deps.reads.webhooks.outbox(limit));
};

const deliveries: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'webhooks.deliveries');
  return jsonReply(await deps.reads.webhooks.deliveries(query));
};

const delivery: Operation = async (deps, call) => {
  const id = call.params.delivery_id ?? '';
  const text = await deps.reads.webhooks.attempts(id);
  if (text === undefined) throw notFound(`delivery ${id}`);
  return jsonReply(text);
};

/** @param isSigned the deployment has a secret */
const previewOf =
  (isSigned: boolean): Operation =>
  async (deps, call) => {
    const id = call.params.id ?? '';
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
  }) satisfies Partial<Record<RouteId, Operation>>;
