/** What Prometheus scrapes (docs/reference/metrics.md). It answers in every state of the engine. */

import { realClock } from '../../base/real-clock.js';
import { joined, withParts } from '../../base/rooms.js';
import type { FrontRoom } from '../../http/front-room.js';
import type { Operation } from '../../http/operation.js';
import { type MetricSources, Metrics } from '../../metrics/exposition.js';
import { Sampler } from '../../metrics/sampler.js';
import type { FrontOptions } from '../front.js';
import { sampleRows } from './metric-reads.js';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** @param rooms all others, whose gauges are shown */
export function openMetrics(options: FrontOptions, rooms: readonly FrontRoom[]) {
  const { gate, reads, now, metrics: memory, version, schema } = options;
  const isServing = () => gate.isDatabaseUp;
  const sampler = new Sampler({
    clock: realClock,
    isServing,
    look: () => sampleRows(reads, now()),
  });
  const front = joined<MetricSources['front']>(withParts(rooms).map(({ gauges }) => gauges));
  const labels = { version, cell: schema };
  const metrics = new Metrics({ memory, front, rows: sampler.gauges, labels });
  const scrape: Operation<'metrics'> = async (_deps, { key }) => {
    await sampler.refresh();
    // Names of sequences and handlers are their tenants' own.
    const body = await metrics.text(key === undefined);
    return { status: 200, contentType: CONTENT_TYPE, body };
  };
  return { operations: { metrics: scrape } } satisfies FrontRoom;
}
