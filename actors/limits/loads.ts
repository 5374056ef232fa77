/** Statements of concurrency keys and rate limits. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { StoredRow } from '../../src/db/table.js';
import { columnOf, isOwn, NO_ID, ofIds, type Queries } from '../runtime/queries.js';
import type { PERMITS, RATE_GRANTS, RATE_LIMITS, START_GRANTS } from './tables.js';
import { WAITERS_MAX } from './waiting-line.js';

export interface PermitHolderRow extends StoredRow<typeof PERMITS, 'instance_id' | 'number'> {
  /** The number of the current request; null: none. */
  readonly wanted: number | null;
  /** False: the request is the slot. */
  readonly has_permit: boolean;
  /** The instance still waits, so the message of its slot may be lost. */
  readonly is_awaited: boolean;
  /** Of the instance, in its current request. */
  readonly created_at: string | null;
  /** Null: the instance was removed. */
  readonly tenant_id: string | null;
}

export interface PermitWaiterRow {
  readonly instance_id: string;
  readonly number: number;
  readonly max_concurrency: number;
  readonly created_at: string;
  readonly when_full: 'cancel_oldest' | 'cancel_newest' | null;
  /** Null: the instance was removed. */
  readonly tenant_id: string | null;
}

export type RateLimitRow = StoredRow<typeof RATE_LIMITS>;

export type RateGrantRow = StoredRow<typeof RATE_GRANTS, 'granted_at' | 'count'>;

export interface StartWaiterRow {
  readonly instance_id: string;
  readonly max_starts: number;
  readonly per_ms: number;
  readonly burst: number;
  readonly created_at: string;
  /** Null: the instance was removed. */
  readonly tenant_id: string | null;
}

export type StartGrantRow = StoredRow<typeof START_GRANTS, 'granted_at' | 'count'>;

const nextKey =
  (table: string, where = '') =>
  (after: string) =>
    `(select n.key_id from ${table} n where n.key_id > ${after}${where} order by n.key_id limit 1)`;

/** Not those whose slots were all taken by creations: the instances need nothing from the key. */
const nextPermitKey = (after: string) =>
  `least(${nextKey('permit_requests', ' and not n.has_slot')(after)}, ${nextKey('permits')(after)})`;

/** Skips from key to key by the indexes, however many instances each key has. */
const keysBy = (next: (after: string) => string) =>
  'with recursive keys(key_id) as (' +
  `select ${next('$1::uuid')} ` +
  `union all select ${next('k.key_id')} from keys k where k.key_id is not null) ` +
  `select key_id from keys where key_id is not null and ${isOwn('key_id', '$3', '$4')} limit $2`;
const LIMIT_COLUMNS = 'id, tenant_id, limit_key, max_count, window_seconds, updated_at';

/** Instances that wait for a slot of the key. */
const WAITER_OF = (key: string) =>
  `select r.* from permit_requests r where r.key_id = ${key} and not r.has_slot ` +
  'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0)';

const IS_AWAITED =
  "(select i.state = 'scheduled' and coalesce(i.execution ->> 'w' = '1', false) " +
  'from instances i where i.id = p.instance_id) is true';

