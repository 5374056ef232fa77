/** What a person waits for, measured in the page. */

import type { Page } from 'playwright-core';
import { Client } from '../../client/src/index.js';
import { SHOP_ENV, TENANT } from '../../scripts/dashboard/shop/shop.js';
import { launchChromium } from '../../test/helpers/chromium.js';
import { expectPage, open, settled, signIn } from '../../test/helpers/dashboard.js';
import { startEngine } from '../../test/helpers/engine.js';

type Row = readonly [what: string, times: number, p50: number, p95: number, max: number];

const UPDATES_EVERY_MS = 20;
const COLD_STARTS = 5;
/** A person looks at a page before doing something on it. */
const READING_MS = 1_500;
const VIEWPORT = { width: 1280, height: 900 };

/** @param rounds how often each thing is done */
export async function measure(databaseUrl: string, rounds: number): Promise<readonly Row[]> {
  const engine = await startEngine({ databaseUrl, env: SHOP_ENV });
  const { url, apiKey } = engine;
  const client = new Client({ url, apiKey: apiKey ?? undefined, tenant: TENANT });
  const samples = new Samples();
  const updates = startUpdates(client);
  try {
    for (let start = 0; start < COLD_STARTS; start++) {
      samples.add('first paint, cold start', await coldStart(url, apiKey));
    }
    const browser = await launchChromium();
    if (browser === undefined) throw new Error('there is no Chromium');
    try {
      const context = await browser.newContext({ viewport: VIEWPORT });
      await signIn(context, { apiKey });
      await context.addInitScript(WATCH);
      const page = await context.newPage();
      for (let round = 0; round < rounds; round++) await workOnLists(page, url, samples);
      await openGiants(page, url, client, samples);
      for (const ms of await eventDurations(page)) samples.add('any input, to the next paint', ms);
    } finally {
      await browser.close();
    }
    return samples.rows(updates.count());
  } finally {
    updates.stop();
    await engine.stop();
  }
}

/** An instance that runs to its end each time. */
function startUpdates(client: Client): { stop(): void; count(): number } {
  let count = 0;
  const timer = setInterval(() => {
    count += 1;
    const data = { amount: count, end: 'completed' };
    void client.instances
      .create({ namespace: 'shop', sequence: 'checkout', context: { data } })
      .catch(() => undefined);
  }, UPDATES_EVERY_MS);
  return { stop: () => clearInterval(timer), count: () => count };
}

/** With a browser and a profile that are new. */
async function coldStart(url: string, apiKey: string | null): Promise<number> {
  const browser = await launchChromium();
  if (browser === undefined) throw new Error('there is no Chromium');
  try {
    const context = await browser.newContext({ viewport: VIEWPORT });
    await signIn(context, { apiKey });
    const page = await context.newPage();
    await open(page, url, '/', 'Overview');
    return await page.evaluate<number>(
      `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN`,
    );
  } finally {
    await browser.close();
  }
}

// ---------------------------------------------------------------- what is done

async function workOnLists(page: Page, url: string, samples: Samples): Promise<void> {
  await open(page, url, '/instances', 'Instances');
  await page.waitForTimeout(READING_MS);
  const state = (name: string) => page.getByRole('button', { name, exact: true });
  const timed = async (what: string, act: () => Promise<void>, isDone: string) => {
    samples.add(what, ...(await timesToPaint(page, act, isDone)));
  };
  await timed('filter by a state', () => state('failed').click(), allRowsSay('failed'));
  await timed(
    'next page',
    () => page.getByRole('button', { name: 'Next page' }).click(),
    OTHER_ROWS,
  );
  await timed(
    'next page',
    () => page.getByRole('button', { name: 'Next page' }).click(),
    OTHER_ROWS,
  );
  await timed('back', () => page.goBack().then(() => undefined), OTHER_ROWS);
  await openFirst(page, 'open an instance', 'order-fulfilment', samples);
  const tabs = page.getByRole('navigation', { name: 'Parts of the instance' }).getByRole('link');
  for (let at = 1; at < (await tabs.count()); at++) {
    await timed('another tab', () => tabs.nth(at).click(), PAGE_AT_REST);
  }
  await page.getByRole('link', { name: 'Failures', exact: true }).click();
  await expectPage(page, 'Failures');
  await timed(
    'the instances of a reason',
    () => page.getByRole('table').getByRole('link').first().click(),
    allRowsSay('failed'),
  );
}

