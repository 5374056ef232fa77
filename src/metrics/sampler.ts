/**
 * The look at the rows that gauges show: at most one every few seconds, only while the engine serves,
 * and begun by a scrape, which waits for it a moment and no longer. Between looks, and while the
 * database is away, the last one stands.
 */

import type { Clock } from '../base/clock.js';
import { within } from '../base/real-clock.js';
import { ROW_GAUGES, type RowGaugeName } from './catalog.js';

export interface SamplerDeps {
  readonly clock: Clock;
  /** Whether the database may be asked. */
  readonly isServing: () => boolean;
  readonly look: () => Promise<Readonly<Record<RowGaugeName, number>>>;
}

/** Looks are at least so far apart, however often and by however many it is scraped. */
const EVERY_MS = 5_000;

/** A scrape waits so long for a look under way. */
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

  /** One reader for each gauge. */
  get gauges(): Readonly<Record<RowGaugeName, () => number>> {
    return Object.fromEntries(
      Object.keys(ROW_GAUGES).map((name) => [name, () => this.#last[name as RowGaugeName]]),
    ) as Record<RowGaugeName, () => number>;
  }

  /** Resolves when the numbers are fresh, or soon. Never rejects. */
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
      // The database is slow or away, which other gauges tell: the last look stands.
    } finally {
      this.#lookedAt = clock.monotonic();
      this.#looking = undefined;
    }
  }
}
