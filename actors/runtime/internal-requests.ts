/**
 * Requests of the engine to its own instances, with negative numbers. The shard that made one receives its
 * reply or error.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import type { EngineError } from '../../src/base/errors.js';

export type InternalAnswer = { readonly body: string } | { readonly error: EngineError };

export class InternalRequests {
  readonly #pending = new ChurningMap<number, (answer: InternalAnswer) => void>();
  #last = 0;

  /** @param then called once with the reply */
  open(then: (answer: InternalAnswer) => void): number {
    this.#last -= 1;
    this.#pending.set(this.#last, then);
    return this.#last;
  }

  answered(request: number, answer: InternalAnswer): void {
    const then = this.#pending.get(request);
    this.#pending.delete(request);
    then?.(answer);
  }
}
