/** Reads of events, and batches: each event goes to the shard of its key. */

import type { EventReceipt } from '../../../schema/event.js';
import { eventKeyId } from '../../../src/base/ids.js';
import { eventTenant } from '../../../src/base/tenancy.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy, type Operation } from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import type { eventOperations } from '../operations.js';
import { eventById, eventList, eventText } from './reads.js';

const get: Operation<'events.get'> = async (deps, { params, tenant }) => {
  const row = await rowOf(deps.reads, eventById, 'event', params.id, tenant);
  return jsonReply(await eventText(deps.reads, row));
};

const sendBatch =
  (
    client: Pick<Shards<typeof eventOperations>, 'ask' | 'shardOf'>,
  ): Operation<'events.sendBatch'> =>
  async (_deps, { tenant, body: { events } }) => {
    const owners = events.map((event, index) =>
      eventTenant(tenant, event.tenant_id, `events[${index}].`),
    );
    // After a failure the caller sends the whole batch again; ids deduplicate the stored events.
    const outcomes = await Promise.all(
      events.map(async (event, index): Promise<EventReceipt> => {
        const owner = owners[index] as string;
        const { event_name: name, correlation_key: key } = event;
        const shard = client.shardOf(eventKeyId(owner, name, key ?? undefined));
        const { body } = await client.ask(shard, 'events.receive', owner, '', event);
        return JSON.parse(body) as EventReceipt;
      }),
    );
    return jsonReply(JSON.stringify({ outcomes }));
  };

export function openEventFront({
  client,
}: Pick<FrontKernel<Shards<typeof eventOperations>>, 'client'>) {
  return {
    operations: {
      'events.list': listBy(eventList),
      'events.get': get,
      'events.sendBatch': sendBatch(client),
    },
  } satisfies FrontRoom;
}
