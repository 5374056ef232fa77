/**
 * The part of one shard in the barrier before a sequence is deleted: it creates no more instances of a blocked
 * sequence, and confirms to the first shard when the earlier ones are durable.
 */

import type { Kernel } from '../runtime/kernel.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Plans } from './plans.js';

export interface SequenceBlocksDeps
  extends Pick<Kernel, 'shard' | 'clock' | 'commits' | 'release' | 'schedule'> {
  readonly plans: Plans;
}

const BLOCKED_AGAIN_MS = 5_000;

export class SequenceBlocks implements Room {
  readonly #deps: SequenceBlocksDeps;
  #stopped = false;

  readonly messages = {
    'sequence.block': ({ sequence, isBlocked }) => this.#block(sequence, isBlocked),
  } satisfies Messages;

  constructor(deps: SequenceBlocksDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped = true;
  }

  #block(sequence: string, isBlocked: boolean): void {
    const { plans } = this.#deps;
    if (!isBlocked) plans.unblock(sequence);
    else if (!plans.isBlocked(sequence)) {
      plans.block(sequence);
      this.#tellSettled(sequence);
    }
  }

  /** Repeated while it is blocked: the message that ends the block may be lost. */
  #tellSettled(sequence: string): void {
    const { plans, commits, release, schedule, clock, shard } = this.#deps;
    if (this.#stopped || !plans.isBlocked(sequence)) return;
    const message = { kind: 'sequence.settled', sequence, shard } as const;
    commits.whenSettled(() => release([{ kind: 'peer', shard: 0, message }]));
    clock.setTimeout(() => schedule(() => this.#tellSettled(sequence)), BLOCKED_AGAIN_MS);
  }
}
