/** Secrets that stand in files, so that no environment has them. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { readConfig, unknownNames, VARIABLES } from '../../src/config.js';
import { ConfigError } from '../../src/config-values.js';

const folder = mkdtempSync(path.join(tmpdir(), 'engine-secrets-'));
after(() => rmSync(folder, { recursive: true }));

function fileWith(text: string): string {
  const file = path.join(folder, String(Math.random()));
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

const read = (env: Record<string, string>) => readConfig(env, ['--insecure-auth']);

const KEY = 'ab'.repeat(32);
/** A value for each variable that may stand in a file. */
const VALUES: Readonly<Record<string, string>> = {
  DATABASE_URL: 'postgresql://user:word@host/database',
  DATABASE_MIGRATION_URL: 'postgresql://owner:word@host/database',
  ENGINE_CLUSTER_URL: 'postgresql://user:word@host/directory',
  ENGINE_API_KEY: 'sk_one',
  ENGINE_ENCRYPTION_KEY: KEY,
  ENGINE_OLD_ENCRYPTION_KEY: KEY,
  ENGINE_WEBHOOK_SECRET: 'shared',
  ENGINE_WEBHOOK_URLS: 'https://one.example/secret',
  ENGINE_HTTP_PROXY: 'http://user:word@proxy:3128',
};

const secrets = VARIABLES.filter(({ fileName }) => fileName !== undefined);

test('every variable that holds a secret can be given as a file', () => {
  for (const { name, fileName } of secrets) {
    const value = VALUES[name];
    assert.ok(value !== undefined, name);
    assert.equal(fileName, `${name}_FILE`);
    const inFile = readConfig(env(`${name}_FILE`, fileWith(value)), []);
    assert.deepEqual(inFile, readConfig(env(name, value), []), name);
    assert.ok(JSON.stringify(inFile).includes(value), name);
  }
});

function env(name: string, value: string): Record<string, string> {
  // A root key is asked for beside a database.
  const key = name.startsWith('ENGINE_API_KEY') ? {} : { ENGINE_API_KEY: 'k' };
  const isMigration = name.startsWith('DATABASE_MIGRATION_URL');
  return { ...key, ...(isMigration ? { DATABASE_URL: 'postgresql://h/d' } : {}), [name]: value };
}

test('the line end behind a secret does not belong to it', () => {
  for (const end of ['', '\n', '\r\n']) {
    const config = read({ ENGINE_WEBHOOK_SECRET_FILE: fileWith(`two words${end}`) });
    assert.equal(config.webhookSecret, 'two words');
  }
});

test('a secret that is given twice stops the start, and both variables are named', () => {
  const both = { ENGINE_WEBHOOK_SECRET: 'a', ENGINE_WEBHOOK_SECRET_FILE: fileWith('a') };
  assert.throws(() => read(both), refusal(/ENGINE_WEBHOOK_SECRET and ENGINE_WEBHOOK_SECRET_FILE/));
});

test('a file that cannot be read, or is empty, stops the start and is named', () => {
  const missing = path.join(folder, 'missing');
  for (const file of [missing, folder, fileWith('\n')]) {
    const named = refusal(new RegExp(`^ENGINE_WEBHOOK_SECRET_FILE: the file ${file} `));
    assert.throws(() => read({ ENGINE_WEBHOOK_SECRET_FILE: file }), named);
  }
});

test('what is wrong with a secret in a file is told without the secret', () => {
  const wrong = { ENGINE_ENCRYPTION_KEY_FILE: fileWith('not-hexadecimal') };
  assert.throws(
    () => read(wrong),
    (error) => error instanceof ConfigError && !error.message.includes('not-hexadecimal'),
  );
});

test('a variable that names a file is known, and one of a knob that is no secret is not', () => {
  const names = ['ENGINE_API_KEY_FILE', 'ENGINE_SHARDS_FILE'];
  const given = Object.fromEntries(names.map((name) => [name, 'x']));
  assert.deepEqual(unknownNames(given), ['ENGINE_SHARDS_FILE']);
});

function refusal(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof ConfigError && message.test(error.message);
}
