/**
 * What gauges show of the rows. Each number is counted along an index and up to a bound, so that a look
 * costs the same however many rows there are. Reads only.
 */

import { isoTime, type UnixMs } from '../../core/time.js';
import { type RowGaugeName, SAMPLE_ROWS_MAX } from '../../metrics/catalog.js';
import { lookup } from './lookup.js';
import type { Reader } from './reader.js';

export type MetricSample = Readonly<Record<RowGaugeName, number>>;

/** Rows in the order of an index, which bounds what is read: the rows themselves are not looked at. */
const counted = (from: string, order: string) =>
  `(select count(*) from (select 1 from ${from} order by ${order} limit ${SAMPLE_ROWS_MAX}) _)::float8`;

const SAMPLE_SQL =
  `select ${counted('timers where fire_at <= $1::timestamptz', 'fire_at, instance_id')} ` +
  'as engine_instances_pending, ' +
  `${counted('timers where fire_at > $1::timestamptz', 'fire_at, instance_id')} ` +
  'as engine_instances_scheduled, ' +
  `${counted('timers where recover', 'instance_id')} as engine_instances_in_flight, ` +
  'coalesce(extract(epoch from $1::timestamptz - (select fire_at from timers ' +
  'where fire_at <= $1::timestamptz order by fire_at, instance_id limit 1)), 0)::float8 ' +
  'as engine_oldest_pending_seconds, ' +
  `${counted('open_tasks', 'handler_name, rank, created_at, task_id')} as engine_open_tasks, ` +
  `${counted('dead_letters', 'tenant_id, created_at desc, instance_id desc')} ` +
  'as engine_dead_letters, ' +
  `${counted('webhook_outbox', 'created_at, id')} as engine_webhook_outbox_depth`;

/** `$1` is the present time. */
export const metricSample = lookup<MetricSample>('metrics_sample', SAMPLE_SQL);

/** @throws EngineError 503 */
export async function sampleRows(reads: Reader, now: UnixMs): Promise<MetricSample> {
  const row = await metricSample.row(reads, isoTime(now));
  if (row === undefined) throw new Error('a sample has one row');
  return row;
}
