/** What is asked of test files: the costly ones say why in their heads, and few start a server of their own. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
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
const OWN_SERVER = /\b(?:useApi|startApi|startEngine)\(/;

/** The shares of all files' 300 s of processor that 2 and 5 s are: machines differ in speed. */
const UNIT_SHARE_MAX = 1 / 150;
const API_SHARE_MAX = 1 / 60;

test('a file of the fast tier that starts a server says why it needs its own', () => {
  const own = FILES.filter(({ name, source }) => isFast(name) && OWN_SERVER.test(source));
  assert.deepEqual(
    own.filter(({ source }) => !saysWhy(source)).map(({ name }) => name),
    [],
  );
});

test('at most 20 files of the first two tiers start a server of their own', () => {
  const isHelper = (name: string) => /^(?:deep|helpers|chaos|fuzz)\/|^ui\/(?!.*\.test)/.test(name);
  const own = SOURCES.filter(({ name, source }) => !isHelper(name) && OWN_SERVER.test(source));
  assert.ok(own.length <= 20, own.map(({ name }) => name).join('\n'));
});

test('a file that took much of the last complete run says why', (t) => {
  const table = path.join(ROOT, 'coverage/costs-fast.tsv');
  if (!existsSync(table)) return t.skip('the fast tier has not run here');
  const rows = readFileSync(table, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((row) => row.split('\t'))
    .map(([name = '', , , cpu]) => ({ name, cpu: Number(cpu) }));
  const all = rows.reduce((sum, { cpu }) => sum + cpu, 0);
  const limitOf = (name: string) => all * (/^unit\//.test(name) ? UNIT_SHARE_MAX : API_SHARE_MAX);
  const silent = FILES.filter(({ source }) => !saysWhy(source)).map(({ name }) => name);
  const costly = rows.filter(({ name, cpu }) => cpu > limitOf(name) && silent.includes(name));
  assert.deepEqual(costly, []);
});
