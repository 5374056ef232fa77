/**
 * `npm run on-call -- [--instances 1000000] [--rate 50] [--rounds 5] [--watch 60] [--tasks-only]`: how much work the dashboard
 * is for somebody on call. In a Chromium, with the shop of the tests, it does the tasks of a night and prints clicks, keys and
 * seconds of each. Then, with that many more instances and that many new ones a second, it prints the time from each
 * interaction to the next paint, and the requests of an open overview. The exit code is 0 if everything was done within
 * the targets that the first lines name; times depend on the machine.
 */

import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { copyInstance } from '../../bench/base/row-pattern.js';
import { launchChromium } from '../../test/helpers/chromium.js';
import { signIn } from '../../test/helpers/dashboard.js';
import { createTestDatabase, stopSharedServer } from '../../test/helpers/database.js';
import { startEngine } from '../../test/helpers/engine.js';
import { Hand, TASKS, wander } from '../dashboard/on-call.js';
import { openShop, SHOP_ENV, type Shop } from '../dashboard/shop/shop.js';
import { say, whole } from './command.js';

const PAINT_P95_MS_MAX = 200;
const READS_A_SECOND_MAX = 1;
const READS_SHOWN = 10;
const VIEWPORT = { width: 1280, height: 900 };
/** Of a task: what does not come in this time is missing. */
const PATIENCE_MS = 30_000;
/** Until what was just created is in the tables that are copied. */
const SETTLE_MS = 2_000;

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '1000000' },
    rate: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '5' },
    watch: { type: 'string', default: '60' },
    'tasks-only': { type: 'boolean', default: false },
  },
});
const instances = whole('--instances', values.instances);
const rate = whole('--rate', values.rate);
const rounds = whole('--rounds', values.rounds);
const watchSeconds = whole('--watch', values.watch);

const browser = await launchChromium();
if (browser === undefined) process.exit(1);
const database = await createTestDatabase();
let engine = await startEngine({ databaseUrl: database.connectionString, env: SHOP_ENV });
const shop = await openShop({ url: engine.url, apiKey: engine.apiKey });
const over = new AbortController();
try {
  const context = await browser.newContext({ viewport: VIEWPORT, locale: 'en-GB' });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await signIn(context, { apiKey: engine.apiKey, tenant: shop.tenant });
  await watchInteractions(await context.newPage());
  const [page] = context.pages() as [Page];
  await doTasks(page);
  if (!values['tasks-only']) {
    await engine.stop();
    await fill(database.connectionString);
    engine = await engine.restart();
    const load = keepCreating(shop, over.signal);
    await measurePaints(page);
    await countReads(page);
    over.abort();
    await load;
  }
} finally {
  over.abort();
  await browser.close();
  await shop.stop();
  await engine.stop();
  await database.drop();
  await stopSharedServer();
}

async function doTasks(page: Page): Promise<void> {
  say('task                                                     clicks  keys  seconds');
  for (const { name, clicksMax, run } of TASKS) {
    const hand = new Hand(page, engine.url);
    await hand.open('/');
    const startedMs = performance.now();
    let verdict = '';
    try {
      await run(hand, shop);
      if (hand.clicks > clicksMax) verdict = `more than ${clicksMax} clicks`;
    } catch (error) {
      verdict = (error as Error).message.split('\n', 3).join(' ');
    }
    if (verdict !== '') process.exitCode = 1;
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    const counts = `${hand.clicks}`.padStart(8) + `${hand.keys}`.padStart(6) + seconds.padStart(9);
    say(`${name.padEnd(55)}${counts}  ${verdict}`);
  }
}

// ---------------------------------------------------------------- a million instances

/** Copies ended instances, some of them failed, and waiting ones, in SQL while no server runs. */
async function fill(connectionString: string): Promise<void> {
  const db = new pg.Client(connectionString);
  await db.connect();
  const startedMs = performance.now();
  for (const [sequence, share] of [
    ['parcel', 0.9],
    ['tax-lookup', 0.05],
    ['subscription', 0.05],
  ] as const) {
    const { rows } = await db.query<{ id: string }>(
      `select i.id from instances i join sequences s on s.id = i.sequence_id
       where s.name = $1 and i.tenant_id = $2 limit 1`,
      [sequence, shop.tenant],
    );
    if (rows[0] === undefined) throw new Error(`there is no instance of ${sequence}`);
    await copyInstance(db, rows[0].id, {}, Math.floor(instances * share));
  }
  await db.query('vacuum analyze');
  await db.end();
  say(`${instances} instances copied in ${Math.round((performance.now() - startedMs) / 1_000)} s`);
}

