/** The steps of a tenant's move follow from what the directory and the cells say, whoever looks and whenever. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CellSays,
  type CellTraits,
  expectAlike,
  MoveError,
  type MoveFacts,
  nextStep,
  type Step,
} from '../../src/cluster/move-plan.js';

const ID = 'm1';

/** What a step and the engines make of the facts. */
const EFFECTS: Readonly<Record<Step, (facts: MoveFacts) => MoveFacts>> = {
  'hold-source': (facts) => ({ ...facts, source: says('leaving') }),
  'hold-target': (facts) => ({ ...facts, target: says('arriving') }),
  'await-source': (facts) => ({ ...facts, source: { ...says('leaving'), isHeld: true } }),
  'await-target': (facts) => ({ ...facts, target: { ...says('arriving'), isHeld: true } }),
  'await-admission': (facts) => ({ ...facts, target: undefined }),
  'await-readmission': (facts) => ({ ...facts, source: undefined }),
  copy: (facts) => ({ ...facts, target: { ...says('arriving'), isHeld: true, isCopied: true } }),
  switch: (facts) => ({ ...facts, state: 'switched' }),
  'admit-target': (facts) => ({ ...facts, target: says('admitted') }),
  'depart-source': (facts) => ({ ...facts, source: says('left') }),
  'clear-source': (facts) => ({ ...facts, state: 'done', isEnded: true }),
  'clear-target': (facts) => ({ ...facts, target: says('left') }),
  'readmit-source': (facts) => ({ ...facts, source: says('admitted') }),
  'ask-source': (facts) => facts,
  'ask-target': (facts) => facts,
  end: (facts) => ({ ...facts, isEnded: true }),
  nothing: (facts) => facts,
};

function says(state: CellSays['state'], moveId = ID): CellSays {
  return { moveId, state, isHeld: false, isCopied: false };
}

const stateOf = (said: MoveFacts['source']) => (said === 'unasked' ? said : said?.state);

const isCopied = (said: MoveFacts['source']) => said !== 'unasked' && said?.isCopied === true;

const BEGUN: MoveFacts = {
  moveId: ID,
  state: 'copying',
  isEnded: false,
  source: undefined,
  target: undefined,
};

/** All facts on the way, and the steps that lead over from each to the next. */
function walk(from: MoveFacts): { readonly facts: MoveFacts[]; readonly steps: Step[] } {
  const facts = [from];
  const steps: Step[] = [];
  for (let now = from; steps.length < 30; facts.push(now)) {
    const step = nextStep(now);
    if (step === 'nothing') return { facts, steps };
    steps.push(step);
    now = EFFECTS[step](now);
  }
  throw new Error(`it never ends: ${steps.join(', ')}`);
}

test('a move holds both cells, copies, switches, and only then lets the tenant in and clears up', () => {
  assert.deepEqual(walk(BEGUN).steps, [
    'hold-target',
    'await-target',
    'hold-source',
    'await-source',
    'copy',
    'switch',
    'admit-target',
    'await-admission',
    'depart-source',
    'clear-source',
  ]);
});

test('given up at any point before the switch, it lets the tenant stay and leaves nothing behind', () => {
  for (const facts of walk(BEGUN).facts.filter(({ state }) => state === 'copying')) {
    const { facts: back, steps } = walk({ ...facts, state: 'given_up' });
    const last = back.at(-1)!;
    assert.equal(last.source, undefined, steps.join(', '));
    assert.equal(stateOf(last.target) ?? 'left', 'left');
    assert.equal(last.isEnded, true);
    assert.equal(steps.includes('clear-target'), facts.target !== undefined);
    if (facts.source !== undefined) assert.equal(steps[0], 'readmit-source', 'nothing before it');
  }
});

test('what one cell decides does not ask the other, which may be lost', () => {
  const lost = { ...BEGUN, source: 'unasked', target: 'unasked' } as const;
  const givenUp = { ...lost, state: 'given_up' } as const;
  assert.equal(nextStep(givenUp), 'ask-source');
  assert.equal(nextStep({ ...givenUp, source: says('leaving') }), 'readmit-source');
  assert.equal(nextStep({ ...givenUp, source: says('admitted') }), 'await-readmission');
  assert.equal(nextStep({ ...givenUp, source: undefined }), 'ask-target');
  const switched = { ...lost, state: 'switched' } as const;
  assert.equal(nextStep(switched), 'ask-target');
  assert.equal(nextStep({ ...switched, target: says('arriving') }), 'admit-target');
  assert.equal(nextStep({ ...switched, target: says('admitted') }), 'await-admission');
  assert.equal(nextStep({ ...switched, target: undefined }), 'ask-source');
  assert.equal(nextStep({ ...lost, isEnded: true }), 'nothing');
});

test('at no point do both cells let the tenant in, nor does the one where it does not live', () => {
  const isIn = (cell: MoveFacts['source']) => cell === undefined || stateOf(cell) === 'admitted';
  for (const { state, source, target } of walk(BEGUN).facts) {
    if (state === 'copying' && isCopied(target)) assert.ok(!isIn(source) && !isIn(target));
    if (state === 'switched') assert.ok(!isIn(source));
  }
});

test('what an earlier move has left behind is written over', () => {
  assert.equal(nextStep({ ...BEGUN, target: says('left', 'm0') }), 'hold-target');
  assert.equal(nextStep({ ...BEGUN, target: says('arriving', 'm0') }), 'hold-target');
  const target = { ...says('arriving'), isHeld: true };
  assert.equal(nextStep({ ...BEGUN, target, source: says('leaving', 'm0') }), 'hold-source');
});

test('rows that no move can have made are told of', () => {
  const target = { ...says('arriving'), isHeld: true };
  assert.throws(() => nextStep({ ...BEGUN, target, source: says('left') }), MoveError);
  assert.throws(() => nextStep({ ...BEGUN, state: 'switched' }), MoveError);
});

test('cells agree when they have the same tables, and the target reads whatever the source has sealed', () => {
  const cell = (name: string, migration: number, ...key_ids: string[]): CellTraits => ({
    cell: name,
    migration,
    key_ids,
  });
  const target = cell('west', 7, 'new', 'old');
  for (const ids of [[], ['new'], ['old'], ['old', 'new']]) {
    expectAlike(cell('east', 7, ...ids), target, 7);
  }
  const keys = /cell west does not have the encryption key of cell east/;
  assert.throws(() => expectAlike(cell('east', 7, 'other'), target, 7), keys);
  assert.throws(() => expectAlike(cell('east', 7, 'new'), cell('west', 7), 7), keys);
  assert.throws(
    () => expectAlike(cell('east', 6, 'new'), target, 7),
    /cell east has migration 6, cell west has 7: upgrade the older one first/,
  );
  // Of an older program the cells agree with each other: it would leave behind what it does not know.
  for (const own of [6, 8]) {
    assert.throws(
      () => expectAlike(cell('east', 7, 'new'), target, own),
      /the cells have migration 7, this program \d: use the program of the version/,
    );
  }
});
