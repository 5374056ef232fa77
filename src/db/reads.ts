/**
 * The reads of the front thread: lists and reports that span actors, and rows that no actor keeps in
 * memory. Only SELECTs, over a separate pool, so that a slow list never delays a commit. Results are JSON
 * text, spliced from the JSON columns without parsing. The statements are in `reads/`, by table.
 */

import type pg from 'pg';
import { LIMITS } from '../base/limits.js';
import { TenantActivity } from '../base/quota/tenant-activity.js';
import { ReadPace } from './reads/read-pace.js';
import { Reader, SharedReads } from './reads/reader.js';

/**
 * The pool of reads (see `createPool`). Few connections, since each may hold one response of
 * `LIMITS.responseBytesMax`; the reader shares them among tenants (`reads/reader.ts`). It must not have a
 * `queryTimeoutMs`, which would end cursors that are still read.
 */
export const READ_POOL_OPTIONS = {
  connectionsMax: LIMITS.readsMax,
  statementTimeoutMs: LIMITS.slowReadMs,
  isForTenants: true,
} as const;

/**
 * Reads committed rows and rejects with an `EngineError` only: 503 `ENG_SLOW_READ` after
 * `LIMITS.slowReadMs`, 503 `ENG_DATABASE_DOWN`, 503 `ENG_OVERLOADED`, 429 `ENG_TENANT_SHARE`, or 500.
 */
export type Reads = Reader;

/** @param activity absent: tenants do not share */
export function createReads(
  pool: pg.Pool,
  slowReadMs: number = LIMITS.slowReadMs,
  activity = new TenantActivity(),
): Reads {
  return new Reader(new SharedReads(pool, slowReadMs, new ReadPace(activity)));
}
