/**
 * Requests that the engine makes of its own instances: numbered below 0, and answered like any other, by a
 * reply or an error, on the shard that made them.
 */

import type { EngineError } from '../../src/base/errors.js';

/** The body of the reply, or the error. */
export type InternalAnswer = { readonly body: string } | { readonly error: EngineError };

export class InternalRequests {
  readonly #asked = new Map<number, (answer: InternalAnswer) => void>();
  #last = 0;

  /** @returns the number of the request, whose reply is passed to `then` once */
  open(then: (answer: InternalAnswer) => void): number {
    this.#last -= 1;
    this.#asked.set(this.#last, then);
    return this.#last;
  }

  answered(request: number, answer: InternalAnswer): void {
    const then = this.#asked.get(request);
    this.#asked.delete(request);
    then?.(answer);
  }
}
