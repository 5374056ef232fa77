/**
 * The metrics registry, on the front thread. It reads the memory in which other threads count, so totals are exact and
 * never decrease when a thread is replaced (docs/decisions/0038-counters-logs-and-traces.md).
 */

import { type Gauge, type MetricValueWithName, Registry } from 'prom-client';
import {
  COUNTER_INDEX,
  COUNTERS,
  type CounterName,
  FRONT_COUNTERS,
  FRONT_GAUGES,
  type FrontMetricName,
  HISTOGRAMS,
  type HistogramName,
  INFO_METRIC,
  NAMED_COUNTERS,
  type NamedCounterName,
  PROCESS_METRICS,
  type ProcessMetricName,
  ROW_GAUGES,
  type RowGaugeName,
  THREAD_GAUGES,
  type ThreadGaugeName,
} from './catalog.js';
import { CommitLedger } from './ledger.js';
import { Meter, type Observations } from './meter.js';

export class MetricMemory {
  readonly shards: readonly Meter[];
  readonly writer = new Meter();
  readonly ledger: CommitLedger;

  constructor(shards: number, lanes: number) {
    this.shards = Array.from({ length: shards }, () => new Meter());
    this.ledger = new CommitLedger(lanes);
  }

  get #meters(): readonly Meter[] {
    return [...this.shards, this.writer];
  }

  counter(name: CounterName): number {
    const committed = this.ledger.totals()[COUNTER_INDEX[name]]!;
    return this.#meters.reduce((sum, meter) => sum + meter.counter(name), committed);
  }

  named(counter: NamedCounterName): Map<string, number> {
    const sums = new Map<string, number>();
    for (const shard of this.shards) {
      for (const [name, count] of shard.named(counter)) {
        sums.set(name, (sums.get(name) ?? 0) + count);
      }
    }
    return sums;
  }

  gauge(name: ThreadGaugeName): number {
    return this.#meters.reduce((sum, meter) => sum + meter.gauge(name), 0);
  }

  observations(name: HistogramName): Observations {
    return this.#meters
      .map((meter) => meter.observations(name))
      .reduce((all, one) => ({
        buckets: all.buckets.map((count, i) => count + one.buckets[i]!),
        sum: all.sum + one.sum,
      }));
  }
}

export interface MetricSources {
  readonly memory: MetricMemory;
  readonly front: Readonly<Record<FrontMetricName, () => number>>;
  readonly rows: (name: RowGaugeName) => number;
  readonly labels: Readonly<Record<'version' | 'cell', string>>;
}

type Kind = 'counter' | 'gauge' | 'histogram';
type Samples = MetricValueWithName<string>[];

/** Every series is present from the start, except those with names. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #names = new Registry();

  constructor({ memory, front, rows, labels }: MetricSources) {
    this.#add(INFO_METRIC.name, 'gauge', INFO_METRIC.help, () => [{ labels, value: 1 }]);
    this.#addAll(COUNTERS, 'counter', (name) => memory.counter(name));
    this.#addAll(THREAD_GAUGES, 'gauge', (name) => memory.gauge(name));
    this.#addAll(FRONT_COUNTERS, 'counter', (name) => front[name]());
    this.#addAll(FRONT_GAUGES, 'gauge', (name) => front[name]());
    this.#addAll(ROW_GAUGES, 'gauge', rows);
    for (const [name, { label, help }] of entriesOf(NAMED_COUNTERS)) {
      const read = () =>
        [...memory.named(name)].map(([of, value]) => ({ labels: { [label]: of }, value }));
      this.#add(name, 'counter', help, read, this.#names);
    }
    this.#addProcess();
    for (const [name, { help, buckets }] of entriesOf(HISTOGRAMS)) {
      this.#add(name, 'histogram', help, () => samplesOf(name, buckets, memory.observations(name)));
    }
  }

  /** Prometheus text format 0.0.4. @param withNames includes the series with names that tenants chose */
  async text(withNames: boolean): Promise<string> {
    const text = await this.#registry.metrics();
    return withNames ? text + (await this.#names.metrics()) : text;
  }

  #addAll<Name extends string>(
    table: Readonly<Record<Name, string>>,
    type: Kind,
    read: (name: Name) => number,
  ): void {
    for (const [name, help] of entriesOf(table)) this.#add(name, type, help, () => read(name));
  }

  /** Registered by hand: the library's collection reads system files and adds a timer to the thread of requests. */
  #addProcess(): void {
    const startedAt = Date.now() / 1_000 - process.uptime();
    const reads: Readonly<Record<ProcessMetricName, () => number>> = {
      process_cpu_seconds_total: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1_000_000;
      },
      process_start_time_seconds: () => startedAt,
      process_resident_memory_bytes: () => process.memoryUsage.rss(),
    };
    for (const [name, { type, help }] of entriesOf(PROCESS_METRICS)) {
      this.#add(name, type, help, reads[name]);
    }
  }

  /** The library's own metrics can only be incremented. This is the interface that its registry prints. */
  #add(
    name: string,
    type: Kind,
    help: string,
    read: () => number | Samples,
    registry = this.#registry,
  ): void {
    const get = async () => {
      const found = read();
      const values = typeof found === 'number' ? [{ value: found, labels: {} }] : found;
      return { name, help, type, values };
    };
    registry.registerMetric({ name, get } as unknown as Gauge);
  }
}

function samplesOf(
  name: string,
  bounds: readonly number[],
  { buckets, sum }: Observations,
): Samples {
  let count = 0;
  const values = [...bounds, '+Inf'].map((le, i) => {
    count += buckets[i]!;
    return { metricName: `${name}_bucket`, labels: { le }, value: count };
  });
  return [
    ...values,
    { metricName: `${name}_sum`, labels: {}, value: sum },
    { metricName: `${name}_count`, labels: {}, value: count },
  ];
}

function entriesOf<Name extends string, Value>(table: Readonly<Record<Name, Value>>) {
  return Object.entries(table) as [Name, Value][];
}
