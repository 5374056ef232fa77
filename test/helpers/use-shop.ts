/** The shop in tenants of its own, for the tests of a file: open before the first and closed after the last. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after } from 'node:test';
import { openShop, type Shop, TENANT } from '../../scripts/dashboard/shop/shop.js';
import { beforeWith, type SharedApi } from './api.js';
import { DEFAULT_API_KEY } from './engine.js';

export interface ShopServer {
  readonly api: SharedApi;
  /** Only in tests. */
  readonly shop: Shop;
}

/** @param use gives the server, which needs `SHOP_ENV`, as the one that files share has */
export function useShop(use: () => SharedApi): ShopServer {
  let shop: Shop | undefined;
  // Workers stop before their server does: hooks behind a test run in the order in which they are written.
  after(() => shop?.stop());
  const api = use();
  beforeWith(api, async () => {
    const tenant = `${TENANT}-${randomUUID().slice(0, 8)}`;
    shop = await openShop({ url: api.url, apiKey: DEFAULT_API_KEY, tenant });
  });
  return {
    api,
    get shop() {
      assert.ok(shop, 'the shop is open in tests');
      return shop;
    },
  };
}
