/** A URL of a database that names several hosts, of which one is the primary. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, databaseUrl } from '../../src/config-values.js';
import { databaseRefusal } from '../../src/db/database-refusal.js';
import { hostUrlsOf, splitSettings } from '../../src/db/database-url.js';

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
      (error: Error) =>
        error instanceof ConfigError && error.message.includes(`target_session_attrs=${which}: `),
    );
  }
});

test('a host that is none is found among several, and none of them is told with the password', () => {
  assert.throws(() => databaseUrl('postgres://u:p@a:1,b:x/db', 'DATABASE_URL'), /is no URL/);
  const { message } = databaseRefusal(THREE, new Error('no host is the primary: a is a standby'));
  assert.match(
    message,
    /^the database db on a:5432, \[::1\]:5433, c only reads: DATABASE_URL must/,
  );
  assert.ok(!message.includes('p%40'));
});
