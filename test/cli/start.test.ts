/**
 * Which of both programs the command is, the server or the command line, and what it proposes to
 * shells.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { COMMANDS, GLOBAL_OPTIONS, GROUPS } from '../../cli/commands.js';
import { proposals } from '../../cli/completion.js';
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
  assert.match(err, /use durable-workflow-engine start --insecure-auth\n.*ENGINE_HTTP_ADDR/);
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

const proposed = (...words: string[]) =>
  proposals({ commands: COMMANDS, globals: GLOBAL_OPTIONS, groups: GROUPS }, words, () => [
    'home',
  ]).map((line) => line.split('\t')[0]);

test('what comes next is proposed: commands, options, words, profiles, files', () => {
  assert.ok(proposed('').includes('instances'));
  assert.deepEqual(proposed('inst'), ['instances']);
  assert.deepEqual(proposed('instances', 'ca'), ['cancel']);
  assert.deepEqual(proposed('instances', 'list', '--sta'), ['--state']);
  assert.deepEqual(proposed('instances', 'list', '--state', 'fail'), ['failed']);
  assert.deepEqual(proposed('instances', 'list', '--state', 'failed,pa'), ['failed,paused']);
  assert.deepEqual(proposed('--profile', ''), ['home']);
  assert.deepEqual(proposed('profiles', 'use', 'h'), ['home']);
  assert.deepEqual(proposed('completion', 'f'), ['fish']);
  assert.deepEqual(proposed('sequences', 'apply', 'x', ''), [':files']);
  assert.deepEqual(proposed('instances', 'get', ''), []);
});
