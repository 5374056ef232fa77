/** What is asked of test files: the costly ones say why in their heads, and few start a server of their own. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/docs.js';

const FOLDER = path.join(ROOT, 'test');
const SOURCES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, source: readFileSync(path.join(FOLDER, name), 'utf8') }));
const FILES = SOURCES.filter(({ name }) => name.endsWith('.test.ts'));

/** `Cost: 20 s, since …` in the comment at the head. */
const saysWhy = (source: string) =>
  /^ \* Cost: \d+ s, \S/m.test(source.split('\nimport ')[0] ?? '');
const isFast = (name: string) => !/^(?:system|deep)\//.test(name);

/** All the ways: the engine in helpers, alone and with others, the testing library, and the program. */
const OWN_SERVER =
  /\b(?:useApi|start(?:Api|Engine|Pair|Cluster|ChaosServer|FuzzedServer)|(?:DatabaseWorld|TwoCells)\.\w+)\(|\/client\/src\/testing\/(?!run\.)|\/server\/main\.js'/;

/** What each file took of the processor in the last complete run of the tier, and how many servers it started. */
function costs(tier: string) {
  const table = path.join(ROOT, `coverage/costs-${tier}.tsv`);
  if (!existsSync(table)) return [];
  const ranAt = statSync(table).mtimeMs;
  return readFileSync(table, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((row) => row.split('\t'))
    .map(([name = '', , , cpu, servers]) => {
      const file = statSync(path.join(FOLDER, name), { throwIfNoEntry: false });
      const isCurrent = file !== undefined && file.mtimeMs < ranAt;
      return { name, cpu: Number(cpu), servers: Number(servers), isCurrent };
    });
}

/** Where a unit file may take 2 s and another one 5 s. A slower machine gives more: seconds as such are not asserted. */
const FAST_TIER_CPU_S = 300;

/** One file differs so much between two runs, by what else the machine does meanwhile. */
const NOISE = 1.5;

test('a file of the fast tier that starts a server says why it needs its own', () => {
  const own = FILES.filter(({ name, source }) => isFast(name) && OWN_SERVER.test(source));
  assert.deepEqual(
    own.filter(({ source }) => !saysWhy(source)).map(({ name }) => name),
    [],
  );
});

test('at most 20 files of the first two tiers start a server of their own', () => {
  const isHelper = (name: string) => /^(?:deep|helpers|chaos|fuzz)\//.test(name);
  // A part of a test file lies in the folder of its name.
  const fileOf = (name: string) => name.replace(/(?:\.test\.ts|\/[^/]+)$/, '');
  const told = SOURCES.filter(({ source }) => OWN_SERVER.test(source)).map(({ name }) => name);
  const own = new Set(told.filter((name) => !isHelper(name)).map(fileOf));
  assert.ok(own.size <= 20, [...own].join('\n'));
  const rows = [...costs('fast'), ...costs('full')];
  const started = rows.filter(({ servers, isCurrent }) => servers > 0 && isCurrent);
  const untold = started.map(({ name }) => fileOf(name)).filter((name) => !own.has(name));
  assert.deepEqual(untold, [], 'started a server in the last run, in a way that is not known here');
});

test('a file that took much of the last complete run says why', (t) => {
  const rows = costs('fast');
  if (rows.length === 0) return t.skip('the fast tier has not run here');
  const all = rows.reduce((sum, { cpu }) => sum + cpu, 0);
  const limitOf = (name: string) =>
    (/^unit\//.test(name) ? 2 : 5) * NOISE * (all / FAST_TIER_CPU_S);
  const silent = FILES.filter(({ source }) => !saysWhy(source)).map(({ name }) => name);
  const costly = rows.filter(({ name, cpu, isCurrent }) => isCurrent && cpu > limitOf(name));
  assert.deepEqual(
    costly.filter(({ name }) => silent.includes(name)),
    [],
  );
});
