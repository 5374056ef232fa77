/**
 * Dispatches effects of committed units, messages of peers, and timers to rooms: each kind has one room.
 */

import type { Logger } from '../../src/base/log.js';
import { joined } from '../../src/base/rooms.js';
import { INTERNAL } from '../runtime/commit.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Effects, Messages, Room, Timers } from '../runtime/room.js';
import type { Timer } from '../runtime/timer.js';
import type { Effect } from '../runtime/turn.js';
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
