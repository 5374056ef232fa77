/** The thread that replays runs: what costs too much costs that thread, and nothing else. */

import assert from 'node:assert/strict';
import { after, afterEach, describe, test } from 'node:test';
import type { StoredRun } from '../../src/db/reads/replay-reads.js';
import { createLogger } from '../../src/log.js';
import { Replays, type ReplaysOptions } from '../../src/replays.js';
import { noop, START } from '../helpers/player.js';
import { record } from '../helpers/recorder.js';

const log = createLogger('silent', 'test');
const pools: Replays[] = [];

function open(more: Partial<ReplaysOptions> = {}): Replays {
  const replays = new Replays({ unpoliciedRetry: 'redispatch', log, runMs: 60_000, ...more });
  pools.push(replays);
  return replays;
}

afterEach(() => Promise.all(pools.splice(0).map((replays) => replays.stop())));
after(() => assert.deepEqual(pools, []));

const definition = (...blocks: object[]) => JSON.stringify({ id: 's', blocks });
const same = { baseline: definition(noop('a')), candidate: definition(noop('a')) };

/** As it is stored, of one step. */
function stored(more: Partial<StoredRun> = {}): StoredRun {
  const { data, config, execution, outputs, tasks, signals, ...run } = record([noop('a')]);
  return {
    ...run,
    data: JSON.stringify(data),
    config: JSON.stringify(config),
    execution: JSON.stringify(execution),
    has_injected: false,
    outputs: JSON.stringify(outputs),
    tasks: JSON.stringify(tasks),
    signals: JSON.stringify(signals),
    ...more,
  };
}

/** Turns without end: each pass takes no more than the turn may, and there are more than a replay may have. */
const endless = {
  baseline: same.baseline,
  candidate: definition(noop('a'), {
    type: 'loop',
    id: 'l',
    condition: 'true',
    max_iterations: 100_000,
    body: [
      { type: 'loop', id: 'm', condition: 'true', max_iterations: 100_000, body: [noop('b')] },
    ],
  }),
};

describe('replays in a thread', () => {
  test('a run is replayed with the definitions that were prepared', async () => {
    const replays = open();
    assert.equal(await replays.prepare(same), undefined);
    assert.deepEqual(await replays.replay(same, stored()), { kind: 'match' });
    const added = { ...same, candidate: definition(noop('a'), noop('b')) };
    const verdict = await replays.replay(added, stored());
    assert.ok(verdict.kind === 'divergence');
    assert.deepEqual(verdict.divergence.blocks_added, ['b']);
  });

  test('what is wrong with a candidate is said before anything is replayed', async () => {
    const broken = { ...same, candidate: definition(noop('a'), noop('a')) };
    assert.match((await open().prepare(broken)) ?? '', /not unique/);
  });

  test('a run that takes too long is inconclusive, and the next one has a new thread', async () => {
    const replays = open({ runMs: 50 });
    await replays.prepare(endless);
    const verdict = await replays.replay(endless, stored());
    assert.deepEqual(verdict, { kind: 'inconclusive', reason: 'it takes too long or too much' });
    assert.equal((await replays.replay(endless, stored())).kind, 'inconclusive');
  });

  test('so is one that needs too much memory', async () => {
    const replays = open({ heapMib: 32 });
    await replays.prepare(same);
    const data = `{"items":[${'{},'.repeat(1_500_000)}{}]}`;
    const verdict = await replays.replay(same, stored({ data }));
    assert.deepEqual(verdict, { kind: 'inconclusive', reason: 'it takes too long or too much' });
    assert.deepEqual(await replays.replay(same, stored()), { kind: 'match' });
  });

  test('a run whose replay throws is inconclusive', async () => {
    const replays = open();
    await replays.prepare(same);
    const verdict = await replays.replay(same, stored({ outputs: 'no JSON' }));
    assert.deepEqual(verdict, { kind: 'inconclusive', reason: 'the replay threw' });
    assert.deepEqual(await replays.replay(same, stored()), { kind: 'match' });
  });

  test('one that was retried since it was found is inconclusive', async () => {
    const replays = open();
    const verdict = await replays.replay(same, stored({ state: 'scheduled' }));
    assert.deepEqual(verdict, { kind: 'inconclusive', reason: 'it runs again' });
  });

  test('a replay that is under way is given up when the engine stops', async () => {
    const replays = open();
    await replays.prepare(endless);
    const given = replays.replay(endless, stored());
    const refused = assert.rejects(given, { code: 'ENG_STOPPING' });
    await replays.stop();
    await refused;
    await assert.rejects(replays.prepare(same), { code: 'ENG_STOPPING' });
  });

  test('the time of a replay is that of the run', async () => {
    const replays = open();
    const condition = `now() == "${new Date(START).toISOString()}"`;
    const routed = definition({
      type: 'router',
      id: 'r',
      routes: [{ condition, blocks: [noop('a')] }],
      default: [],
    });
    await replays.prepare({ ...same, candidate: routed });
    const verdict = await replays.replay({ ...same, candidate: routed }, stored());
    assert.deepEqual(verdict, { kind: 'match' });
  });
});
