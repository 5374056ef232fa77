/** Values of JSON with thousands of members are shown part by part, and nothing of them is left out. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { JsonView } from '../src/components/json-view.tsx';
import { LINE_CHARACTERS_MAX, lineEnds, partsOf } from '../src/lib/json-lines.ts';

const MANY = Object.fromEntries(Array.from({ length: 12_000 }, (_, at) => [`member ${at}`, at]));

test('parts are whole lines, cut only where one is very long, and make up the text', () => {
  for (const value of [
    MANY,
    'x'.repeat(100_000),
    {},
    'one\ntwo',
    [[], [1, { a: 'é'.repeat(5_000) }]],
  ]) {
    const text = JSON.stringify(value, null, 2);
    const ends = lineEnds(text);
    const parts = partsOf(text, ends, ends.length, 500);
    assert.equal(parts.join(''), text);
    assert.ok(parts.every((part) => part.length <= 500 * LINE_CHARACTERS_MAX));
    assert.equal(partsOf(text, ends, 1, 500).join(''), text.slice(0, ends[0]));
  }
});

test('a value of 12,000 members begins with 500 lines', () => {
  const shown = renderToStaticMarkup(createElement(JsonView, { value: MANY, label: 'data' }));
  // The first line is the brace.
  assert.equal(shown.match(/member \d+/g)?.length, 499);
  assert.match(shown, /Show 500 more<\/button> <span[^>]*>500 of 12,002</);
  const small = renderToStaticMarkup(createElement(JsonView, { value: { a: 1 }, label: 'data' }));
  assert.doesNotMatch(small, /more/);
});
