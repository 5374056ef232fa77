/**
 * The one metrics registry, on the front thread. Threads count in plain objects and send what was
 * added with their batches; the front adds it up, so totals stay monotone when a thread is replaced.
 * Names and kinds are the specification's ('Metrics').
 */

import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export const COUNTERS = {
  engine_instances_claimed_total: 'Instances that were first advanced, or advanced again.',
  engine_instances_completed_total: 'Instances that completed.',
  engine_instances_failed_total: 'Instances that entered the dead letter queue.',
  engine_steps_executed_total: 'Attempts of steps that were started.',
  engine_steps_failed_total: 'Attempts of steps that failed.',
  engine_steps_retried_total: 'Retries that were scheduled.',
  engine_signals_delivered_total: 'Signals that were handled.',
  engine_rate_limits_exceeded_total: 'Steps that a rate limit deferred.',
  engine_recovery_stale_instances_total: 'Instances that were recovered at start.',
  engine_webhooks_sent_total: 'Webhooks that were delivered.',
  engine_webhooks_failed_total: 'Webhooks that could not be delivered.',
  engine_cron_triggered_total: 'Instances that schedules created.',
} as const;

export type CounterName = keyof typeof COUNTERS;

const HISTOGRAMS = {
  engine_tick_duration_seconds: 'Duration of one turn of a shard.',
  engine_step_duration_seconds: 'Duration of one attempt of a step.',
  engine_instance_processing_seconds: 'Time to advance one instance in one turn.',
} as const;

export type HistogramName = keyof typeof HISTOGRAMS;

const GAUGES = {
  engine_queue_depth: 'Instances advanced in the current turn.',
  engine_active_tasks: 'Step executions in flight.',
} as const;

export type GaugeName = keyof typeof GAUGES;

/** From a pure step to a slow handler; the specification names no buckets. */
const BUCKETS_SECONDS = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60] as const;

/** What a thread adds since its last post. Gauges are the thread's present values. */
export interface MetricDeltas {
  readonly counters: Partial<Record<CounterName, number>>;
  readonly observations: Partial<Record<HistogramName, readonly number[]>>;
  readonly gauges: Partial<Record<GaugeName, number>>;
}

/** The counting side, one per thread. `take` returns what was added and starts anew. */
export class MetricBuffer {
  #counters: Partial<Record<CounterName, number>> = {};
  #observations: Partial<Record<HistogramName, number[]>> = {};
  readonly #gauges: Partial<Record<GaugeName, number>> = {};
  #dirty = false;

  count(name: CounterName, by = 1): void {
    this.#counters[name] = (this.#counters[name] ?? 0) + by;
    this.#dirty = true;
  }

  /** Waits for the next count: an observation alone is not worth a post. */
  observe(name: HistogramName, seconds: number): void {
    const list = this.#observations[name];
    if (list === undefined) this.#observations[name] = [seconds];
    else list.push(seconds);
  }

  set(name: GaugeName, value: number): void {
    if (this.#gauges[name] === value) return;
    this.#gauges[name] = value;
    this.#dirty = true;
  }

  /** Something was counted since the last `take`. */
  get isDirty(): boolean {
    return this.#dirty;
  }

  take(): MetricDeltas | undefined {
    if (!this.#dirty) return undefined;
    const deltas = {
      counters: this.#counters,
      observations: this.#observations,
      gauges: { ...this.#gauges },
    };
    this.#counters = {};
    this.#observations = {};
    this.#dirty = false;
    return deltas;
  }
}

/** The registry with every series present from the start, at 0. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters: Record<CounterName, Counter>;
  readonly #histograms: Record<HistogramName, Histogram>;
  readonly #gauges: Record<GaugeName, Gauge>;
  /** The last value of each thread, because a gauge is their sum. */
  readonly #gaugeParts = new Map<number, Partial<Record<GaugeName, number>>>();

  constructor() {
    const registers = [this.#registry];
    this.#counters = mapEntries(COUNTERS, (name, help) => new Counter({ name, help, registers }));
    this.#histograms = mapEntries(
      HISTOGRAMS,
      (name, help) => new Histogram({ name, help, registers, buckets: [...BUCKETS_SECONDS] }),
    );
    this.#gauges = mapEntries(GAUGES, (name, help) => new Gauge({ name, help, registers }));
  }

  /** @param thread the shard that counted; its gauges replace those it sent before */
  add(thread: number, deltas: MetricDeltas): void {
    for (const [name, by] of Object.entries(deltas.counters)) {
      this.#counters[name as CounterName].inc(by);
    }
    for (const [name, values] of Object.entries(deltas.observations)) {
      for (const value of values) this.#histograms[name as HistogramName].observe(value);
    }
    this.#gaugeParts.set(thread, deltas.gauges);
    for (const name of Object.keys(GAUGES) as GaugeName[]) {
      let sum = 0;
      for (const part of this.#gaugeParts.values()) sum += part[name] ?? 0;
      this.#gauges[name].set(sum);
    }
  }

  /** A thread that died executes nothing. */
  forget(thread: number): void {
    this.add(thread, { counters: {}, observations: {}, gauges: {} });
  }

  /** Prometheus text format 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

function mapEntries<Name extends string, Value>(
  table: Readonly<Record<Name, string>>,
  make: (name: Name, help: string) => Value,
): Record<Name, Value> {
  return Object.fromEntries(
    (Object.entries(table) as [Name, string][]).map(([name, help]) => [name, make(name, help)]),
  ) as Record<Name, Value>;
}
