/** What the benches say of their numbers: tables of paths, ratios, profiles, roles of threads. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Flame,
  flameGraph,
  flameLines,
  flameOf,
  flameTree,
  pruned,
} from '../../bench/load/flame-graph.js';
import {
  type CheckRow,
  checkTable,
  costTable,
  type PathRow,
  ratiosOf,
  ratioTable,
  savingsOf,
  savingText,
  type Turn,
} from '../../bench/load/path-report.js';
import { type CpuProfile, type NameOf, roleOf, selfTimes } from '../../bench/load/profile.js';
import { cpuByRole } from '../../bench/load/thread-roles.js';
import { ratioOf } from '../../bench/report.js';

function turn(cpuUs: number, perSecond: number): Turn {
  const cpu = { front: 1, shards: 2, writer: 3, helpers: 4, postgres: 5, client: 6, sum: cpuUs };
  return { cpu, perSecond, p50Ms: 1, p99Ms: 2, walBytes: 100, flushes: 0.5 };
}

function row(
  side: 'this' | 'against',
  turns: readonly Turn[],
  { path = 'round16', insteadOf }: { path?: string; insteadOf?: string } = {},
): PathRow {
  return { path, operation: 'a round', insteadOf, side, shards: 1, lanes: 1, turns, profiles: [] };
}

/** The cells of a table's rows, by the names of its columns. */
function cells(table: string): readonly Readonly<Record<string, string>>[] {
  const [head, , ...rows] = table.split('\n').map((line) => line.split(/ {2,}/));
  return rows.map((row) => Object.fromEntries(head!.map((name, at) => [name.trim(), row[at]!])));
}

test('a row of costs has the median of each column over the turns', () => {
  const [first] = cells(costTable([row('this', [turn(30, 9), turn(10, 5), turn(20, 1)])]));
  assert.deepEqual(
    ['server', 'CPU µs/op', 'ops/s', 'writer', 'WAL B/op', 'lanes'].map((name) => first![name]),
    ['this', '20', '5', '3', '100', '1'],
  );
});

test('ratios divide the turns of a pair, not the medians of either side', () => {
  // The machine was twice as slow in the second pair: the ratio of each pair is the same.
  const rows = [
    row('against', [turn(100, 1_000), turn(200, 500), turn(110, 900)]),
    row('this', [turn(50, 2_000), turn(100, 1_000), turn(55, 1_800)]),
  ];
  const [first] = cells(ratioTable(ratiosOf(rows)));
  assert.deepEqual(
    ['this / against', 'CPU µs/op', 'ops/s', 'WAL B/op', 'CPU from', 'to'].map(
      (name) => first![name],
    ),
    ['round16', '0.5', '2', '1', '0.5', '0.5'],
  );
});

test('a path that one side does not know has no ratio', () => {
  assert.deepEqual(ratiosOf([row('this', [turn(1, 1)])]), []);
  assert.deepEqual(ratiosOf([row('against', [turn(1, 1)])]), []);
});

test('what fewer requests save is told beside the other server, else beside the same', () => {
  const exchange = row('this', [turn(20, 1)], { path: 'exchange16', insteadOf: 'round16' });
  const mine = row('this', [turn(50, 1)]);
  const theirs = row('against', [turn(100, 1)]);
  const savings = (...rows: PathRow[]) => savingsOf(rows).map(savingText);
  assert.deepEqual(savings(theirs, mine, exchange), [
    'exchange16 (this): 0.2 of the CPU of round16 (against)',
  ]);
  assert.deepEqual(savings(mine, exchange), [
    'exchange16 (this): 0.4 of the CPU of round16 (this)',
  ]);
  assert.deepEqual(savings(exchange), []);
});

test('a check says of each target whether it was reached', () => {
  const check: CheckRow = {
    check: 'snapshot',
    asks: '',
    side: 'this',
    figures: [
      { name: 'without', value: 200 },
      { name: 'few', value: 0.5, target: 'check snapshot' },
      { name: 'many', value: 0.95, target: 'check snapshot' },
      { name: 'long', value: 26, target: 'check latency' },
      { name: 'short', value: 25, target: 'check latency' },
    ],
  };
  assert.deepEqual(
    cells(checkTable([check])).map(({ figure, target }) => [figure, target]),
    [
      ['without', undefined],
      ['few', 'at least 0.9 ×: missed'],
      ['many', 'at least 0.9 ×: reached'],
      ['long', 'at most 25 ×: missed'],
      ['short', 'at most 25 ×: reached'],
    ],
  );
});

