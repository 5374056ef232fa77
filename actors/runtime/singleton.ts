/**
 * An actor that there is one of on its shard: it is never loaded or let go, and what it decides rests
 * on rows that it reads for each request, or on nothing. So its units stand for themselves, and a
 * defect or a refusal of one says nothing about the next; they are committed in order.
 */

import { EngineError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import { type CommitDeps, commitUnit, INTERNAL } from './commit.js';
import type { Settlement } from './commit-log.js';
import { Turn } from './turn.js';

export interface SingletonDeps extends CommitDeps {
  readonly log: Logger;
}

export class Singleton {
  readonly #key: string;
  readonly #deps: SingletonDeps;

  /** @param key unique among all actors of the shard */
  constructor(key: string, deps: SingletonDeps) {
    this.#key = key;
    this.#deps = deps;
  }

  /**
   * Commits what is decided for the request; what is thrown is the answer instead.
   *
   * @param exists what is told when the gate of the unit found its row
   */
  serve(request: number, decide: (turn: Turn) => void, exists?: string): void {
    const turn = new Turn();
    try {
      decide(turn);
    } catch (error) {
      const isKnown = error instanceof EngineError;
      if (!isKnown) this.#deps.log.error({ actor: this.#key, err: error }, 'defect');
      this.fail(request, isKnown ? error : INTERNAL);
      return;
    }
    commitUnit(this.#deps, this.#key, turn, undefined, exists);
  }

  /** @param settled see `commitUnit` */
  commit(turn: Turn, settled?: (error: EngineError | undefined, ack: Settlement) => void): void {
    commitUnit(this.#deps, this.#key, turn, settled);
  }

  fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}
