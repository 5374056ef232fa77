/** What differs between two definitions, block by block. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from 'durable-workflow-engine-client';
import { type Change, definitionChanges } from '../src/flow/definition-diff.ts';
import { changeFace } from '../src/flow/diff-graph.tsx';
import type { Definition } from '../src/flow/outline.ts';
import { bigDefinition, EVERY_KIND, LATER, step } from './flow-samples.ts';

const told = ({ changes }: { changes: readonly Change[] }) =>
  changes.map(({ kind, path, from, members }) =>
    [
      `${kind} ${path}`,
      ...(kind === 'moved' ? [`from ${from}`] : []),
      ...members.map(({ member, before = '–', after = '–' }) => `${member} ${before} → ${after}`),
    ].join(', '),
  );

const between = (before: readonly Block[], after: readonly Block[]) =>
  told(definitionChanges({ blocks: before }, { blocks: after }));

test('what was added, removed, changed and moved is told with its paths, in order', () => {
  assert.deepEqual(told(definitionChanges(EVERY_KIND, LATER)), [
    'changed charge, handler "charge_card" → "charge_card_v2", retry.max_attempts 3 → 5',
    'added log_charge',
    'removed cool_down',
    'added guarded/check_stock',
    'removed guarded/release',
    'moved cleanup/invoice, from invoice',
  ]);
});

test('removed blocks stay in the drawing where they were', () => {
  const { merged } = definitionChanges(EVERY_KIND, LATER);
  const ids = merged.blocks.map(({ id }) => id);
  assert.deepEqual(ids.slice(0, 5), [
    'charge',
    'log_charge',
    'ask_provider',
    'approve',
    'cool_down',
  ]);
  const [, caught] = merged.byPath.get('guarded')!.slots;
  assert.deepEqual(
    caught?.blocks.map(({ path }) => path),
    ['guarded/release'],
  );
});

test('the same definition has no changes, whatever the order of its members', () => {
  const turned = JSON.parse(JSON.stringify(EVERY_KIND), (_key, value) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).reverse())
      : value,
  ) as Definition;
  assert.deepEqual(told(definitionChanges(EVERY_KIND, turned)), []);
  assert.deepEqual(between([step('a', 'x', { when: null })], [step('a', 'x')]), []);
});

test('a block that stands elsewhere in its list has moved, those around it have not', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => step(id, 'x'));
  assert.deepEqual(between([a!, b!, c!, d!], [d!, a!, b!, c!]), ['moved d, from d']);
});

test('a route before others moves none of their blocks', () => {
  const router = (...conditions: string[]): Block => ({
    type: 'router',
    id: 'r',
    routes: conditions.map((condition) => ({ condition, blocks: [step(`if_${condition}`, 'x')] })),
  });
  assert.deepEqual(between([router('a', 'b')], [router('new', 'a', 'b')]), [
    'changed r, routes[new].condition – → "new"',
    'added r/if_new',
  ]);
});

test('a branch before others moves none of their blocks', () => {
  const parallel = (...branches: Block[][]): Block => ({ type: 'parallel', id: 'p', branches });
  const [a, b, c] = ['a', 'b', 'c'].map((id) => step(id, 'x'));
  assert.deepEqual(between([parallel([a!], [b!])], [parallel([c!], [a!], [b!])]), ['added p/c']);
  assert.deepEqual(between([parallel([a!], [b!])], [parallel([a!])]), ['removed p/b']);
});

test('what was in a removed block and is elsewhere now has moved', () => {
  const scope: Block = { type: 'cancellation_scope', id: 's', blocks: [step('a'), step('b')] };
  assert.deepEqual(between([scope], [step('a')]), [
    'removed s',
    'removed s/b',
    'moved a, from s/a',
  ]);
});

test('a block of another kind under the same id has changed', () => {
  assert.deepEqual(
    between([step('a', 'x')], [{ type: 'sub_sequence', id: 'a', sequence_name: 'x' }]),
    ['changed a, type "step" → "sub_sequence", handler "x" → –, sequence_name – → "x"'],
  );
});

test('parameters are compared member by member', () => {
  const call = (body: object) => step('a', 'x', { params: { body } });
  assert.deepEqual(between([call({ amount: 1, list: [1] })], [call({ amount: 2, list: [1, 2] })]), [
    'changed a, params.body.amount 1 → 2, params.body.list[1] – → 2',
  ]);
});

test('hooks are compared, too', () => {
  const after = { ...EVERY_KIND, on_failure: [{ id: 'alert', handler: 'http_request' }] };
  assert.deepEqual(told(definitionChanges(EVERY_KIND, after)), [
    'changed @on_failure/alert, handler "log" → "http_request"',
  ]);
});

test('what the server says stands beside the change, and what concerns all of it on top', () => {
  const { changes, notes } = definitionChanges(EVERY_KIND, LATER, {
    entries: [
      {
        ...{ category: 'handler_changed', severity: 'side_effect_risk' },
        ...{ block_id: 'charge', summary: 'step charge: another handler' },
      },
      { category: 'hooks_changed', severity: 'behavioral', summary: 'on_failure changes' },
    ],
  });
  assert.equal(changes[0]?.notes[0]?.summary, 'step charge: another handler');
  assert.deepEqual(notes, [{ severity: 'behavioral', summary: 'on_failure changes' }]);
});

test('every kind of change has a picture, a word and its details', () => {
  const faces = definitionChanges(EVERY_KIND, LATER).changes.map(changeFace);
  assert.deepEqual(new Set(faces.map(({ icon }) => icon)).size, 4);
  assert.equal(faces[0]?.text, 'changed, handler, retry.max_attempts');
  assert.equal(faces.at(-1)?.text, 'moved, from invoice');
  assert.ok(faces[2]?.isStruck);
});

test('two definitions of thousands of blocks are compared at once', () => {
  const { changes } = definitionChanges(bigDefinition(5_000), bigDefinition(4_990));
  assert.equal(changes.length, 10);
});
