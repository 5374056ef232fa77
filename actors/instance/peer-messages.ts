/** What peers tell the instances of a shard, and the queues of that and of other shards. */

import type { InternalRequests } from '../runtime/internal-requests.js';
import type { Messages } from '../runtime/room.js';
import type { Effect } from '../runtime/turn.js';
import type { Instances } from './instances.js';
import type { InstanceMessage } from './messages.js';
import { unclaim } from './operations.js';
import type { Order, OrderAnswer, OrderView } from './orders.js';
import type { TaskIndex } from './task-index.js';

export interface PeerMessagesDeps {
  readonly instances: Instances;
  readonly tasks: TaskIndex;
  readonly internalRequests: InternalRequests;
  readonly release: (effects: readonly Effect[]) => void;
}

export function peerMessages({ instances, tasks, internalRequests, release }: PeerMessagesDeps) {
  /** Instances know the message as it is. */
  const tell = (message: InstanceMessage & { readonly instance: string }) =>
    instances.tell(message.instance, message);
  const messages = {
    claim: (message) => {
      tasks.remember(message.task, message.instance);
      tell(message);
    },
    unclaim: (claim) => unclaim({ tasks, instances }, claim),
    'secret.missing': (message) =>
      tasks.find(message.task, (instance) => instances.tell(instance, message)),
    'permit.granted': tell,
    'rate.granted': tell,
    'rate.deferred': tell,
    'rate.changed': tell,
    'event.arrived': tell,
    // The order becomes a request of the engine's own; its answer goes back to the sender.
    'continuity.order': ({ instance, order: text }) => {
      const order = JSON.parse(text) as Order;
      const { ticket, replyTo: shard, tenant } = order;
      const request = internalRequests.open((told) => {
        const answer: OrderAnswer =
          'error' in told
            ? { ok: false, error: told.error.toData() }
            : { ok: true, view: JSON.parse(told.body) as OrderView };
        const message = {
          kind: 'continuity.answer',
          ticket,
          answer: JSON.stringify(answer),
        } as const;
        release([{ kind: 'peer', shard, message }]);
      });
      instances.tell(instance, { kind: 'order', request, tenant, order });
    },
  } satisfies Messages;
  return { messages };
}
