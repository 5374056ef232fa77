/** Whom a message of a peer, or of the shard itself, is for. */

import type { UnixMs } from '../../src/base/time.js';
import { unclaim } from '../instance/operations.js';
import type { Order, OrderAnswer, OrderView } from '../instance/orders.js';
import type { NewInstance } from '../instance/record.js';
import type { PeerMessage, Request } from '../runtime/protocol.js';
import type { DueTimer } from '../runtime/rows.js';
import type { Effect } from '../runtime/turn.js';
import type { ShardParts } from './parts.js';

/** The parts of a shard, and what its turn does about messages. */
export interface PeerParts extends ShardParts {
  /** Takes the request up in its turn. */
  readonly request: (request: Request) => void;
  readonly wakeAt: (at: UnixMs, timer: DueTimer) => void;
  readonly block: (sequence: string, blocked: boolean) => void;
  readonly release: (effects: readonly Effect[]) => void;
}

type MessageOf<Kind extends PeerMessage['kind']> = Extract<PeerMessage, { kind: Kind }>;

/** A row for each kind of message. */
const HANDLERS: {
  readonly [Kind in PeerMessage['kind']]: (parts: PeerParts, message: MessageOf<Kind>) => void;
} = {
  create: ({ creations }, { request, creation }) =>
    creations.again(request, JSON.parse(creation) as NewInstance),
  // Behind the hints that are at hand, as if it had come from the front.
  request: (parts, { request }) => parts.request(request),
  wake: (parts, { at, instance, rank, tenant }) => parts.wakeAt(at, { instance, rank, tenant }),
  'task.ready': ({ queues }, message) => queues.ready(message),
  'task.gone': ({ queues }, { handler, task, tenant, queue }) =>
    queues.gone(handler, task, tenant, queue),
  claim: ({ tasks, instances }, message) => {
    tasks.remember(message.task, message.instance);
    instances.tell(message.instance, message);
  },
  claimed: ({ queues }, message) => queues.claimed(message),
  unclaim,
  'exchange.results': ({ exchanges }, message) => exchanges.results(message),
  'exchange.outcomes': ({ exchanges }, message) => exchanges.outcomes(message),
  'poll.ask': ({ exchanges }, message) => exchanges.asked(message),
  'polls.end': ({ exchanges }, { tenant, worker }) => exchanges.endPolls(tenant, worker),
  'poll.end': ({ exchanges }, { request }) => exchanges.waitEnded(request),
  'poll.answer': ({ exchanges }, message) => exchanges.answered(message),
  'secret.missing': ({ tasks, instances }, message) =>
    tasks.find(message.task, (instance) => instances.tell(instance, message)),
  'permit.wanted': ({ keys }, { key, instance, tenant, number, max, createdAt }) =>
    keys.wanted(key, { instance, tenant, number, max, createdAt }),
  'permit.left': ({ keys }, { key, instance, number }) => keys.left(key, instance, number),
  'permit.granted': tellInstance,
  'rate.asked': ({ rates }, { limit, instance, node, iteration, attempt }) =>
    rates.asked(limit, { instance, node, iteration, attempt }),
  'rate.granted': tellInstance,
  'rate.deferred': tellInstance,
  'rate.changed': tellInstance,
  'rate.used': ({ rates }, { limit, grant, at }) => rates.used(limit, grant, at),
  'event.wanted': ({ events }, { key, wait, instance }) => events.wanted(key, wait, instance),
  'event.unwanted': ({ events }, { key, wait }) => events.unwanted(key, wait),
  'event.arrived': tellInstance,
  'event.taken': ({ events }, { key, event, wait, outcome }) =>
    events.taken(key, event, wait, outcome),
  'sequence.block': (parts, { sequence, isBlocked }) => parts.block(sequence, isBlocked),
  'sequence.settled': ({ catalog }, { sequence, shard }) => catalog?.blocked(sequence, shard),
  'sequence.evict': ({ rooms }, { sequence }) => {
    for (const room of rooms) room.sequenceEvicted?.(sequence);
  },
  'routes.read': ({ routing }, { version }) => routing.read(version),
  'routes.settled': ({ releases }, { version, shard }) => releases?.routesSettled(version, shard),
  'names.forget': ({ names, release, shard }, { version, names: forgotten }) => {
    names.forget(forgotten);
    release([{ kind: 'peer', shard: 0, message: { kind: 'names.settled', version, shard } }]);
  },
  'names.settled': ({ catalog }, { version, shard }) => catalog?.namesSettled(version, shard),
  'subscriptions.read': ({ subscribers }, { version, tenants }) =>
    subscribers.read(version, tenants),
  'subscriptions.settled': ({ subscriptions }, { version, shard }) =>
    subscriptions?.settled(version, shard),
  'kin.note': ({ kin }, { kind: _, ...note }) => kin.heard(note),
  'release.ended': ({ releases }, { release }) => releases?.ended(release),
  'continuity.order': handleOrder,
  'continuity.answer': ({ continuity }, { ticket, answer }) =>
    continuity.service.answered(ticket, JSON.parse(answer) as OrderAnswer),
  'continuity.ask': ({ continuity }, { execution, instance }) =>
    continuity.asked(execution, instance),
};

export function handlePeer(parts: PeerParts, message: PeerMessage): void {
  HANDLERS[message.kind](parts, message as never);
}

/** Instances know the message as it is. */
function tellInstance(
  { instances }: PeerParts,
  message: MessageOf<
    'permit.granted' | 'event.arrived' | 'rate.granted' | 'rate.deferred' | 'rate.changed'
  >,
): void {
  instances.tell(message.instance, message);
}

/** The order becomes a request of the engine's own; its answer goes back to the sender. */
function handleOrder(
  { instances, ownRequests, release }: PeerParts,
  { instance, order: text }: MessageOf<'continuity.order'>,
): void {
  const order = JSON.parse(text) as Order;
  const { ticket, replyTo: shard, tenant } = order;
  const request = ownRequests.open((told) => {
    const answer: OrderAnswer =
      'error' in told
        ? { ok: false, error: told.error.toData() }
        : { ok: true, view: JSON.parse(told.body) as OrderView };
    const message = { kind: 'continuity.answer', ticket, answer: JSON.stringify(answer) } as const;
    release([{ kind: 'peer', shard, message }]);
  });
  instances.tell(instance, { kind: 'order', request, tenant, order });
}
