/** The steps of a tenant's move between cells, and how a HAProxy that runs is told of it. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { HaproxyMaps } from '../../cli/proxy/haproxy-runtime.js';
import type { ProxyCell, Topology } from '../../cli/proxy/topology.js';
import type { CellMove, CellTraits, MoveFacts, Step } from '../../src/cluster/move-plan.js';
import { expectCompatible, MoveError, nextStep } from '../../src/cluster/move-plan.js';

const ID = 'm1';

/** What a step and the engines make of the facts. */
const EFFECTS: Readonly<Record<Step, (facts: MoveFacts) => MoveFacts>> = {
  'suspend-source': (facts) => ({ ...facts, source: says('leaving') }),
  'suspend-target': (facts) => ({ ...facts, target: says('arriving') }),
  'await-source': (facts) => ({ ...facts, source: says('leaving', { isSuspended: true }) }),
  'await-target': (facts) => ({ ...facts, target: says('arriving', { isSuspended: true }) }),
  'await-admission': (facts) => ({ ...facts, target: undefined }),
  'await-readmission': (facts) => ({ ...facts, source: undefined }),
  copy: (facts) => ({ ...facts, target: says('arriving', { isSuspended: true, isCopied: true }) }),
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

function says(state: CellMove['state'], more: Partial<CellMove> = {}): CellMove {
  return { moveId: ID, state, isSuspended: false, isCopied: false, ...more };
}

const stateOf = (said: MoveFacts['source']) => (said === 'unknown' ? said : said?.state);

const isCopied = (said: MoveFacts['source']) => said !== 'unknown' && said?.isCopied === true;

const BEGUN: MoveFacts = {
  ...{ moveId: ID, state: 'copying', isEnded: false, source: undefined, target: undefined },
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
    ...['suspend-target', 'await-target', 'suspend-source', 'await-source', 'copy', 'switch'],
    ...['admit-target', 'await-admission', 'depart-source', 'clear-source'],
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
  const lost = { ...BEGUN, source: 'unknown', target: 'unknown' } as const;
  const rows: readonly (readonly [Partial<MoveFacts>, Step])[] = [
    [{ state: 'given_up' }, 'ask-source'],
    [{ state: 'given_up', source: says('leaving') }, 'readmit-source'],
    [{ state: 'given_up', source: says('admitted') }, 'await-readmission'],
    [{ state: 'given_up', source: undefined }, 'ask-target'],
    [{ state: 'switched' }, 'ask-target'],
    [{ state: 'switched', target: says('arriving') }, 'admit-target'],
    [{ state: 'switched', target: says('admitted') }, 'await-admission'],
    [{ state: 'switched', target: undefined }, 'ask-source'],
    [{ isEnded: true }, 'nothing'],
  ];
  for (const [facts, step] of rows) assert.equal(nextStep({ ...lost, ...facts }), step);
});

test('at no point do both cells let the tenant in, nor does the one where it does not live', () => {
  const isIn = (cell: MoveFacts['source']) => cell === undefined || stateOf(cell) === 'admitted';
  for (const { state, source, target } of walk(BEGUN).facts) {
    if (state === 'copying' && isCopied(target)) assert.ok(!isIn(source) && !isIn(target));
    if (state === 'switched') assert.ok(!isIn(source));
  }
});

test('what an earlier move has left behind is written over, and rows that none can have made are told of', () => {
  const moveId = 'm0';
  const target = says('arriving', { isSuspended: true });
  assert.equal(nextStep({ ...BEGUN, target: says('left', { moveId }) }), 'suspend-target');
  assert.equal(nextStep({ ...BEGUN, target: says('arriving', { moveId }) }), 'suspend-target');
  const source = says('leaving', { moveId });
  assert.equal(nextStep({ ...BEGUN, target, source }), 'suspend-source');
  assert.throws(() => nextStep({ ...BEGUN, target, source: says('left') }), MoveError);
  assert.throws(() => nextStep({ ...BEGUN, state: 'switched' }), MoveError);
});

test('cells agree when they have the same tables, and the target reads whatever the source has sealed', () => {
  const cell = (name: string, migration: number, ...key_ids: string[]): CellTraits => {
    return { cell: name, migration, key_ids };
  };
  const target = cell('west', 7, 'new', 'old');
  for (const ids of [[], ['new'], ['old'], ['old', 'new']]) {
    expectCompatible(cell('east', 7, ...ids), target, 7);
  }
  const [keys, older] = [/west does not have the encryption key of cell east/, /use the program/];
  for (const [source, to, own, problem] of [
    [cell('east', 7, 'other'), target, 7, keys],
    [cell('east', 7, 'new'), cell('west', 7), 7, keys],
    [cell('east', 6, 'new'), target, 7, /east has migration 6, cell west has 7: upgrade the older/],
    // Of an older program the cells agree with each other: it would leave behind what it does not know.
    [cell('east', 7, 'new'), target, 6, older],
    [cell('east', 7, 'new'), target, 8, older],
  ] as const) {
    assert.throws(() => expectCompatible(source, to, own), problem);
  }
});

const folder = mkdtempSync(path.join(tmpdir(), 'haproxy-'));
const socket = path.join(folder, 'runtime.sock');
/** Their first lines. */
let commands: string[] = [];

const ANSWERS: readonly (readonly [RegExp, string])[] = [
  [/^show info/, 'Pid: 1\n'],
  [/^show backend/, 'cell_east\ncell_west\n'],
  [/^prepare map/, 'New version created: 1\n'],
  [/^set map/, 'entry not found\n'],
];

const server = createServer((connection) => {
  connection.once('data', (data) => {
    const [command = ''] = data.toString().split('\n');
    commands.push(command);
    connection.end(ANSWERS.find(([words]) => words.test(command))?.[1] ?? '\n');
  });
});

before(() => once(server.listen(socket), 'listening'));

after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const cellOf = (name: string, state: ProxyCell['state']): ProxyCell => {
  return { name, engines: ['10.0.0.1:80'], state };
};

test('who stays when a bucket goes to another cell is told of before, and who follows it is forgotten after', async () => {
  const maps = new HaproxyMaps(socket);
  const topology = (west: ProxyCell['state'], tenant: string, cell: string): Topology => ({
    cells: [cellOf('east', 'open'), cellOf('west', west)],
    placements: new Map([[tenant, cell]]),
  });
  await maps.apply(topology('closed', 'follows', 'west'));
  commands = [];
  await maps.apply(topology('open', 'stays', 'east'));
  const changes = commands.filter((command) => /^(add|del|commit) .*[^<]$/.test(command));
  const expected = ['add map tenants.map stays east', 'commit map @1 buckets.map'];
  assert.deepEqual(changes, [...expected, 'del map tenants.map follows']);
});
