/** Releases and the decisions about them. Reads only; their changes belong to the releases' owner. */

import type { Release, ReleaseDecision } from '../../../schema/release.js';
import {
  RELEASE_COLUMNS,
  releaseOf,
  releaseRowOf,
  type StoredRelease,
} from '../../core/releases/record.js';
import { Conditions, type Query } from './query.js';
import type { Reader } from './reader.js';

export const RELEASE_SQL = {
  get: `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
} as const;

export class ReleaseReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** Undefined when the tenant ('' is any) has none of that id. */
  async get(id: string, tenant: string): Promise<Release | undefined> {
    const [row] = await this.#reader.rows<StoredRelease>({
      name: 'reads_release_get',
      text: RELEASE_SQL.get,
      values: [id],
      cheaper: 'try again later',
    });
    return row !== undefined && (tenant === '' || row.tenant_id === tenant)
      ? releaseOf(releaseRowOf(row))
      : undefined;
  }

  /** `Release` records, newest first, of all tenants without one; fewer when they fill an answer. */
  async list(tenant: string | undefined, limit: number): Promise<string> {
    const page = await this.#reader.page<StoredRelease>({
      query: releaseListQuery(tenant, limit),
      toText: (row) => JSON.stringify(releaseOf(releaseRowOf(row))),
      cheaper: 'name the tenant, or ask for a smaller limit',
    });
    return page.text;
  }

  /** `ReleaseDecision` records, oldest first; fewer when they fill an answer. */
  async decisions(releaseId: string): Promise<string> {
    const page = await this.#reader.page<ReleaseDecision>({
      query: decisionsQuery(releaseId),
      toText: (row) => JSON.stringify(row),
      cheaper: 'try again later',
    });
    return page.text;
  }
}

export function releaseListQuery(tenant: string | undefined, limit: number): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    `select ${RELEASE_COLUMNS} from releases ${conditions.where} ` +
      `order by created_at desc, id desc limit ${conditions.param(limit)}::bigint`,
  );
}

/** Those of one instant by their ids, which grow (docs/releases.md). */
export function decisionsQuery(releaseId: string): Query {
  const conditions = new Conditions();
  conditions.add(`release_id = ${conditions.param(releaseId)}::uuid`);
  return conditions.query(
    'select id, release_id, from_state, to_state, actor, reason, decided_at ' +
      `from release_decisions ${conditions.where} order by decided_at, id`,
  );
}
