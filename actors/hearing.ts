/** Whom a message of a peer, or of the shard itself, is for. */

import type { UnixMs } from '../src/core/time.js';
import type { Catalog } from './catalog.js';
import type { Continuity } from './continuity/operations.js';
import type { Order, OrderAnswer, OrderView } from './continuity/orders.js';
import type { Creations } from './creations.js';
import type { NewInstance } from './instance-record.js';
import type { Instances } from './instances.js';
import type { Keys } from './keys.js';
import type { OwnRequests } from './own-requests.js';
import type { Plans } from './plans.js';
import type { PeerMessage, Request } from './protocol.js';
import type { Queues } from './queues.js';
import type { Rates } from './rates.js';
import type { Releases } from './releases.js';
import type { Requests } from './requests.js';
import type { Routing } from './routing.js';
import type { Schedules } from './schedules.js';
import type { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';
import type { Watchers } from './watchers.js';

/** The parts of a shard that messages are for. */
export interface Hearers {
  readonly requests: Requests;
  readonly continuity: Continuity;
  readonly instances: Instances;
  readonly creations: Creations;
  readonly routing: Routing;
  readonly queues: Queues;
  readonly keys: Keys;
  readonly rates: Rates;
  readonly schedules: Schedules;
  readonly ownRequests: OwnRequests;
  readonly tasks: TaskIndex;
  readonly plans: Plans;
  readonly watchers: Watchers;
  /** On the first shard only. */
  readonly catalog: Catalog | undefined;
  readonly releases: Releases | undefined;
  /** Takes the request up in its turn. */
  readonly request: (request: Request) => void;
  readonly wakeAt: (instance: string, at: UnixMs, rank: number) => void;
  readonly block: (sequence: string, blocked: boolean) => void;
  readonly release: (effects: readonly Effect[]) => void;
}

type RateMessage = Extract<PeerMessage, readonly [`rate.${string}`, ...unknown[]]>;

export function hear(parts: Hearers, message: PeerMessage): void {
  switch (message[0]) {
    case 'create':
      parts.creations.again(message[1], JSON.parse(message[2]) as NewInstance);
      return;
    case 'poll':
      // Behind the hints that are at hand, as if it had come from the front.
      parts.request([message[1], message[4], message[2], '', message[3]]);
      return;
    case 'wake':
      parts.wakeAt(message[1], message[2], message[3]);
      return;
    case 'task.ready': {
      const [, handler, id, instance, tenant, queue, rank, createdAt] = message;
      parts.queues.ready(handler, { id, instance, tenant, queue, rank, createdAt });
      return;
    }
    case 'task.gone':
      parts.queues.gone(message[1], message[2]);
      return;
    case 'claim': {
      const [, handler, poll, task, instance, worker, queueShard] = message;
      parts.tasks.remember(task, instance);
      parts.instances.tell(instance, { kind: 'claim', handler, poll, task, worker, queueShard });
      return;
    }
    case 'claimed':
      parts.queues.claimed(message[1], message[2], message[3], message[4], message[5]);
      return;
    case 'unclaim':
      parts.requests.unclaim(message[1], message[2]);
      return;
    case 'permit.wanted': {
      const [, key, instance, number, max, createdAt] = message;
      parts.keys.wanted(key, { instance, number, max, createdAt });
      return;
    }
    case 'permit.left':
      parts.keys.left(message[1], message[2], message[3]);
      return;
    case 'permit.granted':
      parts.instances.tell(message[1], { kind: 'permit.granted', number: message[2] });
      return;
    case 'rate.asked':
    case 'rate.used':
    case 'rate.granted':
    case 'rate.deferred':
    case 'rate.changed':
      hearRate(parts, message);
      return;
    case 'continuity.order':
      hearOrder(parts, message[1], JSON.parse(message[2]) as Order);
      return;
    case 'continuity.answer':
      parts.continuity.desk.answered(message[1], JSON.parse(message[2]) as OrderAnswer);
      return;
    case 'continuity.ask':
      parts.continuity.asked(message[1], message[2]);
      return;
    case 'sequence.block':
      parts.block(message[1], message[2]);
      return;
    case 'sequence.settled':
      parts.catalog?.blocked(message[1], message[2]);
      return;
    case 'routes.read':
      parts.routing.read(message[1]);
      return;
    case 'routes.settled':
      parts.releases?.routesSettled(message[1], message[2]);
      return;
    case 'release.ended':
      parts.releases?.ended(message[1]);
      return;
    case 'sequence.evict':
      parts.plans.evict(message[1]);
      parts.instances.evictSequence(message[1]);
      parts.schedules.evictSequence(message[1]);
      parts.watchers.answerAll();
      return;
  }
}

/** The order becomes a request of the engine's own; its answer goes back to the desk. */
function hearOrder(
  { instances, ownRequests, release }: Hearers,
  instance: string,
  order: Order,
): void {
  const { ticket, desk, tenant } = order;
  const request = ownRequests.open((answer) => {
    const told: OrderAnswer =
      'error' in answer
        ? { ok: false, error: answer.error.toData() }
        : { ok: true, view: JSON.parse(answer.body) as OrderView };
    const message = ['continuity.answer', ticket, JSON.stringify(told)] as const;
    release([{ kind: 'peer', shard: desk, message }]);
  });
  instances.tell(instance, { kind: 'order', request, tenant, order });
}

function hearRate(parts: Hearers, message: RateMessage): void {
  if (message[0] === 'rate.used') {
    parts.rates.used(message[1], message[2], message[3]);
    return;
  }
  if (message[0] === 'rate.asked') {
    const [, limit, instance, node, iteration, attempt] = message;
    parts.rates.asked(limit, { instance, node, iteration, attempt });
    return;
  }
  const [kind, instance, node, iteration, attempt] = message;
  const step = { node, iteration, attempt };
  switch (kind) {
    case 'rate.granted':
      parts.instances.tell(instance, {
        kind,
        step,
        grant: message[5],
        usableUntil: message[6],
      });
      return;
    case 'rate.deferred':
      parts.instances.tell(instance, { kind, step, until: message[5] });
      return;
    case 'rate.changed':
      parts.instances.tell(instance, { kind, step });
  }
}
