/** The order pipeline in code runs as the tutorial says, and the tutorial shows what is in it. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { order } from '../../examples/order-pipeline/order.js';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const MAIN = fileURLToPath(new URL('../../examples/order-pipeline/main.js', import.meta.url));
const read = (file: string) =>
  readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8').split('\n');

test('orders are sent, paid back and asked about; a second run finds all of it there', async () => {
  const tenant = api.tenant().name;
  const env = { ...process.env, ENGINE_URL: api.url, ENGINE_API_KEY: DEFAULT_API_KEY };
  const run = async () =>
    (
      await promisify(execFile)(process.execPath, [MAIN], {
        env: { ...env, ENGINE_TENANT: tenant },
      })
    ).stdout;
  const first = await run();
  for (const line of [
    'order, version 1, is stored',
    'lamp-1: ch-lamp-1, sent by courier',
    'slow-2: ch-slow-2, sent by post',
    'bank: ch-unicorn-3 is paid back: unicorns are sold out',
    'unicorn-3: ch-unicorn-3, paid back',
    'somebody is asked: Sell yacht to dee for 50000?',
    'yacht-4 is completed',
  ]) {
    assert.ok(first.split('\n').includes(line), `${line}\n${first}`);
  }
  const second = await run();
  assert.match(second, /^order, version 1, is there already$/m);
  assert.doesNotMatch(second, /^bank:/m);
});

test('the tutorial shows lines of the pipeline', () => {
  const page = read('docs/tutorial.md');
  const from = page.indexOf('```ts') + 1;
  const shown = page.slice(from, page.indexOf('```', from));
  assert.ok(shown.length > 3);
  const lines = new Set(read('examples/order-pipeline/order.ts'));
  const seen = shown.filter((line) => !lines.has(line));
  assert.deepEqual(seen, []);
  assert.equal(order.name, 'order');
});
