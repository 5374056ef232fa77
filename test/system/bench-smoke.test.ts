/**
 * The benches run and leave results. Nothing here looks at speed: durations are tiny, and the
 * machine may be busy.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CHECK_NAMES } from '../../bench/load/checks.js';
import { PATH_NAMES } from '../../bench/load/path-table.js';
import type { Machine } from '../../bench/machine.js';
import { readOptions, UsageError } from '../../bench/options.js';
import { median, renderTable, saveResults } from '../../bench/report.js';
import { byDepth, isDeep } from '../helpers/depth.js';

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));
/** The checkout, to be compared with itself. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface Part {
  readonly results: { readonly rows: Row[]; readonly sides: Row[] };
  readonly remarks: readonly string[];
}
interface Results {
  readonly parts: Readonly<Record<string, Part>>;
}
type Row = Readonly<Record<string, unknown>>;

function makeFolder(t: { after(fn: () => void): void }): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-smoke-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function readOnly(folder: string): Results {
  const files = readdirSync(folder);
  assert.equal(files.length, 1, `one file of results: ${files.join(' ')}`);
  return JSON.parse(readFileSync(path.join(folder, files[0]!), 'utf8')) as Results;
}

function isAbove0(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && Number.isFinite(value);
}

function assertCreations(rows: readonly Row[]): void {
  assert.deepEqual(
    rows.map(({ sequence, connections }) => [sequence, connections]),
    [
      ['noop', 64],
      ['noop', 256],
      ['external', 64],
      ['external', 256],
    ],
  );
  for (const row of rows) {
    for (const name of ['perSecond', 'p50Ms', 'p99Ms', 'unitsPerFlush', 'ceilingPerSecond']) {
      assert.ok(isAbove0(row[name]), `creations ${name}: ${row[name]}`);
    }
  }
}

function assertPaths(rows: readonly Row[]): void {
  const names = isDeep ? PATH_NAMES : ['claim16'];
  assert.deepEqual(
    rows.map(({ path: name, side }) => `${name} ${side}`),
    names.flatMap((name) => [`${name} against`, `${name} this`]),
  );
  for (const { path: name, turns } of rows) {
    for (const turn of turns as Row[]) {
      for (const column of ['perSecond', 'p50Ms', 'p99Ms', 'walBytes', 'flushes']) {
        assert.ok(isAbove0(turn[column]), `${name} ${column}: ${turn[column]}`);
      }
      assert.ok(isAbove0((turn.cpu as Row).sum), `${name} CPU`);
    }
  }
}

const COMPARED = ['--against', ROOT, '--statements'];

/** Creations at several loads take longest; the others start servers and drive them, too. */
const PARTS = byDepth(
  ['micro', 'load', 'b', 'paths', 'claim16,context'],
  ['micro', 'load', 'paths', 'events'],
);

test(`${PARTS.join(' ')}: every bench runs once and stores numbers`, async (t) => {
  const folder = makeFolder(t);
  const bench = spawn(process.execPath, [MAIN, ...PARTS, '--quick', '--out', folder, ...COMPARED], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [bench.stdout, bench.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = await once(bench, 'close');
  assert.equal(code, 0, output);

  const { parts } = readOnly(folder);
  const { micro, creations, latency, events } = parts;
  for (const row of micro!.results.rows) assert.ok(isAbove0(row.microseconds), String(row.name));
  if (isDeep) {
    assertCreations(creations!.results.rows);
    for (const { woken, next } of events!.results.rows) {
      for (const latencies of [woken, next]) assert.ok(isAbove0((latencies as Row).p50));
    }
  }
  for (const row of latency!.results.rows) assert.ok(isAbove0(row.p50Ms), String(row.name));
  // Counting statements costs time, so these runs are told apart from measurements.
  const sidesOf = (name: string) => parts[`explained ${name}`]!.results.sides;
  assertPaths((isDeep ? PATH_NAMES : ['claim16']).flatMap(sidesOf));
  for (const { check, figures } of (isDeep ? CHECK_NAMES : ['context']).flatMap(sidesOf)) {
    for (const { name, value } of figures as Row[]) assert.ok(isAbove0(value), `${check}: ${name}`);
  }
});

test('a run replaces its own parts in the results of the day and keeps the others', (t) => {
  const folder = makeFolder(t);
  const machine: Machine = {
    name: 'test',
    processor: 'test',
    cores: 2,
    memoryGb: 1,
    system: 'test',
    node: process.version,
  };
  const part = (value: number) => ({
    question: '',
    settings: {},
    results: { rows: [{ value }] },
    remarks: [],
  });
  saveResults(folder, machine, null, { micro: part(1), workers: part(1) });
  saveResults(folder, machine, 'abc', { micro: part(2) });
  const { parts } = readOnly(folder);
  assert.deepEqual(parts.micro?.results.rows, [{ value: 2 }]);
  assert.deepEqual(parts.workers?.results.rows, [{ value: 1 }]);
});

test('events have a rate for each stage', () => {
  const rates = (...words: string[]) => readOptions(['events', ...words], 'results').rates;
  assert.deepEqual(rates(), [500]);
  assert.deepEqual(rates('--rate', '60,500'), [60, 500]);
  assert.throws(() => rates('--rate', '60,'), UsageError);
});

test('words on the command line select parts, and no word selects all of them', () => {
  const select = (...words: string[]) => {
    const { micro, load } = readOptions(words, 'results');
    return [micro, ...load];
  };
  assert.deepEqual(select(), [true, 'a', 'b']);
  assert.deepEqual(select('micro'), [true]);
  assert.deepEqual(select('load'), [false, 'a', 'b']);
  assert.deepEqual(select('load', 'b,d'), [false, 'a', 'b']);
  assert.deepEqual(select('load', 'd'), [false, 'a']);
  assert.deepEqual(select('load', 'micro'), [true, 'a', 'b']);
  for (const wrong of [['lod'], ['load', 'e'], ['--seconds', 'many'], ['--unknown']]) {
    assert.throws(() => readOptions(wrong, 'results'), UsageError, wrong.join(' '));
  }
});

test('rows of paths are selected by name, and run only when paths are asked for', () => {
  const select = (...words: string[]) => {
    const { micro, load, paths, checks } = readOptions(words, 'results');
    return { micro, load, paths, checks };
  };
  const alone = { micro: false, load: [] };
  assert.deepEqual(select('paths', 'round16,minute'), {
    ...alone,
    paths: ['round16'],
    checks: ['minute'],
  });
  assert.deepEqual(select('paths').paths, PATH_NAMES);
  assert.deepEqual(select('paths', 'load', 'b'), {
    micro: false,
    load: ['b'],
    paths: PATH_NAMES,
    checks: ['context', 'snapshot', 'minute'],
  });
  assert.deepEqual(select().paths, []);
  assert.throws(() => select('paths', 'round17'), UsageError);
});

test('tables align numbers to the right, and medians of an even count are means', () => {
  assert.equal(
    renderTable(
      ['name', 'count'],
      [
        ['a', 5],
        ['long one', 1_234],
      ],
    ),
    'name      count\n--------  -----\na             5\nlong one   1234',
  );
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([9]), 9);
});
