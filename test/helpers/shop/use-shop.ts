/** The shop on a server of its own, for the tests of a file: it is open before the first and closed after the last. */

import assert from 'node:assert/strict';
import { after } from 'node:test';
import { type Api, beforeWith, useApi } from '../api.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { openCells } from './cells.js';
import { openShop, SHOP_ENV, type Shop } from './shop.js';

export interface ShopServer {
  readonly api: Api;
  /** Only in tests. */
  readonly shop: Shop;
}

/** @param options.isInCells with two more cells beside its own */
export function useShop({ isInCells = false } = {}): ShopServer {
  let shop: Shop | undefined;
  let database: TestDatabase | undefined;
  // Workers end before their server does: hooks behind a test run in the order in which they are written.
  after(() => shop?.stop());
  const api = useApi(async () => {
    if (!isInCells) return { env: SHOP_ENV };
    database = await createTestDatabase({ isMigrated: false });
    return { database, env: { ...SHOP_ENV, ...(await openCells(database.connectionString)) } };
  });
  after(() => database?.drop());
  beforeWith(api, async () => {
    shop = await openShop({ url: api.url, apiKey: api.engine.apiKey });
  });
  return {
    api,
    get shop() {
      assert.ok(shop, 'the shop is open in tests');
      return shop;
    },
  };
}
