/** The metrics: what is counted, sampled and shown, by which names, and what documents say of them. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { beforeOf, countProgress } from '../../actors/instance/advance.js';
import { Turn } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import { type Exposition, parseExposition } from '../../scripts/reference/exposition.js';
import type { Progress } from '../../src/core/progress.js';
import {
  COUNTER_NAMES,
  COUNTERS,
  FRONT_COUNTERS,
  FRONT_GAUGES,
  HISTOGRAMS,
  ROW_GAUGES,
  type RowGaugeName,
} from '../../src/metrics/catalog.js';
import { MetricMemory, Metrics } from '../../src/metrics/exposition.js';
import { Meter, NAMES_MAX } from '../../src/metrics/meter.js';
import { Sampler } from '../../src/server/operations/metrics.js';
import { HandClock } from '../helpers/hand-clock.js';
import { failing, http, noop, Player, START, sleep, work } from '../helpers/player.js';

/** As `docs/reference/metrics.md` lists them. */
const specified = (prefix: string, names: string) =>
  names.split(' ').map((name) => `engine_${prefix}${name}`);
const SPECIFIED = {
  counter: [
    ...specified('instances_', 'claimed_total completed_total failed_total'),
    ...specified('steps_', 'executed_total failed_total retried_total'),
    ...specified('', 'signals_delivered_total rate_limits_exceeded_total'),
    ...specified('', 'recovery_stale_instances_total cron_triggered_total'),
    ...specified('webhooks_', 'sent_total failed_total'),
  ],
  histogram: specified(
    '',
    'tick_duration_seconds step_duration_seconds instance_processing_seconds',
  ),
  gauge: specified('', 'queue_depth active_tasks'),
};

const zeroes = <Name extends string>(table: Readonly<Record<Name, unknown>>) =>
  Object.fromEntries(Object.keys(table).map((name) => [name, () => 0])) as Record<
    Name,
    () => number
  >;

const metricsOf = (memory: MetricMemory) =>
  new Metrics({
    memory,
    front: zeroes({ ...FRONT_COUNTERS, ...FRONT_GAUGES }),
    rows: () => 0,
    labels: { version: '1.2.3', cell: 'public' },
  });

const read = async (memory: MetricMemory): Promise<Exposition> =>
  parseExposition(await metricsOf(memory).text(true));

