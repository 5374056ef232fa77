/**
 * Keys of tenants. Reads only. Secrets are not stored; the hash of one is read by the front's
 * registry alone, and is part of no answer.
 */

import { Conditions, type PageBounds, type Query } from './query.js';
import type { Page, Reader } from './reader.js';

/** What the registry needs to know of a key that was not revoked. */
export interface LiveKeyRow {
  readonly id: string;
  readonly tenant_id: string;
  /** JSON text of an array of words, as is every JSON column. */
  readonly capabilities: string;
  readonly secret_hash: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

export interface KeyState {
  readonly revoked: boolean;
  readonly last_used_at: string | null;
}

/** `ApiKey`. */
interface KeyListRow extends KeyState {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

export const KEY_SQL = {
  live:
    'select id, tenant_id, capabilities, secret_hash, expires_at, last_used_at from api_keys ' +
    'where id > $1::text and not revoked order by id limit $2::bigint',
  state: 'select revoked, last_used_at from api_keys where id = $1::text',
} as const;

const CHEAPER_LIST = 'ask for a smaller offset and limit';
const CHEAPER_LOOKUP = 'try again later';

export class KeyReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** Keys that were not revoked, in the order of their ids, from the one after `after` on. */
  live(after: string, limit: number): Promise<LiveKeyRow[]> {
    return this.#reader.rows<LiveKeyRow>({
      name: 'reads_key_live',
      text: KEY_SQL.live,
      values: [after, limit],
      cheaper: CHEAPER_LOOKUP,
    });
  }

  /** Undefined when there is no such key. */
  async state(id: string): Promise<KeyState | undefined> {
    const [row] = await this.#reader.rows<KeyState>({
      name: 'reads_key_state',
      text: KEY_SQL.state,
      values: [id],
      cheaper: CHEAPER_LOOKUP,
    });
    return row;
  }

  /**
   * `ApiKey` records of a tenant, oldest first.
   * @param lastUsedAt what is known and not stored yet; undefined: what the row says
   */
  list(
    tenant: string,
    bounds: PageBounds,
    lastUsedAt: (id: string) => string | undefined,
  ): Promise<Page> {
    return this.#reader.page<KeyListRow>({
      query: keyListQuery(tenant, bounds),
      toText: ({ capabilities, ...row }) =>
        JSON.stringify({
          id: row.id,
          tenant_id: row.tenant_id,
          name: row.name,
          capabilities: JSON.parse(capabilities) as unknown,
          created_at: row.created_at,
          last_used_at: lastUsedAt(row.id) ?? row.last_used_at,
          expires_at: row.expires_at,
          revoked: row.revoked,
        }),
      cheaper: CHEAPER_LIST,
    });
  }
}

export function keyListQuery(tenant: string, bounds: PageBounds): Query {
  const conditions = new Conditions();
  conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    'select id, tenant_id, name, capabilities, created_at, last_used_at, expires_at, revoked ' +
      `from api_keys ${conditions.where} order by created_at, id ${conditions.page(bounds)}`,
  );
}
