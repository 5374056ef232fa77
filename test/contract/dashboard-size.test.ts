/** The dashboard stays small: budgets of the built files, as they are sent to a browser that takes brotli. */

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/docs.js';

interface Sized {
  readonly file: string;
  readonly bytes: number;
}

interface Build {
  sizesOf(folder: string): { readonly all: readonly Sized[]; readonly firstPage: readonly Sized[] };
}

const FIRST_PAGE_KB_MAX = 160;
const ALL_KB_MAX = 450;
const NAMED_FILES = 10;

const script = new URL('../../../scripts/lib/ui.mjs', import.meta.url);
const { sizesOf } = (await import(script.href)) as Build;
const { all, firstPage } = sizesOf(path.join(ROOT, 'dist/ui'));

/** @param files the largest first, which are named if they are too much */
function expectWithin(files: readonly Sized[], kbMax: number) {
  const kb = files.reduce((sum, { bytes }) => sum + bytes, 0) / 1_024;
  const largest = files.slice(0, NAMED_FILES).map(({ file, bytes }) => `${file}: ${bytes} bytes`);
  assert.ok(kb <= kbMax, [`${kb.toFixed(1)} of ${kbMax} KB`, ...largest].join('\n'));
}

test('what a browser loads before the first page is there is 160 KB at most', () => {
  const types = new Set(firstPage.map(({ file }) => path.extname(file)));
  assert.deepEqual(types, new Set(['.js', '.css', '.html', '.svg']));
  expectWithin(firstPage, FIRST_PAGE_KB_MAX);
});

test('all files of the dashboard together are 450 KB at most', () => {
  assert.ok(all.length > firstPage.length);
  expectWithin(all, ALL_KB_MAX);
});
