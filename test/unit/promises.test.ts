/**
 * Every sentence of `docs/promises.md`, and of the promises of `docs/security.md`, is the title of a test, or its beginning. Titles are looked
 * for in the source of the tests, so that no promise gets lost when tests are moved or renamed.
 */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PAGE = 'docs/promises.md';
const SECURITY_PAGE = 'docs/security.md';

/** Tests run from the build; their source lies in the checkout that it was made from. */
function checkout(): string {
  for (const start of [path.dirname(fileURLToPath(import.meta.url)), process.cwd()]) {
    for (let folder = start; ; folder = path.dirname(folder)) {
      if (existsSync(path.join(folder, PAGE))) return folder;
      if (folder === path.dirname(folder)) break;
    }
  }
  throw new Error(`no ${PAGE} above the test or the working directory`);
}

/** A title is what a call begins with, or what a row of a table does. */
const TITLE = /(?:\w\(|\[)\s*(['"`])((?:\\.|(?!\1)[^\\\n])+)\1/g;

function titlesIn(source: string): string[] {
  return [...source.matchAll(TITLE)].map(([, , title = '']) => title.replace(/\\(.)/g, '$1'));
}

/** @param heading of the only section that has promises; absent: all have */
function promisesIn(page: string, heading?: string): string[] {
  const section = heading === undefined ? page : page.split(`${heading}\n`)[1]?.split('\n## ')[0];
  const found = [...(section ?? '').matchAll(/^- (.+)$/gm)].map(([, promise = '']) => promise);
  assert.ok(found.length > 5, `only ${found.length} promises under ${heading ?? 'the page'}`);
  return found;
}

test('every promise is the title of a test', () => {
  const root = checkout();
  const folder = path.join(root, 'test');
  const titles = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .flatMap((name) => titlesIn(readFileSync(path.join(folder, name), 'utf8')));
  const promises = [
    ...promisesIn(readFileSync(path.join(root, PAGE), 'utf8')),
    ...promisesIn(readFileSync(path.join(root, SECURITY_PAGE), 'utf8'), '## What is promised'),
  ];
  assert.ok(promises.length > 150, `only ${promises.length} promises were found`);
  const isTitle = (promise: string) => titles.some((title) => title.startsWith(promise));
  const wrong = promises.filter((promise) => !isTitle(promise));
  assert.deepEqual(wrong, []);
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
