/**
 * Tenants under the attack of another one, as the bench measures them: the short form shows that it measures, the
 * long one makes every attack in full, and none of the others may meet an error. Times are for the table
 * in docs/security.md, and no matter of a test.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ResultsFile } from '../../bench/base/report.js';
import { pressureJobs } from '../../bench/pressure/job.js';
import { ERRORS, OPERATIONS, p99Of } from '../../bench/pressure/victim.js';
import { byDepth } from '../helpers/depth.js';

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));
const ALL = pressureJobs.map(({ name }) => name);
const ATTACKS = byDepth<readonly string[]>(['polls', 'polls50'], ALL);
const LENGTH = byDepth(['--quick'], ['--seconds', '5']);

test('while one tenant attacks, every request of the others succeeds', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pressure-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const args = ['pressure', ATTACKS.join(','), ...LENGTH, '--out', folder];
  const bench = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [bench.stdout, bench.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = await once(bench, 'close');
  assert.equal(code, 0, output);
  t.diagnostic(output);
  const [file = ''] = readdirSync(folder);
  const { jobs } = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as ResultsFile;
  const expected = ATTACKS.map((name) => `pressure ${name}`);
  assert.deepEqual(Object.keys(jobs), expected);
  const failed: string[] = [];
  for (const [job, { rows }] of Object.entries(jobs)) {
    const [idle, attacked] = rows;
    for (const name of OPERATIONS) {
      assert.ok((idle?.medians[p99Of(name)] ?? 0) > 0, `${job}: ${name}`);
    }
    const errors = attacked?.medians[ERRORS];
    if (errors !== 0) failed.push(`${job}: ${errors} errors, which the output names`);
  }
  assert.deepEqual(failed, []);
});
