/**
 * The Prometheus endpoint (docs/reference/metrics.md), in every state of the engine. While the engine serves, a scrape
 * samples row counts, at most every few seconds, and waits for the sample briefly. Otherwise it shows the last sample.
 */

import { IS_OPEN, OPEN_TASKS } from '../../../actors/instance/old-tables.js';
import type { Clock } from '../../base/clock.js';
import { realClock, within } from '../../base/real-clock.js';
import { joined, withParts } from '../../base/rooms.js';
import { isoTime, type UnixMs } from '../../base/time.js';
import { lookup } from '../../db/reads/lookup.js';
import type { Reader } from '../../db/reads/reader.js';
import type { FrontRoom } from '../../http/front-room.js';
import type { Operation } from '../../http/operation.js';
import { ROW_GAUGES, type RowGaugeName, SAMPLE_ROWS_MAX } from '../../metrics/catalog.js';
import { type MetricSources, Metrics } from '../../metrics/exposition.js';
import type { FrontOptions } from '../front.js';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** @param rooms all other rooms, whose gauges are shown */
export function openMetrics(options: FrontOptions, rooms: readonly FrontRoom[]) {
  const { gate, reads, now, metrics: memory, version, schema } = options;
  const sampler = new Sampler({
    clock: realClock,
    isServing: () => gate.isDatabaseUp,
    look: () => sampleRows(reads, now()),
  });
  const front = joined<MetricSources['front']>(withParts(rooms).map(({ gauges }) => gauges));
  const labels = { version, cell: schema };
  const metrics = new Metrics({ memory, front, rows: (name) => sampler.last[name], labels });
  const scrape: Operation<'metrics'> = async (_deps, { key }) => {
    await sampler.refresh();
    // Names of sequences and handlers belong to the tenants.
    const body = await metrics.text(key === undefined);
    return { status: 200, contentType: CONTENT_TYPE, body };
  };
  return { operations: { metrics: scrape } } satisfies FrontRoom;
}

type MetricSample = Readonly<Record<RowGaugeName, number>>;

export interface SamplerDeps {
  readonly clock: Clock;
  readonly isServing: () => boolean;
  readonly look: () => Promise<MetricSample>;
}

const EVERY_MS = 5_000;
const PATIENCE_MS = 250;

export class Sampler {
  /** Zeros before the first sample. */
  last = Object.fromEntries(Object.keys(ROW_GAUGES).map((name) => [name, 0])) as MetricSample;
  readonly #deps: SamplerDeps;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  constructor(deps: SamplerDeps) {
    this.#deps = deps;
  }

  /** Resolves when the numbers are current, or after a short wait. Never rejects. */
  async refresh(): Promise<void> {
    const { clock, isServing } = this.#deps;
    if (!isServing()) return;
    const isStale = clock.monotonic() - this.#lookedAt >= EVERY_MS;
    if (this.#looking === undefined && isStale) this.#looking = this.#look();
    if (this.#looking === undefined) return;
    await within(clock.monotonic() + PATIENCE_MS, this.#looking, clock);
  }

  async #look(): Promise<void> {
    const { clock, look } = this.#deps;
    try {
      this.last = await look();
    } catch {
      // The database is slow or unavailable, which other gauges show: keep the last sample.
    } finally {
      this.#lookedAt = clock.monotonic();
      this.#looking = undefined;
    }
  }
}

/** Counts along an index up to a limit, so that the cost does not grow with the rows. */
const counted = (from: string, order: string) =>
  `(select count(*) from (select 1 from ${from} order by ${order} limit ${SAMPLE_ROWS_MAX}) _)::float8`;

/** `$1` is the current time. */
const DUE = 'timers where fire_at <= $1::timestamptz';
const BY_TIME = 'fire_at, instance_id';
const GAUGES: Readonly<Record<RowGaugeName, string>> = {
  engine_instances_pending: counted(DUE, BY_TIME),
  engine_instances_scheduled: counted('timers where fire_at > $1::timestamptz', BY_TIME),
  engine_instances_in_flight: counted('timers where recover', 'instance_id'),
  engine_oldest_pending_seconds:
    `coalesce(extract(epoch from $1::timestamptz - (select fire_at from ${DUE} ` +
    `order by ${BY_TIME} limit 1)), 0)::float8`,
  engine_open_tasks: counted(
    `${OPEN_TASKS} o where ${IS_OPEN}`,
    'handler_name, rank, created_at, id',
  ),
  engine_approvals_open: counted('approvals where outcome is null', 'waiting_since, id'),
  engine_dead_letters: counted('dead_letters', 'tenant_id, created_at desc, instance_id desc'),
  engine_pending_starts: counted('pending_starts', 'starts_at, id'),
  engine_webhook_outbox_depth: counted('webhook_outbox', 'created_at, id'),
};

export const metricSample = lookup<MetricSample>(
  'metrics_sample',
  `select ${Object.entries(GAUGES)
    .map(([name, text]) => `${text} as ${name}`)
    .join(', ')}`,
);

async function sampleRows(reads: Reader, now: UnixMs): Promise<MetricSample> {
  const row = await metricSample.row(reads, isoTime(now));
  if (row === undefined) throw new Error('a sample has one row');
  return row;
}
