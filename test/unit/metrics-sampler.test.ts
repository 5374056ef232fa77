/** Looks at the rows are rare, and a scrape never waits long for one; in virtual time. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROW_GAUGES, type RowGaugeName } from '../../src/metrics/catalog.js';
import { Sampler } from '../../src/metrics/sampler.js';
import { HandClock } from '../helpers/hand-clock.js';

const SECOND = 1_000;

type Sample = Readonly<Record<RowGaugeName, number>>;

const sampleOf = (value: number) =>
  Object.fromEntries(Object.keys(ROW_GAUGES).map((name) => [name, value])) as Sample;

function setUp() {
  const clock = new HandClock();
  const looks: { resolve: (sample: Sample) => void; reject: (error: Error) => void }[] = [];
  let isServing = true;
  const sampler = new Sampler({
    clock,
    isServing: () => isServing,
    look: () => new Promise((resolve, reject) => looks.push({ resolve, reject })),
  });
  const pending = () => sampler.gauges.engine_instances_pending();
  const serve = (serves: boolean) => {
    isServing = serves;
  };
  return { clock, looks, sampler, pending, serve };
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
  assert.equal(looks.length, 2);
  looks[1]!.resolve(sampleOf(4));
  await later;
  assert.equal(pending(), 4);
  assert.equal(clock.waiting, 0);
});

test('a scrape does not wait for a slow look, whose numbers the next one shows', async () => {
  const { clock, looks, sampler, pending } = setUp();
  const scrape = sampler.refresh();
  clock.pass(0.3 * SECOND);
  await scrape;
  assert.equal(pending(), 0);
  clock.pass(60 * SECOND);
  const next = sampler.refresh();
  assert.equal(looks.length, 1);
  looks[0]!.resolve(sampleOf(7));
  await next;
  assert.equal(pending(), 7);
});

test('a look that fails leaves the last one standing, and is not repeated at once', async () => {
  const { clock, looks, sampler, pending } = setUp();
  const first = sampler.refresh();
  looks[0]!.resolve(sampleOf(5));
  await first;
  clock.pass(6 * SECOND);
  const second = sampler.refresh();
  looks[1]!.reject(new Error('the database is away'));
  await second;
  assert.equal(pending(), 5);
  await sampler.refresh();
  assert.equal(looks.length, 2);
});

test('an engine that does not serve asks the database nothing', async () => {
  const { looks, sampler, serve } = setUp();
  serve(false);
  await sampler.refresh();
  assert.equal(looks.length, 0);
});
