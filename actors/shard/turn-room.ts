/** The shard's own room: sends replies and peer messages, and wakes instances when they are due. */

import type { UnixMs } from '../../src/base/time.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Reply } from '../runtime/protocol.js';
import type { Effects, Messages, Timers } from '../runtime/room.js';
import type { DueTimer } from '../runtime/timer.js';
import type { Effect } from '../runtime/turn.js';
import type { ShardKernel } from './kernel.js';

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

/**
 * Most replies have none of the other members; undefined ones are left out too, since every member is
 * cloned.
 */
function replyOf(effect: Extract<Effect, { kind: 'reply' | 'error' }>): Reply {
  const { request } = effect;
  if (effect.kind === 'error') return { request, error: effect.error.toData() };
  const { status, body, claims, fires, known } = effect;
  if (fires) return { request, status, body, fires };
  if (known !== undefined) return { request, status, body, known };
  return claims === undefined ? { request, status, body } : { request, status, body, claims };
}