export const LIMIT_SQL = {
  permitKeys: keysBy(nextPermitKey),
  permitKeysWithWork:
    `select k.key_id from unnest($1::uuid[]) k(key_id) where exists (${WAITER_OF('k.key_id')}) ` +
    'or exists (select 1 from permits p where p.key_id = k.key_id ' +
    'and (coalesce((select r.number from permit_requests r where r.instance_id = p.instance_id) ' +
    `<> p.number, true) or ${IS_AWAITED}))`,
  permitHolders: ofIds(
    'o.instance_id, o.number, o.has_permit, o.wanted, o.created_at, o.is_awaited, o.tenant_id',
    'select p.instance_id, p.number, true as has_permit, ' +
      '(select r.number from permit_requests r where r.instance_id = p.instance_id) as wanted, ' +
      '(select r.created_at from permit_requests r where r.instance_id = p.instance_id) as created_at, ' +
      `${IS_AWAITED} as is_awaited, ` +
      '(select i.tenant_id from instances i where i.id = p.instance_id) as tenant_id ' +
      'from permits p where p.key_id = w.id union all ' +
      'select r.instance_id, r.number, false, r.number, r.created_at, false, ' +
      '(select i.tenant_id from instances i where i.id = r.instance_id) ' +
      'from permit_requests r where r.key_id = w.id and r.has_slot',
  ),
  permitWaiters: ofIds(
    'o.instance_id, o.number, o.max_concurrency, o.created_at, o.when_full, o.tenant_id',
    'select r.instance_id, r.number, r.max_concurrency, r.created_at, r.when_full, ' +
      '(select i.tenant_id from instances i where i.id = r.instance_id) as tenant_id ' +
      `from (${WAITER_OF('w.id')} order by r.created_at, r.instance_id limit $2) r`,
  ),
  startKeys: keysBy(nextKey('start_requests')),
  startWaiters: ofIds(
    'o.instance_id, o.max_starts, o.per_ms, o.burst, o.created_at, o.tenant_id',
    'select r.instance_id, r.max_starts, r.per_ms, r.burst, r.created_at, ' +
      '(select i.tenant_id from instances i where i.id = r.instance_id) as tenant_id ' +
      'from start_requests r where r.key_id = w.id order by r.created_at, r.instance_id limit $2',
  ),
  startGrants:
    'select w.n, o.granted_at, o.count ' +
    'from unnest($1::uuid[], $2::timestamptz[]) with ordinality as w(id, since, n) ' +
    'cross join lateral (select g.granted_at, g.count from start_grants g where g.key_id = w.id ' +
    'and g.granted_at >= w.since order by g.granted_at, g.id) o',
  rateLimit: `select ${LIMIT_COLUMNS} from rate_limits where id = $1::uuid`,
  rateGrants:
    'select granted_at, count from rate_grants where limit_id = $1::uuid ' +
    'and granted_at >= $2::timestamptz order by granted_at, id',
  ratePatterns:
    `select ${LIMIT_COLUMNS} from rate_limits where tenant_id = any($1::text[]) ` +
    "and strpos(limit_key, '*') > 0",
  allRatePatterns:
    `select ${LIMIT_COLUMNS} from rate_limits where strpos(limit_key, '*') > 0 ` +
    'and (tenant_id, id) > ($1::text, $2::uuid) order by tenant_id, id limit $3',
  // Skips from limit to limit by the primary key, however many grants each limit has.
  grantedLimits:
    'with recursive limits(limit_id) as (' +
    '(select limit_id from rate_grants where limit_id > $1::uuid order by limit_id limit 1) ' +
    'union all select (select g.limit_id from rate_grants g where g.limit_id > l.limit_id ' +
    'order by g.limit_id limit 1) from limits l where l.limit_id is not null) ' +
    'select l.limit_id, (select g.granted_at from rate_grants g where g.limit_id = l.limit_id ' +
    'order by g.granted_at limit 1) < $2::timestamptz as is_old ' +
    'from limits l where l.limit_id is not null limit $3',
} as const;

export function limitLoads(queries: Queries) {
  const sql = queries.of(LIMIT_SQL);
  const ownKeys = (name: 'permitKeys' | 'startKeys') => async (after: string, limit: number) =>
    keysOf(await sql.own<KeyRow>(name, [after, limit]));
  const firstOf = (keys: readonly string[]) => [keys, WAITERS_MAX];
  const holders = sql.batch<string, PermitHolderRow>('permitHolders', columnOf);
  const waiters = sql.batch<string, PermitWaiterRow>('permitWaiters', firstOf);
  const startWaiters = sql.batch<string, StartWaiterRow>('startWaiters', firstOf);
  const startGrants = sql.batch<Since, StartGrantRow>('startGrants', (asks) => [
    asks.map(({ key }) => key),
    asks.map(({ since }) => since),
  ]);
  return {
    /** Keys of the shard with instances that wait, or have waited, for their slots, in order. */
    permitKeys: ownKeys('permitKeys'),
    /** Those of the keys with an instance that waits, may not have received its slot, or has released it. */
    permitKeysWithWork: async (keys: readonly string[]) =>
      keysOf(await sql.all<KeyRow>('permitKeysWithWork', [keys])),
    permitHolders: (key: string) => holders.read(key),
    /** At most `WAITERS_MAX`. */
    permitWaiters: (key: string) => waiters.read(key),
    /** Keys of the shard with instances that a throttle puts off, in order. */
    startKeys: ownKeys('startKeys'),
    /** At most `WAITERS_MAX`. */
    startWaiters: (key: string) => startWaiters.read(key),
    startGrants: (key: string, since: UnixMs) => startGrants.read({ key, since: isoTime(since) }),
    rateLimit: (id: string) => sql.one<RateLimitRow>('rateLimit', [id]),
    rateGrants: (limit: string, since: UnixMs) =>
      sql.all<RateGrantRow>('rateGrants', [limit, isoTime(since)]),
    ratePatterns: (tenants: readonly string[]) => sql.all<RateLimitRow>('ratePatterns', [tenants]),
    allRatePatterns: (after: RateLimitRow | undefined, limit: number) =>
      sql.all<RateLimitRow>('allRatePatterns', [after?.tenant_id ?? '', after?.id ?? NO_ID, limit]),
    /** Limits with grants, in order, and whether their oldest grant is from before that time. */
    grantedLimits: (after: string, before: string, limit: number) =>
      sql.all<{ limit_id: string; is_old: boolean }>('grantedLimits', [after, before, limit]),
  };
}

interface KeyRow {
  readonly key_id: string;
}

interface Since {
  readonly key: string;
  readonly since: string;
}

function keysOf(rows: readonly KeyRow[]): string[] {
  return rows.map(({ key_id }) => key_id);
}

export type LimitLoads = ReturnType<typeof limitLoads>;
