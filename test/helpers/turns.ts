/** What an instance's actor makes of one message, without a host. */

import { create, handle } from '../../actors/instance/actor.js';
import type { Action, LiveInstance } from '../../actors/instance/live-instance.js';
import type { InstanceMessage } from '../../actors/instance/messages.js';
import { Turn } from '../../actors/runtime/turn.js';
import { EngineError } from '../../src/base/errors.js';

export function created(actor: LiveInstance): Turn {
  const turn = new Turn();
  create(actor, turn, { request: 1 }, false);
  return turn;
}

/** As with a host, a request that is refused has its error as the only effect. */
export function told(actor: LiveInstance, message: InstanceMessage, action?: Action): Turn {
  const turn = new Turn();
  try {
    handle(actor, turn, message, action);
    return turn;
  } catch (error) {
    if (!(error instanceof EngineError) || !('request' in message)) throw error;
    const refusal = new Turn();
    refusal.fail(message.request, error);
    return refusal;
  }
}
