/** Orders at a bank that declines and loses answers: what has become of them when an operator is done with them. */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after } from 'node:test';
import { Orders } from '../bank/run.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { subject } from '../helpers/survival.js';

export const money = subject();
const { survives } = money;

const ORDERS = 50;
/** So many have begun before the kill; the others meet it. */
const BEGUN = 25;
const seed = Number(process.env.BANK_SEED ?? randomInt(0x1_0000_0000));

let orders: Orders | undefined;
let found: Awaited<ReturnType<Orders['violations']>> | undefined;
after(() => orders?.stop());

survives(
  'Money: every shipped order is paid exactly once, and nothing is shipped twice',
  async (tenant, api) => {
    const { url, sql } = api;
    const place = { url, sql, apiKey: DEFAULT_API_KEY, tenant: tenant.name };
    const run = new Orders(place, seed);
    orders = run;
    await run.open(ORDERS);
    let placed: Promise<void> | undefined;
    return {
      underWay: () => run.placeUntil(BEGUN),
      // Not waited for: what others have begun here ends soon.
      atTheKill: async () => {
        placed = run.placeUntil(ORDERS);
      },
      check: async () => {
        await placed;
        await run.operate(() => true);
        found = await run.violations();
        assert.deepEqual(found.sent, [], `BANK_SEED=${seed}`);
      },
    };
  },
);

survives(
  'Money: an order that was not shipped costs nothing, or has a failed refund in the dead letter queue',
  async () => async () => assert.deepEqual(found?.unsent, [], `BANK_SEED=${seed}`),
);

survives(
  'Money: an idempotency key is used for one request only, and the bank counts it once',
  async () => async () => {
    assert.deepEqual(orders?.bank.complaints, [], `BANK_SEED=${seed}`);
    assert.ok(orders.bank.counts.repeated > 0, 'something was asked for again');
  },
);
