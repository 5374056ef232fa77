/** The rate limits of a tenant, or of all, as JSON text. Reads only. */

import { Conditions, type Query } from './query.js';
import type { Reader } from './reader.js';

/** `RateLimit`. */
interface RateLimitRow {
  readonly tenant_id: string;
  readonly key: string;
  readonly max_count: number;
  readonly window_seconds: number;
  readonly updated_at: string;
}

export class RateLimitReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** `RateLimit` records by key, those of all tenants by tenant first; fewer when they fill an answer. */
  async list(tenant: string | undefined): Promise<string> {
    const page = await this.#reader.page<RateLimitRow>({
      query: rateLimitsQuery(tenant),
      toText: (row) => JSON.stringify(row),
      cheaper: 'name the tenant',
    });
    return page.text;
  }
}

/** In the order of code points, whatever the database sorts by. */
export function rateLimitsQuery(tenant: string | undefined): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    'select tenant_id, limit_key as key, max_count, window_seconds, updated_at from rate_limits ' +
      `${conditions.where} order by tenant_id collate "C", limit_key collate "C"`,
  );
}
