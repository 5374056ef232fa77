/** docs/performance.md says what is stored: its tables, its pictures, and nothing besides. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { drawnIn, pageFiles } from '../../bench/page/write.js';
import { ROOT } from '../helpers/docs.js';

const DOCS = path.join(ROOT, 'docs');
const files = pageFiles(path.join(ROOT, 'bench/results'), DOCS);

/** A larger picture makes a clone slow, and nobody can read it. */
const PICTURE_BYTES_MAX = 150 * 1_024;

test('docs/performance.md and its pictures are what is stored: npm run bench -- report', () => {
  for (const [name, text] of Object.entries(files)) {
    // Not `equal`, which would print all of it.
    assert.ok(readFileSync(path.join(DOCS, name), 'utf8') === text, `${name} is old`);
  }
  const drawn = drawnIn(DOCS).filter((name) => !(name in files));
  assert.deepEqual(drawn, [], 'pictures of what is not stored any more');
});

test('no picture of docs/performance.md is larger than a repository should have', () => {
  for (const [name, text] of Object.entries(files)) {
    if (name.endsWith('.svg')) assert.ok(text.length <= PICTURE_BYTES_MAX, name);
  }
});
