/** Sums per key, and in total. A key with the sum 0 takes no memory, so that no eviction is needed. */

export class Tally {
  readonly #held = new Map<string, number>();
  #sum = 0;

  get sum(): number {
    return this.#sum;
  }

  of(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  add(key: string, amount: number): void {
    this.#sum += amount;
    const held = this.of(key) + amount;
    if (held > 0) this.#held.set(key, held);
    else this.#held.delete(key);
  }
}
