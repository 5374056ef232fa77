/** What docs/performance.md says of stored results, and of those that are missing. */

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { renderBars } from '../../bench/chart/bars.js';
import { renderPanels } from '../../bench/chart/lines.js';
import { roundSteps } from '../../bench/chart/svg.js';
import type { Machine } from '../../bench/machine.js';
import { type Costs, carriedBy, limitsOf, PLANNED_SHARE } from '../../bench/page/carry.js';
import { picturesOf } from '../../bench/page/pictures.js';
import { pressureRegions } from '../../bench/page/pressure.js';
import { NOT_MEASURED, regionsOf } from '../../bench/page/regions.js';
import { readStored, type Stored, StoredParts } from '../../bench/page/stored.js';
import { drawnIn, writePage } from '../../bench/page/write.js';
import { OPERATIONS } from '../../bench/pressure/victim.js';
import { type PartResult, partsOf, saveResults } from '../../bench/report.js';
import {
  isOfPressure,
  isReached,
  reachedOf,
  TARGET_NAMES,
  verdictsOf,
} from '../../bench/targets.js';

const MACHINE: Machine = {
  name: 'test',
  processor: 'Test',
  cores: 2,
  memoryGb: 1,
  system: 'test',
  node: 'v20',
};

function stored(name: string, results: object, at = '2026-01-02T03:04:05.000Z'): Stored {
  const settings = { this: 'abc', against: 'def', seconds: 5, rounds: 3, postgres: '18' };
  return {
    name,
    at,
    commit: 'abc',
    machine: MACHINE,
    settings,
    results: { reached: {}, ...results },
  };
}

const COSTS: Costs = { front: 50, shards: 100, writer: 20, helpers: 10, postgres: 80, client: 40 };

function medians(factor: number) {
  const scaled = Object.entries(COSTS).map(([role, us]) => [role, us * factor]);
  return { 'ops/s': 12_345, 'CPU µs/op': 300 * factor, ...Object.fromEntries(scaled) };
}

const LEAF = '1 own 500 turn <a>/shard.ts:1';

/** Every kind of result, with numbers that are not found by chance. */
const FULL = new StoredParts([
  stored('paths noop256', {
    sides: [
      { side: 'against', medians: medians(2) },
      { side: 'this', medians: medians(1) },
    ],
    ratios: { path: 'noop256', ratios: { 'CPU µs/op': 0.5, 'CPU from': 0.4, to: 0.6 } },
    saving: null,
    reached: { 'cpu noop256': 0.5 },
  }),
  stored('paths minute', {
    sides: [
      {
        side: 'this',
        asks: 'Does it?',
        figures: [{ name: 'p99 by p50', value: 26.5 }],
        slices: [1, 2].map((perSecond) => ({ perSecond, p50Ms: 3, p99Ms: 4, residentMib: 5 })),
      },
    ],
    reached: { 'check latency': 26.5 },
  }),
  stored('scale pending', {
    rows: [1_000, 1_000_000].map((pending) => ({
      pending,
      readyMs: 777,
      residentMib: 130,
      pollP50Ms: 4,
      pollP99Ms: 9,
      fewP50Ms: 4,
      fewP99Ms: 8,
      p50Ratio: 1.1,
    })),
  }),
  stored('peers batches16', {
    row: {
      name: 'batches',
      at: 16,
      title: 'rounds',
      of: { own: 4_100, bullmq: 2_050 },
      ratio: { bullmq: 2 },
    },
    rounds: [{ own: 4_100, bullmq: 2_050 }],
    reached: { 'peers batches16': 2 },
  }),
  stored('explained noop256', {
    reached: { 'cpu noop256': 0.9 },
    sides: [
      {
        side: 'this',
        profiles: [
          {
            role: 'shard',
            busyMs: 1_000,
            byOrigin: { own: 500, package: 0, node: 300, engine: 200 },
            top: [{ name: 'turn <a>/shard.ts:1', ms: 500 }],
            flame: ['0 engine 1000 all', LEAF],
          },
        ],
      },
    ],
  }),
]);

