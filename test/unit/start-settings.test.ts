/** Settings with which no start can succeed, URLs of databases, and secrets: in files, parameters and rows. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { ConfigError } from '../../src/base/config-error.js';
import type { JsonValue } from '../../src/base/json.js';
import { compilePlan } from '../../src/core/plan.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import { openSecret, storeSecret } from '../../src/core/sealing/sealing.js';
import { fillSecrets } from '../../src/core/secret-texts.js';
import { compileTemplate, renderTemplate, secretTextsOf } from '../../src/core/template.js';
import { databaseRefusal } from '../../src/db/database-refusal.js';
import { hostUrlsOf, inSchema, splitSettings } from '../../src/db/database-url.js';
import { readConfig, unknownNames, weakSettings } from '../../src/server/config.js';
import { VARIABLES } from '../../src/server/config-help.js';
import { databaseUrl } from '../../src/server/config-values.js';
import { scopeOf } from '../helpers/scopes.js';

const SECRET = 'wrong-4711';
const KEY = { ENGINE_API_KEY: 'k' };
const withUrl = (DATABASE_URL: string) => ({ DATABASE_URL, ...KEY });

const withLinks = (...links: JsonValue[]) => ({ ENGINE_UI_LINKS: JSON.stringify(links), ...KEY });

type Refusal = readonly [NodeJS.ProcessEnv, says: string, args?: readonly string[]];

/** By what is wrong: the environment, the words of the refusal, and the flags. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a wrong scheme': [withUrl(`mysql://root:${SECRET}@h/db`), 'DATABASE_URL mysql: postgresql:'],
  'no scheme': [withUrl('host=127.0.0.1 dbname=x'), 'DATABASE_URL scheme postgresql:'],
  'a URL that is none': [withUrl(`postgres://u:${SECRET}#a@h/db`), 'DATABASE_URL URL %40'],
  'a database and no key': [{ DATABASE_URL: 'postgres://a/b' }, 'ENGINE_API_KEY --insecure-auth'],
  'no address': [{ ENGINE_HTTP_ADDR: 'localhost' }, 'ENGINE_HTTP_ADDR host:port localhost'],
  'a value that cannot be read': [{ ENGINE_SHARDS: 'many' }, 'ENGINE_SHARDS integer many'],
  'a log format that there is not': [{ ENGINE_LOG_FORMAT: 'xml' }, 'ENGINE_LOG_FORMAT json xml'],
  'links that are no JSON': [{ ENGINE_UI_LINKS: 'logs' }, 'ENGINE_UI_LINKS JSON array'],
  'a link that runs a script': [
    withLinks({ label: 'Logs', url: 'https://a/' }, { label: 'Bad', url: 'javascript:alert(1)' }),
    'ENGINE_UI_LINKS entry 2: url http:// https://',
  ],
  'a link whose host a tenant would choose': [
    withLinks({ label: 'Logs', url: 'https://{tenant_id}.example/' }),
    'ENGINE_UI_LINKS entry 1: host placeholders',
  ],
  'a link with an unknown placeholder': [
    withLinks({ label: 'Logs', url: 'https://a/?q={id}' }),
    'entry 1: {id} instance_id trace_id',
  ],
  'a link of an instance to a step': [
    withLinks({ label: 'Logs', url: 'https://a/{block_id}', on: 'instance' }),
    'entry 1: {block_id} "on": "step"',
  ],
  'a link without a label': [withLinks({ url: 'https://a/' }), 'entry 1: label'],
  'a link with a misspelt member': [
    withLinks({ label: 'Logs', url: 'https://a/', at: 'step' }),
    'entry 1: unknown at',
  ],
  'no keys where others can reach it': [
    { ENGINE_HTTP_ADDR: '0.0.0.0:8080' },
    'ENGINE_HTTP_ADDR 127.0.0.1 --insecure-auth-anywhere',
    ['--insecure-auth'],
  ],
  'an unknown flag': [{}, '--insecure --help', ['--insecure']],
  'migrations that are asked for and forbidden': [
    { ENGINE_RUN_MIGRATIONS: 'false', ...KEY },
    'exclude one another',
    ['--migrate-only'],
  ],
};

for (const [what, [env, says, args = []]] of Object.entries(REFUSALS)) {
  test(`${what} is refused by a line that says what to do, and shows no password`, () => {
    assert.throws(
      () => readConfig(env, args),
      (error: Error) => {
        assert.ok(error instanceof ConfigError);
        for (const word of says.split(' ')) assert.ok(error.message.includes(word), error.message);
        assert.doesNotMatch(error.message, new RegExp(`${SECRET}|\n`));
        return true;
      },
    );
  });
}

test('links to other systems are on instances, unless they say on steps', () => {
  const url = 'https://logs.example/?q={instance_id}&trace={trace_id}';
  const step = { label: 'Step', url: `${url}&b={block_id}`, on: 'step' };
  const { uiLinks } = readConfig(withLinks({ label: 'Logs', url }, step), []);
  assert.deepEqual(uiLinks, [{ label: 'Logs', url, on: 'instance' }, step]);
  assert.deepEqual(readConfig(KEY, []).uiLinks, []);
});

const folder = mkdtempSync(path.join(tmpdir(), 'engine-secrets-'));
after(() => rmSync(folder, { recursive: true }));

function fileWith(text: string): string {
  const file = path.join(folder, String(Math.random()));
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

const read = (env: Record<string, string>) => readConfig(env, ['--insecure-auth']);

const refusal = (message: RegExp) => (error: unknown) =>
  error instanceof ConfigError && message.test(error.message);

const HEX_KEY = 'ab'.repeat(32);
/** A value for each variable that may stand in a file. */
const VALUES: Readonly<Record<string, string>> = {
  DATABASE_URL: 'postgresql://user:word@host/database',
  DATABASE_MIGRATION_URL: 'postgresql://owner:word@host/database',
  ENGINE_CLUSTER_URL: 'postgresql://user:word@host/directory',
  ENGINE_API_KEY: 'sk_one',
  ENGINE_ENCRYPTION_KEY: HEX_KEY,
  ENGINE_OLD_ENCRYPTION_KEY: HEX_KEY,
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

const GOOD = createHash('sha256').update('a good key').digest('hex');

test('secrets that could be guessed are told with what is wrong with them, and are taken', () => {
  const few = 'has fewer than 16 characters';
  const told = {
    ENGINE_API_KEY: ['k', few, 'x'.repeat(40), 'repeats the same few characters', GOOD, undefined],
    ENGINE_WEBHOOK_SECRET: ['s', few, '0123456789012345', undefined],
    ENGINE_ENCRYPTION_KEY: ['0'.repeat(64), 'repeats the same few bytes', GOOD, undefined],
    ENGINE_OLD_ENCRYPTION_KEY: ['aB'.repeat(32), 'repeats the same few bytes'],
  } as const;
  for (const [setting, cases] of Object.entries(told)) {
    for (let at = 0; at < cases.length; at += 2) {
      const config = readConfig({ ENGINE_API_KEY: GOOD, [setting]: cases[at] as string }, []);
      const why = cases[at + 1];
      assert.deepEqual(weakSettings(config), why === undefined ? [] : [{ setting, why }]);
    }
  }
});

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

test('a file that cannot be read, is empty or wrong stops the start and is named, without the secret', () => {
  const missing = path.join(folder, 'missing');
  for (const file of [missing, folder, fileWith('\n')]) {
    const named = refusal(new RegExp(`^ENGINE_WEBHOOK_SECRET_FILE: the file ${file} `));
    assert.throws(() => read({ ENGINE_WEBHOOK_SECRET_FILE: file }), named);
  }
  const wrong = { ENGINE_ENCRYPTION_KEY_FILE: fileWith('not-hexadecimal') };
  assert.throws(() => read(wrong), refusal(/^(?!.*not-hexadecimal)/s));
});

test('a variable that names a file is known, and one of a knob that is no secret is not', () => {
  const given = { ENGINE_API_KEY_FILE: 'x', ENGINE_SHARDS_FILE: 'x' };
  assert.deepEqual(unknownNames(given), ['ENGINE_SHARDS_FILE']);
});

const THREE = 'postgres://u:p%40@a:5432,[::1]:5433,c/db?sslmode=require';

test('each of several hosts has a URL of its own', () => {
  assert.deepEqual(hostUrlsOf(THREE), [
    'postgres://u:p%40@a:5432/db?sslmode=require',
    'postgres://u:p%40@[::1]:5433/db?sslmode=require',
    'postgres://u:p%40@c/db?sslmode=require',
  ]);
  for (const one of ['postgres://u:a,b@h/db', 'postgresql:///db?host=%2Frun', 'postgres://h']) {
    assert.deepEqual(hostUrlsOf(one), [one]);
  }
});

test('which server is meant is told to nobody, since it is always the primary', () => {
  for (const which of ['read-write', 'primary']) {
    const url = `${THREE}&target_session_attrs=${which}`;
    assert.equal(databaseUrl(url, 'DATABASE_URL'), url);
    assert.deepEqual(splitSettings(url), { url: THREE, settings: '' });
  }
  for (const which of ['any', 'standby', 'prefer-standby', 'read-only']) {
    assert.throws(
      () => databaseUrl(`${THREE}&target_session_attrs=${which}`, 'DATABASE_URL'),
      refusal(new RegExp(`target_session_attrs=${which}: `)),
    );
  }
});

test('a host that is none is found among several, and none of them is told with the password', () => {
  assert.throws(() => databaseUrl('postgres://u:p@a:1,b:x/db', 'DATABASE_URL'), /is no URL/);
  const { message } = databaseRefusal(THREE, new Error('no host is the primary: a is a standby'));
  const seen = message;
  assert.match(seen, /^the database db on a:5432, \[::1\]:5433, c only reads: DATABASE_URL must/);
  assert.ok(!message.includes('p%40'));
});

const namedIn = (value: string) =>
  readConfig({ ENGINE_DB_SCHEMA: value }, ['--insecure-auth']).dbSchema;

test('a cell has a plain name of Postgres that needs no quotes', () => {
  for (const name of ['public', 'east', '_1', 'select', 'a'.repeat(63)]) {
    assert.equal(namedIn(name), name);
  }
  assert.equal(namedIn(' '), undefined);
  const wrong = ['East', '1st', 'a-b', 'a b', 'a"b', 'a,b', 'pg_x', 'information_schema'];
  for (const name of [...wrong, 'a'.repeat(64), 'é']) {
    assert.throws(() => namedIn(name), /ENGINE_DB_SCHEMA must be 1 to 63 of a-z/, name);
  }
});

test('the schema is added to what the URL asks of its sessions, and comes last', () => {
  const given = 'postgresql://u:p%40@/db?host=%2Frun%2Fpg&options=-c%20search_path%3Dx';
  const { url, settings } = splitSettings(inSchema(given, 'east'));
  assert.equal(settings, '-c search_path=x -c search_path=east');
  assert.equal(url, 'postgresql://u:p%40@/db?host=%2Frun%2Fpg');
  const plain = 'postgresql://u:p@h:5432/db';
  assert.deepEqual(splitSettings(plain), { url: plain, settings: '' });
  const split = splitSettings(inSchema(plain, 'east'));
  assert.deepEqual(split, { url: plain, settings: '-c search_path=east' });
});

const SECRET_VALUES: Readonly<Record<string, string>> = {
  stripe: 'sk_live_1',
  'db.main': 'of the dotted id',
  db: '{"main": "hidden by the longer id", "user": "ada", "port": 5432}',
  login: 'ada:lovelace',
};
const SCOPE = scopeOf({ name: 'Ada', forged: '{{secrets.stripe}}', n: 3 });

function rendered(params: JsonValue) {
  const template = compileTemplate(params);
  const shown = renderTemplate(template, SCOPE);
  assert.ok(shown.ok, shown.ok ? '' : shown.message);
  return { template, shown: shown.value, texts: secretTextsOf(template, SCOPE) };
}

function called(params: JsonValue): JsonValue {
  const { shown, texts } = rendered(params);
  const filled = fillSecrets(shown, texts, (id) => SECRET_VALUES[id]);
  assert.ok(filled.ok, filled.ok ? '' : filled.message);
  return filled.value.params;
}

describe('a secret in parameters', () => {
  const cases: readonly (readonly [written: JsonValue, shown: JsonValue, called: JsonValue])[] = [
    ['{{ secrets.stripe }}', '{{secrets.stripe}}', 'sk_live_1'],
    ['Bearer {{secrets.stripe}}!', 'Bearer {{secrets.stripe}}!', 'Bearer sk_live_1!'],
    [
      { a: ['x', '{{ secrets.login | base64 }} for {{ data.name }}'], n: '{{ data.n }}' },
      { a: ['x', '{{secrets.login | base64}} for Ada'], n: 3 },
      { a: ['x', 'YWRhOmxvdmVsYWNl for Ada'], n: 3 },
    ],
    ['{{ secrets.db.main }}', '{{secrets.db.main}}', 'of the dotted id'],
    ['{{ secrets.db.user }}', '{{secrets.db.user}}', 'ada'],
    ['{{ secrets.db.port }}', '{{secrets.db.port}}', '5432'],
    ['{{ secrets.db }}', '{{secrets.db}}', SECRET_VALUES.db!],
    ['{{ data.forged }}', '{{secrets.stripe}}', '{{secrets.stripe}}'],
    [
      '{{ data.forged }} {{ secrets.stripe }}',
      '{{secrets.stripe}} {{secrets.stripe}}',
      '{{secrets.stripe}} sk_live_1',
    ],
  ];
  for (const [written, shown, filled] of cases) {
    test(`${JSON.stringify(written)} is shown by its name, and called with its value`, () => {
      assert.deepEqual(rendered(written).shown, shown);
      assert.deepEqual(called(written), filled);
    });
  }

  for (const [written, message] of [
    ['{{ secrets.gone }}', 'secret gone does not exist, is disabled or has expired'],
    ['{{ secrets.db.gone }}', 'secret db.gone does not exist, is disabled or has expired'],
    ['{{ secrets.stripe | base64_decode }}', 'secret stripe: a filter cannot work with it'],
    ['{{ secrets }}', 'a secret is named as secrets.name'],
    ['{{ secrets.a | data.b }}', 'a secret has no fallback, it can only have filters'],
    ["{{ secrets.a | 'none' }}", 'a secret has no fallback, it can only have filters'],
    ['{{ data.a | secrets.b }}', 'a secret cannot be a fallback'],
    ['{{ json(secrets.a) }}', 'json does not take a secret'],
    ['{{ data.a | len(secrets.b) }}', 'len does not take a secret'],
  ] as const) {
    test(`${written} fails without a word of any value`, () => {
      const template = compileTemplate(written);
      const shown = renderTemplate(template, SCOPE);
      const texts = secretTextsOf(template, SCOPE);
      const result = shown.ok ? fillSecrets(shown.value, texts, (id) => SECRET_VALUES[id]) : shown;
      assert.deepEqual(result, { ok: false, message });
    });
  }
});

test('a definition names secrets for who is called, and none for what only the engine sees', () => {
  const params = { url: 'https://a.example/{{ secrets.stripe }}' };
  const compiled = (handler: string) =>
    compilePlan({ id: 's', blocks: [{ type: 'step', id: 'a', handler, params }] });
  for (const handler of ['http_request', 'charge-card']) assert.ok(compiled(handler).ok);
  for (const handler of ['transform', 'log', 'noop']) {
    const result = compiled(handler);
    assert.ok(!result.ok && /names a secret/.test(result.message), handler);
  }
});

const PLACE = { id: 'row', tenant_id: 'tenant' };
const NONCE = Buffer.alloc(12, 7);
const OLD = Buffer.alloc(32, 1);
const NEW = Buffer.alloc(32, 2);

test('a secret is sealed where the server has a key, and opened by that or by its successor alone', () => {
  const keyring = createKeyring(OLD);
  const stored = storeSecret(PLACE, 'sësame', keyring, NONCE);
  assert.ok('sealed' in stored && !JSON.stringify(stored).includes('same'));
  assert.equal(openSecret(PLACE, stored, keyring), 'sësame');
  assert.equal(openSecret(PLACE, stored, createKeyring(NEW, OLD)), 'sësame');
  assert.equal(openSecret(PLACE, stored, createKeyring(NEW)), undefined);
  assert.equal(openSecret(PLACE, stored, undefined), undefined);
  // Nor for another row or tenant.
  assert.equal(openSecret({ ...PLACE, id: 'other' }, stored, keyring), undefined);
  assert.equal(openSecret({ ...PLACE, tenant_id: 'other' }, stored, keyring), undefined);
});

test('without a key a secret is stored as it is, and found by a server with one', () => {
  const stored = storeSecret(PLACE, 'sesame', undefined, NONCE);
  assert.deepEqual(stored, { plain: 'sesame' });
  assert.equal(openSecret(PLACE, stored, createKeyring(OLD)), 'sesame');
});
