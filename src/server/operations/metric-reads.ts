/**
 * What gauges show of the rows. Each number is counted along an index and up to a bound, so that a look
 * costs the same however many rows there are. Reads only.
 */

import { isoTime, type UnixMs } from '../../base/time.js';
import { lookup } from '../../db/reads/lookup.js';
import type { Reader } from '../../db/reads/reader.js';
import { type RowGaugeName, SAMPLE_ROWS_MAX } from '../../metrics/catalog.js';

export type MetricSample = Readonly<Record<RowGaugeName, number>>;

/** Rows in the order of an index, which bounds what is read: the rows themselves are not looked at. */
const counted = (from: string, order: string) =>
  `(select count(*) from (select 1 from ${from} order by ${order} limit ${SAMPLE_ROWS_MAX}) _)::float8`;

/** By the time `$1`. */
const GAUGES: Readonly<Record<RowGaugeName, string>> = {
  engine_instances_pending: counted(
    'timers where fire_at <= $1::timestamptz',
    'fire_at, instance_id',
  ),
  engine_instances_scheduled: counted(
    'timers where fire_at > $1::timestamptz',
    'fire_at, instance_id',
  ),
  engine_instances_in_flight: counted('timers where recover', 'instance_id'),
  engine_oldest_pending_seconds:
    'coalesce(extract(epoch from $1::timestamptz - (select fire_at from timers ' +
    'where fire_at <= $1::timestamptz order by fire_at, instance_id limit 1)), 0)::float8',
  engine_open_tasks: counted('open_tasks', 'handler_name, rank, created_at, task_id'),
  engine_approvals_open: counted('approvals where outcome is null', 'waiting_since, id'),
  engine_dead_letters: counted('dead_letters', 'tenant_id, created_at desc, instance_id desc'),
  engine_webhook_outbox_depth: counted('webhook_outbox', 'created_at, id'),
};

export const metricSample = lookup<MetricSample>(
  'metrics_sample',
  `select ${Object.entries(GAUGES)
    .map(([name, text]) => `${text} as ${name}`)
    .join(', ')}`,
);

/** @throws EngineError 503 */
export async function sampleRows(reads: Reader, now: UnixMs): Promise<MetricSample> {
  const row = await metricSample.row(reads, isoTime(now));
  if (row === undefined) throw new Error('a sample has one row');
  return row;
}
