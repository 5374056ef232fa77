/** The rules of docs/operate/citus.md hold for every statement and migration. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LOAD_SQL } from '../../actors/runtime/load-sql.js';
import { refusalsOf } from '../../scripts/reference/distributed-rules.js';
import { sourcesIn, textsOf } from '../../scripts/reference/sources.js';
import { MIGRATIONS_DIR, readMigrations } from '../../src/db/migrate.js';
import { statementsIn } from '../../src/db/sql-script.js';
import { ALL_STATEMENTS } from '../../src/db/statements.js';

const MIGRATIONS = readMigrations(MIGRATIONS_DIR);
/** Without those of the directory, which is never distributed. */
const STATEMENTS = [
  ...['src', 'actors', 'cli'].flatMap(sourcesIn).flatMap(textsOf),
  ...ALL_STATEMENTS.map(({ name, text }) => [name, text] as const),
  ...Object.entries(LOAD_SQL),
  ...MIGRATIONS.flatMap(({ name, sql }) => statementsIn(sql).map((text) => [name, text] as const)),
].filter(([, text]) => !text.includes('cluster.'));

test('no statement of the program breaks a rule of distributed schemas', () => {
  const found = STATEMENTS.flatMap(([name, text]) =>
    refusalsOf(text).map((refusal) => `${name}: ${refusal}: ${text.trim()}`),
  );
  assert.deepEqual(found, []);
  const refused = [
    'update a set b = 1 returning now()',
    'with c as (update a set b = 1 returning (b), b::text) select 1 from c',
    'insert into a values (1) on conflict (b) do update set c = now() returning b',
    'update a set b = random()',
    'insert into a select 1 where not exists (select from b)',
    'select pg_try_advisory_lock(1, b) from a',
  ];
  for (const text of refused) assert.equal(refusalsOf(text).length, 1, text);
});

test('SQL text is split at semicolons outside of quotes and comments', () => {
  const kept = [
    ...["select ';', 'it''s;', E'\\';', e'\\\\'", 'select ";""" from "a;b"'],
    ...['do $$ begin; end; $$', 'do $a_1$ $$;$$ $b$;$b$ $a_1$', 'select a$b$c, 1 as d$b$e'],
    ...["select 'e'';' || 'E;'", 'select $1::text || $2'],
  ];
  const text = ` -- a; b\n${kept.join(';\n/* c; /* d; */ ; */ ')} ;; -- e;`;
  assert.deepEqual(statementsIn(text), kept);
  assert.deepEqual(statementsIn('a (b, -- c; d\n e)'), ['a (b,  \n e)']);
  assert.deepEqual(statementsIn('/* nothing; */ -- at all;'), []);
});
