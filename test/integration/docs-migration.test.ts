/** The commands of docs/migration.md, run as they stand there against two servers. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { type Pair, startPair } from '../helpers/two-engines.js';

const DOCUMENT = 'docs/migration.md';
/** Of all commands together; a busy machine needs some seconds. */
const TIMEOUT_MS = 900_000;

let pair: Pair;
let folder: string;

before(async () => {
  pair = await startPair();
  folder = mkdtempSync(path.join(tmpdir(), 'docs-migration-'));
});
after(async () => {
  await pair.stop();
  rmSync(folder, { recursive: true });
});

const TEXT = readFileSync(DOCUMENT, 'utf8');
const SCRIPT = [...TEXT.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block).join('\n');
/** What the answers must hold, in order. */
const EXPECTED = [...SCRIPT.matchAll(/# → (.+)$/gm)].map(([, words = '']) => words);

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(script: string): Promise<Outcome> {
  const { PATH = '' } = process.env;
  const [a, b] = [pair.a, pair.b].map(({ api }) => `${api.engine.url}/api/v1`);
  const env = { PATH, HOME: folder, KEY: DEFAULT_API_KEY, A: a, B: b };
  const options = { cwd: folder, env, timeout: TIMEOUT_MS };
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['--norc', '-eu', '-o', 'pipefail', '-c', script],
      options,
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : 1, stdout, stderr });
      },
    );
  });
}

test('every command of docs/migration.md works, and its answer is what it says', async () => {
  assert.ok(EXPECTED.length > 30, `${EXPECTED.length} answers`);
  const { code, stdout, stderr } = await run(SCRIPT);
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  let at = 0;
  for (const words of EXPECTED) {
    const found = stdout.indexOf(words, at);
    assert.ok(found >= 0, `no ${words} after\n${stdout.slice(0, at)}\nin\n${stdout.slice(at)}`);
    at = found + words.length;
  }
});
