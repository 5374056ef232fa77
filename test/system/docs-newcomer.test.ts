/**
 * The pages for people who have never seen the engine, from `npm start` to their last line, as they are
 * pasted: on the embedded Postgres, with workers and receivers as processes.
 */

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { findPostmaster, stopServer } from '../../src/db/embedded-server.js';
import { type Place, pages, ROOT, runPages } from '../helpers/docs.js';
import { freePort, makeDataDir } from '../helpers/engine.js';

/** Those that start a server themselves. */
const PAGES = pages().filter(({ fences }) => fences.some(({ marks: [mark] }) => mark === 'server'));

/** Of the terminal that they are pasted into. */
const COLUMNS = 80;

/**
 * A folder in which `npm start` starts the server that was built for the tests: without a look at the
 * sources, since a build would take it away from the others that run.
 */
async function checkout(t: TestContext): Promise<Required<Place>> {
  const folder = makeDataDir();
  t.after(async () => {
    const left = findPostmaster(path.join(folder, 'data/postgres'));
    if (left !== undefined) await stopServer(left, 'immediate');
    rmSync(folder, { recursive: true });
  });
  symlinkSync(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
  mkdirSync(path.join(folder, 'scripts'));
  const server = JSON.stringify(path.join(ROOT, 'dist/server/main.js'));
  writeFileSync(path.join(folder, 'scripts/start.mjs'), `await import(${server});\n`);
  const port = await freePort();
  const env = {
    ENGINE_HTTP_ADDR: `127.0.0.1:${port}`,
    ENGINE_SHARDS: '1',
    npm_config_update_notifier: 'false',
  };
  return { folder, env, url: `http://localhost:${port}`, receiverPort: await freePort() };
}

describe('the commands of these pages work from the first to the last, and give what is shown', {
  concurrency: true,
}, () => {
  for (const { file } of PAGES) {
    test(file, async (t) => {
      const place = await checkout(t);
      const wrong = await runPages([file], place);
      assert.ok(wrong === undefined, `${wrong}\n${serverLog(place)}`);
    });
  }
});

const serverLog = ({ folder }: Place) => readFileSync(path.join(folder, 'server.log'), 'utf8');

test('their lines fit into a terminal', () => {
  const long = PAGES.flatMap(({ file, fences }) =>
    fences
      .flatMap(({ text }) => text.split('\n'))
      .filter((line) => line.length > COLUMNS)
      .map((line) => `${file}: ${line}`),
  );
  assert.deepEqual(long, []);
});

test('the README and the tutorial are such pages', () => {
  assert.deepEqual(
    PAGES.map(({ file }) => file),
    ['README.md', 'docs/tutorial.md'],
  );
});
