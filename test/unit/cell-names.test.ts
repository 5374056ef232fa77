/** What may be the name of a cell, and how the URL of a database says which one is meant. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config.js';
import { inSchema, splitSettings } from '../../src/db/database-url.js';

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
