/** The rules of docs/operate/citus.md hold for every statement and migration. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statementsIn } from '../../src/db/sql-script.js';

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