describe('the exposition', () => {
  test('names the specified metrics with their types, all at 0 from the start', async () => {
    const { families } = await read(new MetricMemory(2, 4));
    for (const [type, names] of Object.entries(SPECIFIED)) {
      for (const name of names) {
        const family = families.get(name);
        assert.equal(family?.type, type, name);
        assert.ok(family?.samples.every(({ value }) => value === 0));
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
    const samples = (await read(memory)).families.get(name)?.samples;
    const seen = samples?.map(({ labels: { sequence }, value }) => `${sequence}=${value}`);
    assert.deepEqual(seen, ['other=0', 'say "hi"\\\n=1']);
  });

  test('adds up the threads and the ledger, what a thread left behind, and gauges of those that live', async () => {
    const memory = new MetricMemory(2, 1);
    const name = 'engine_instances_completed_total';
    const shown = async (of: string) => (await read(memory)).value(of);
    memory.shards[0]!.count(name, 2);
    memory.shards[1]!.count(name, 3);
    memory.ledger.settle(0, 7);
    memory.ledger.stage(0, 8, [[Object.keys(COUNTERS).indexOf(name), 4]]);
    assert.equal(await shown(name), 5);
    memory.ledger.settle(0, 8);
    new Meter(memory.shards[1]!.memory).count(name);
    assert.equal(await shown(name), 10);
    memory.shards[0]!.set('engine_active_tasks', 2);
    memory.shards[1]!.set('engine_active_tasks', 5);
    assert.equal(await shown('engine_active_tasks'), 7);
    memory.shards[1]!.clearGauges();
    assert.equal(await shown('engine_active_tasks'), 2);
  });
});

test('a meter puts an observation into the first bucket whose bound it does not exceed', () => {
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

describe('what is written about the metrics', () => {
  /** Every name that an expression may use: samples of histograms have three each. */
  async function namesOf(): Promise<ReadonlySet<string>> {
    const { families } = await read(new MetricMemory(1, 1));
    return new Set([...families.values()].flatMap((it) => it.samples.map(({ name }) => name)));
  }

  const mentioned = (text: string) => text.match(/\b(?:engine|process)_[a-z_]+\b/g) ?? [];

  test('every metric that the dashboard asks for exists, and it has those that are specified', async () => {
    const names = await namesOf();
    const dashboard = JSON.parse(readFileSync('docs/grafana.json', 'utf8')) as {
      readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
    };
    const asked = dashboard.panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => mentioned(expr)),
    );
    const wrong = asked.filter((name) => !names.has(name));
    const isShown = (one: string) => asked.some((name) => name.startsWith(one));
    const missing = Object.values(SPECIFIED).flat();
    assert.deepEqual([wrong, missing.filter((name) => !isShown(name))], [[], []]);
  });

  test('every metric that an alert looks at exists, and every alert says what to do', async () => {
    const names = await namesOf();
    const text = readFileSync('docs/alerts.yaml', 'utf8');
    const expressions = [...text.matchAll(/^ +expr: (.+)$/gm)].map(([, expr]) => expr!);
    const alerts = [...text.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name!);
    assert.ok(alerts.length > 0);
    assert.equal(new Set(alerts).size, alerts.length);
    for (const field of ['expr', 'severity', 'summary', 'description']) {
      assert.equal([...text.matchAll(new RegExp(`^ +${field}: \\S`, 'gm'))].length, alerts.length);
    }
    const wrong = expressions.flatMap(mentioned).filter((name) => !names.has(name));
    assert.deepEqual(wrong, []);
  });

  test('the list of metrics is complete', async () => {
    const { families } = await read(new MetricMemory(1, 1));
    const text = readFileSync('docs/reference/metrics.md', 'utf8');
    const listed = [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!);
    assert.deepEqual(listed.sort(), [...families.keys()].sort());
  });
});

type Triple = readonly [executed: number, failed: number, retried: number];

const countsOf = ({ counts }: Progress): Triple => [
  counts.stepsExecuted,
  counts.stepsFailed,
  counts.stepsRetried,
];

/** Of the turn that an instance of these blocks begins with. */
const countsAtStart = (...blocks: Block[]) => countsOf(new Player(blocks).start().last!);

describe('steps', () => {
  test('a try counts when it is started, not when it ends; a sleep, and what fails in place, once', () => {
    const player = new Player([work('a'), sleep('b', 50)]).start();
    assert.deepEqual(countsOf(player.last!), [1, 0, 0]);
    assert.deepEqual(countsOf(player.complete('a')), [1, 0, 0]);
    assert.deepEqual(countsOf(player.tick().last!), [0, 0, 0]);
    assert.deepEqual(countsAtStart(failing('a')), [1, 1, 0]);
  });

  test('each try that fails counts as failed, as retried if another one follows, and again when a new process starts it', () => {
    const retry = { max_attempts: 2, initial_backoff: 10, max_backoff: 10 };
    const player = new Player([work('a', { retry })]).start();
    assert.deepEqual(countsOf(player.fail('a', true)), [0, 1, 1]);
    assert.deepEqual(countsOf(player.tick().last!), [1, 0, 0]);
    assert.deepEqual(countsOf(player.fail('a', true)), [0, 1, 0]);
    assert.equal(player.state, 'failed');
    assert.deepEqual(countsOf(new Player([http('a')]).start().recover()), [1, 0, 0]);
    assert.deepEqual(countsOf(new Player([work('a')]).start().recover()), [0, 0, 0]);
  });
});

describe('claims', () => {
  /** How often an instance was claimed when it has taken in these events. */
  function claims(player: Player, ...kinds: ('wake' | 'pause' | 'resume' | 'retry' | 'cancel')[]) {
    const turn = new Turn();
    for (const kind of kinds) {
      const before = beforeOf(player.snapshot);
      countProgress(turn, { kind }, before, player.snapshot, player.sendOnce({ kind }));
    }
    const counts = turn.takeCounts();
    const index = COUNTER_NAMES.indexOf('engine_instances_claimed_total');
    return counts.reduce((sum, value, i) => {
      return i % 2 === 1 && counts[i - 1] === index ? sum + value : sum;
    }, 0);
  }

  const delayed = (id: string) => ({ ...noop(id), delay: { duration: 1_000 } });

  test('an eager start is one, one that is only a delay too, and the end of the delay is another', () => {
    assert.equal(claims(new Player([noop('a')]), 'wake'), 1);
    assert.equal(claims(new Player([work('a')]), 'wake'), 1);
    const player = new Player([delayed('a'), delayed('b')]);
    for (const state of ['scheduled', 'scheduled', 'completed']) {
      assert.equal(claims(player, 'wake'), 1);
      assert.equal(player.state, state);
      player.now += 1_000;
    }
  });

  test('a wake with nothing due or of one that waits is none, nor are moves; what follows a resume or a retry is one', () => {
    assert.equal(claims(new Player([delayed('a')]).start(), 'wake'), 0);
    assert.equal(claims(new Player([work('a')]).start(), 'wake'), 0);
    const player = new Player([delayed('a')]).start();
    assert.equal(claims(player, 'pause', 'resume'), 0);
    player.now = START + 1_000;
    assert.equal(claims(player, 'wake'), 1);
    const failed = new Player([failing('a')]).start();
    assert.deepEqual([claims(failed, 'retry'), claims(failed, 'wake')], [0, 1]);
    assert.equal(claims(new Player([noop('a')]), 'cancel'), 0);
  });
});

const COMPLETED = 'engine_sequence_instances_completed_total';
const FAILED = 'engine_sequence_instances_failed_total';
const SUCCEEDED = 'engine_handler_attempts_succeeded_total';

const namedBy = (meter: Meter, counter: Parameters<Meter['named']>[0]) =>
  Object.fromEntries(meter.named(counter));

test('each name counts apart, for each counter, and sequences apart from handlers', () => {
  const meter = new Meter();
  for (const name of ['orders', 'orders', 'größe']) meter.countNamed(COMPLETED, name);
  meter.countNamed(FAILED, 'orders', 2);
  meter.countNamed(SUCCEEDED, 'charge');
  assert.deepEqual(namedBy(meter, COMPLETED), { other: 0, orders: 2, größe: 1 });
  assert.deepEqual(namedBy(meter, FAILED), { other: 0, orders: 2 });
  assert.deepEqual(namedBy(meter, SUCCEEDED), { other: 0, charge: 1 });
});

test('names beyond the bound count together as other, and so does what has no usable name', () => {
  const meter = new Meter();
  for (let i = 0; i < NAMES_MAX + 5; i++) meter.countNamed(COMPLETED, `s${i}`);
  meter.countNamed(COMPLETED, 's1');
  meter.countNamed(COMPLETED, '');
  meter.countNamed(COMPLETED, 'x'.repeat(2_000));
  const counts = namedBy(meter, COMPLETED);
  assert.equal(Object.keys(counts).length, NAMES_MAX + 1);
  assert.deepEqual([counts.s0, counts.s1, counts.other], [1, 2, 7]);
  assert.equal(counts[`s${NAMES_MAX}`], undefined);
});

test('a successor of the thread counts on under the names it finds', () => {
  const first = new Meter();
  first.countNamed(COMPLETED, 'orders');
  const second = new Meter(first.memory);
  second.countNamed(COMPLETED, 'orders');
  second.countNamed(COMPLETED, 'refunds');
  assert.deepEqual(namedBy(first, COMPLETED), { other: 0, orders: 2, refunds: 1 });
});

test('the threads are added up by name', () => {
  const memory = new MetricMemory(2, 1);
  memory.shards[0]!.countNamed(SUCCEEDED, 'charge', 2);
  memory.shards[1]!.countNamed(SUCCEEDED, 'charge', 3);
  memory.shards[1]!.countNamed(SUCCEEDED, 'refund');
  assert.deepEqual(Object.fromEntries(memory.named(SUCCEEDED)), { other: 0, charge: 5, refund: 1 });
});

const SECOND = 1_000;

type Sample = Readonly<Record<RowGaugeName, number>>;

const sampleOf = (value: number) =>
  Object.fromEntries(Object.keys(ROW_GAUGES).map((name) => [name, value])) as Sample;

function setUp() {
  const clock = new HandClock();
  const looks: { resolve: (sample: Sample) => void; reject: (error: Error) => void }[] = [];
  const sampler = new Sampler({
    clock,
    isServing: () => true,
    look: () => new Promise((resolve, reject) => looks.push({ resolve, reject })),
  });
  const pending = () => sampler.last.engine_instances_pending;
  return { clock, looks, sampler, pending };
}

test('a scrape shows what it had looked up, and the next ones share that look', async () => {
  const { clock, looks, sampler, pending } = setUp();
  assert.equal(pending(), 0);
  const scrapes = [sampler.refresh(), sampler.refresh()];
  assert.equal(looks.length, 1);
  looks[0]!.resolve(sampleOf(3));
  await Promise.all(scrapes);
  assert.equal(pending(), 3);
  clock.pass(4.9 * SECOND);
  await sampler.refresh();
  assert.equal(looks.length, 1);
  clock.pass(0.2 * SECOND);
  const later = sampler.refresh();
  looks[1]!.resolve(sampleOf(4));
  await later;
  assert.deepEqual([pending(), clock.waiting], [4, 0]);
});

test('a scrape does not wait for a slow look, whose numbers the next one shows', async () => {
  const { clock, looks, sampler, pending } = setUp();
  const scrape = sampler.refresh();
  clock.pass(0.3 * SECOND);
  await scrape;
  clock.pass(60 * SECOND);
  const next = sampler.refresh();
  assert.deepEqual([pending(), looks.length], [0, 1]);
  looks[0]!.resolve(sampleOf(7));
  await next;
  assert.equal(pending(), 7);
});
