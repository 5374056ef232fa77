/**
 * Samples the row counts that gauges show: only while the engine serves, at most every few seconds, and triggered by a
 * scrape, which waits for it briefly. Between samples, and while the database is unavailable, the last sample is shown.
 */

import type { Clock } from '../base/clock.js';
import { within } from '../base/real-clock.js';
import { ROW_GAUGES, type RowGaugeName } from './catalog.js';

export interface SamplerDeps {
  readonly clock: Clock;
  readonly isServing: () => boolean;
  readonly look: () => Promise<Readonly<Record<RowGaugeName, number>>>;
}

/** The minimum time between samples. */
const EVERY_MS = 5_000;

/** How long a scrape waits for a running sample. */
const PATIENCE_MS = 250;

export class Sampler {
  readonly #deps: SamplerDeps;
  #last = Object.fromEntries(Object.keys(ROW_GAUGES).map((name) => [name, 0])) as Readonly<
    Record<RowGaugeName, number>
  >;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(deps: SamplerDeps) {
    this.#deps = deps;
  }

  get gauges(): Readonly<Record<RowGaugeName, () => number>> {
    return Object.fromEntries(
      Object.keys(ROW_GAUGES).map((name) => [name, () => this.#last[name as RowGaugeName]]),
    ) as Record<RowGaugeName, () => number>;
  }

  /** Resolves when the numbers are current, or after a short wait. Never rejects. */
  async refresh(): Promise<void> {
    const { clock, isServing } = this.#deps;
    if (!isServing()) return;
    const isStale = clock.monotonic() - this.#lookedAt >= EVERY_MS;
    if (this.#looking === undefined && isStale) this.#looking = this.#look();
    if (this.#looking === undefined) return;
    await within(clock.monotonic() + PATIENCE_MS, this.#looking, clock);
  }

  async #look(): Promise<void> {
    const { clock, look } = this.#deps;
    try {
      this.#last = await look();
    } catch {
      // The database is slow or unavailable, which other gauges show: keep the last sample.
    } finally {
      this.#lookedAt = clock.monotonic();
      this.#looking = undefined;
    }
  }
}
