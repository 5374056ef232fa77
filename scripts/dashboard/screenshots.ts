/**
 * `npm run screenshots [-- name …]`: the pictures of the dashboard that the manual shows, light and dark, in
 * `docs/images/dashboard`; by their names those of any other page, too.
 * They show the shop of the tests. Ids and times of day differ from run to run, so that a picture is replaced only
 * where more of it changed than that.
 *
 * WebP, since it takes a third of the bytes of PNG and the pictures come with the package.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { bucketOf } from '../../actors/activity/core/activity.js';
import { launchChromium } from '../../test/helpers/chromium.js';
import { open, signIn } from '../../test/helpers/dashboard.js';
import { createTestDatabase, stopSharedServer } from '../../test/helpers/database.js';
import { startEngine } from '../../test/helpers/engine.js';
import { addressOf, type DashboardPage, PAGES, SIGN_IN } from './pages.js';
import { CELL, openCells } from './shop/cells.js';
import { openShop, SHOP_ENV, TENANT } from './shop/shop.js';

const FOLDER = fileURLToPath(new URL('../../../docs/images/dashboard/', import.meta.url));

const VIEWPORT = { width: 1280, height: 800 };
const QUALITY = 82;
/** Of all pixels: what ids and times of day make up on a page that is full of them. */
const CHANGED_SHARE_MIN = 0.03;

const SHOWN: readonly string[] = ['overview', 'instance', 'release', 'cells'];
const names = process.argv.length > 2 ? process.argv.slice(2) : SHOWN;
const isWanted = ({ name }: DashboardPage) => names.includes(name);
const pages = PAGES.filter(isWanted);
mkdirSync(FOLDER, { recursive: true });

const browser = await launchChromium();
if (browser === undefined) process.exit(1);
const database = await createTestDatabase({ isMigrated: false });
const env = { ...SHOP_ENV, ...(await openCells(database.connectionString)) };
const engine = await startEngine({ databaseUrl: database.connectionString, env });
await addHour(database.connectionString);
const shop = await openShop({ url: engine.url, apiKey: engine.apiKey });
try {
  const judge = await browser.newPage();
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({
      viewport: VIEWPORT,
      colorScheme,
      locale: 'en-GB',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    const take = async (wanted: DashboardPage) => {
      await open(page, engine.url, addressOf(wanted, shop), wanted.title);
      const file = path.join(FOLDER, `${wanted.name}-${colorScheme}.webp`);
      const picture = await pictureOf(page);
      const share = existsSync(file) ? await changedShare(judge, readFileSync(file), picture) : 1;
      if (share >= CHANGED_SHARE_MIN) writeFileSync(file, picture);
      const verdict = share >= CHANGED_SHARE_MIN ? 'written' : 'as it was';
      process.stdout.write(`${path.basename(file)}: ${picture.length} bytes, ${verdict}\n`);
    };
    if (isWanted(SIGN_IN)) await take(SIGN_IN);
    await signIn(context, { apiKey: engine.apiKey });
    for (const wanted of pages) await take(wanted);
    await context.close();
  }
} finally {
  await browser.close();
  await shop.stop();
  await engine.stop();
  await database.drop();
  await stopSharedServer();
}

/** The shop has just been opened: lines over time begin with the minutes before, of which one has an incident. */
async function addHour(connectionString: string): Promise<void> {
  const db = new pg.Client({ connectionString, options: `-c search_path=${CELL}` });
  await db.connect();
  const now = Date.now();
  for (let minute = 1; minute <= 65; minute++) {
    const created = Math.round(150 + 45 * Math.sin(minute / 9)) + ((minute * 37) % 23);
    const isIncident = minute >= 24 && minute <= 28;
    const failed = isIncident ? 24 + ((minute * 7) % 9) : (minute * 13) % 5;
    const typicalMs = isIncident ? 2_600 : 700 + ((minute * 53) % 180);
    const durations = [
      [bucketOf(typicalMs), 90],
      [bucketOf(typicalMs * 3), 10],
    ];
    await db.query(
      `insert into activity (tenant_id, at, shard, created, completed, failed, cancelled, durations)
       values ($1, $2, 0, $3, $4, $5, 0, $6)`,
      [
        TENANT,
        new Date(now - minute * 60_000),
        created,
        created - failed,
        failed,
        JSON.stringify(durations),
      ],
    );
  }
  await db.end();
}

/** What is in the window, by the debugger, since Playwright has no WebP. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const shot = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  await session.detach();
  return Buffer.from(shot.data, 'base64');
}

/** Of the pixels, how many differ visibly; 1 of pictures of different sizes. */
function changedShare(judge: Page, before: Buffer, now: Buffer): Promise<number> {
  const pictures = [before, now].map((picture) => picture.toString('base64'));
  return judge.evaluate<number>(`(async () => {
    const pixels = async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/webp' }));
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
      canvas.drawImage(bitmap, 0, 0);
      return canvas.getImageData(0, 0, bitmap.width, bitmap.height).data;
    };
    const [before, now] = await Promise.all(${JSON.stringify(pictures)}.map(pixels));
    if (before.length !== now.length) return 1;
    let changed = 0;
    for (let at = 0; at < now.length; at += 4) {
      const difference = [0, 1, 2].map((part) => Math.abs(before[at + part] - now[at + part]));
      if (Math.max(...difference) > 32) changed += 1;
    }
    return changed / (now.length / 4);
  })()`);
}
