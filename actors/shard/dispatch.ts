/**
 * Dispatches effects of committed units, messages of peers, and timers to rooms: each kind has one room.
 * The shard has a room of its own, which sends replies and peer messages, and wakes due instances.
 */

import type { Logger } from '../../src/base/log.js';
import { joined } from '../../src/base/rooms.js';
import type { UnixMs } from '../../src/base/time.js';
import type { InstanceRoom } from '../instance/room.js';
import { INTERNAL } from '../runtime/commit.js';
import type { PeerMessage, Reply } from '../runtime/protocol.js';
import type { Effects, Messages, Room, Timers } from '../runtime/room.js';
import type { DueTimer, Timer } from '../runtime/timer.js';
import type { Effect } from '../runtime/turn.js';
import type { ShardKernel } from './kernel.js';
import type { Outbox } from './outbox.js';

export class Dispatch {
  readonly #log: Logger;
  readonly #out: Outbox;
  readonly #effects: Effects;
  readonly #messages: Messages;
  readonly #timers: Timers;

  constructor(rooms: readonly Room[], out: Outbox, log: Logger) {
    this.#log = log;
    this.#out = out;
    this.#effects = joined(rooms.map(({ effects }) => effects));
    this.#messages = joined(rooms.map(({ messages }) => messages));
    this.#timers = joined(rooms.map(({ timers }) => timers));
  }

  /** An effect that fails does not stop the others. */
  release(effects: readonly Effect[]): void {
    for (const effect of effects) {
      try {
        taken<Effect>(this.#effects, effect);
      } catch (error) {
        this.#log.error({ err: error, effect: effect.kind }, 'defect');
        if (effect.kind === 'reply' || effect.kind === 'error') {
          this.#out.reply({ request: effect.request, error: INTERNAL.toData() });
        }
      }
    }
  }

  /** A message of a peer, or of this shard to itself. */
  receive(message: PeerMessage): void {
    taken<PeerMessage>(this.#messages, message);
  }

  fire(timer: Timer): void {
    taken<Timer>(this.#timers, timer);
  }
}

/** @throws Error when this shard has no room for it: some exist only on the first shard */
function taken<Given extends { readonly kind: string }>(rows: object, given: Given): void {
  const take = (rows as Record<string, ((given: Given) => void) | undefined>)[given.kind];
  if (!take) throw new Error(`no room of this shard takes ${given.kind}`);
  take(given);
}

/** The shard's own room. */
export function openTurnRoom(kernel: ShardKernel, { instances }: Pick<InstanceRoom, 'instances'>) {
  const { shard, now, schedule, internalRequests, timers } = kernel;
  const { wakeShard, runSoon, takeUp, receive, reply, hint, eachRoom } = kernel;
  /** Committed facts about an instance in memory. */
  const timerOf = (instance: string, rank: number): DueTimer => ({
    instance,
    rank,
    tenant: instances.tenantOf(instance),
  });
  const wakeAt = (at: UnixMs, timer: DueTimer) => {
    if (at > now()) timers.committed(at, timer);
    else runSoon(timer);
  };
  const answer = (effect: Extract<Effect, { kind: 'reply' | 'error' }>) => {
    if (effect.request < 0) internalRequests.answered(effect.request, effect);
    else reply(replyOf(effect));
  };
  const messages = {
    // Behind the pending hints, as if it had come from the front.
    request: ({ request }) => takeUp(request),
    wake: ({ at, instance, rank, tenant }) => wakeAt(at, { instance, rank, tenant }),
    'sequence.evict': ({ sequence }) => eachRoom((room) => room.sequenceEvicted?.(sequence)),
  } satisfies Messages;
  const effects = {
    reply: answer,
    error: answer,
    peer: ({ shard: to, message }) => {
      if (to === shard) schedule(() => receive(message));
      else hint(to, message);
    },
    timer: ({ at, instance, rank }) => timers.committed(at, timerOf(instance, rank)),
    continue: ({ instance, rank }) => {
      runSoon(timerOf(instance, rank));
      wakeShard();
    },
  } satisfies Effects;
  return { messages, effects, timers: { wake: (timer) => runSoon(timer) } satisfies Timers };
}

/** Most replies have only the first members; undefined ones would be cloned. */
function replyOf(effect: Extract<Effect, { kind: 'reply' | 'error' }>): Reply {
  const { request } = effect;
  if (effect.kind === 'error') return { request, error: effect.error.toData() };
  const { status, body, claims, fires, known } = effect;
  if (fires) return { request, status, body, fires };
  if (known !== undefined) return { request, status, body, known };
  return claims === undefined ? { request, status, body } : { request, status, body, claims };
}
