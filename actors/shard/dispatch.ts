/**
 * What a committed unit sets free: answers, messages to peers, calls of handlers, timers, counts. Each kind is
 * handed to the room that has it, and so is a message of a peer.
 */

import type { Logger } from '../../src/base/log.js';
import { INTERNAL } from '../runtime/commit.js';
import type { PeerMessage, Reply } from '../runtime/protocol.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import type { Effect } from '../runtime/turn.js';
import type { Outbox } from './outbox.js';

export class Dispatch {
  readonly #log: Logger;
  readonly #out: Outbox;
  readonly #effects: Effects;
  readonly #messages: Messages;

  constructor(rooms: readonly Room[], out: Outbox, log: Logger) {
    this.#log = log;
    this.#out = out;
    this.#effects = joined(rooms.map(({ effects }) => effects));
    this.#messages = joined(rooms.map(({ messages }) => messages));
  }

  /** One that cannot be performed holds up none of the others. */
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
}

/** @throws Error when this shard has no room for it: some are only on the first one */
function taken<Given extends { readonly kind: string }>(rows: object, given: Given): void {
  const take = (rows as Record<string, ((given: Given) => void) | undefined>)[given.kind];
  if (!take) throw new Error(`no room of this shard takes ${given.kind}`);
  take(given);
}

/** @throws Error when two rooms take the same */
function joined<Rows extends object>(parts: readonly (Rows | undefined)[]): Rows {
  const rows: Record<string, unknown> = {};
  for (const [kind, row] of parts.flatMap((part) => Object.entries(part ?? {}))) {
    if (Object.hasOwn(rows, kind)) throw new Error(`two rooms take ${kind}`);
    rows[kind] = row;
  }
  return rows as Rows;
}

/** Most replies have none of the other members, and then not even undefined ones: every one is cloned. */
export function replyOf(effect: Extract<Effect, { kind: 'reply' | 'error' }>): Reply {
  const { request } = effect;
  if (effect.kind === 'error') return { request, error: effect.error.toData() };
  const { status, body, claims, fires, known } = effect;
  if (fires) return { request, status, body, fires };
  if (known !== undefined) return { request, status, body, known };
  return claims === undefined ? { request, status, body } : { request, status, body, claims };
}
