/**
 * Orders at a bank that declines and loses answers, while their server is killed again and again. The seed is printed:
 * BANK_SEED repeats its choices.
 *
 * Cost: 60 s, since its server is killed under load; the long form takes half an hour.
 */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { Orders } from '../bank/run.js';
import { useApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const FLOWS = byDepth(120, 2_000);
const KILLS = byDepth(2, 12);

const api = useApi({ env: { ENGINE_SHARDS: '3', ENGINE_ALLOW_INTERNAL_URLS: 'true' } });

test(`${FLOWS} orders under ${KILLS} kills end paid and sent, or neither, or before a person`, async (t) => {
  const seed = Number(process.env.BANK_SEED ?? randomInt(0x1_0000_0000));
  t.diagnostic(`seed ${seed}`);
  const startedAt = performance.now();
  const { name: tenant } = api.tenant();
  const orders = new Orders({ url: api.url, apiKey: DEFAULT_API_KEY, tenant, sql: api.sql }, seed);
  t.after(() => orders.stop());
  await orders.open(FLOWS);
  let isOver = false;
  const operated = orders.operate(() => isOver);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const placed = orders.placeUntil((FLOWS * kill) / KILLS);
    await orders.reaches((FLOWS * (kill - 0.5)) / KILLS);
    await api.restart();
    await placed;
  }
  isOver = true;
  await operated;
  const found = await orders.violations();
  const minutes = (performance.now() - startedAt) / 60_000;
  t.diagnostic(JSON.stringify({ kills: KILLS, ...orders.counts, ...orders.bank.counts, minutes }));
  const { complaints } = orders.bank;
  assert.deepEqual(
    { ...found, complaints },
    { sent: [], unsent: [], complaints: [] },
    `seed ${seed}`,
  );
});
