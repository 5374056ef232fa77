/**
 * The samples of docs/testing.md run as they stand.
 *
 * Cost: 15 s, since one of them starts a server with a Postgres.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { newFolder } from '../helpers/database.js';
import { page, ROOT } from '../helpers/docs.js';

const CLIENT = pathToFileURL(path.join(ROOT, 'dist/client/src')).href;
const samples = page('docs/testing.md').fences.filter(({ language }) => language === 'ts');

test('there are samples of both kinds', () => {
  assert.equal(samples.length, 2);
});

for (const { text, line } of samples) {
  test(`the sample at line ${line} of docs/testing.md passes`, async (t) => {
    const folder = newFolder();
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = path.join(folder, 'sample.test.mjs');
    const code = text
      .replaceAll("'durable-workflow-engine-client/testing'", `'${CLIENT}/testing/index.js'`)
      .replaceAll("'durable-workflow-engine-client'", `'${CLIENT}/index.js'`);
    writeFileSync(file, code);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    await new Promise<void>((resolve, reject) => {
      execFile(process.execPath, ['--test', file], { cwd: ROOT, env }, (error, stdout) =>
        error === null ? resolve() : reject(new Error(stdout)),
      );
    });
  });
}
