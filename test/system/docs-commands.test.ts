/**
 * The commands of the manual that are marked `sh run`, run as they stand: with a shell, against a real
 * server and a real Postgres. A block names the programs that it needs; where one is missing, the block is
 * left out. Pages that start a server themselves are run by `docs-newcomer.test.ts`.
 */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Api, SHARED_MASTER_KEY, startApi, step } from '../helpers/api.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { hasProgram, pages, runPages } from '../helpers/docs.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

/** In this order: what one page makes, a later one may use. */
const PAGES = [
  'operate/deploy',
  'operate/backup',
  'operate/upgrade',
  'operate/sizing',
  'operate/managed-postgres',
  'operate/alerts',
  'operate/troubleshooting',
  'releases',
  'secrets',
  'triggers',
  'events',
  'reference/workers',
].map((name) => `docs/${name}.md`);

/** The page whose function and variables all of them use. */
const SAMPLES = 'docs/README.md';

/** The tenant that every sample names. */
const TENANT = 'demo';

/** Old enough for the `pg_dump` of most machines. */
const POSTGRES_MAJOR = 15;

let postgres: TestPostgres;
let api: Api;
let folder: string;
let env: Record<string, string>;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'docs-commands-'));
  postgres = await startPostgres({ major: POSTGRES_MAJOR });
  const database = await postgres.createDatabase();
  api = await startApi({ database, env: { ENGINE_ENCRYPTION_KEY: SHARED_MASTER_KEY } });
  env = {
    KEY: DEFAULT_API_KEY,
    DATABASE_URL: database.connectionString,
    ADMIN_URL: postgres.connectionString,
    RESTORED_URL: postgres.connectionString.replace(/\/postgres$/, '/restored'),
    ...(await tellStory()),
  };
});
after(async () => {
  await api.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

/** An instance that waits for the worker with its task, one that has failed, and a schedule. */
async function tellStory(): Promise<{ ID: string; FAILED: string; TASK: string }> {
  const tenant = api.tenant(TENANT);
  const sequence = await tenant.sequence([step('only', 'decide')]);
  const waiting = await tenant.create(sequence);
  const task = await tenant.task('decide');
  const failed = await tenant.run([step('only', 'fail')]);
  await tenant.until(failed, 'failed');
  const schedule = { ...tenant.creation(sequence), cron_expr: '0 0 9 1 1 ? *' };
  assert.equal((await tenant.post('/cron', schedule)).status, 201);
  return { ID: waiting, FAILED: failed, TASK: task.id };
}

test('no page with such commands is left out', () => {
  const marked = pages().filter(({ fences }) => fences.some(({ marks: [mark] }) => mark === 'run'));
  const isStarting = ({ fences }: (typeof marked)[number]) =>
    fences.some(({ marks: [mark] }) => mark === 'server');
  const found = marked.filter((found) => !isStarting(found)).map(({ file }) => file);
  assert.deepEqual(found.sort(), [SAMPLES, ...PAGES].sort());
});

describe('the commands of each page work, and their answers are what it says', () => {
  for (const file of PAGES) {
    test(file, async () => {
      assert.equal(await runPages([SAMPLES, file], { folder, env, url: api.url }), undefined);
    });
  }

  test('an engine that is started on the restored database serves what was dumped', async (t) => {
    if (!hasProgram('pg_dump')) return t.skip('there is no pg_dump on this machine');
    const { RESTORED_URL = '', ID = '' } = env;
    const database = { ...api.database, connectionString: RESTORED_URL };
    const restored = await startApi({ database });
    t.after(() => restored.stop());
    assert.equal((await restored.tenant(TENANT).instance(ID)).state, 'waiting');
  });
});
