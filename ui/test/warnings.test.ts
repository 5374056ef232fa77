/** What the explanation of an instance warns of is shown with it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ComponentProps, createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Router } from 'wouter';
import { Warnings } from '../src/pages/instance/warnings.tsx';

const SUMMARY = 'The output of block items was too large to be kept whole.';

const AT = { ssrPath: '/' } as ComponentProps<typeof Router>;

const shown = (warnings?: Parameters<typeof Warnings>[0]['warnings']) => {
  const list = createElement(Warnings, { warnings, hrefOfBlock: (id) => `/i?block=${id}` });
  return renderToStaticMarkup(createElement(Router, AT, list));
};

test('what an explanation warns of is listed, and leads to the block', () => {
  const text = shown([{ kind: 'output_truncated', block_id: 'items', summary: SUMMARY }]);
  assert.ok(text.includes(SUMMARY), text);
  assert.match(text, /href="\/i\?block=items"/);
});

test('an explanation without warnings has no list of them', () => {
  assert.equal(shown(), '');
});
