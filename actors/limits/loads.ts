/** Statements of concurrency keys and rate limits. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { StoredRow } from '../../src/db/table.js';
import { isOwn, type Queries } from '../runtime/queries.js';
import type { PERMITS, RATE_GRANTS, RATE_LIMITS } from './tables.js';

export interface PermitHolderRow extends StoredRow<typeof PERMITS, 'instance_id' | 'number'> {
  /** The number of the current request; null: none. */
  readonly wanted: number | null;
  /** The instance still waits, so the message of its slot may be lost. */
  readonly is_awaited: boolean;
  /** Null: the instance was removed. */
  readonly tenant_id: string | null;
}

export interface PermitWaiterRow {
  readonly instance_id: string;
  readonly number: number;
  readonly max_concurrency: number;
  readonly created_at: string;
  /** Null: the instance was removed. */
  readonly tenant_id: string | null;
}

export type RateLimitRow = StoredRow<
  typeof RATE_LIMITS,
  'tenant_id' | 'limit_key' | 'max_count' | 'window_seconds' | 'updated_at'
>;

export type RateGrantRow = StoredRow<typeof RATE_GRANTS, 'granted_at' | 'count'>;

function nextPermitKey(after: string): string {
  const of = (table: string) =>
    `(select n.key_id from ${table} n where n.key_id > ${after} order by n.key_id limit 1)`;
  return `least(${of('permit_requests')}, ${of('permits')})`;
}

export const LIMIT_SQL = {
  // Skips from key to key by the indexes, however many instances each key has.
  permitKeys:
    'with recursive keys(key_id) as (' +
    `select ${nextPermitKey('$1::uuid')} ` +
    `union all select ${nextPermitKey('k.key_id')} from keys k where k.key_id is not null) ` +
    `select key_id from keys where key_id is not null and ${isOwn('key_id', '$3', '$4')} limit $2`,
  permitHolders:
    'select p.instance_id, p.number, ' +
    '(select r.number from permit_requests r where r.instance_id = p.instance_id) as wanted, ' +
    "(select i.state = 'scheduled' and coalesce(i.execution ->> 'w' = '1', false) " +
    'from instances i where i.id = p.instance_id) is true as is_awaited, ' +
    '(select i.tenant_id from instances i where i.id = p.instance_id) as tenant_id ' +
    'from permits p where p.key_id = $1::uuid order by p.instance_id',
  permitWaiters:
    'select r.instance_id, r.number, r.max_concurrency, r.created_at, ' +
    '(select i.tenant_id from instances i where i.id = r.instance_id) as tenant_id ' +
    'from permit_requests r ' +
    'where r.key_id = $1::uuid ' +
    'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0) ' +
    'order by r.created_at, r.instance_id limit $2',
  rateLimit:
    'select tenant_id, limit_key, max_count, window_seconds, updated_at from rate_limits where id = $1::uuid',
  rateGrants:
    'select granted_at, count from rate_grants where limit_id = $1::uuid ' +
    'and granted_at >= $2::timestamptz order by granted_at, id',
} as const;

export function limitLoads(queries: Queries) {
  const sql = queries.of(LIMIT_SQL);
  return {
    /** Keys of the shard with waiting or running instances, in order. */
    async permitKeys(after: string, limit: number): Promise<string[]> {
      const rows = await sql.own<{ key_id: string }>('permitKeys', [after, limit]);
      return rows.map((row) => row.key_id);
    },
    permitHolders: (key: string) => sql.all<PermitHolderRow>('permitHolders', [key]),
    permitWaiters: (key: string, limit: number) =>
      sql.all<PermitWaiterRow>('permitWaiters', [key, limit]),
    rateLimit: (id: string) => sql.one<RateLimitRow>('rateLimit', [id]),
    rateGrants: (limit: string, since: UnixMs) =>
      sql.all<RateGrantRow>('rateGrants', [limit, isoTime(since)]),
  };
}

export type LimitLoads = ReturnType<typeof limitLoads>;
