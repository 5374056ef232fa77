/**
 * Connections beyond the bounds, of which there are few at a time: each may ask once how the engine is, and nothing
 * else, so that whoever takes all other places does not make the engine look dead (docs/limits.md). One that says
 * nothing is closed soon, and earlier if its place is wanted, those of the address with the most of them first.
 */

import type { EngineError } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';

export interface SpareConnection {
  readonly address: string;
  /** What any other request is told. */
  readonly refusal: EngineError;
  /** Called once at most, unless it was let go before. */
  readonly close: () => void;
}

export class SpareConnections {
  /** Nothing was asked on them so far, the oldest first. */
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
   * It has asked something, or is gone: nobody closes it from here on.
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
