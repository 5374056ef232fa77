/**
 * Every sentence of `docs/promises.md`, and of the promises of `docs/security.md`, is the title of a test of the
 * fast or the full tier, or its beginning. Titles are looked for in the source of the tests, so that no promise
 * gets lost when tests are moved or renamed. A sentence that only the full tier holds ends with `‡`.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/docs.js';

const PAGE = 'docs/promises.md';
const SECURITY_PAGE = 'docs/security.md';
const OF_FULL_TIER = ' ‡';

/** A title is what a call begins with, or what a row of a table does. */
const TITLE = /(?:\w\(|\[)\s*(['"`])((?:\\.|(?!\1)[^\\\n])+)\1/g;

const titlesIn = (source: string): string[] =>
  [...source.matchAll(TITLE)].map(([, , title = '']) => title.replace(/\\(.)/g, '$1'));

/** @param heading of the only section that has promises; absent: all have */
function promisesIn(file: string, heading?: string): string[] {
  const page = readFileSync(path.join(ROOT, file), 'utf8');
  const section = heading === undefined ? page : page.split(`${heading}\n`)[1]?.split('\n## ')[0];
  const found = [...(section ?? '').matchAll(/^- (.+)$/gm)].map(([, promise = '']) => promise);
  assert.ok(found.length > 5, `only ${found.length} promises under ${heading ?? file}`);
  return found;
}

const PROMISES = [...promisesIn(PAGE), ...promisesIn(SECURITY_PAGE, '## What is promised')];

const FOLDER = path.join(ROOT, 'test');
const SOURCES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !/^(?:deep|helpers)\//.test(name))
  .map((name) => ({
    isFull: name.startsWith('system/'),
    titles: titlesIn(readFileSync(path.join(FOLDER, name), 'utf8')),
  }));
const TITLES = {
  fast: SOURCES.filter(({ isFull }) => !isFull).flatMap(({ titles }) => titles),
  full: SOURCES.filter(({ isFull }) => isFull).flatMap(({ titles }) => titles),
};

const isTitle = (titles: readonly string[], promise: string) =>
  titles.some((title) => title.startsWith(promise));
const isOfFull = (promise: string) => promise.endsWith(OF_FULL_TIER);
const bare = (promise: string) => (isOfFull(promise) ? promise.slice(0, -2) : promise);

test('every promise is the title of a test of the fast tier, unless it is marked', () => {
  assert.ok(PROMISES.length > 150, `only ${PROMISES.length} promises were found`);
  const unmarked = PROMISES.filter((promise) => !isOfFull(promise));
  const seen = unmarked.filter((promise) => !isTitle(TITLES.fast, promise));
  assert.deepEqual(seen, []);
});

test('every marked promise is the title of a test of the full tier, and of none of the fast one', () => {
  const marked = PROMISES.filter(isOfFull).map(bare);
  assert.deepEqual(
    marked.filter((promise) => !isTitle(TITLES.full, promise) || isTitle(TITLES.fast, promise)),
    [],
  );
});

test('titles are recognised, and what only mentions a sentence is not', () => {
  const source = [
    "test('it is so', run);",
    'describe(\n  "it isn\'t",\n  run);',
    "for (const row of [['it is \\'so\\'', 1]])",
    "// it is so: 'no title'",
  ].join('\n');
  assert.deepEqual(titlesIn(source), ['it is so', "it isn't", "it is 'so'"]);
});