async function openGiants(
  page: Page,
  url: string,
  client: Client,
  samples: Samples,
): Promise<void> {
  for (const sequence of ['many-passes', 'many-items']) {
    const [version] = (await client.sequences.list({ name_contains: sequence, limit: 1 })).items;
    if (version === undefined) throw new Error(`there is no sequence ${sequence}`);
    await open(page, url, `/instances?sequence_id=${version.id}`, 'Instances');
    await page.waitForTimeout(READING_MS);
    await openFirst(page, `open ${sequence}`, sequence, samples);
    const tabs = page.getByRole('navigation', { name: 'Parts of the instance' }).getByRole('link');
    for (let at = 1; at < (await tabs.count()); at++) {
      const ms = await timesToPaint(page, () => tabs.nth(at).click(), PAGE_AT_REST);
      samples.add(`a tab of ${sequence}`, ...ms);
    }
  }
}

/** The first of the list: what it is and how it stands is shown before its flow is read and drawn. */
async function openFirst(
  page: Page,
  what: string,
  sequence: string,
  samples: Samples,
): Promise<void> {
  const link = page.getByRole('table', { name: 'Instances' }).getByRole('link').first();
  const isShown = `document.querySelector('h1')?.innerText.includes('${sequence}') && ${HAS_FACTS}`;
  const isWhole = `${isShown} && ${PAGE_AT_REST}`;
  samples.add(what, ...(await timesToPaint(page, () => link.click(), isShown, isWhole)));
  await settled(page);
}

// ---------------------------------------------------------------- what is measured

/** When the last input came, which rows were there then, and how long inputs took to the next paint. */
const WATCH = `
  globalThis.eventDurations = [];
  globalThis.rowsBefore = new Set();
  for (const type of ['pointerdown', 'keydown', 'popstate']) {
    addEventListener(type, (event) => {
      globalThis.inputAt = event.timeStamp;
      globalThis.rowsBefore = new Set([...document.querySelectorAll('main tbody tr')].map((row) => row.innerText));
    }, true);
  }
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries()) {
      if (interactionId > 0) globalThis.eventDurations.push(duration);
    }
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });`;

const ROWS = `[...document.querySelectorAll('main tbody tr')].map((row) => row.innerText)`;
const PAGE_AT_REST = `document.querySelector('main [aria-busy="true"]') === null`;
/** No row of before is there: the next page, or the one before. */
const OTHER_ROWS = `(() => { const rows = ${ROWS}; return rows.length > 0 && !rows.some((row) => rowsBefore.has(row)); })()`;
const allRowsSay = (word: string) =>
  `(() => { const rows = ${ROWS}; return rows.length > 0 && rows.every((row) => row.includes('${word}')); })()`;
const HAS_FACTS = `document.querySelector('[aria-label="About the instance"]') !== null`;

/** Milliseconds from the input to the paint that shows what was asked for, and to the one with all of its parts. */
async function timesToPaint(
  page: Page,
  act: () => Promise<void>,
  isShown: string,
  isWhole = isShown,
): Promise<readonly [shown: number, whole: number]> {
  await page.evaluate('globalThis.inputAt = undefined');
  const conditions = [...new Set([isShown, isWhole])].map((isDone) => `() => ${isDone}`);
  const painted = page.evaluate<[number, number?]>(`Promise.all([${conditions}].map((isDone) =>
    new Promise((resolve) => {
      const look = () => {
        if (globalThis.inputAt === undefined || !isDone()) return requestAnimationFrame(look);
        // Behind the frame in which it is so, it has been painted.
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - globalThis.inputAt)));
      };
      look();
    })))`);
  const [[shown, whole = shown]] = await Promise.all([painted, act()]);
  return [shown, whole];
}

function eventDurations(page: Page): Promise<number[]> {
  return page.evaluate('globalThis.eventDurations');
}

class Samples {
  readonly #byName = new Map<string, number[]>();
  readonly #shown: number[] = [];
  readonly #whole: number[] = [];

  /** @param whole with all parts; undefined: it is none of the things that are summed up */
  add(name: string, ms: number, whole?: number): void {
    this.#note(name, ms);
    if (whole === undefined) return;
    if (whole !== ms) this.#note(`${name}, all parts`, whole);
    this.#shown.push(ms);
    this.#whole.push(whole);
  }

  #note(name: string, ms: number): void {
    process.stderr.write(`${name}: ${Math.round(ms)} ms\n`);
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), ms]);
  }

  rows(updates: number): readonly Row[] {
    const row = (name: string, samples: readonly number[]): Row => {
      const sorted = [...samples].sort((a, b) => a - b);
      const at = (share: number) =>
        Math.round(
          sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN,
        );
      return [name, sorted.length, at(0.5), at(0.95), at(1)];
    };
    return [
      ...[...this.#byName].map(([name, samples]) => row(name, samples)),
      row(`all of these, beside ${updates} updates`, this.#shown),
      row('all of these, with all parts', this.#whole),
    ];
  }
}
