/**
 * The direction of a port between two shards, with what goes wrong there: messages that are heard
 * twice, and messages that are never heard. Those that nobody would ask for again get lost in the
 * only way in which a port loses them: with the thread of their sender or of their receiver.
 */

import type { PeerMessage } from '../../actors/runtime/protocol.js';
import { type Faults, LOSSES, weightOf } from './faults.js';
import { Pipe } from './pipe.js';
import type { Thread, World } from './world.js';

export class PeerPipe extends Pipe<readonly PeerMessage[]> {
  readonly #world: World;
  readonly #faults: Faults;
  /** The next post that arrives finds its receiver dead. */
  #isDeadly = false;

  constructor(world: World, faults: Faults, from: Thread, to: Thread) {
    super(world, from, to);
    this.#world = world;
    this.#faults = faults;
    from.whenDead(() => this.#lose());
    to.whenDead(() => this.#lose());
  }

  override listen(listener: (messages: readonly PeerMessage[]) => void): void {
    super.listen((messages) => {
      this.#world.note(`${this.to.name} hears ${textOf(messages)} from ${this.from.name}`);
      if (this.#isDeadly) {
        this.#countLost(messages);
        this.#world.note(`${this.to.name} dies of it`);
        this.to.die();
      } else listener(messages);
    });
  }

  override post(posted: readonly PeerMessage[]): void {
    if (!this.from.isAlive) {
      this.#countLost(posted);
      return;
    }
    const messages = posted.filter((message) => !this.#getsLost(message));
    if (!this.from.isAlive) {
      this.#countLost(messages);
      return;
    }
    if (messages.length > 0) super.post(messages);
    const again = messages.filter((message) => this.#isHeardTwice(message));
    if (again.length === 0) return;
    const later = this.#world.now + this.#world.latency(0.1, 3_000);
    this.#world.at(later, () => super.post(again), this.from);
  }

  #getsLost(message: PeerMessage): boolean {
    const { kind } = message;
    if (!this.#faults.hits('hint.lost', weightOf(kind))) return false;
    if (LOSSES[kind] === 'alone' && this.#faults.random.chance(0.7)) {
      this.#world.note(`${this.from.name} loses ${kind}`);
      this.#countLost([message]);
      return true;
    }
    // Half of the time the sender does not live to post it, half of the time nobody hears it.
    if (this.#faults.random.chance(0.5)) {
      this.#world.note(`${this.from.name} dies with ${kind}`);
      this.from.die();
    } else this.#isDeadly = true;
    return false;
  }

  #isHeardTwice({ kind }: PeerMessage): boolean {
    if (!this.#faults.hits('hint.twice', weightOf(kind))) return false;
    this.#faults.counts.add(`twice ${kind}`);
    return true;
  }

  #lose(): void {
    for (const messages of this.takeAll()) this.#countLost(messages);
  }

  #countLost(messages: readonly PeerMessage[]): void {
    for (const { kind } of messages) this.#faults.counts.add(`lost ${kind}`);
  }
}

function textOf(messages: readonly PeerMessage[]): string {
  return messages
    .map((message) => Object.values(message).slice(0, 4).map(String).join(' '))
    .join(', ');
}
