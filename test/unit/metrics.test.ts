/** Names, types and first values of the metrics, the numbers of one thread, and what documents name. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import {
  COUNTERS,
  FRONT_COUNTERS,
  FRONT_GAUGES,
  HISTOGRAMS,
  ROW_GAUGES,
  THREAD_GAUGES,
} from '../../src/metrics/catalog.js';
import { Meter } from '../../src/metrics/meter.js';
import { MetricMemory, Metrics } from '../../src/metrics.js';
import { type Exposition, parseExposition } from '../helpers/exposition.js';

/** As `docs/reference/metrics.md` lists them. */
const SPECIFIED = {
  counter: [
    'engine_instances_claimed_total',
    'engine_instances_completed_total',
    'engine_instances_failed_total',
    'engine_steps_executed_total',
    'engine_steps_failed_total',
    'engine_steps_retried_total',
    'engine_signals_delivered_total',
    'engine_rate_limits_exceeded_total',
    'engine_recovery_stale_instances_total',
    'engine_webhooks_sent_total',
    'engine_webhooks_failed_total',
    'engine_cron_triggered_total',
  ],
  histogram: [
    'engine_tick_duration_seconds',
    'engine_step_duration_seconds',
    'engine_instance_processing_seconds',
  ],
  gauge: ['engine_queue_depth', 'engine_active_tasks'],
} as const;

const zeroes = <Name extends string>(table: Readonly<Record<Name, unknown>>) =>
  Object.fromEntries(Object.keys(table).map((name) => [name, () => 0])) as Record<
    Name,
    () => number
  >;

const metricsOf = (memory: MetricMemory) =>
  new Metrics({
    memory,
    front: zeroes({ ...FRONT_COUNTERS, ...FRONT_GAUGES }),
    rows: zeroes(ROW_GAUGES),
    labels: { version: '1.2.3', cell: 'public' },
  });

const read = async (memory: MetricMemory): Promise<Exposition> =>
  parseExposition(await metricsOf(memory).text(true));

describe('the exposition', () => {
  test('names exactly the specified metrics with their types, all at 0 from the start', async () => {
    const { families } = await read(new MetricMemory(2, 4));
    for (const [type, names] of Object.entries(SPECIFIED)) {
      for (const name of names) {
        const family = families.get(name);
        assert.equal(family?.type, type, name);
        const wrong = family?.samples.filter(({ value }) => value !== 0);
        assert.deepEqual(wrong, []);
      }
    }
  });

  test('has no labels but the bounds of buckets, what the engine is, and the names of what users define', async () => {
    const memory = new MetricMemory(2, 4);
    const { families } = await read(memory);
    const labels = [...families.values()].flatMap(({ samples }) =>
      samples.flatMap((sample) => Object.keys(sample.labels)),
    );
    assert.deepEqual([...new Set(labels)].sort(), ['cell', 'handler', 'le', 'sequence', 'version']);
    const name = 'engine_sequence_instances_completed_total';
    memory.shards[1]!.countNamed(name, 'say "hi"\\\n');
    const family = (await read(memory)).families.get(name);
    assert.deepEqual(
      family?.samples.map(({ labels, value }) => [labels, value]),
      [
        [{ sequence: 'other' }, 0],
        [{ sequence: 'say "hi"\\\n' }, 1],
      ],
    );
  });

  test('has buckets from half a millisecond to a minute', async () => {
    const { families } = await read(new MetricMemory(1, 1));
    for (const name of SPECIFIED.histogram) {
      const bounds = families.get(name)!.samples.flatMap(({ labels }) => labels.le ?? []);
      assert.deepEqual([bounds[0], bounds.at(-2), bounds.at(-1)], ['0.0005', '60', '+Inf']);
    }
  });

  test('adds up the threads and the ledger, and what a thread left behind', async () => {
    const memory = new MetricMemory(2, 1);
    const name = 'engine_instances_completed_total';
    memory.shards[0]!.count(name, 2);
    memory.shards[1]!.count(name, 3);
    memory.ledger.settle(0, 7);
    memory.ledger.stage(0, 8, [[Object.keys(COUNTERS).indexOf(name), 4]]);
    assert.equal((await read(memory)).value(name), 5);
    memory.ledger.settle(0, 8);
    assert.equal((await read(memory)).value(name), 9);

    new Meter(memory.shards[1]!.memory).count(name);
    assert.equal((await read(memory)).value(name), 10);
  });

  test('adds up gauges, without those of a thread that died', async () => {
    const memory = new MetricMemory(2, 1);
    memory.shards[0]!.set('engine_active_tasks', 2);
    memory.shards[1]!.set('engine_active_tasks', 5);
    assert.equal((await read(memory)).value('engine_active_tasks'), 7);
    memory.shards[1]!.clearGauges();
    assert.equal((await read(memory)).value('engine_active_tasks'), 2);
  });
});

