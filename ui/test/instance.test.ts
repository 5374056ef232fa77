/** What the page of one instance offers and how it words what the engine says. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTION_LABELS, choicesOf, isOpen } from '../src/pages/instance/choices.ts';
import {
  dataOf,
  iterationIn,
  iterationOf,
  iterationText,
  iterationTyped,
  scheduleOf,
} from '../src/pages/instance/places.ts';

const OPERATOR = { operate: true, start: true };
const STARTER = { operate: false, start: true };
const AUDITOR = { operate: false, start: false };

const STATES = [
  ...(['scheduled', 'running', 'waiting', 'paused'] as const),
  ...(['failed', 'completed', 'cancelled'] as const),
];

test('an operator is offered what the state of an instance allows', () => {
  assert.deepEqual(choicesOf({ state: 'failed' }, OPERATOR).buttons, ['retry']);
  assert.deepEqual(choicesOf({ state: 'paused' }, OPERATOR).buttons, ['resume']);
  assert.deepEqual(choicesOf({ state: 'waiting' }, OPERATOR).buttons, ['pause']);
  assert.deepEqual(choicesOf({ state: 'completed' }, OPERATOR), {
    buttons: [],
    menu: ['resume-from', 'fork'],
  });
  const cancelling = { since: '', reason: 'cancel', waiting_for: ['refund'] } as const;
  const { menu } = choicesOf({ state: 'waiting', cancelling: { ...cancelling } }, OPERATOR);
  assert.deepEqual([menu.at(-1), menu.includes('cancel')], ['stop', false]);
});

test('what is offered in any state has a name, and is offered once', () => {
  for (const state of STATES) {
    const { buttons, menu } = choicesOf({ state }, OPERATOR);
    const offered = [...buttons, ...menu];
    assert.equal(new Set(offered).size, offered.length, state);
    for (const name of offered) assert.ok(ACTION_LABELS[name], name);
  }
});

test('who may not change instances is offered nothing but signals, and an auditor nothing', () => {
  for (const state of STATES) {
    assert.deepEqual(choicesOf({ state }, AUDITOR), { buttons: [], menu: [] });
    const { buttons, menu } = choicesOf({ state }, STARTER);
    assert.deepEqual(
      [...buttons, ...menu].filter((name) => name !== 'signal'),
      [],
    );
  }
});

test('an instance is open until it has come to an end', () => {
  assert.deepEqual(STATES.filter(isOpen), ['scheduled', 'running', 'waiting', 'paused']);
});

test('the iteration of a path has the counters of the loops around its block', () => {
  assert.equal(iterationOf('charge'), '');
  assert.equal(iterationOf('orders[2]/charge'), '2');
  assert.equal(iterationOf('orders[2]/guarded/lines[10]/charge'), '2.10');
});

test('an iteration is shown and typed counted from 1, and stands in the address as in its path', () => {
  for (const [address, shown] of [
    ['7777', '7778'],
    ['2.0', '3.1'],
  ] as const) {
    assert.equal(iterationText(address), `iteration ${shown}`);
    assert.equal(iterationTyped(shown), address);
    assert.equal(iterationIn(address), address);
  }
  for (const text of ['', '*', '2.', '-1', 'two', '0', '1.0']) {
    assert.equal(iterationTyped(text), undefined);
  }
  assert.equal(iterationIn('*'), undefined);
});

test('an instance of a schedule is known by its key', () => {
  const id = '01a20a0c-927f-7000-bd04-3a9c21a61462';
  const due = '2026-01-01T00:00:00.000Z';
  assert.deepEqual(scheduleOf(`cron:${id}:${due}`), { id, due });
  assert.equal(scheduleOf('cron:something else'), undefined);
  assert.equal(scheduleOf(undefined), undefined);
});

test('edited data that is no JSON object is refused before it is sent', () => {
  assert.deepEqual(dataOf('{"a":1}'), { a: 1 });
  for (const text of ['', '{', '[1]', 'null', '"a"'])
    assert.throws(() => dataOf(text), SyntaxError);
});
