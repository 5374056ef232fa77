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
import { ATTACK_NAMES } from '../../bench/pressure/attack-names.js';
import { CROWDS, type StoredPressure } from '../../bench/pressure/run.js';
import { OPERATIONS } from '../../bench/pressure/victim.js';
import type { ResultsFile } from '../../bench/report.js';
import { byDepth } from '../helpers/depth.js';

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));
const ATTACKS = byDepth<readonly string[]>(['polls'], ATTACK_NAMES);
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
  const { parts } = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as ResultsFile;
  const expected = ATTACKS.map((name) => `pressure ${name}`);
  assert.deepEqual(Object.keys(parts), expected);
  const rows = Object.values(parts).flatMap(({ results }) => (results as StoredPressure).rows);
  assert.equal(rows.length, ATTACKS.length * Object.keys(CROWDS).length);
  for (const { idle, what } of rows) {
    for (const name of OPERATIONS) assert.ok(idle.latency[name].count > 0, `${what}: ${name}`);
  }
  const failed = rows.map(({ attack, crowd, attacked }) => [attack, crowd, attacked.errors]);
  const told = failed.filter(([, , errors]) => Object.keys(errors as object).length > 0);
  assert.deepEqual(told, []);
});
