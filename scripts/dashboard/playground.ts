/**
 * `npm run playground`: a server of its own with the shop of the tests in it, for whoever works at the dashboard.
 * Orders keep coming in, so that there is something to watch; `--still` leaves everything as it is. Ctrl-C ends it.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTestDatabase, stopSharedServer } from '../../test/helpers/database.js';
import { startEngine } from '../../test/helpers/engine.js';
import { openShop, SHOP_ENV, TENANT } from './shop/shop.js';
import { CARDS } from './shop/workers.js';

const { values: flags } = parseArgs({
  options: { still: { type: 'boolean', default: false }, port: { type: 'string' } },
});
const say = (line: string) => process.stdout.write(`${line}\n`);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());

const database = await createTestDatabase();
const engine = await startEngine({
  databaseUrl: database.connectionString,
  env: SHOP_ENV,
  ...(flags.port === undefined ? {} : { port: Number(flags.port) }),
});
const shop = await openShop({ url: engine.url, apiKey: engine.apiKey });
say(`dashboard    ${engine.url}/ui`);
say(`tenant       ${TENANT}`);
say(`root key     ${engine.apiKey}`);
for (const [name, secret] of Object.entries(shop.keys)) say(`${name.padEnd(12)} ${secret}`);
say('instances');
for (const [name, id] of Object.entries(shop.instances)) say(`  ${name.padEnd(12)} ${id}`);
say(`canary       ${shop.canary.id}`);
say(flags.still ? 'nothing changes' : 'an order a second comes in');

/** One in so many meets a bank that does not answer. */
const FAILING_EVERY = 12;
try {
  for (let number = 2_001; ; number++) {
    await wait(1_000, undefined, { signal: interrupted.signal });
    if (flags.still) continue;
    const card = number % FAILING_EVERY === 0 ? CARDS.deadBank : CARDS.good;
    const customer = `visitor-${number % 50}@shop.example`;
    await shop.order({ order: `order-${number}`, customer, item: 'lamp', amount: 80, card });
  }
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
} finally {
  await shop.stop();
  await engine.stop();
  await database.drop();
  await stopSharedServer();
}