test('of what was not measured the page says so, and has no picture', () => {
  const nothing = new StoredParts([]);
  assert.deepEqual(picturesOf(nothing), {});
  const regions = regionsOf(nothing, new Set());
  for (const [name, text] of Object.entries(regions)) {
    assert.match(text, /not measured/i, name);
    assert.doesNotMatch(text, /NaN|undefined|!\[/, name);
  }
  assert.equal(regions.cost, NOT_MEASURED);
  assert.equal(
    regions.aims?.match(/not measured/g)?.length,
    TARGET_NAMES.filter((name) => !isOfPressure(name)).length,
  );
});

test('what was measured stands in the page with its aim and its picture, beside what was not', () => {
  const pictures = picturesOf(FULL);
  assert.deepEqual(Object.keys(pictures).sort(), [
    'cpu.svg',
    'flame-noop256-shard.svg',
    'growth.svg',
    'minute.svg',
    'peers.svg',
  ]);
  for (const [name, svg] of Object.entries(pictures)) {
    assert.match(svg, /^<svg .*<\/svg>\n$/s, name);
    assert.doesNotMatch(svg, /NaN|Infinity|undefined/, name);
    assert.match(svg, /prefers-color-scheme: dark/, name);
  }
  assert.match(
    pictures['flame-noop256-shard.svg']!,
    /turn &lt;a&gt;\/shard\.ts:1: 500\.0 ms, 50\.0 %/,
  );
  const regions = regionsOf(FULL, new Set(Object.keys(pictures)));
  for (const text of Object.values(regions)) assert.doesNotMatch(text, /NaN|undefined/);
  assert.match(regions.aims!, /\| at most 0\.55 × \| 0\.5 × \| reached \|/);
  assert.match(regions.aims!, /\| at most 25 × \| 26\.5 × \| \*\*missed\*\* \|/);
  assert.match(regions.aims!, /\| at most 1\.2 × \| not measured \|/);
  assert.match(
    regions.cost!,
    /!\[.*\]\(images\/performance\/cpu\.svg\).*12,345.*\| 0\.5 \(0\.4 to 0\.6\) \|/s,
  );
  assert.match(
    regions.growth!,
    /Waiting instances:\n\nNot measured\.\n\nPending tasks:\n\n.*1,000,000 \| 777 /s,
  );
  assert.match(regions.peers!, /\| rounds \| 4,100 \| – \| – \| 2,050 \| – \| – \| 2 × \|/);
  assert.match(
    regions.profiles!,
    /\| shard \| 50 % \| 0 % \| 30 % \| 20 % \| `turn shard\.ts:1` 50 % \|/,
  );
  assert.match(regions.sources!, /`paths noop256` \| 2026-01-02 03:04 \| abc \| def \| 5 × 3 \|/);
});

test('the newest result of a part counts, and one that synced nothing does not', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-page-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const part = (value: number, isDurable = true): PartResult => ({
    question: '',
    settings: { isDurable },
    results: { value, reached: {} },
    remarks: [],
  });
  const old = (name: string) => stored(name, { value: 1 }, '2020-01-01T00:00:00.000Z');
  saveResults(folder, MACHINE, 'new', { latency: part(2), creations: part(3, false) });
  const storedValue = (parts: StoredParts, name: string) =>
    parts.get<{ readonly value: number }>(name)?.results.value;
  const parts = readStored(folder);
  assert.deepEqual(
    [storedValue(parts, 'latency'), storedValue(parts, 'creations')],
    [2, undefined],
  );
  const both = new StoredParts([parts.get('latency')!, old('latency')]);
  assert.equal(storedValue(both, 'latency'), 2);
});

test('rows of a part are stored apart, so that each can be measured again alone', () => {
  const common = { question: '', settings: {}, remarks: [] };
  const parts = partsOf('paths', { ...common, rows: { round16: { a: 1 }, round64: { a: 2 } } });
  assert.deepEqual(parts, {
    'paths round16': { ...common, results: { a: 1 } },
    'paths round64': { ...common, results: { a: 2 } },
  });
  const whole = { ...common, results: {} };
  assert.deepEqual(partsOf('latency', whole), { latency: whole });
});

test('a table of pressure has each attack with what it cost the others, and marks what was missed', () => {
  const latency = (p99: number) =>
    Object.fromEntries(OPERATIONS.map((name) => [name, { count: 9, p99 }]));
  const ratios = Object.fromEntries(OPERATIONS.map((name) => [name, name === 'poll' ? 7.5 : 1.5]));
  const row = (crowd: string, errors: number) => ({
    attack: 'http',
    crowd,
    what: 'takes it all',
    idle: { latency: latency(4), errors: {} },
    attacked: { latency: latency(6), errors: {} },
    ratios,
    errors,
    attackers: { 201: 3, 429: 12 },
    peakMib: 321,
    cpuPercent: { attacker: 3, others: 20, server: 90, database: 40 },
  });
  const reached = { 'pressure ratio': 7.5, 'pressure errors': 2 };
  const part = stored('pressure http', { rows: [row('two', 2), row('fifty', 0)], reached });
  const regions = pressureRegions(new StoredParts([part]));
  const [two, fifty] = [regions['pressure-two']!, regions['pressure-fifty']!];
  assert.match(
    two,
    /takes it all.*4 → 6, 1\.5 ×.*\*\*7\.5 ×\*\*.*\*\*2\*\*.*321 \| 90 \/ 40 \/ 20 \/ 3 \|.*201: 3, 429: 12/,
  );
  assert.match(fifty, /\*\*7\.5 ×\*\*.*\| 0 \|/);
  assert.equal(pressureRegions(new StoredParts([]))['pressure-two'], NOT_MEASURED);
});

