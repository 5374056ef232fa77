/**
 * A few connections beyond the bounds, each of which may request the health of the engine once, so that a client that
 * takes all places does not make the engine look dead (docs/limits.md). A silent one is closed soon, or earlier if its
 * place is needed: first those of the address that has the most.
 */

import type { EngineError } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';

export interface SpareConnection {
  readonly address: string;
  /** The answer to any other request. */
  readonly refusal: EngineError;
  /** Called once at most, unless it was let go before. */
  readonly close: () => void;
}

export class SpareConnections {
  /** By address; the oldest first. */
  readonly #silent = new Map<string, Map<SpareConnection, NodeJS.Timeout>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  hold(spare: SpareConnection): void {
    if (this.#count >= LIMITS.spareConnections) this.#closeOne();
    const timer = setTimeout(() => this.#close(spare), LIMITS.spareSilenceMs);
    timer.unref();
    const mine = this.#silent.get(spare.address) ?? new Map();
    this.#silent.set(spare.address, mine.set(spare, timer));
    this.#count += 1;
  }

  /**
   * A request came on it, or it is gone: it is not closed from here on.
   *
   * @returns whether it was still held
   */
  letGo(spare: SpareConnection): boolean {
    const mine = this.#silent.get(spare.address);
    const timer = mine?.get(spare);
    if (mine === undefined || timer === undefined) return false;
    clearTimeout(timer);
    mine.delete(spare);
    if (mine.size === 0) this.#silent.delete(spare.address);
    this.#count -= 1;
    return true;
  }

  countOf(address: string): number {
    return this.#silent.get(address)?.size ?? 0;
  }

  closeAll(address: string): void {
    for (const spare of [...(this.#silent.get(address)?.keys() ?? [])]) this.#close(spare);
  }

  #closeOne(): void {
    let most: Map<SpareConnection, NodeJS.Timeout> | undefined;
    for (const each of this.#silent.values()) {
      if (most === undefined || each.size > most.size) most = each;
    }
    const [oldest] = most?.keys() ?? [];
    if (oldest !== undefined) this.#close(oldest);
  }

  #close(spare: SpareConnection): void {
    if (this.letGo(spare)) spare.close();
  }
}
