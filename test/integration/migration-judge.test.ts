/** The thread that replays instances for the plans of migrations. */

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { FrontierTask } from '../../src/frontier.thread.js';
import { createLogger } from '../../src/log.js';
import { IN_PLACE, ThreadedJudge } from '../../src/migration-judge.js';
import { noop, work } from '../helpers/player.js';
import { recordLife } from '../helpers/recorder.js';

const log = createLogger('silent', 'test');

/** The life of an instance that waits for a worker behind so many steps. */
function task(steps: number, more: Partial<FrontierTask> = {}): FrontierTask {
  const blocks: Block[] = [...Array.from({ length: steps }, (_, i) => noop(`s${i}`)), work('gate')];
  const life = recordLife(blocks, {
    turns: steps + 10,
    answer: ({ blockId }) => (blockId === 'gate' ? { kind: 'never' } : {}),
  });
  assert.ok(life !== undefined);
  const definition = JSON.stringify({ blocks });
  return {
    source: definition,
    target: definition,
    isSame: false,
    life: {
      ...life,
      state: 'waiting',
      has_injected: false,
      data: JSON.stringify(life.data),
      config: '{}',
      execution: JSON.stringify(life.execution),
      outputs: JSON.stringify(life.outputs),
      tasks: JSON.stringify(life.tasks),
      signals: '[]',
    },
    sourceData: '{}',
    targetData: '{}',
    hasTransforms: false,
    receipts: [],
    unpoliciedRetry: 'fail',
    ...more,
  };
}

describe('a replay in a thread', () => {
  const judge = new ThreadedJudge(log);
  after(() => judge.stop());

  test('says the same as one in place', async () => {
    const target = JSON.stringify({ blocks: [noop('new'), work('gate')] });
    const injected = task(3);
    const cases = [
      task(3),
      task(3, { target }),
      task(3, { target: JSON.stringify({ blocks: [noop('twice'), noop('twice')] }) }),
      { ...injected, life: { ...injected.life, has_injected: true } },
    ];
    const verdicts = await Promise.all(cases.map((asked) => judge.replay(asked)));
    assert.deepEqual(verdicts, await Promise.all(cases.map((asked) => IN_PLACE.replay(asked))));
    assert.deepEqual(verdicts[0], { passed: true });
    assert.ok(verdicts.slice(1).every(({ passed }) => !passed));
  });

  test('that takes too long is no proof, and the next one has a thread of its own', async () => {
    const hasty = new ThreadedJudge(log, 1);
    try {
      const verdict = await hasty.replay(task(2_000));
      assert.deepEqual(verdict, { passed: false, reason: 'it takes too long or too much' });
    } finally {
      await hasty.stop();
    }
    assert.deepEqual(await judge.replay(task(2_000)), { passed: true });
  });

  test('is refused when the engine stops, and when too many are asked for', async () => {
    const busy = new ThreadedJudge(log);
    const asked = Array.from({ length: 9 }, () => busy.replay(task(1)));
    const settled = Promise.allSettled(asked);
    await assert.rejects(asked[8] as Promise<unknown>, { code: 'ENG_OVERLOADED', status: 503 });
    await busy.stop();
    await settled;
    await assert.rejects(busy.replay(task(1)), { code: 'ENG_STOPPING', status: 503 });
  });
});
