/** A tenant with very many instances, for the dashboard: those of the shop of the tests, copied in SQL. */

import type pg from 'pg';
import { openShop, SHOP_ENV, type Shop } from '../../scripts/dashboard/shop/shop.js';
import { startEngine } from '../../test/helpers/engine.js';
import { connect } from '../load/postgres.js';
import { RowPattern } from '../scale/row-pattern.js';

const ITERATIONS = 100_000;
const ITEMS = 10_000;
const NAMESPACE = 'bench';

/** Who ordered what is copied. */
const CUSTOMER = 'customer-of-the-pattern@shop.example';
/** So many customers order again and again. */
const CUSTOMERS = 50_000;

const GIANTS = [
  {
    name: 'many-passes',
    data: {},
    block: {
      type: 'loop',
      id: 'passes',
      condition: 'true',
      max_iterations: ITERATIONS,
      body: [{ type: 'step', id: 'pass', handler: 'noop' }],
    },
  },
  {
    name: 'many-items',
    data: { items: Array.from({ length: ITEMS }, (_, at) => at) },
    block: {
      type: 'for_each',
      id: 'items',
      collection: 'items',
      max_iterations: ITEMS,
      concurrency: 16,
      body: [{ type: 'step', id: 'item', handler: 'noop' }],
    },
  },
] as const;

/**
 * The shop, one instance of a very long loop, one of a for_each over very many items, and copies of orders.
 *
 * @param instances how many there are in the end, about
 */
export async function fill(databaseUrl: string, instances: number): Promise<void> {
  const engine = await startEngine({ databaseUrl, env: SHOP_ENV });
  const db = await connect(databaseUrl);
  try {
    const shop = await openShop({ url: engine.url, apiKey: engine.apiKey });
    const patterns = await ordersToCopy(shop);
    await runGiants(shop);
    await shop.stop();
    await engine.stop();
    for (const { id, share } of patterns) {
      const pattern = await RowPattern.of(db, id, {
        [CUSTOMER]: `'customer-' || (n % ${CUSTOMERS}) || '@shop.example'`,
      });
      await pattern.copy(db, 0, Math.floor(instances * share));
    }
    await db.query('vacuum analyze');
  } finally {
    await engine.stop();
    await db.end();
  }
}

/** Whether `fill` has been here. */
export async function isFilled(db: pg.Client): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select to_regclass('instances') is not null as found`,
  );
  if (!rows[0]?.found) return false;
  const many = await db.query('select from instances limit 1 offset 1000');
  return many.rowCount === 1;
}

async function ordersToCopy(
  shop: Shop,
): Promise<readonly { readonly id: string; readonly share: number }[]> {
  const wanted = [
    { card: '4242 4242', state: 'completed', share: 0.7 },
    { card: '4000 0002', state: 'failed', share: 0.2 },
    { card: '4000 0119', state: 'failed', share: 0.05 },
    { card: '4242 4242', state: 'waiting', share: 0.05, amount: 20_000 },
  ] as const;
  return Promise.all(
    wanted.map(async ({ card, state, share, ...more }, at) => {
      const data = {
        order: `order-of-pattern-${at}`,
        customer: CUSTOMER,
        amount: 80,
        card,
        ...more,
      };
      const id = await shop.order(data);
      await shop.until(id, state);
      return { id, share };
    }),
  );
}

async function runGiants({ client, until }: Shop): Promise<void> {
  for (const { name, data, block } of GIANTS) {
    await client.sequences.create({ namespace: NAMESPACE, name, version: 1, blocks: [block] });
    const { id } = await client.instances.create({
      namespace: NAMESPACE,
      sequence: name,
      context: { data },
    });
    await until(id, 'completed');
  }
}
