/** The processes that `npm test` runs test files in: what they report, and when they are ended. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

interface Unit {
  readonly name: string;
  readonly file: string;
}

type Line = readonly [kind: string, titles: readonly string[], text?: string | undefined];

interface Pool {
  runUnits(units: readonly Unit[], options: object): Promise<void>;
}

const POOL = new URL('../../../scripts/lib/test-pool.mjs', import.meta.url).href;

/** So long that a busy process has had its part of a second of work, however many others want the processors. */
const LIMITS = { idleMs: 15_000, idleCpuS: 0.4, busyCpuS: 1.2, clockMs: 60_000 };

const FILES: Record<string, string> = {
  fine: `test('passes', () => {}); test('waits', { skip: 'not here' }, () => {});
    describe('a suite', () => { test('is inside', (t) => t.diagnostic('seed 7')); });`,
  wrong: `describe('a suite', () => { test('fails', () => { throw new Error('why'); }); });`,
  dead: `test('ends its process', () => process.kill(process.pid, 'SIGKILL'));`,
  idle: `test('waits for nothing', () => new Promise(() => { setInterval(() => {}, 1_000); }));`,
  busy: `test('never ends', () => { for (;;); });`,
  empty: '',
};

test('each file is reported as it ended, and one that gets nowhere is ended', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'test-pool-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const units = Object.entries(FILES).map(([name, text]) => {
    const file = path.join(folder, `${name}.test.mjs`);
    writeFileSync(file, `import { describe, test } from 'node:test';\n${text}`);
    return { name, file };
  });
  const lines: Record<string, Line[]> = {};
  const problems: Record<string, string | undefined> = {};
  const { runUnits } = (await import(POOL)) as Pool;
  await runUnits(units, {
    atOnce: units.length,
    folder,
    root: folder,
    signal: new AbortController().signal,
    limits: LIMITS,
    on: {
      begin: ({ name }: Unit) => {
        lines[name] = [];
      },
      line: ({ name }: Unit, [kind, titles, text]: Line) =>
        lines[name]?.push(kind === 'note' ? [kind, titles, text] : [kind, titles]),
      end: ({ name }: Unit, { problem }: { problem?: string }) => {
        problems[name] = problem?.replace(/\d+ s/, 'some s');
      },
    },
  });
  assert.deepEqual(problems, {
    fine: undefined,
    wrong: undefined,
    dead: 'its process ended with SIGKILL',
    idle: 'it hangs: no test has ended for some s',
    busy: 'no test has ended in some s of work',
    empty: undefined,
  });
  assert.deepEqual(lines.fine, [
    ['pass', ['passes']],
    ['skip', ['waits']],
    ['pass', ['a suite', 'is inside']],
    ['note', ['a suite', 'is inside'], 'seed 7'],
    ['suite', ['a suite']],
  ]);
  assert.deepEqual(lines.wrong, [['fail', ['a suite', 'fails']]]);
  assert.deepEqual([lines.dead, lines.idle, lines.busy, lines.empty], [[], [], [], []]);
});
