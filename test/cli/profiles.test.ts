/** Profiles: kept for their owner alone, and which address, tenant and key a command takes from where. */

import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { connectionOf, URL_DEFAULT } from '../../cli/connection.js';
import type { Profiles } from '../../cli/profiles.js';
import { useSharedApi } from '../helpers/api.js';
import { cliWorld, inTerminal, noTerminal } from '../helpers/cli.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const tenant = api.tenant();
const cli = cliWorld(() => ({ url: api.url, tenant: tenant.name }));

const BARE = { ENGINE_URL: '', ENGINE_TENANT: '', ENGINE_API_KEY: '' };
const file = () => path.join(cli.home, 'durable-workflow-engine/profiles.json');
const add = (name: string) => ['profiles', 'add', name, '--url', api.url, '--tenant', tenant.name];

test('a profile is kept where only its owner reads it, and gives address, tenant and key', async () => {
  await cli.ok([...add('here'), '--key-file', '-'], { input: `${DEFAULT_API_KEY}\n` });
  assert.equal(statSync(file()).mode & 0o777, 0o600);
  await cli.ok(['instances', 'list'], { env: BARE });
  const listed = await cli.ok(['profiles', 'list'], { env: BARE });
  assert.match(listed, /\* here +http/);
  assert.ok(!listed.includes(DEFAULT_API_KEY));
  assert.ok(!(await cli.ok(['profiles', 'list', '--json'])).includes(DEFAULT_API_KEY));
});

test('a file that others may read is refused with what to do', async () => {
  chmodSync(file(), 0o644);
  const { code, err } = await cli.run(['instances', 'list'], { env: BARE });
  assert.equal(code, 2);
  assert.match(err, /others may read it \(mode 644\)\nRun chmod 600 '/);
  chmodSync(file(), 0o600);
});

test('profiles are chosen by name, changed and removed', async () => {
  await cli.ok(['profiles', 'add', 'other', '--url', 'http://127.0.0.1:9', '--tenant', 'x']);
  await cli.ok(['profiles', 'use', 'other']);
  assert.equal((await cli.run(['instances', 'list', '--timeout', '1s'], { env: BARE })).code, 5);
  await cli.ok(['instances', 'list', '--profile', 'here'], { env: BARE });
  await cli.ok(['instances', 'list'], { env: { ...BARE, ENGINE_PROFILE: 'here' } });
  await cli.ok(['profiles', 'remove', 'other']);
  const { code, err } = await cli.run(['instances', 'list', '--profile', 'other']);
  assert.equal(code, 3);
  assert.match(err, /Existing profiles: here\./);
  await cli.ok(['profiles', 'use', 'here']);
});

test('a key is asked for without being shown', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const { code, shown } = await inTerminal(add('typed'), {
    env: cli.env,
    cwd: cli.home,
    steps: [['Key .*: $', 'sk_secret_that_is_typed\r']],
  });
  assert.equal(code, 0, shown);
  assert.doesNotMatch(shown, /sk_secret/);
  const kept = JSON.parse(readFileSync(file(), 'utf8')) as Profiles;
  assert.equal(kept.profiles.typed?.api_key, 'sk_secret_that_is_typed');
});

const PROFILES: Profiles = {
  current: 'a',
  profiles: {
    a: { url: 'https://a.example', tenant: 'ta', api_key: 'ka' },
    b: { url: 'https://b.example/api/v1', tenant: 'tb', api_key: 'kb' },
  },
};
const from = (options: Parameters<typeof connectionOf>[0], env: Record<string, string> = {}) => {
  const { url, tenant: of, apiKey } = connectionOf(options, env, () => PROFILES);
  return [url, of, apiKey];
};

test('options come first, then a profile that is named, the environment, the current profile', () => {
  const env = { ENGINE_URL: 'http://env', ENGINE_TENANT: 'te', ENGINE_API_KEY: 'ke' };
  assert.deepEqual(from({}), ['https://a.example', 'ta', 'ka']);
  assert.deepEqual(from({}, env), ['http://env', 'te', 'ke']);
  assert.deepEqual(from({ profile: 'b' }, env), ['https://b.example/api/v1', 'tb', 'kb']);
  assert.deepEqual(from({ profile: 'b', tenant: 'to' }, env), [
    'https://b.example/api/v1',
    'to',
    'kb',
  ]);
  const none = connectionOf({}, {}, () => ({ profiles: {} }));
  assert.deepEqual([none.url, none.apiKey], [URL_DEFAULT, undefined]);
});

test('the key of a profile goes to no other address', () => {
  assert.deepEqual(from({ url: 'https://elsewhere.example' }), [
    'https://elsewhere.example',
    undefined,
    undefined,
  ]);
  assert.equal(from({ profile: 'b', url: 'https://elsewhere.example' })[2], undefined);
  assert.equal(from({ profile: 'b', url: 'https://b.example' })[2], 'kb');
});

test('a file of profiles that is none is named, and nothing of it is shown', async () => {
  writeFileSync(file(), '{"profiles": {"x": {"api_key": "sk_1"}}}', { mode: 0o600 });
  const { code, err } = await cli.run(['instances', 'list'], { env: BARE });
  assert.equal(code, 2);
  assert.match(err, /profiles\.x\.url is missing/);
  assert.ok(!err.includes('sk_1'));
});
