/**
 * What the front thread reads from Postgres by itself: lists and reports that span actors, and the
 * rows of one instance or task that no actor keeps in memory. Only SELECTs, over a pool of their
 * own, so that a slow list never delays a commit. Answers are JSON text, spliced together from the
 * JSON columns' texts, which are not parsed here. What is read is in `reads/`, by table.
 */

import type pg from 'pg';
import { LIMITS } from '../base/limits.js';
import { TenantActivity } from '../base/quota/tenant-activity.js';
import { ReadPace } from './reads/read-pace.js';
import { longReadTurns, Reader, readSlots } from './reads/reader.js';

/**
 * How the pool of reads is made (see `createPool`). Few connections, since each of them may hold one
 * answer of `LIMITS.responseBytesMax`; the reader shares them among tenants (`reads/reader.ts`). The
 * pool must not have a `queryTimeoutMs`: it would end cursors that have long been read.
 */
export const READ_POOL_OPTIONS = {
  connectionsMax: LIMITS.readsMax,
  statementTimeoutMs: LIMITS.slowReadMs,
  isForTenants: true,
} as const;

/**
 * Answers from committed rows and rejects with an `EngineError` only: 503 `ENG_SLOW_READ` after
 * `LIMITS.slowReadMs`, 503 `ENG_DATABASE_DOWN`, 503 `ENG_OVERLOADED`, 429 `ENG_TENANT_SHARE`, or 500.
 */
export type Reads = Reader;

/**
 * @param slowReadMs how long one answer may take in all
 * @param activity absent: each tenant is alone
 */
export function createReads(
  pool: pg.Pool,
  slowReadMs: number = LIMITS.slowReadMs,
  activity = new TenantActivity(),
): Reads {
  return new Reader({
    pool,
    slowReadMs,
    slots: readSlots(),
    pace: new ReadPace(activity),
    longTurns: longReadTurns(),
    isWalled: false,
  });
}
