/** The pages with generated regions: current, and complete with regard to the tables of the code. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { KIND_NAMES, membersOf } from '../../schema/blocks.js';
import { BUILTIN_HANDLERS, HANDLER_PARAMS } from '../../schema/handlers.js';
import { SHARED_MEMBERS } from '../../scripts/reference/blocks.js';
import { evaluated } from '../../scripts/reference/evaluated.js';
import { prettyJson } from '../../scripts/reference/markdown.js';
import { referencePages } from '../../scripts/reference/pages.js';
import { pythonFiles } from '../../scripts/reference/python.js';
import { fillRegions } from '../../scripts/reference/regions.js';
import { rowsFor, said } from '../../scripts/reference/rows.js';
import { ERROR_STATUS } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { FILTER_NAMES } from '../../src/core/expression/filters.js';
import { FUNCTION_NAMES } from '../../src/core/expression/functions.js';
import { ROOT_NAMES } from '../../src/core/expression/scope.js';
import { VARIABLES } from '../../src/server/config-help.js';

const PAGES = referencePages();
const read = (file: string) => readFileSync(file, 'utf8');

describe('pages', () => {
  for (const [page, regions] of Object.entries(PAGES)) {
    test(`${page} is what the code says: npm run generate writes it`, () => {
      // Not `equal`, which would print all of it.
      assert.ok(fillRegions(read(page), regions) === read(page), `${page} is old`);
    });
  }

  test('every function, filter, root, handler, kind and code has a row that names it', () => {
    const rows = (region: string) => Object.values(PAGES).flatMap((one) => one[region] ?? []);
    const named = (region: string, names: readonly string[], form = '`NAME\\b') => {
      const [text = ''] = rows(region);
      for (const name of names) {
        assert.match(text, new RegExp(`^\\| ${form.replace('NAME', name)}`, 'm'), name);
      }
    };
    named('functions', FUNCTION_NAMES, '`NAME\\(');
    named('filters', FILTER_NAMES);
    named('roots', ROOT_NAMES);
    named('errors', Object.keys(ERROR_STATUS));
    named(
      'variables',
      VARIABLES.map(({ name }) => name),
    );
    named('handlers', BUILTIN_HANDLERS, '\\[`NAME`\\]');
    named('every-kind', SHARED_MEMBERS);
    const shared: readonly string[] = SHARED_MEMBERS;
    for (const kind of KIND_NAMES) {
      const own = Object.keys(membersOf(kind)).filter((name) => !shared.includes(name));
      named(`${kind}-members`, own.slice(0, 3));
    }
    for (const name of BUILTIN_HANDLERS) {
      named(`${name}-parameters`, Object.keys(HANDLER_PARAMS[name].properties));
    }
  });
});

describe('the Python client', () => {
  for (const [file, text] of Object.entries(pythonFiles())) {
    test(`${file} is what the table of operations says: npm run generate writes it`, () => {
      assert.ok(read(file) === text, `${file} is old`);
    });
  }

  test('has the version of the server', () => {
    const { version } = JSON.parse(read('package.json'));
    const message = read('clients/python/pyproject.toml');
    assert.match(message, new RegExp(`^version = "${version}"$`, 'm'));
  });
});

describe('what is missing is an error that names it', () => {
  test('a name without a text, and a text without a name', () => {
    assert.deepEqual(rowsFor('filter', ['b', 'a'], { a: 1, b: 2 }), [
      ['b', 2],
      ['a', 1],
    ]);
    assert.throws(() => rowsFor('filter', ['a', 'b'], { a: 1 }), /no text for the filter b/);
    assert.throws(() => rowsFor('filter', ['a'], { a: 1, c: 2 }), /there is no filter c/);
    assert.throws(() => rowsFor('filter', ['constructor'], {}), /no text for the filter/);
    assert.throws(() => said(' ', 'the variable X'), /no text for the variable X/);
  });

  test('a region that nothing is generated for, and a text without a region', () => {
    const page = 'a\n<!-- generated: x -->\nold\n<!-- /generated -->\nb\n';
    const filled = fillRegions(page, { x: 'new' });
    assert.equal(filled, 'a\n<!-- generated: x -->\n\nnew\n\n<!-- /generated -->\nb\n');
    assert.equal(fillRegions(filled, { x: 'new' }), filled);
    assert.throws(() => fillRegions(page, {}), /nothing is generated for the region x/);
    assert.throws(() => fillRegions(page, { x: '', y: '' }), /there is no region for y/);
  });
});

describe('examples', () => {
  test('a value is what the evaluator gives, and a failure says why', () => {
    assert.deepEqual(evaluated({ text: '{{ data.a | upper }}', data: { a: 'b' } }), {
      ok: true,
      value: 'B',
    });
    assert.deepEqual(evaluated({ text: 'a + 1', data: { a: 2 } }), { ok: true, value: 3 });
    assert.equal(evaluated({ text: '{{ nothing }}' }).ok, false);
    assert.equal(evaluated({ text: 'a +' }).ok, false);
  });

  test('JSON of examples is JSON, however it is broken into lines', () => {
    const value: JsonValue = { a: Array.from({ length: 40 }, (_, i) => ({ i })), b: {}, c: [] };
    assert.deepEqual(JSON.parse(prettyJson(value)), value);
  });
});
