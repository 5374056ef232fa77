/**
 * Statements name tables without their schema, since the session says which one is meant: a cell stays within
 * its own (docs/operate/cells.md). `cells.test.ts` has Postgres itself understand those that are fixed; this
 * one reads the text of all.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const ROOMS = ['src/db', 'actors', 'docs/statements.sql'];

/** What follows these is a table, but in `extract(… from column)` and `is distinct from column`. */
const NAMED_WITH_SCHEMA =
  /(?<!distinct |extract\(\w+ )\b(?:from|join|into|update|table|references|copy|truncate|only)\s+\(?"?[a-z_]\w*"?\."?[a-z_]\w*/g;

function namesWithSchema(text: string): string[] {
  return text.match(NAMED_WITH_SCHEMA) ?? [];
}

function textsIn(room: string): string[] {
  if (!isFolder(room)) return [room];
  const files = readdirSync(room, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => /\.(ts|sql)$/.test(file)).map((file) => path.join(room, file));
}

const isFolder = (room: string) => !path.extname(room);

test('no statement and no migration names the schema of a table', () => {
  assert.deepEqual(namesWithSchema('select 1 from east.instances i join timers t'), [
    'from east.instances',
  ]);
  const files = ROOMS.flatMap(textsIn);
  assert.ok(files.length > 200);
  const found = files.flatMap((file) =>
    namesWithSchema(readFileSync(file, 'utf8')).map((name) => `${file}: ${name}`),
  );
  assert.deepEqual(found, []);
});

test('no migration makes what belongs to a whole database, or runs as somebody else', () => {
  const made = textsIn('src/db/migrations').flatMap((file) =>
    (
      readFileSync(file, 'utf8').match(
        /\bcreate (or replace )?(extension|function|procedure|type|domain|trigger|schema|role|event trigger)\b/g,
      ) ?? []
    ).map((what) => `${file}: ${what}`),
  );
  assert.deepEqual(made, []);
});
