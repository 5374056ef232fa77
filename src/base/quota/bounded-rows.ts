/**
 * Limits the rows of one kind per tenant. The database counts them only when the last count and the rows admitted
 * since leave no room: a tenant far below its limit costs no query, one at its limit one query at a time. Under
 * concurrency the limit may be reached a few rows early or late.
 */

import { lastUsed, valueFor } from './last-used.js';

/** Counts the rows of the tenant, up to `max`. Rejects like every read. */
type CountOf = (tenant: string, max: number) => Promise<number>;

interface Known {
  counted: number;
  /** Rows admitted since that count began: answered, and not yet answered. */
  since: number;
  pending: number;
  counting: Promise<void> | undefined;
}

function unknownCount(): Known {
  return { counted: Number.POSITIVE_INFINITY, since: 0, pending: 0, counting: undefined };
}

const TENANTS_MAX = 10_000;

export class BoundedRows {
  readonly #countOf: CountOf;
  readonly #known = lastUsed<string, Known>(TENANTS_MAX);

  constructor(countOf: CountOf) {
    this.#countOf = countOf;
  }

  /** @returns a function to call once the request is answered; undefined: there is no room */
  async enter(tenant: string, rows: number, max: number): Promise<(() => void) | undefined> {
    const known = valueFor(this.#known, tenant, unknownCount);
    if (!fits(known, rows, max)) await this.#count(tenant, known, max);
    if (!fits(known, rows, max)) return undefined;
    known.pending += rows;
    return () => {
      known.pending -= rows;
      known.since += rows;
    };
  }

  #count(tenant: string, known: Known, max: number): Promise<void> {
    known.counting ??= (async () => {
      const { since } = known;
      try {
        known.counted = await this.#countOf(tenant, max);
        known.since -= since;
      } finally {
        known.counting = undefined;
      }
    })();
    return known.counting;
  }
}

function fits({ counted, since, pending }: Known, rows: number, max: number): boolean {
  return counted + since + pending + rows <= max;
}