/** Instances that end at once, this many a second. */
async function keepCreating({ client, sequences }: Shop, signal: AbortSignal): Promise<void> {
  const sequence_id = sequences.get('parcel 1');
  const data = { city: 'Rome' };
  const PARTS = 5;
  while (!signal.aborted) {
    const nextMs = performance.now() + 1_000 / PARTS;
    const batch = Array.from({ length: Math.ceil(rate / PARTS) }, () =>
      client.instances.create({ namespace: 'shop', sequence_id, context: { data } }),
    );
    await Promise.allSettled(batch);
    await pause(Math.max(0, nextMs - performance.now()));
  }
}

// ---------------------------------------------------------------- interactions

interface Paint {
  readonly id: number;
  readonly type: string;
  readonly ms: number;
}

/** From now on the page notes its events; below 16 ms none is reported. */
async function watchInteractions(page: Page): Promise<void> {
  await page.addInitScript(`
    globalThis.paints = [];
    const note = (list) => {
      for (const { interactionId, name, duration } of list.getEntries()) {
        if (interactionId > 0) globalThis.paints.push({ id: interactionId, type: name, ms: duration });
      }
    };
    const observer = new PerformanceObserver(note);
    observer.observe({ type: 'event', durationThreshold: 16, buffered: true });
    observer.observe({ type: 'first-input', buffered: true });`);
}

async function measurePaints(page: Page): Promise<void> {
  say(`${'interaction to next paint'.padEnd(48)}   count  p50 ms  p95 ms  max ms`);
  const all: number[] = [];
  const byPlace = new Map<string, number[]>();
  const reads = noteReads(page);
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of wander(shop)) {
      const hand = new Hand(page, engine.url);
      try {
        await run(hand);
      } catch (error) {
        process.exitCode = 1;
        say(`${name}: ${(error as Error).message.split('\n', 3).join(' ')}`);
      }
      // Entries are reported behind the paint.
      await pause(SETTLE_MS / 4);
      const paints = await page.evaluate<Paint[]>('globalThis.paints');
      const longest = new Map<number, number>();
      for (const { id, ms } of paints) longest.set(id, Math.max(ms, longest.get(id) ?? 0));
      // An interaction of less than 16 ms has no entry.
      const missing = Math.max(0, hand.clicks + hand.keys - longest.size);
      const times = [...longest.values(), ...Array<number>(missing).fill(16)];
      byPlace.set(name, [...(byPlace.get(name) ?? []), ...times]);
      all.push(...times);
    }
  }
  for (const [name, times] of byPlace) say(rowOf(name, times));
  say(rowOf('all', all));
  if (quantile(all, 0.95) > PAINT_P95_MS_MAX) process.exitCode = 1;
  const slowest = [...reads].sort(([, a], [, b]) => quantile(b, 0.95) - quantile(a, 0.95));
  for (const [path, times] of slowest.slice(0, READS_SHOWN)) say(rowOf(path, times));
  const load = loadavg().map((one) => one.toFixed(1));
  say(`load average ${load.join(' ')} of ${availableParallelism()} cores`);
}

/** Milliseconds to the first byte by path, without ids. */
function noteReads(page: Page): ReadonlyMap<string, number[]> {
  const reads = new Map<string, number[]>();
  page.on('requestfinished', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.includes('/api/v1/')) return;
    const path = pathname.replace(/^.*\/api\/v1/, '').replace(/[\da-f]{8}-[\da-f-]{27}/, '{id}');
    const { requestStart, responseStart } = request.timing();
    reads.set(path, [...(reads.get(path) ?? []), responseStart - requestStart]);
  });
  return reads;
}

function rowOf(name: string, times: readonly number[]): string {
  const numbers = [times.length, quantile(times, 0.5), quantile(times, 0.95), Math.max(...times)];
  const cells = numbers.map((value) => String(Math.round(value)).padStart(8));
  return `${name.padEnd(48)}${cells.join('')}`;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

async function countReads(page: Page): Promise<void> {
  await new Hand(page, engine.url).open('/');
  const reads: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.includes('/api/v1/') && !pathname.endsWith('/changes')) reads.push(pathname);
  });
  await pause(watchSeconds * 1_000);
  const perSecond = reads.length / watchSeconds;
  say(`open overview: ${perSecond.toFixed(2)} requests a second over ${watchSeconds} s`);
  if (perSecond > READS_A_SECOND_MAX) process.exitCode = 1;
}
