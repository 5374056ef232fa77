/**
 * Rows of the specification's tables that must have a test whose title quotes them, such as
 * `spec/02 row 5: "try_catch inside a race competes normally"`. They are looked for in the source of
 * the tests, so that none of them can get lost when tests are moved or renamed.
 */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** By document: single rows, and ranges with both ends in them. */
const DEMANDED: Readonly<Record<string, readonly (number | string | [number, number])[]>> = {
  '01': [
    [1, 10],
    [13, 39],
  ],
  '02': [[1, 14], [18, 22], [24, 26], 32, 35, 36],
  '03': [[1, 17], '17a', 19, 20, 23, 24],
  '04': [[1, 31]],
  '05': [[1, 30]],
  '06': [
    [3, 5],
    10,
    [12, 25],
    31,
    34,
    35,
    [43, 47],
    49,
    54,
    55,
    [57, 64],
    65,
    66,
    68,
    [70, 72],
    74,
  ],
};

const SELF = 'test/unit/spec-rows.test.ts';

/** Tests run from the build; their source lies in the checkout that it was made from. */
function checkout(): string {
  for (const start of [path.dirname(fileURLToPath(import.meta.url)), process.cwd()]) {
    for (let folder = start; ; folder = path.dirname(folder)) {
      if (existsSync(path.join(folder, SELF))) return folder;
      if (folder === path.dirname(folder)) break;
    }
  }
  throw new Error(`no ${SELF} above the test or the working directory`);
}

/** A title is what a call begins with; within one sort of quotes the other may be escaped. */
const QUOTED = /\w\(\s*['"`]spec\/(\d\d) row (\w+): \\?"[^"\\]/g;

/** The rows that titles in this source quote, as `document/row`. */
function quotedIn(source: string): string[] {
  return [...source.matchAll(QUOTED)].map(([, document, row]) => `${document}/${row}`);
}

function demandedOf(document: string): string[] {
  return (DEMANDED[document] ?? []).flatMap((entry) => {
    if (!Array.isArray(entry)) return [String(entry)];
    const [first, last] = entry;
    return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
  });
}

const root = checkout();
const quoted = new Set(
  readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.posix.join('test', name.split(path.sep).join('/')))
    .filter((name) => name.endsWith('.ts') && name !== SELF)
    .flatMap((name) => quotedIn(readFileSync(path.join(root, name), 'utf8'))),
);

for (const document of Object.keys(DEMANDED)) {
  test(`every demanded row of spec/${document} is quoted by the title of a test`, () => {
    const missing = demandedOf(document).filter((row) => !quoted.has(`${document}/${row}`));
    assert.deepEqual(missing, []);
  });
}

test('titles are recognised, and what only mentions a row is not', () => {
  const found = [
    'test(\'spec/02 row 5: "try"\', run);',
    'describe(\n  "spec/03 row 17a: \\"keys\\"",',
    'test(`spec/06 row 14: "siblings"`, run);',
  ];
  assert.deepEqual(found.flatMap(quotedIn), ['02/5', '03/17a', '06/14']);
  const others = [
    '// spec/02 row 5: "try"',
    "test('as spec/02 row 5: says'",
    "test('spec/02 row 5')",
  ];
  assert.deepEqual(others.flatMap(quotedIn), []);
});
