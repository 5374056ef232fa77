/** The growth runs, and what it copies is alive. Nothing here looks at speed. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isDeep } from '../helpers/depth.js';

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));

test('a growth runs once, stores numbers and a plot', { skip: !isDeep }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-scale-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  execFileSync(process.execPath, [MAIN, 'scale', '--quick', '--out', folder], { stdio: 'pipe' });
  const read = (suffix: string) => {
    const file = readdirSync(folder).find((name) => name.endsWith(suffix));
    assert.ok(file !== undefined, `a file that ends in ${suffix}`);
    return readFileSync(path.join(folder, file), 'utf8');
  };
  assert.match(read('-scale.svg'), /<polyline/);
  const { waiting, pending } = JSON.parse(read('.json')).parts.scale.results;
  assert.deepEqual(
    waiting.map((row: { waiting: number }) => row.waiting),
    [0, 1_000, 2_000],
  );
  for (const row of [...waiting, ...pending]) assert.ok(row.readyMs > 0 && row.residentMib > 0);
  for (const row of pending) assert.ok(row.pollP50Ms > 0 && row.p50Ratio > 0);
});
