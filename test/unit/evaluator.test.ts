/** The evaluator on single cases: one test, or one row of a table, per rule. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { treeOf } from '../../src/core/evaluator.js';
import type { JsonObject } from '../../src/core/json.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  Player,
  parallel,
  race,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

const transform = (id: string, params: JsonObject): Block => ({
  type: 'step',
  id,
  handler: 'transform',
  params,
});

describe('pure steps', () => {
  test('run to the end in one turn, with one row each and every move audited', () => {
    const player = new Player([noop('a'), noop('b')]).start();
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['a', 'b']);
    assert.deepEqual(player.transitions, ['scheduled>running', 'running>completed']);
    assert.equal(player.snapshot.nextFireAt, null);
    assert.deepEqual(player.last!.counts, { stepsExecuted: 2, stepsFailed: 0, stepsRetried: 0 });
  });

  test('see the outputs of earlier steps, which are not merged into the data', () => {
    const player = new Player([
      transform('a', { n: 7 }),
      transform('b', { copy: '{{ outputs.a.n }}' }),
    ]).start();
    assert.deepEqual(player.outputOf('b'), { copy: 7 });
    assert.deepEqual(player.snapshot.data, {});
  });

  test('with an unknown root in a template fail for good and name it', () => {
    const player = new Player([transform('a', { n: '{{ nowhere.x }}' })]).start();
    assert.equal(player.state, 'failed');
    assert.match(player.last!.failure!, /nowhere/);
    assert.equal(player.rows[0]!.outputRef, '__error__');
  });

  test('do not start before next_fire_at', () => {
    const player = new Player([noop('a')]);
    player.snapshot.nextFireAt = START + 1_000;
    player.start();
    assert.equal(player.state, 'scheduled');
    assert.equal(player.last!.wakeAt, START + 1_000);
    player.tick();
    assert.equal(player.state, 'completed');
  });

  test('leave what runs now in the runtime section', () => {
    const { runtime } = new Player([noop('a'), noop('b')]).start().snapshot;
    assert.equal(runtime.current_step, 'b');
    assert.equal(runtime.total_steps_executed, 2);
    assert.equal(runtime.started_at, new Date(START).toISOString());
  });
});

describe('when', () => {
  for (const [when, expected] of [
    ['flag', 'completed'],
    ['missing', 'skipped'],
    ['', 'skipped'],
    ['flag == 1 && (', 'failed'],
  ] as const) {
    test(`"${when}" leaves the step ${expected}`, () => {
      const player = new Player([{ ...noop('a'), when } as Block, noop('b')], {
        data: { flag: true },
      }).start();
      assert.equal(player.tree.a, expected);
      assert.equal(player.tree.b, expected === 'failed' ? 'skipped' : 'completed');
    });
  }
});

describe('external steps', () => {
  test('are dispatched rendered, wait, and merge an object into the data', () => {
    const player = new Player([work('a', { params: { x: '{{ data.n }}' }, queue_name: 'q' })], {
      data: { n: 3, keep: 1 },
    }).start();
    assert.equal(player.state, 'waiting');
    assert.equal(player.last!.wakeAt, null);
    const [dispatch] = player.dispatched;
    assert.deepEqual(dispatch!.params, { x: 3 });
    assert.equal(dispatch!.queueName, 'q');
    assert.equal(dispatch!.external, true);
    player.complete('a', JSON.parse('{"n": 4, "__proto__": {"polluted": 1}}') as JsonObject);
    assert.equal(player.state, 'completed');
    assert.equal(player.snapshot.data.n, 4);
    assert.equal(player.snapshot.data.keep, 1);
    assert.ok(Object.hasOwn(player.snapshot.data, '__proto__'));
    assert.equal(({} as JsonObject).polluted, undefined);
    assert.equal(player.last!.dataChanged, true);
  });

  test('without a retry policy are dispatched again at once, without limit', () => {
    const player = new Player([work('a')]).start();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      assert.equal(player.dispatched.at(-1)!.attempt, attempt);
      player.fail('a', true);
    }
    player.complete('a');
    assert.equal(player.rows[0]!.attempt, 5);
  });

  test('without a retry policy fail at once when the engine is set so', () => {
    const player = new Player([work('a')], { env: { unpoliciedRetry: 'fail' } }).start();
    player.fail('a', true);
    assert.equal(player.state, 'failed');
    assert.equal(player.last!.failure, 'broken');
  });

  test('with a policy are tried max_attempts times, scheduled in between', () => {
    const retry = { max_attempts: 3, initial_backoff: 100, max_backoff: 1_000 };
    const player = new Player([work('a', { retry })]).start();
    player.fail('a', true);
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START + 100);
    assert.equal(player.dispatched.length, 1);
    player.tick();
    player.fail('a', true);
    assert.equal(player.snapshot.nextFireAt, START + 100 + 200);
    player.tick();
    player.fail('a', true);
    assert.equal(player.state, 'failed');
    assert.deepEqual(
      player.dispatched.map(({ attempt }) => attempt),
      [0, 1, 2],
    );
    assert.deepEqual(player.rows, [], 'the error stands on the task');
  });

  test('that fail for good are not tried again', () => {
    const player = new Player([work('a', { retry: { max_attempts: 9 } })]).start();
    player.fail('a', false);
    assert.equal(player.state, 'failed');
  });

  test('that time out fail finally without a policy, and are withdrawn', () => {
    const player = new Player([work('a', { timeout: 500 })]).start();
    assert.equal(player.last!.wakeAt, START + 500);
    player.tick();
    assert.equal(player.state, 'failed');
    assert.deepEqual(
      player.last!.withdrawals.map(({ reason, external }) => [reason, external]),
      [['timed_out', true]],
    );
  });

  test('that time out are tried again under a policy', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = new Player([work('a', { timeout: 500, retry })]).start().tick();
    assert.equal(player.state, 'waiting');
    assert.equal(player.dispatched[1]!.attempt, 1);
  });

  test('take no outcome of another try, iteration, kind or node', () => {
    const player = new Player([work('a')]).start();
    const outcome = { kind: 'success', output: {} } as const;
    const good = { kind: 'step.outcome', node: 0, iteration: '', attempt: 0, outcome } as const;
    for (const event of [
      { ...good, attempt: 1, external: true },
      { ...good, iteration: '0', external: true },
      { ...good, external: false },
      { ...good, node: 7, external: true },
    ]) {
      assert.equal(player.send(event).stale, true);
    }
    assert.equal(player.send({ ...good, external: true }).stale, undefined);
    assert.equal(player.send({ ...good, external: true }).stale, true);
  });

  test('whose data the database refused fail for good', () => {
    const player = new Player([work('a', { retry: { max_attempts: 5 } })]).start();
    player.send({ kind: 'step.refused', node: 0, iteration: '', attempt: 0, message: 'bad data' });
    assert.equal(player.state, 'failed');
    assert.equal(player.last!.failure, 'bad data');
    assert.deepEqual(player.atWork, []);
  });
});

describe('in-process steps', () => {
  test('keep the instance running and leave an __error__ row when they fail', () => {
    const player = new Player([http('a')]).start();
    assert.equal(player.state, 'running');
    assert.equal(player.dispatched[0]!.external, false);
    player.fail('a', true, 'no route', { status: 500 });
    assert.equal(player.state, 'failed');
    assert.deepEqual(player.rows[0]!.output, {
      __error__: true,
      retryable: true,
      message: 'no route',
      details: { status: 500 },
    });
  });

  test('run again with the same try after the process is gone', () => {
    const player = new Player([parallel('p', [http('a')], [work('b')])]).start();
    player.recover();
    assert.deepEqual(
      player.dispatched.map(({ blockId, attempt }) => `${blockId}${attempt}`),
      ['a0', 'b0', 'a0'],
    );
  });

  test('that time out are aborted and tried again', () => {
    const retry = { max_attempts: 2, initial_backoff: 50, max_backoff: 50 };
    const player = new Player([http('a', { timeout: 10, retry })]).start().tick();
    assert.equal(player.state, 'scheduled');
    assert.equal(player.last!.withdrawals[0]!.reason, 'timed_out');
    player.tick();
    assert.deepEqual(player.atWork, ['a']);
  });

  test('retry_if and non_retryable_codes stop the retries', () => {
    const retry = { max_attempts: 3, initial_backoff: 0, max_backoff: 0 };
    const policies: [object, JsonObject | undefined, number][] = [
      [{ ...retry, retry_if: '_error.message == broken' }, undefined, 3],
      [{ ...retry, retry_if: '_error.message == other' }, undefined, 1],
      [{ ...retry, non_retryable_codes: ['503'] }, { status: 503 }, 1],
      [{ ...retry, non_retryable_codes: ['E1'] }, { error_code: 'E2' }, 3],
    ];
    for (const [policy, details, tries] of policies) {
      const player = new Player([http('a', { retry: policy })]).start();
      while (player.state !== 'failed') player.fail('a', true, 'broken', details);
      assert.equal(player.dispatched.length, tries, JSON.stringify(policy));
    }
  });

  test('output_schema is checked, and a violation is final', () => {
    const compileSchema = () => (value: unknown) => (value === 1 ? undefined : 'must be 1');
    const blocks = [http('a', { output_schema: {}, retry: { max_attempts: 3 } })];
    const good = new Player(blocks, { compileSchema }).start();
    good.complete('a', 1);
    assert.equal(good.state, 'completed');
    const bad = new Player(blocks, { compileSchema }).start();
    bad.complete('a', 2);
    assert.equal(bad.state, 'failed');
    assert.match(bad.last!.failure!, /must be 1/);
  });
});

describe('sleep and delay', () => {
  test('sleep is a durable timer, runs on time and reports the requested duration', () => {
    const player = new Player([sleep('a', 300)]).start();
    assert.equal(player.state, 'running');
    assert.equal(player.last!.wakeAt, START + 300);
    assert.deepEqual(player.dispatched, []);
    player.now += 10_000;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.outputOf('a'), { slept_ms: 300 });
    assert.equal(player.state, 'completed');
  });

  test('a sleep that is longer than its timeout fails', () => {
    const player = new Player([sleep('a', 300, { timeout: 100 })]).start().tick();
    assert.equal(player.now, START + 100);
    assert.equal(player.state, 'failed');
  });

  test('delay makes the instance scheduled, once, and not again for a retry', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = new Player([work('a', { delay: { duration: 1_000 }, retry })]).start();
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START + 1_000);
    player.tick();
    player.fail('a', true);
    assert.equal(player.state, 'waiting');
  });

  test('with a delay and an open task the instance is neither waiting nor scheduled', () => {
    const delayed = work('b', { delay: { duration: 1_000 } });
    const player = new Player([parallel('p', [work('a')], [delayed])]).start();
    assert.equal(player.state, 'running');
    player.complete('a');
    assert.equal(player.state, 'scheduled');
    player.tick();
    assert.equal(player.state, 'waiting');
  });

  test('of several deferrals the earliest is next_fire_at', () => {
    const at = (id: string, duration: number) => ({ ...noop(id), delay: { duration } }) as Block;
    const player = new Player([parallel('p', [at('a', 900)], [at('b', 300)])]).start();
    assert.equal(player.snapshot.nextFireAt, START + 300);
    player.tick();
    assert.equal(player.snapshot.nextFireAt, START + 900);
    player.tick();
    assert.deepEqual(player.done, ['b', 'a']);
  });
});

describe('rate limits', () => {
  const blocks = [work('a', { rate_limit_key: 'k', retry: { max_attempts: 2, initial_backoff: 0 } })];
  const env = { isRateLimited: (key: string) => key === 'k' };
  const step = { node: 0, iteration: '', attempt: 0 };

  test('a key without a limit passes', () => {
    assert.deepEqual(new Player(blocks).start().atWork, ['a']);
  });

  test('a try asks, is put off without being consumed, asks again, and runs when granted', () => {
    const player = new Player(blocks, { env }).start();
    assert.equal(player.state, 'running');
    assert.deepEqual(player.asked[0], { ...step, blockId: 'a', key: 'k' });
    player.send({ kind: 'rate.deferred', ...step, until: START + 700 });
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START + 700);
    player.tick();
    assert.equal(player.asked.length, 2);
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.dispatched[0]!.attempt, 0);
    player.fail('a', true);
    assert.equal(player.asked.length, 3, 'the next try takes a token of its own');
  });

  test('a question that was lost with its process is asked again', () => {
    const player = new Player(blocks, { env }).start();
    player.recover();
    assert.equal(player.asked.length, 2);
  });
});

describe('parallel', () => {
  test('starts all branches together and keeps the order within them', () => {
    const player = new Player([parallel('p', [http('a'), http('b')], [http('c')], [])]).start();
    assert.deepEqual(player.atWork, ['a', 'c']);
    player.complete('c');
    player.complete('a');
    assert.deepEqual(player.atWork, ['b']);
    player.complete('b');
    assert.equal(player.state, 'completed');
  });

  test('a failing branch fails it, after the others have finished', () => {
    const player = new Player([parallel('p', [failing('a'), noop('a2')], [work('b')]), noop('z')]);
    player.start();
    assert.equal(player.state, 'waiting');
    assert.equal(player.tree.a2, 'skipped');
    player.complete('b');
    assert.equal(player.state, 'failed');
    assert.deepEqual([player.tree.b, player.tree.z], ['completed', 'skipped']);
  });

  test('with empty branches only completes at once', () => {
    assert.equal(new Player([parallel('p', [], [])]).start().state, 'completed');
  });
});

describe('race', () => {
  test('the first branch to finish wins and the losers are withdrawn', () => {
    const player = new Player([race('r', [work('a'), noop('a2')], [http('b'), noop('b2')])]);
    player.start();
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.deepEqual(
      player.last!.withdrawals.map(({ blockId, reason }) => [blockId, reason]),
      [['a', 'cancelled']],
    );
    assert.equal(player.tree.a, 'cancelled');
    assert.equal(player.tree.a2, 'cancelled');
    assert.equal(player.tree.b2, 'completed');
  });

  test('first_to_resolve fails with the first failure, first_to_succeed with the last', () => {
    const branches = [[work('a')], [work('b')]];
    const resolve = new Player([race('r', ...branches)]).start();
    resolve.fail('a');
    assert.equal(resolve.state, 'failed');
    const succeed: Block = { type: 'race', id: 'r', semantics: 'first_to_succeed', branches };
    const player = new Player([succeed]).start();
    player.fail('a');
    assert.equal(player.state, 'waiting');
    const other = new Player([succeed]).start();
    other.fail('b');
    other.complete('a');
    assert.equal(other.state, 'completed');
    player.fail('b');
    assert.equal(player.state, 'failed');
  });

  test('a success in the same round as a failure wins', () => {
    for (const branches of [
      [[failing('a')], [noop('b')]],
      [[noop('b')], [failing('a')]],
    ]) {
      assert.equal(new Player([race('r', ...branches)]).start().state, 'completed');
    }
    const later = new Player([race('r', [failing('a')], [noop('b'), noop('c')])]).start();
    assert.equal(later.state, 'failed');
  });

  test('an empty branch finishes at once, successfully', () => {
    const player = new Player([race('r', [work('a')], [])]).start();
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.dispatched, []);
  });

  test('a failure that was caught inside a branch does not count', () => {
    const player = new Player([race('r', [tryCatch('t', [failing('x')], [work('y')])], [work('b')])]);
    player.start();
    assert.equal(player.state, 'waiting');
    player.complete('y');
    assert.equal(player.state, 'completed');
  });

  test('the finally list of a loser runs before the race ends', () => {
    const loser = tryCatch('t', [work('a')], [noop('c')], [work('clean')]);
    const player = new Player([race('r', [loser, noop('never')], [work('b')]), noop('z')]).start();
    player.complete('b');
    assert.deepEqual(player.atWork, ['clean']);
    assert.equal(player.tree.a, 'cancelled');
    player.complete('clean');
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['b', 'clean', 'z']);
    assert.equal(player.tree.c, 'skipped');
  });
});

describe('router', () => {
  const router = (...conditions: string[]): Block => ({
    type: 'router',
    id: 'r',
    routes: conditions.map((condition, i) => ({ condition, blocks: [noop(`b${i}`)] })),
    default: [noop('d')],
  });

  for (const [conditions, data, expected] of [
    [['plan == pro', 'plan'], { plan: 'pro' }, 'b0'],
    [['plan == pro', 'plan'], { plan: 'free' }, 'b1'],
    [['plan == pro', 'plan'], {}, 'd'],
    [['(((', 'n * 2 > 5'], { n: 3 }, 'b1'],
    [['user.vip'], { user: { vip: true } }, 'b0'],
  ] as const) {
    test(`${conditions.join(' / ')} with ${JSON.stringify(data)} runs ${expected}`, () => {
      const player = new Player([router(...conditions)], { data: data as JsonObject }).start();
      assert.deepEqual(player.done, [expected]);
      assert.equal(player.state, 'completed');
    });
  }

  test('decides once, also when a branch changes what was tested', () => {
    const block: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'flag', blocks: [work('a'), noop('b')] }],
      default: [noop('c')],
    };
    const player = new Player([block], { data: { flag: true } }).start();
    player.complete('a', { flag: false });
    assert.deepEqual(player.done, ['a', 'b']);
    assert.equal(player.tree.c, 'skipped');
  });

  test('without a match and without a default completes; a failing child fails it', () => {
    const block: Block = { type: 'router', id: 'r', routes: [{ condition: 'x', blocks: [failing('a')] }] };
    assert.equal(new Player([block]).start().state, 'completed');
    assert.equal(new Player([block], { data: { x: 1 } }).start().state, 'failed');
  });
});

describe('try_catch', () => {
  const cases: [string, Block, string, string[]][] = [
    ['ok', tryCatch('t', [noop('a')], [noop('c')], [noop('f')]), 'completed', ['a', 'f']],
    ['ok, no finally', tryCatch('t', [noop('a')], [noop('c')]), 'completed', ['a']],
    ['failed, caught', tryCatch('t', [failing('a')], [noop('c')], [noop('f')]), 'completed', ['c', 'f']],
    ['failed, empty catch', tryCatch('t', [failing('a')], []), 'completed', []],
    ['both failed', tryCatch('t', [failing('a')], [failing('c')], [noop('f')]), 'failed', ['f']],
    ['finally failed', tryCatch('t', [noop('a')], [], [failing('f')]), 'failed', ['a']],
  ];
  for (const [title, block, state, done] of cases) {
    test(`${title}: the instance is ${state}`, () => {
      const player = new Player([block]).start();
      assert.equal(player.state, state);
      assert.deepEqual(player.done, done);
    });
  }

  test('_error names the failed block, and later siblings are skipped', () => {
    const player = new Player([tryCatch('t', [failing('a'), noop('b')], [noop('c')])]).start();
    assert.deepEqual(player.snapshot.data._error, {
      failed_blocks: ['a'],
      source: 'try_catch',
      block_id: 't',
    });
    assert.equal(player.tree.b, 'skipped');
    assert.equal(player.last!.dataChanged, true);
  });

  test('a nested recovery leaves the outer one untouched', () => {
    const inner = tryCatch('i', [failing('a')], [noop('c')]);
    const player = new Player([tryCatch('o', [inner, noop('b')], [noop('never')])]).start();
    assert.deepEqual(player.done, ['c', 'b']);
  });
});

describe('loop', () => {
  test('rows of body steps count over the iterations, its own rows follow each of them', () => {
    const player = new Player([loop('l', 'true', 3, [noop('a'), noop('b')])]).start();
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['a@0', 'b@0', 'l', 'a@1', 'b@1', 'l', 'a@2', 'b@2', 'l']);
    const rows = player.rows.filter(({ blockId }) => blockId === 'a');
    assert.deepEqual(
      rows.map(({ attempt, tryNumber }) => [attempt, tryNumber]),
      [
        [0, 0],
        [1, 0],
        [2, 0],
      ],
    );
    const own = player.rows.filter(({ blockId }) => blockId === 'l');
    assert.deepEqual(
      own.map(({ attempt, output }) => [attempt, output]),
      [
        [1, { _iterations: 1 }],
        [2, { _iterations: 2 }],
        [3, { _iterations: 3 }],
      ],
    );
  });

  test('tests its condition before each iteration only', () => {
    const player = new Player([loop('l', 'go', 9, [work('a'), noop('b')])], { data: { go: true } });
    player.start();
    player.complete('a', { go: false });
    assert.deepEqual(player.done, ['a@0', 'b@0', 'l']);
    assert.equal(new Player([loop('l', 'go', 9, [noop('a')])]).start().rows.length, 0);
  });

  test('stops with a failure in its body; a try_catch inside keeps it going', () => {
    assert.equal(new Player([loop('l', 'true', 5, [failing('a')])]).start().state, 'failed');
    const caught = loop('l', 'true', 5, [tryCatch('t', [failing('a')], [])]);
    const player = new Player([caught]).start();
    assert.equal(player.state, 'completed');
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'l').length, 5);
  });

  test('counts tries per iteration', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = new Player([loop('l', 'true', 2, [work('a', { retry })])]).start();
    for (let i = 0; i < 2; i += 1) {
      player.fail('a', true);
      player.complete('a');
    }
    assert.deepEqual(
      player.dispatched.map(({ iteration, attempt }) => [iteration, attempt]),
      [
        ['0', 0],
        ['0', 1],
        ['1', 0],
        ['1', 1],
      ],
    );
    assert.equal(player.state, 'completed');
  });

  test('nested loops have a path of counters', () => {
    const player = new Player([loop('o', 'true', 2, [loop('i', 'true', 2, [noop('a')])])]).start();
    const paths = player.done.filter((id) => id.startsWith('a'));
    assert.deepEqual(paths, ['a@0.0', 'a@0.1', 'a@1.0', 'a@1.1']);
    const inner = player.rows.filter(({ blockId }) => blockId === 'i');
    assert.deepEqual(
      inner.map(({ iteration, attempt }) => [iteration, attempt]),
      [
        ['0', 0],
        ['0', 1],
        ['1', 2],
        ['1', 3],
      ],
    );
  });
});

describe('for_each', () => {
  test('gives each item to templates, conditions and workers, and removes it at the end', () => {
    const body = [
      transform('a', { v: '{{ data.item.v }}' }),
      { ...work('w'), when: 'item.v > 1' } as Block,
    ];
    const data = { items: [{ v: 1 }, { v: 2 }] };
    const player = new Player([forEach('f', 'items', body)], { data }).start();
    assert.deepEqual(player.dispatched[0]!.overlay, { item: { v: 2 } });
    assert.equal(player.dispatched[0]!.iteration, '1');
    player.complete('w');
    assert.equal(player.state, 'completed');
    const seen = player.rows.filter(({ blockId }) => blockId === 'a').map(({ output }) => output);
    assert.deepEqual(seen, [{ v: 1 }, { v: 2 }]);
    assert.equal(player.snapshot.data.item, undefined);
    assert.equal(player.snapshot.snapshots.size, 0);
  });

  test('its own rows carry the index, the first one before any item', () => {
    const player = new Player([forEach('f', 'xs', [noop('a')])], { data: { xs: [7, 8] } }).start();
    const own = player.rows.filter(({ blockId }) => blockId === 'f');
    assert.deepEqual(
      own.map(({ attempt, output }) => [attempt, (output as JsonObject)._index]),
      [
        [0, 0],
        [1, 1],
        [2, 2],
      ],
    );
    assert.deepEqual(own[0]!.output, {
      _index: 0,
      _total: 2,
      _item_var: 'item',
      _snapshot_ref: ':f',
    });
  });

  test('the items are frozen, stored once and dropped when all are done', () => {
    const player = new Player([forEach('f', 'xs', [work('a')], { item_var: 'x' })], {
      data: { xs: [1, 2] },
    }).start();
    assert.deepEqual(player.last!.snapshots, [{ key: ':f', items: [1, 2] }]);
    player.complete('a', { xs: [9, 9, 9, 9] });
    assert.deepEqual(player.dispatched[1]!.overlay, { x: 2 });
    player.complete('a');
    assert.deepEqual(player.last!.droppedSnapshots, [':f']);
    assert.equal(player.state, 'completed');
  });

  test('nested items shadow, and an inner collection may be in an outer item', () => {
    const inner = forEach('i', 'row.cells', [transform('a', { v: '{{ data.cell }}{{ data.row.n }}' })], {
      item_var: 'cell',
    });
    const data = { rows: [{ n: 1, cells: ['x', 'y'] }, { n: 2, cells: ['z'] }] };
    const player = new Player([forEach('o', 'rows', [inner], { item_var: 'row' })], { data }).start();
    const seen = player.rows.filter(({ blockId }) => blockId === 'a').map(({ output }) => output);
    assert.deepEqual(seen, [{ v: 'x1' }, { v: 'y1' }, { v: 'z2' }]);
  });

  for (const [title, data, max, state] of [
    ['a missing collection completes', {}, 10, 'completed'],
    ['null completes', { xs: null }, 10, 'completed'],
    ['an empty collection completes', { xs: [] }, 10, 'completed'],
    ['an object fails the block', { xs: { a: 1 } }, 10, 'failed'],
    ['more items than max_iterations fail the block', { xs: [1, 2, 3] }, 2, 'failed'],
  ] as const) {
    test(`${title}, without a row`, () => {
      const block = forEach('f', 'xs', [noop('a')], { max_iterations: max });
      const player = new Player([block], { data: data as unknown as JsonObject }).start();
      assert.equal(player.state, state);
      assert.deepEqual(player.rows, []);
      assert.equal(player.last!.failure !== undefined, state === 'failed');
    });
  }

  test('the collection may be a template over outputs', () => {
    const player = new Player([
      transform('list', { xs: [1, 2] }),
      forEach('f', '{{ outputs.list.xs }}', [noop('a')]),
    ]).start();
    assert.deepEqual(player.done.filter((id) => id.startsWith('a')), ['a@0', 'a@1']);
  });

  test('the items of one that failed and was caught go with the next iteration', () => {
    const body = [tryCatch('t', [forEach('f', 'xs', [work('a')])], [])];
    const player = new Player([loop('l', 'true', 2, body)], { data: { xs: [1, 2] } }).start();
    player.fail('a');
    assert.deepEqual([...player.snapshot.snapshots.keys()], ['1:f']);
    player.fail('a');
    assert.equal(player.state, 'completed');
    assert.equal(player.snapshot.snapshots.size, 0);
  });
});

describe('pause and resume', () => {
  test('an outcome during a pause is stored, and nothing new is dispatched', () => {
    const player = new Player([work('a'), work('b')]).start();
    player.send({ kind: 'pause' });
    player.complete('a', { x: 1 });
    assert.equal(player.state, 'paused');
    assert.deepEqual(player.done, ['a']);
    assert.equal(player.snapshot.data.x, 1);
    assert.deepEqual(player.atWork, []);
    player.send({ kind: 'resume' });
    assert.deepEqual(player.atWork, ['b']);
    assert.equal(player.state, 'waiting');
  });

  test('a permanent failure fails a paused step-only instance', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.fail('a');
    assert.equal(player.state, 'failed');
  });

  test('a permanent failure leaves an instance with composite blocks paused', () => {
    const player = new Player([tryCatch('t', [work('a')], [noop('c')])]).start();
    player.send({ kind: 'pause' });
    player.fail('a');
    assert.equal(player.state, 'paused');
    assert.equal(player.tree.a, 'failed');
    player.send({ kind: 'resume' });
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['c']);
  });

  test('an instance whose last step completes during the pause completes after it', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.complete('a');
    assert.equal(player.state, 'paused');
    player.send({ kind: 'resume' });
    assert.equal(player.state, 'completed');
  });

  test('a sleep keeps its deadline over a pause, and a task its timeout', () => {
    const player = new Player([parallel('p', [sleep('s', 100)], [work('a', { timeout: 5_000 })])]);
    player.start();
    player.send({ kind: 'pause' });
    assert.equal(player.last!.wakeAt, START + 5_000);
    player.now += 200;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.done, []);
    player.send({ kind: 'resume' });
    assert.deepEqual(player.done, ['s']);
    player.send({ kind: 'pause' });
    player.tick();
    assert.equal(player.tree.a, 'failed');
    assert.equal(player.state, 'paused');
  });

  test('a retry that falls into a pause is dispatched after it', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.fail('a', true);
    assert.deepEqual(player.atWork, []);
    player.send({ kind: 'resume' });
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

  test('resume makes a delayed start due now', () => {
    const player = new Player([noop('a')]);
    player.snapshot.nextFireAt = START + 60_000;
    player.start();
    player.send({ kind: 'pause' });
    player.sendOnce({ kind: 'resume' });
    assert.equal(player.state, 'scheduled');
    assert.equal(player.last!.wakeAt, START);
    player.send({ kind: 'wake' });
    assert.equal(player.state, 'completed');
  });

  test('a failed instance that is paused is retried when it is resumed', () => {
    const player = new Player([work('a')]).start();
    player.fail('a');
    player.send({ kind: 'pause' });
    assert.equal(player.state, 'paused');
    assert.equal(player.send({ kind: 'resume' }).dropErrorRows, true);
    assert.deepEqual(player.atWork, ['a']);
  });
});

describe('requested states', () => {
  test('park holds everything until an outcome', () => {
    const player = new Player([parallel('p', [work('a')], [sleep('s', 10)]), noop('z')]).start();
    player.send({ kind: 'park' });
    assert.equal(player.state, 'waiting');
    player.now += 20;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.done, []);
    player.complete('a');
    assert.deepEqual(player.done, ['a', 's', 'z']);
  });

  test('reschedule holds new work until its time, while open work goes on', () => {
    const player = new Player([work('a'), work('b')]).start();
    player.send({ kind: 'reschedule', at: START + 1_000 });
    assert.equal(player.state, 'scheduled');
    player.complete('a');
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START + 1_000);
    assert.deepEqual(player.atWork, []);
    player.tick();
    assert.deepEqual(player.atWork, ['b']);
  });

  test('reschedule to an earlier time ends a delay early, to a later one holds it', () => {
    const delayed = { ...noop('a'), delay: { duration: 10_000 } } as Block;
    const early = new Player([delayed]).start();
    early.send({ kind: 'reschedule', at: null });
    assert.equal(early.state, 'completed');
    const late = new Player([delayed]).start();
    late.send({ kind: 'reschedule', at: START + 20_000 });
    late.now = START + 15_000;
    late.send({ kind: 'wake' });
    assert.deepEqual(late.done, []);
    late.tick();
    assert.equal(late.now, START + 20_000);
    assert.equal(late.state, 'completed');
  });

  for (const state of ['completed', 'failed', 'cancelled'] as const) {
    test(`stop as ${state} is hard: open work is withdrawn and no finally list runs`, () => {
      const block = tryCatch('t', [parallel('p', [work('a')], [http('b')], [sleep('s', 9)])], [], [noop('f')]);
      const player = new Player([block, noop('z')]).start();
      player.send({ kind: 'stop', state, reason: 'by request' });
      assert.equal(player.state, state);
      assert.deepEqual(
        player.last!.withdrawals.map(({ blockId }) => blockId),
        ['a', 'b'],
      );
      assert.equal(player.last!.wakeAt, null);
      assert.deepEqual(player.done, []);
      assert.deepEqual(player.tree, {
        t: 'cancelled',
        p: 'cancelled',
        a: 'cancelled',
        b: 'cancelled',
        s: 'cancelled',
        f: 'cancelled',
        z: 'cancelled',
      });
      if (state === 'failed') assert.equal(player.last!.failure, 'by request');
    });
  }

  test('a terminal state is never left', () => {
    const player = new Player([noop('a')]).start();
    for (const event of [
      { kind: 'wake' },
      { kind: 'pause' },
      { kind: 'resume' },
      { kind: 'park' },
      { kind: 'cancel' },
      { kind: 'retry' },
      { kind: 'reschedule', at: null },
      { kind: 'stop', state: 'failed' },
    ] as const) {
      player.send(event);
      assert.equal(player.state, 'completed');
    }
  });
});

describe('cancel', () => {
  test('without protected work ends at once', () => {
    const player = new Player([parallel('p', [work('a')], [sleep('s', 9)]), noop('z')]).start();
    player.send({ kind: 'cancel' });
    assert.equal(player.state, 'cancelled');
    assert.deepEqual(player.atWork, []);
    assert.equal(player.tree.z, 'cancelled');
  });

  test('before the start, and of a failed instance, ends at once', () => {
    const early = new Player([noop('a')]);
    early.send({ kind: 'cancel' });
    assert.equal(early.state, 'cancelled');
    const failed = new Player([failing('a')]).start();
    failed.send({ kind: 'cancel' });
    assert.equal(failed.state, 'cancelled');
  });

  test('runs the finally list first, also from waiting and paused, and no later block', () => {
    for (const paused of [false, true]) {
      const block = tryCatch('t', [work('a'), noop('b')], [noop('c')], [work('f'), noop('g')]);
      const player = new Player([block, noop('z')]).start();
      if (paused) player.send({ kind: 'pause' });
      player.send({ kind: 'cancel' });
      assert.deepEqual(player.atWork, ['f']);
      assert.equal(player.state, 'waiting');
      assert.equal(player.tree.g, 'pending');
      player.send({ kind: 'cancel' });
      player.complete('f');
      assert.equal(player.state, 'cancelled');
      assert.deepEqual(player.done, ['f', 'g']);
      assert.deepEqual([player.tree.b, player.tree.z], ['cancelled', 'cancelled']);
    }
  });

  test('during the finally list lets it finish, even if it fails', () => {
    const player = new Player([tryCatch('t', [noop('a')], [], [work('f')])]).start();
    player.send({ kind: 'cancel' });
    player.fail('f');
    assert.equal(player.state, 'cancelled');
  });

  test('waits for steps that are not cancellable, and cuts off the rest', () => {
    const player = new Player([
      parallel('p', [work('a', { cancellable: false }), noop('a2')], [work('b')]),
      noop('z'),
    ]).start();
    player.send({ kind: 'cancel' });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.state, 'waiting');
    player.complete('a');
    assert.equal(player.state, 'cancelled');
    assert.deepEqual(player.done, ['a']);
  });

  test('nested: the protected step ends, then its finally lists run inside out', () => {
    const inner = tryCatch('i', [work('a', { cancellable: false }), noop('b')], [], [noop('f1')]);
    const outer = tryCatch('o', [parallel('p', [inner, noop('c')], [work('d')])], [], [noop('f2')]);
    const player = new Player([outer]).start();
    player.send({ kind: 'cancel' });
    player.complete('a');
    assert.deepEqual(player.done, ['a', 'f1', 'f2']);
    assert.equal(player.state, 'cancelled');
  });

  test('in the body of a loop ends the loop', () => {
    const body = [tryCatch('t', [work('a')], [], [noop('f')])];
    const player = new Player([loop('l', 'true', 5, body)]).start();
    player.complete('a');
    player.send({ kind: 'cancel' });
    assert.deepEqual(player.done, ['a@0', 'f@0', 'l', 'f@1']);
    assert.equal(player.state, 'cancelled');
  });
});

describe('retry of a failed instance', () => {
  test('runs the failed step again, with fresh tries, and nothing that completed', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = new Player([noop('a'), work('b', { retry }), noop('c')]).start();
    player.fail('b', true);
    player.fail('b', true);
    assert.equal(player.state, 'failed');
    const progress = player.sendOnce({ kind: 'retry' });
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START);
    assert.equal(progress.dropErrorRows, true);
    assert.equal(progress.more, true);
    player.send({ kind: 'wake' });
    assert.equal(player.dispatched.at(-1)!.attempt, 0);
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['a', 'b', 'c']);
  });

  test('goes on in the iteration and the route that failed', () => {
    const routed: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'go', blocks: [noop('a'), work('b')] }],
      default: [noop('d')],
    };
    const player = new Player([loop('l', 'true', 3, [routed])], { data: { go: true } }).start();
    player.complete('b', { go: true });
    player.fail('b');
    player.snapshot.data = { go: false };
    player.send({ kind: 'retry' });
    assert.equal(player.dispatched.at(-1)!.iteration, '1');
    player.complete('b', { go: true });
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.deepEqual(
      player.done.filter((id) => id.startsWith('a')),
      ['a@0', 'a@1', 'a@2'],
    );
  });

  test('keeps the items and the place of a for_each', () => {
    const player = new Player([forEach('f', 'xs', [work('a')])], { data: { xs: [1, 2] } }).start();
    player.complete('a');
    player.fail('a');
    player.send({ kind: 'retry' });
    assert.deepEqual(player.dispatched.at(-1)!.overlay, { item: 2 });
    player.complete('a');
    assert.equal(player.state, 'completed');
  });

  test('tries the whole of a try_catch again, and steps over what completed', () => {
    const block = tryCatch('t', [work('a')], [noop('c1'), work('c2')], [noop('f')]);
    const player = new Player([block]).start();
    player.fail('a');
    player.fail('c2');
    assert.equal(player.state, 'failed');
    player.send({ kind: 'retry' });
    player.fail('a');
    player.complete('c2');
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['c1', 'f', 'c2']);
  });

  test('after a hard stop runs what was cut off', () => {
    const player = new Player([parallel('p', [work('a')], [noop('b')])]).start();
    player.send({ kind: 'stop', state: 'failed' });
    assert.equal(player.last!.failure, undefined);
    player.send({ kind: 'retry' });
    assert.deepEqual(player.atWork, ['a']);
    player.complete('a');
    assert.equal(player.state, 'completed');
  });
});

describe('bounds', () => {
  test('a turn stops at its budget and the next one goes on', () => {
    const player = new Player([loop('l', 'true', 100, [noop('a')])], { env: { stepBudget: 10 } });
    player.sendOnce({ kind: 'wake' });
    assert.equal(player.state, 'running');
    assert.equal(player.last!.more, true);
    assert.ok(player.rows.length <= 10);
    player.send({ kind: 'wake' });
    assert.equal(player.state, 'completed');
  });

  test('a turn stops when its outputs are large enough', () => {
    const big = transform('a', { text: 'x'.repeat(1_000) });
    const player = new Player([loop('l', 'true', 10, [big])], { env: { outputBytesBudget: 3_000 } });
    player.sendOnce({ kind: 'wake' });
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'a').length, 3);
  });

  test('a race that is open beside an endless loop is decided all the same', () => {
    const endless = loop('l', 'true', 100_000, [noop('a')]);
    const player = new Player([race('r', [endless], [work('b')])], { env: { stepBudget: 50 } });
    player.sendOnce({ kind: 'wake' });
    assert.deepEqual(player.atWork, ['b']);
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.ok(player.rows.length < 200);
  });
});

describe('the tree', () => {
  test('has a node for every block, with parents, branches, times and stable ids', () => {
    const player = new Player([parallel('p', [work('a')], [noop('b')]), noop('z')]).start();
    player.now += 5;
    player.complete('a');
    const { plan, snapshot } = player;
    const nodes = treeOf(plan, snapshot.execution, snapshot.id);
    assert.deepEqual(nodes, treeOf(plan, snapshot.execution, snapshot.id));
    assert.deepEqual(
      nodes.map((node) => [node.block_id, node.branch_index, node.block_type]),
      [
        ['p', null, 'parallel'],
        ['a', 0, 'step'],
        ['b', 1, 'step'],
        ['z', null, 'step'],
      ],
    );
    assert.equal(nodes[1]!.parent_id, nodes[0]!.id);
    assert.equal(nodes[0]!.parent_id, null);
    assert.equal(nodes[1]!.started_at, new Date(START).toISOString());
    assert.equal(nodes[1]!.completed_at, new Date(START + 5).toISOString());
    assert.equal(new Set(nodes.map(({ id }) => id)).size, 4);
  });

  test('shows what is under way and what has yet to come', () => {
    const blocks = [work('a'), { ...noop('d'), delay: { duration: 9 } } as Block, noop('z')];
    const player = new Player(blocks);
    assert.deepEqual(player.tree, { a: 'pending', d: 'pending', z: 'pending' });
    player.start();
    assert.deepEqual(player.tree, { a: 'waiting', d: 'pending', z: 'pending' });
    player.complete('a');
    assert.deepEqual(player.tree, { a: 'completed', d: 'waiting', z: 'pending' });
  });
});
