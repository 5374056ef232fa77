/** Which of both programs the command is: the server, or the command line. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { cliWorld } from '../helpers/cli.js';

const cli = cliWorld(() => ({ url: 'http://127.0.0.1:9', tenant: 'none' }));
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

test('start has the flags and variables of the server in its help', async () => {
  assert.match(await cli.ok(['start', '--help']), /--unsafe-database[\s\S]*ENGINE_HTTP_ADDR/);
  assert.equal(await cli.ok(['start', '--version']), `${version}\n`);
});

test('a flag of the server alone still starts it, and says how that is written now', async () => {
  const env = { ENGINE_HTTP_ADDR: 'nonsense' };
  const { code, err } = await cli.run(['--insecure-auth'], { env });
  assert.equal(code, 1);
  assert.match(err, /say durable-workflow-engine start --insecure-auth\n.*ENGINE_HTTP_ADDR/);
});

test('the command alone shows what it can do, and ends as a mistake', async () => {
  const { code, out, err } = await cli.run([]);
  assert.equal(code, 2);
  assert.equal(out, '');
  assert.match(err, /Commands:\n {2}dev[\s\S]*start[\s\S]*doctor/);
});

test('help and version are no mistakes', async () => {
  assert.match(await cli.ok(['--help']), /Commands:/);
  assert.match(await cli.ok(['help', 'doctor']), /Usage: durable-workflow-engine doctor/);
  assert.match(await cli.ok(['instances', 'start', '--help']), /--wait/);
  assert.equal(await cli.ok(['--version']), `${version}\n`);
});
