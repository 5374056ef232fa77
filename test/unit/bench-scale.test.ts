/** What the benches of growth and of other engines are told and tell, without running them. */

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { renderPanels } from '../../bench/chart/lines.js';
import { readOptions, UsageError } from '../../bench/options.js';
import { growthPanels } from '../../bench/page/pictures.js';
import { installPeers, missingIn, PACKAGES } from '../../bench/peers/packages.js';
import { rowOf } from '../../bench/peers/run.js';
import { WORK_NAMES } from '../../bench/peers/works.js';
import { stepsTo } from '../../bench/scale/growth.js';

test('the parts scale and peers run only when they are named', () => {
  const usual = readOptions([], 'results');
  assert.deepEqual([usual.scale, usual.peers, usual.micro], [false, [], true]);
  const named = readOptions(['scale', 'peers', '--peers-dir', 'there'], 'results');
  assert.deepEqual(
    [named.scale, named.peers, named.micro, named.load],
    [true, WORK_NAMES, false, []],
  );
  assert.equal(named.peersFolder, 'there');
  const some = readOptions(['peers', 'batches16,idle1', 'paths', 'round16'], 'results');
  assert.deepEqual([some.peers, some.paths], [['batches16', 'idle1'], ['round16']]);
  assert.throws(() => readOptions(['peers', 'batches17'], 'results'), UsageError);
});

test('a growth goes to a million in steps of ten, or as far as is asked for', () => {
  const { scaleTo, growthOf, herd } = readOptions(['scale'], 'results');
  assert.deepEqual(stepsTo(scaleTo), [1_000, 10_000, 100_000, 1_000_000]);
  assert.deepEqual([growthOf, herd], [['waiting', 'pending'], 10_000]);
  const less = readOptions(['scale', '--instances', '25000', '--growth-of', 'pending'], 'results');
  assert.deepEqual(stepsTo(less.scaleTo), [1_000, 10_000, 25_000]);
  assert.deepEqual(less.growthOf, ['pending']);
  assert.deepEqual(stepsTo(readOptions(['scale', '--instances', '10'], 'results').scaleTo), [10]);
  assert.throws(() => readOptions(['scale', '--growth-of', 'grass'], 'results'), UsageError);
});

test('a growth is drawn with a line for each quantity, from left to right', () => {
  const row = {
    readyMs: 1_000,
    residentMib: 130,
    pollP99Ms: 9,
    fewP50Ms: 4,
    fewP99Ms: 8,
    p50Ratio: 1.1,
  };
  const pending = [
    { ...row, pending: 1_000, pollP50Ms: 4 },
    { ...row, pending: 1_000_000, pollP50Ms: 40 },
  ];
  const panels = growthPanels([], pending);
  assert.ok(panels.every(({ series }) => series.some(({ points }) => points.length > 0)));
  const svg = renderPanels('Growth <on> this & that', panels, 'logarithmic', 'tasks');
  assert.match(svg, /^<svg xmlns="[^"]+" [^>]*>/);
  assert.match(svg, /Growth &lt;on&gt; this &amp; that/);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
  const lines = [...svg.matchAll(/<polyline points="(\S+),(\S+) (\S+),(\S+)"/g)];
  const polls = lines.find(([, , y1, , y2]) => y1 !== y2)!;
  assert.ok(Number(polls[1]) < Number(polls[3]), 'more instances are further to the right');
  assert.ok(Number(polls[2]) > Number(polls[4]), 'what takes longer is further up');
});

test('an engine is judged by the median of its rounds, each beside ours in the same round', () => {
  const rounds = [
    { own: 100, 'pg-boss': 10, bullmq: 50 },
    { own: 200, 'pg-boss': 10 },
    { own: 300, 'pg-boss': 10 },
  ];
  const work = { name: 'created', at: 64, title: 'created' } as const;
  const { of, ratio } = rowOf(work, ['own', 'pg-boss', 'graphile-worker', 'bullmq'], rounds);
  assert.deepEqual(of, { own: 200, 'pg-boss': 10, bullmq: 50 });
  assert.deepEqual(ratio, { 'pg-boss': 20, bullmq: 2 });
  const idle = rowOf({ ...work, name: 'idle' }, ['own', 'pg-boss'], [{ own: 2, 'pg-boss': 6 }]);
  assert.deepEqual(idle.ratio, { 'pg-boss': 3 }, 'of times the shorter one is the better one');
});

test('other engines that cannot be had end the bench with what npm said', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-peers-'));
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
    rmSync(folder, { recursive: true, force: true });
  });
  const names = Object.entries(PACKAGES);
  assert.deepEqual(
    missingIn(folder),
    names.map(([name, version]) => `${name}@${version}`),
  );

  writeFileSync(path.join(folder, 'npm'), '#!/bin/sh\necho "no such host" >&2\nexit 1\n');
  chmodSync(path.join(folder, 'npm'), 0o755);
  process.env.PATH = `${folder}${path.delimiter}${PATH}`;
  assert.throws(() => installPeers(folder), {
    name: 'Error',
    message: /pg-boss@.*could not be installed into .*registry within reach\?\nno such host/s,
  });

  for (const [name, version] of names) {
    mkdirSync(path.join(folder, 'node_modules', name), { recursive: true });
    const file = path.join(folder, 'node_modules', name, 'package.json');
    writeFileSync(file, JSON.stringify({ version }));
  }
  installPeers(folder);
});
