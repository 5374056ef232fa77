/**
 * Random choices that a printed seed gives again. Every client has a generator of its own, so that
 * its choices do not depend on how the clients happen to take turns.
 */

export interface Random {
  /** Uniform in 0 … 1, the upper end excluded. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** One of the names, in proportion to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
}

/** @param seed 32 bits; `stream` tells the generators of one seed apart */
export function createRandom(seed: number, stream = 0): Random {
  // Mulberry32: one multiplication chain per number, and good enough to choose among operations.
  let state = (seed ^ Math.imul(stream + 1, 0x9e37_79b9)) >>> 0;
  const next = () => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: (items) => items[integer(0, items.length - 1)]!,
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][];
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        rest -= weight;
        if (rest < 0) return name;
      }
      return entries[0]![0];
    },
  };
}
