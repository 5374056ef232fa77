/** The lists and marks as they are rendered: what a screen reader is given. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { StateMark } from '../src/flow/block-state.tsx';
import { labelOf, runFace, ViewContext } from '../src/flow/faces.tsx';
import { FlowList } from '../src/flow/flow-list.tsx';
import { openAtFirst } from '../src/flow/layout.ts';
import { outlineOf } from '../src/flow/outline.ts';
import { DRAWN_STATES, statusesOf } from '../src/flow/run-states.ts';
import { bigDefinition, OUTLINE, RUN, step, T0 } from './flow-samples.ts';

const NO_SEARCH = { found: new Set<string>(), target: null };
const nothing = () => undefined;
const NOTHING_CHOSEN = {
  ...{ open: new Set<string>(), faceOf: nothing, selected: null, ...NO_SEARCH },
  ...{ onSelect: nothing, onToggle: nothing },
};

function listOf(open: ReadonlySet<string>, hasRun: boolean): string {
  const statuses = statusesOf(OUTLINE, RUN);
  const view = {
    open,
    faceOf: (path: string) => {
      const status = hasRun ? statuses.get(path) : undefined;
      return status === undefined ? undefined : runFace(status, T0);
    },
    selected: 'charge',
    onSelect: () => undefined,
    onToggle: () => undefined,
    ...NO_SEARCH,
  };
  const list = createElement(FlowList, { outline: OUTLINE, label: 'A run' });
  return renderToStaticMarkup(createElement(ViewContext, { value: view }, list));
}

for (const block of OUTLINE.byPath.values()) {
  test(`the list has ${block.look} ${block.path} as a button with all of it in words`, () => {
    const face = statusesOf(OUTLINE, RUN).get(block.path);
    const label = labelOf(block, face === undefined ? undefined : runFace(face, T0));
    const html = listOf(openAtFirst(OUTLINE), true);
    const escaped = label.replaceAll('>', '&gt;');
    assert.ok(html.includes(`<span class="hidden-text">${escaped}</span>`), label);
  });
}

test('the selected block is pressed, and no other', () => {
  const html = listOf(openAtFirst(OUTLINE), false);
  assert.equal(html.match(/aria-pressed="true"/g)?.length, 1);
  assert.match(html, /data-path="charge"[^>]*aria-pressed="true"/);
});

test('a closed group hides what is in it, and says that it is closed', () => {
  const html = listOf(new Set(), false);
  assert.doesNotMatch(html, /data-path="prepare\/pick"/);
  assert.match(html, /aria-expanded="false" aria-label="Open prepare"/);
  assert.match(listOf(new Set(['prepare']), false), /data-path="prepare\/pick"/);
});

for (const state of DRAWN_STATES) {
  test(`the mark of ${state} has its word and a picture`, () => {
    const html = renderToStaticMarkup(createElement(StateMark, { state }));
    assert.match(html, new RegExp(`<svg[^>]*>.*</svg>${state}</span>`));
  });
}

test('a big definition is listed with its groups closed', () => {
  const outline = outlineOf(bigDefinition(2_000));
  const list = createElement(FlowList, { outline, label: 'Big' });
  const view = { ...NOTHING_CHOSEN, open: openAtFirst(outline) };
  const html = renderToStaticMarkup(createElement(ViewContext, { value: view }, list));
  assert.equal(html.match(/<li>/g)?.length, 200);
});

test('of 12,000 blocks the first ones are listed, and those up to the selected one', () => {
  const outline = outlineOf({ blocks: Array.from({ length: 12_000 }, (_, at) => step(`b${at}`)) });
  const list = createElement(FlowList, { outline, label: 'Many' });
  const listed = (selected: string | null) => {
    const view = { ...NOTHING_CHOSEN, selected };
    return renderToStaticMarkup(createElement(ViewContext, { value: view }, list));
  };
  assert.equal(listed(null).match(/data-path/g)?.length, 500);
  assert.match(listed(null), /Show 500 more<\/button> <span[^>]*>500 of 12,000</);
  assert.equal(listed('b699').match(/data-path/g)?.length, 700);
});
