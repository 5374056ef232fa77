/**
 * Random numbers of the model from a seed. Only arithmetic and `log`, `exp` and `sqrt`, so that every machine draws the
 * same ones. Pure.
 */

import { createRandom, type Random } from '../../test/chaos/random.js';

export interface Draws {
  /** With mean 0 and standard deviation 1. */
  normal(): number;
  /** 1 and more, with so heavy a tail: the part above x is x to the power of −exponent. */
  pareto(exponent: number): number;
  /** How often something happens that does so `mean` times on average. */
  poisson(mean: number): number;
}

/** @param stream tells several of one seed apart */
export function createDraws(seed: number, stream = 0): Draws {
  const random = createRandom(seed, stream);
  return {
    normal: () => normal(random),
    pareto: (exponent) => Math.exp(-Math.log(1 - random.next()) / exponent),
    poisson: (mean) => poisson(random, mean),
  };
}

/** By Marsaglia's polar method, which needs no angle. */
function normal(random: Random): number {
  for (;;) {
    const x = 2 * random.next() - 1;
    const y = 2 * random.next() - 1;
    const square = x * x + y * y;
    if (square > 0 && square < 1) return x * Math.sqrt((-2 * Math.log(square)) / square);
  }
}

/** By the times between: exact, and fast enough for small means. */
function poisson(random: Random, mean: number): number {
  let count = -1;
  for (let at = 0; at < mean; count++) at -= Math.log(1 - random.next());
  return Math.max(0, count);
}
