/**
 * Dispatches effects of committed units, messages of peers, and timers: one room handles each kind. The
 * shard's own room sends replies and peer messages, and wakes due instances.
 */

import type { Logger } from '../../src/base/log.js';
import { joined } from '../../src/base/rooms.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Actions } from '../action/actions.js';
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
        dispatch<Effect>(this.#effects, effect);
      } catch (error) {
        this.#log.error({ err: error, effect: effect.kind }, 'defect');
        if (effect.kind === 'reply' || effect.kind === 'error') {
          this.#out.reply({ request: effect.request, error: INTERNAL.toData() });
        }
      }
    }
  }

  receive(message: PeerMessage): void {
    dispatch<PeerMessage>(this.#messages, message);
  }

  fire(timer: Timer): void {
    dispatch<Timer>(this.#timers, timer);
  }
}

/** @throws Error when no room of this shard handles it: some exist only on the first shard */
function dispatch<Item extends { readonly kind: string }>(rows: object, item: Item): void {
  const take = (rows as Record<string, ((item: Item) => void) | undefined>)[item.kind];
  if (!take) throw new Error(`no room of this shard takes ${item.kind}`);
  take(item);
}

interface TurnRoomNeeds extends Pick<InstanceRoom, 'instances' | 'answers'> {
  readonly actions: Pick<Actions, 'end'>;
}

export function openTurnRoom(kernel: ShardKernel, { instances, answers, actions }: TurnRoomNeeds) {
  const { shard, now, schedule, internalRequests, timers } = kernel;
  const { wakeShard, runSoon, takeUp, receive, reply, hint, eachRoom } = kernel;
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
    actions.end(effect.request);
    if (effect.request < 0) internalRequests.answered(effect.request, effect);
    else if (effect.kind === 'reply' && effect.parking !== undefined) {
      answers.park(effect, effect.parking);
    } else {
      answers.answered(effect.request);
      reply(replyOf(effect));
    }
  };
  const messages = {
    // Behind the pending hints, like a request from the front.
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

/** Most replies have only the first members; `undefined` would be cloned too. */
function replyOf(effect: Extract<Effect, { kind: 'reply' | 'error' }>): Reply {
  const { request } = effect;
  if (effect.kind === 'error') return { request, error: effect.error.toData() };
  const { status, body, claims, fires, known } = effect;
  if (fires) return { request, status, body, fires };
  if (known !== undefined) return { request, status, body, known };
  return claims === undefined ? { request, status, body } : { request, status, body, claims };
}
