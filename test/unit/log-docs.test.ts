/** docs/logs.md names every line that the product writes, with its level, and no other. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CALL = /\blog\??\.(debug|info|warn|error|fatal)\(/gi;
/** The message is the last argument; what it inserts is written as … */
const MESSAGE = /(?:'([^'\n]*)'|`([^`]*)`),?\s*$/;
const ROW = /^\| ((?:debug|info|warn|error|fatal)(?:, \w+)*) \| (.+?) \|/gm;

/** `level message` of each call whose message is spelled out. */
function writtenIn(text: string): string[] {
  return [...text.matchAll(CALL)].flatMap((match) => {
    const message = MESSAGE.exec(argumentsAt(text, match.index + match[0].length));
    const words = message?.[1] ?? message?.[2]?.replace(/\$\{.*/s, '…');
    return words === undefined ? [] : [`${match[1]} ${words}`];
  });
}

/** Up to the parenthesis that closes the call. */
function argumentsAt(text: string, start: number): string {
  let depth = 1;
  let at = start;
  for (; depth > 0 && at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    else if (text[at] === ')') depth -= 1;
  }
  return text.slice(start, at - 1);
}

function filesIn(folder: string): string[] {
  const names = readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => path.join(ROOT, folder, name));
}

function documented(text: string): string[] {
  return [...text.matchAll(ROW)].flatMap(([, levels = '', message = '']) =>
    levels.split(', ').map((level) => `${level} ${message}`),
  );
}

test('the documentation has each line of the log, and the log each line of the documentation', () => {
  const files = [...filesIn('src'), ...filesIn('actors')];
  const written = new Set(files.flatMap((file) => writtenIn(readFileSync(file, 'utf8'))));
  const told = new Set(documented(readFileSync(path.join(ROOT, 'docs/logs.md'), 'utf8')));
  assert.ok(written.size > 50);
  assert.deepEqual(
    [...written].filter((line) => !told.has(line)),
    [],
    'not documented',
  );
  assert.deepEqual(
    [...told].filter((line) => !written.has(line)),
    [],
    'not written',
  );
});

test('calls are found in their forms', () => {
  const text = `
    log.info('a b');
    this.#deps.log.warn({ x: f(y) }, 'c');
    options.log.error(
      { err },
      'd; e',
    );
    log.debug({ a }, \`f \${g} h\`);
    log.warn(facts, message);`;
  assert.deepEqual(writtenIn(text), ['info a b', 'warn c', 'error d; e', 'debug f …']);
});
