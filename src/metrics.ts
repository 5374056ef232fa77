/**
 * The one metrics registry, on the front thread. It keeps no numbers of the other threads: it reads
 * them, when it is asked, from the memory in which those count. So totals stay exact and never go
 * down when a thread is replaced (docs/decisions/0054). Names and kinds: `metrics/catalog.ts`.
 */

import { Counter, Gauge, Registry } from 'prom-client';
import {
  COUNTER_INDEX,
  COUNTERS,
  type CounterName,
  FRONT_GAUGES,
  type FrontGaugeName,
  HISTOGRAMS,
  type HistogramName,
  ROW_GAUGES,
  type RowGaugeName,
  THREAD_GAUGES,
  type ThreadGaugeName,
} from './metrics/catalog.js';
import { CommitLedger } from './metrics/ledger.js';
import { Meter, type Observations } from './metrics/meter.js';

/** The memory in which the threads of one engine count. */
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
  readonly front: Readonly<Record<FrontGaugeName, () => number>>;
  /** The last look at the rows; 0 before the first one. */
  readonly rows: Readonly<Record<RowGaugeName, () => number>>;
}

/** Every series is present from the start. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #memory: MetricMemory;

  constructor({ memory, front, rows }: MetricSources) {
    this.#memory = memory;
    for (const [name, help] of entriesOf(COUNTERS)) {
      this.#counter(name, help, () => memory.counter(name));
    }
    for (const [name, help] of entriesOf(THREAD_GAUGES)) {
      this.#gauge(name, help, () => memory.gauge(name));
    }
    for (const [name, help] of entriesOf(FRONT_GAUGES)) this.#gauge(name, help, front[name]);
    for (const [name, help] of entriesOf(ROW_GAUGES)) this.#gauge(name, help, rows[name]);
    this.#addProcess();
  }

  /** Prometheus text format 0.0.4. */
  async text(): Promise<string> {
    const histograms = entriesOf(HISTOGRAMS).map(([name, { help, buckets }]) =>
      histogramText(name, help, buckets, this.#memory.observations(name)),
    );
    return [await this.#registry.metrics(), ...histograms].join('\n');
  }

  /**
   * The usual names for the process, by hand: the ready-made collection reads files of the system and
   * watches the event loop by a timer, on the thread that answers requests.
   */
  #addProcess(): void {
    const startedAt = Date.now() / 1_000 - process.uptime();
    this.#counter('process_cpu_seconds_total', 'CPU time of all threads.', () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000_000;
    });
    this.#gauge(
      'process_start_time_seconds',
      'When the process was started, in seconds since 1970.',
      () => startedAt,
    );
    this.#gauge('process_resident_memory_bytes', 'Memory of the process that is in RAM.', () =>
      process.memoryUsage.rss(),
    );
  }

  /** @param read never goes down */
  #counter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }
}

/** The library's histograms can only be observed, not read from elsewhere. */
function histogramText(
  name: string,
  help: string,
  bounds: readonly number[],
  { buckets, sum }: Observations,
): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
  let count = 0;
  for (const [i, bound] of [...bounds, '+Inf'].entries()) {
    count += buckets[i]!;
    lines.push(`${name}_bucket{le="${bound}"} ${count}`);
  }
  lines.push(`${name}_sum ${sum}`, `${name}_count ${count}`);
  return `${lines.join('\n')}\n`;
}

function entriesOf<Name extends string, Value>(table: Readonly<Record<Name, Value>>) {
  return Object.entries(table) as [Name, Value][];
}
