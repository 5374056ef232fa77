/** The growth runs, and what it copies is alive: it says so itself. Nothing here looks at speed. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { byDepth } from '../helpers/depth.js';

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));

/** Polls of 50 take too long to be tried each time. */
const FLAGS = byDepth(['--growth-of', 'waiting', '--instances', '10', '--herd', '10'], []);

test('a growth runs once and stores numbers', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-scale-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const args = [MAIN, 'scale', '--quick', '--out', folder, ...FLAGS];
  execFileSync(process.execPath, args, { stdio: 'pipe' });
  const read = (suffix: string) => {
    const file = readdirSync(folder).find((name) => name.endsWith(suffix));
    assert.ok(file !== undefined, `a file that ends in ${suffix}`);
    return readFileSync(path.join(folder, file), 'utf8');
  };
  const { parts } = JSON.parse(read('.json'));
  const waiting = parts['scale waiting'].results.rows;
  const pending = parts['scale pending']?.results.rows ?? [];
  assert.deepEqual(
    waiting.map((row: { waiting: number }) => row.waiting),
    byDepth([0, 10], [0, 1_000, 2_000]),
  );
  for (const row of [...waiting, ...pending]) assert.ok(row.readyMs > 0 && row.residentMib > 0);
  for (const row of pending) assert.ok(row.pollP50Ms > 0 && row.p50Ratio > 0);
});
