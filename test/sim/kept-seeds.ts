/**
 * Seeds that once failed, with what they found. They are run before all others. A seed stands for its
 * run only as long as the simulation draws the same numbers: who changes what is drawn, or in which
 * order, looks for a new seed by putting the mistake back (see `docs/simulation.md`).
 */

export interface KeptSeed {
  readonly seed: number;
  readonly found: string;
}

export const KEPT_SEEDS: readonly KeptSeed[] = [];
