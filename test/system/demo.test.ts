/** The demo as a newcomer runs it, with the crash: it fits any terminal and says what the crash did. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const DEMO = fileURLToPath(new URL('../../examples/demo.js', import.meta.url));

test('the demo survives its crash, says what that did, and fits 80 columns', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [DEMO, '--kill']);
  const lines = stdout.split('\n');
  assert.deepEqual(
    lines.filter((line) => line.length > 80),
    [],
  );
  assert.match(stdout, /^every order is right$/m);
  const told = /(\d+) steps had ended before it: (\d+) are as they were, (\d+) ran again/.exec(
    stdout,
  );
  assert.ok(told, stdout);
  const [, ended, kept, again] = told.map(Number);
  assert.ok((ended ?? 0) >= 2, stdout);
  assert.deepEqual([kept, again], [ended, 0]);
  assert.match(
    stdout,
    /^ {2}order-100\d was being charged: that try was reported to the new server$/m,
  );
});
