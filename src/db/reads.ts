/**
 * The reads of the front thread: lists and reports that span actors, and rows that no actor keeps in
 * memory. Only SELECTs, over a separate pool, so that a slow list never delays a commit. Results are JSON
 * text, spliced from the JSON columns without parsing.
 */

import type pg from 'pg';
import { LIMITS } from '../base/limits.js';
import { TenantActivity } from '../base/quota/tenant-activity.js';
import { ReadPace } from './reads/read-pace.js';
import { Reader, SharedReads } from './reads/reader.js';

/**
 * Options of the pool of reads. Few connections, since each may hold a response of `LIMITS.responseBytesMax`; the
 * reader shares them among tenants. It must not have a `queryTimeoutMs`, which would end cursors in use.
 */
export const READ_POOL_OPTIONS = {
  connectionsMax: LIMITS.readsMax,
  statementTimeoutMs: LIMITS.slowReadMs,
  isForTenants: true,
} as const;

/** Rejects with an `EngineError` only: 503, 429 `ENG_TENANT_SHARE`, or 500. */
export type Reads = Reader;

/** @param activity absent: tenants do not share */
export function createReads(
  pool: pg.Pool,
  slowReadMs: number = LIMITS.slowReadMs,
  activity = new TenantActivity(),
): Reads {
  return new Reader(new SharedReads(pool, slowReadMs, new ReadPace(activity)));
}
