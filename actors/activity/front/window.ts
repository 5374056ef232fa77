/** The window of statistics over time. */

import type { UnixMs } from '../../../src/base/time.js';
import { ACTIVITY_KEPT_MS } from '../activity.js';

const HOUR_MS = 60 * 60_000;

/** The start of the interval of the requested time, by default an hour ago; not before what is kept. */
export function keptSince(since: string | undefined, now: UnixMs, intervalMs: number): UnixMs {
  const requested = since === undefined ? now - HOUR_MS : Date.parse(since);
  const kept = Math.min(now, Math.max(requested, now - ACTIVITY_KEPT_MS));
  return kept - (kept % intervalMs);
}