test('the mean of ratios is geometric, and its interval narrows where they agree', () => {
  const far = ratioOf([0.5, 2]);
  assert.ok(Math.abs(far.ratio - 1) < 1e-9);
  assert.ok(far.low < 1 && far.high > 1);
  const near = ratioOf([0.99, 1 / 0.99]);
  assert.ok(near.low > far.low && near.high < far.high);
  assert.equal(ratioOf([3, Number.NaN, 3, 0]).ratio.toFixed(6), '3.000000');
});

const frame = (functionName: string, url = '') => ({
  functionName,
  url,
  lineNumber: 0,
  columnNumber: 0,
});

/** `turn` calls `post`, from two places; a sample each millisecond or two. */
const PROFILE: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3, 5] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('turn', 'file:///dist/server/shard.thread.js'), children: [4] },
    { id: 4, callFrame: frame('post') },
    { id: 5, callFrame: frame('turn'), children: [6] },
    { id: 6, callFrame: frame('post') },
  ],
  startTime: 100_000,
  samples: [2, 4, 3, 6, 5],
  timeDeltas: [9_000, 1_000, 1_500, 2_000, 500],
};
const nameOf: NameOf = ({ functionName }) => ({ name: functionName, origin: 'own' });

test('self times are summed by name, without what a thread waited, the largest first', () => {
  assert.deepEqual(selfTimes(PROFILE, nameOf, []), [
    { name: 'post', ms: 3 },
    { name: 'turn', ms: 2 },
  ]);
  assert.equal(roleOf(PROFILE), 'shard');
  assert.equal(roleOf({ ...PROFILE, nodes: PROFILE.nodes.slice(0, 2) }), 'other');
});

test('what happened outside of the measured turns is in no profile', () => {
  const spans = [{ from: 111_000, to: 112_000 }];
  assert.deepEqual(selfTimes(PROFILE, nameOf, spans), [{ name: 'turn', ms: 1.5 }]);
});

test('a flame graph has a function below its caller, as wide as all that passed in it', () => {
  const tree = flameTree(PROFILE, nameOf, []);
  const post = { name: 'post', origin: 'own', ms: 3, calls: [] };
  assert.deepEqual(tree.calls, [{ name: 'turn', origin: 'own', ms: 5, calls: [post] }]);
  assert.equal(tree.ms, 5);
  const svg = flameGraph({ ...tree, calls: [{ ...post, origin: 'own', name: 'a<b>' }] }, 'shard');
  assert.match(
    svg,
    /<title>a&lt;b&gt;: 3\.0 ms, 60\.0 %<\/title><rect class="own" x="0\.0" y="64" width="720\.0"/,
  );
});

test('a flame graph that was stored as lines is the same, without what nobody could see', () => {
  const flame = (name: string, ms: number, calls: readonly Flame[] = []): Flame => ({
    name,
    origin: 'node',
    ms,
    calls,
  });
  const many = [flame('post a/b.ts:1', 600, [flame('write', 598)]), flame('seldom', 2.9)];
  const seen = pruned(flame('all', 1_000, many));
  assert.deepEqual(
    seen.calls.map(({ name }) => name),
    ['post a/b.ts:1'],
    'less than 0.3 % is left out',
  );
  assert.deepEqual(flameOf(flameLines(seen)), seen);
  const svg = flameGraph(flame('all', 1_000, [flame('post some/long/folder.ts:1', 100)]), '');
  assert.match(
    svg,
    />post<\/text>/,
    'where there is no room the function is named without its file',
  );
});

test('what no thread with a role has worked was the helpers, those too that came later', () => {
  const roles = { front: 1, shards: [2, 3], writer: 4 };
  const before = new Map([
    [1, 10],
    [2, 10],
    [3, 10],
    [4, 10],
    [5, 10],
  ]);
  const after = new Map([
    [1, 11],
    [2, 12],
    [3, 13],
    [4, 14],
    [5, 15],
    [6, 6],
  ]);
  assert.deepEqual(cpuByRole(roles, before, after), {
    front: 1,
    shards: 5,
    writer: 4,
    helpers: 11,
  });
});