test('a page is written with its pictures, and old pictures go', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-page-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const names = Object.keys(regionsOf(FULL, new Set()));
  const empty = names.map((name) => `<!-- generated: ${name} -->\n<!-- /generated -->\n`).join('');
  writeFileSync(path.join(folder, 'performance.md'), `by hand\n${empty}`);
  const ofSecurity = Object.keys(pressureRegions(FULL));
  const regions = ofSecurity.map((name) => `<!-- generated: ${name} -->\n<!-- /generated -->\n`);
  writeFileSync(path.join(folder, 'security.md'), regions.join(''));
  mkdirSync(path.join(folder, 'images/performance'), { recursive: true });
  writeFileSync(path.join(folder, 'images/performance/old.svg'), '');
  writePage(path.join(folder, 'no-results'), folder);
  assert.deepEqual(drawnIn(folder), []);
  const page = readFileSync(path.join(folder, 'performance.md'), 'utf8');
  assert.match(page, /^by hand\n.*Not measured\./s);
});

test('a target is reached at its very limit, and what has no target is not judged', () => {
  assert.ok(isReached('cpu round16', 0.5) && !isReached('cpu round16', 0.51));
  assert.ok(isReached('check snapshot', 0.9) && !isReached('check snapshot', 0.89));
  assert.deepEqual(reachedOf('cpu claim16x50', 0.1), {});
  assert.deepEqual(reachedOf('cpu round16', undefined), {});
  assert.deepEqual(reachedOf('cpu round16', Number.NaN), {});
  const [said] = verdictsOf(reachedOf('scale memory', 300.2));
  assert.match(said!, /300 B, at most 300 B: reached$/, 'a number never contradicts its verdict');
});

test('what carries least is full first, and shards and connections multiply', () => {
  const alone = limitsOf(COSTS, { shards: 1, lanes: 1 });
  assert.deepEqual(alone, [
    { by: 'shard', perSecond: 10_000 },
    { by: 'Postgres', perSecond: 12_500 },
    { by: 'front', perSecond: 20_000 },
    { by: 'writer', perSecond: 50_000 },
  ]);
  assert.equal(limitsOf(COSTS, { shards: 3, lanes: 4 })[0]!.by, 'front');
  // 260 µs an operation without the client.
  const two = carriedBy(COSTS, { cores: 2, shards: 1, lanes: 1 });
  assert.equal(two.by, 'all cores');
  assert.equal(Math.round(two.perSecond), Math.round((PLANNED_SHARE * 2e6) / 260));
  assert.equal(carriedBy(COSTS, { cores: 16, shards: 15, lanes: 1 }).by, 'Postgres');
  const many = carriedBy(COSTS, { cores: 64, shards: 63, lanes: 4 });
  assert.deepEqual([many.by, Math.round(many.perSecond)], ['front', PLANNED_SHARE * 20_000]);
});

test('bars are as long as their values, stacked from left to right', () => {
  const look = { legend: ['a', 'b'], isScaledByGroup: false };
  const groups = [
    { title: 'one', bars: [{ label: 'x', parts: [100, 300] }] },
    { title: 'two', bars: [{ label: 'y', parts: [200, 0] }] },
  ];
  const bars = [
    ...renderBars('t', groups, look).matchAll(
      /<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="16" class="fill(\d)"/g,
    ),
  ].map(([, x, width, fill]) => [Number(x), Number(width), Number(fill)]);
  const [a, b, c] = bars as [number[], number[], number[]];
  assert.deepEqual([a[2], b[2], c[2]], [0, 1, 0]);
  assert.ok(Math.abs(b[1]! - 3 * a[1]!) < 0.2 && Math.abs(c[1]! - 2 * a[1]!) < 0.2);
  assert.ok(Math.abs(b[0]! - (a[0]! + a[1]!)) < 0.2, 'the second part begins where the first ends');
});

test('linear axes begin at zero and end at a round number above the greatest', () => {
  assert.deepEqual(roundSteps(7), [0, 2, 4, 6, 8]);
  assert.deepEqual(roundSteps(1_000), [0, 250, 500, 750, 1_000]);
  assert.deepEqual(roundSteps(0), [0, 1]);
  const series = [{ name: 's', points: [[0, 0] as const, [4, 8] as const] }];
  const svg = renderPanels('t', [{ title: 'p', series }], 'linear', 'seconds');
  const [, y1, y2] = /points="[\d.]+,([\d.]+) [\d.]+,([\d.]+)"/.exec(svg)!;
  assert.ok(Number(y1) > Number(y2), 'zero is drawn, at the bottom');
});