describe('a meter', () => {
  test('puts an observation into the first bucket whose bound it does not exceed', () => {
    const meter = new Meter();
    const { buckets: bounds } = HISTOGRAMS.engine_tick_duration_seconds;
    meter.observe('engine_tick_duration_seconds', bounds[1]!);
    meter.observe('engine_tick_duration_seconds', bounds[1]! + 1e-9);
    meter.observe('engine_tick_duration_seconds', 1_000, 3);
    const { buckets, sum } = meter.observations('engine_tick_duration_seconds');
    assert.deepEqual([...buckets.slice(0, 4)], [0, 1, 1, 0]);
    assert.equal(buckets.at(-1), 3);
    assert.equal(buckets.length, bounds.length + 1);
    assert.ok(Math.abs(sum - 3_000 - 2 * bounds[1]!) < 1e-6);
  });

  test('keeps histograms, counters and gauges apart', () => {
    const meter = new Meter();
    for (const name of Object.keys(HISTOGRAMS) as (keyof typeof HISTOGRAMS)[]) {
      meter.observe(name, 1e9);
    }
    for (const name of Object.keys(THREAD_GAUGES) as (keyof typeof THREAD_GAUGES)[]) {
      meter.set(name, 7);
    }
    for (const name of Object.keys(HISTOGRAMS) as (keyof typeof HISTOGRAMS)[]) {
      const { buckets, sum } = meter.observations(name);
      const seen = buckets.reduce((all, one) => all + one);
      assert.equal(seen, 1);
      assert.equal(sum, 1e9);
    }
    for (const name of Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]) {
      assert.equal(meter.counter(name), 0);
    }
  });
});

describe('what is written about the metrics', () => {
  /** Every name that an expression may use: samples of histograms have three each. */
  async function namesOf(): Promise<ReadonlySet<string>> {
    const { families } = await read(new MetricMemory(1, 1));
    return new Set(
      [...families.values()].flatMap(({ samples }) => samples.map(({ name }) => name)),
    );
  }

  const mentioned = (text: string) => new Set(text.match(/\b(?:engine|process)_[a-z_]+\b/g) ?? []);

  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly datasource?: { readonly type: string; readonly uid: string };
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number };
    readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
  }

  const dashboard = JSON.parse(readFileSync('docs/grafana.json', 'utf8')) as {
    readonly schemaVersion: number;
    readonly uid: string;
    readonly title: string;
    readonly templating: {
      readonly list: readonly { readonly name: string; readonly type: string }[];
    };
    readonly panels: readonly Panel[];
  };

  test('the dashboard has the shape that Grafana imports', () => {
    assert.ok(dashboard.schemaVersion >= 39);
    assert.ok(dashboard.uid !== '' && dashboard.title !== '');
    const [variable] = dashboard.templating.list;
    assert.deepEqual([variable?.name, variable?.type], ['datasource', 'datasource']);
    const ids = dashboard.panels.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const { title, type, gridPos, datasource, targets } of dashboard.panels) {
      assert.ok(title !== '' && gridPos.x + gridPos.w <= 24, title);
      if (type === 'row') continue;
      assert.deepEqual(datasource, { type: 'prometheus', uid: '$' + '{datasource}' }, title);
      const refs = targets?.map(({ refId }) => refId) ?? [];
      assert.ok(refs.length > 0 && new Set(refs).size === refs.length, title);
    }
  });

  test('every metric that the dashboard asks for exists', async () => {
    const names = await namesOf();
    const asked = dashboard.panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => [...mentioned(expr)]),
    );
    const wrong = asked.filter((name) => !names.has(name));
    assert.deepEqual(wrong, []);
    for (const specified of Object.values(SPECIFIED).flat()) {
      assert.ok(
        asked.some((name) => name.startsWith(specified)),
        `no panel shows ${specified}`,
      );
    }
  });

  test('every metric that an alert looks at exists, and every alert says what to do', async () => {
    const names = await namesOf();
    const text = readFileSync('docs/alerts.yaml', 'utf8');
    const expressions = [...text.matchAll(/^ +expr: (.+)$/gm)].map(([, expr]) => expr!);
    const alerts = [...text.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name!);
    assert.ok(alerts.length > 0);
    assert.equal(new Set(alerts).size, alerts.length);
    assert.equal(expressions.length, alerts.length);
    for (const field of ['severity', 'summary', 'description']) {
      assert.equal([...text.matchAll(new RegExp(`^ +${field}: \\S`, 'gm'))].length, alerts.length);
    }
    assert.deepEqual(
      expressions.flatMap((expr) => [...mentioned(expr)]).filter((name) => !names.has(name)),
      [],
    );
  });

  test('the list of metrics is complete', async () => {
    const { families } = await read(new MetricMemory(1, 1));
    const text = readFileSync('docs/reference/metrics.md', 'utf8');
    const listed = [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!);
    assert.deepEqual(listed.sort(), [...families.keys()].sort());
  });
});
