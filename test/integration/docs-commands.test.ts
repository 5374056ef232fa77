/**
 * The commands of the manual that are marked `sh run`, run as they stand: with a shell, against a real
 * server and a real Postgres. A block names the programs that it needs; where one is missing, the block is
 * left out.
 */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Api, startApi, step } from '../helpers/api.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { expectedOf, hasProgram, missingIn, page, pages, runScript } from '../helpers/docs.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

/** In this order: what one page makes, a later one may use. */
const PAGES = [
  'operate/deploy',
  'operate/backup',
  'operate/upgrade',
  'operate/sizing',
  'operate/alerts',
  'operate/troubleshooting',
  'releases',
].map((name) => `docs/${name}.md`);

/** With the page whose function and variables all of them use. */
const RUN = ['docs/README.md', ...PAGES];

/** The address that every sample names. */
const ADDRESS = 'http://localhost:8080';

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
  api = await startApi({ database });
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

/** The blocks of a page that are run on this machine. */
function scriptOf(file: string): string {
  return page(file)
    .fences.filter(({ language, marks: [mark] }) => language === 'sh' && mark === 'run')
    .filter(({ marks: [, ...programs] }) => programs.every(hasProgram))
    .map(({ text }) => text.replaceAll(ADDRESS, api.url))
    .join('\n');
}

test('no page with such commands is left out', () => {
  const marked = pages().filter(({ fences }) => fences.some(({ marks: [mark] }) => mark === 'run'));
  assert.deepEqual(marked.map(({ file }) => file).sort(), [...RUN].sort());
});

describe('the commands of each page work, and their answers are what it says', () => {
  for (const file of PAGES) {
    test(file, async () => {
      const script = [scriptOf('docs/README.md'), scriptOf(file)].join('\n');
      const { code, stdout, stderr } = await runScript(script, folder, env);
      assert.equal(code, 0, `${stderr}\n${stdout}`);
      const missing = missingIn(stdout, expectedOf(script));
      assert.equal(missing, undefined, `no ${missing} in\n${stdout}`);
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
