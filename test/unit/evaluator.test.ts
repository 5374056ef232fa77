/** The evaluator on steps, bounds and the tree: one test, or one row of a table, per rule. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { advance, type Dispatch, type Env, treeOf } from '../../src/core/evaluator.js';
import type { JsonObject } from '../../src/core/json.js';
import {
  freshSnapshot,
  http,
  loop,
  noop,
  Player,
  parallel,
  planOf,
  play,
  race,
  START,
  sleep,
  transform,
  work,
} from '../helpers/player.js';
import { column, lines } from '../helpers/rows.js';

const ENV: Env = {
  now: START,
  random: () => 0.5,
  unpoliciedRetry: 'redispatch',
  stepBudget: 500,
  outputBytesBudget: 1_000_000,
};

describe('pure steps', () => {
  test('run to the end in one turn, with one row each and every move audited', () => {
    const player = play([noop('a'), noop('b')]);
    player.shows({ state: 'completed', done: ['a', 'b'] });
    assert.deepEqual(player.transitions, ['scheduled>running', 'running>completed']);
    assert.equal(player.snapshot.nextFireAt, null);
    const counts = {
      stepsExecuted: 2,
      stepsInPlace: 2,
      stepsFailed: 0,
      stepsRetried: 0,
      timeouts: 0,
      breaches: 0,
    };
    assert.deepEqual(player.last!.counts, counts);
  });

  test('see the outputs of earlier steps, which are not merged into the data', () => {
    const player = play([transform('a', { n: 7 }), transform('b', { copy: '{{ outputs.a.n }}' })]);
    assert.deepEqual(player.outputOf('b'), { copy: 7 });
    assert.deepEqual(player.snapshot.data, {});
  });

  test('with an unknown root in a template fail for good and name it', () => {
    const player = play([transform('a', { n: '{{ nowhere.x }}' })]);
    assert.equal(player.state, 'failed');
    assert.match(player.snapshot.execution.y!.message, /nowhere/);
    assert.equal(player.rows[0]!.outputRef, '__error__');
  });

  test('do not start before next_fire_at', () => {
    const player = new Player([noop('a')]);
    player.snapshot.nextFireAt = START + 1_000;
    player.start().shows({ state: 'scheduled', wakeAt: START + 1_000 });
    player.after('tick').shows({ state: 'completed' });
  });

  test('leave what runs now in the runtime section', () => {
    const { runtime } = play([noop('a'), noop('b')]).snapshot;
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
      const player = play([{ ...noop('a'), when } as Block, noop('b')], {
        data: { flag: true },
      });
      player.shows({ tree: { a: expected, b: expected === 'failed' ? 'skipped' : 'completed' } });
    });
  }
});

describe('external steps', () => {
  test('are dispatched rendered, wait, and merge an object into the data', () => {
    const player = play([work('a', { params: { x: '{{ data.n }}' }, queue_name: 'q' })], {
      data: { n: 3, keep: 1 },
    });
    player.shows({ state: 'waiting', wakeAt: null });
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
  });

  test('without a retry policy are dispatched again without limit: at once, then after twice as long each time', () => {
    const player = play([work('a')]);
    const waits: number[] = [];
    for (let attempt = 0; attempt < 40; attempt += 1) {
      assert.equal(player.dispatched.at(-1)!.attempt, attempt);
      const failedAt = player.now;
      player.fail('a', true);
      if (player.state === 'scheduled') player.tick();
      waits.push(player.now - failedAt);
    }
    assert.deepEqual(waits.slice(0, 5), [0, 200, 400, 800, 1_600]);
    assert.deepEqual(waits.slice(9, 12), [51_200, 60_000, 60_000]);
    player.complete('a');
    assert.equal(player.rows[0]!.attempt, 40);
  });

  test('wait as long as a failure says, or as the policy says if that is longer', () => {
    const retry = { max_attempts: 3, initial_backoff: 1_000, backoff_multiplier: 10 };
    const player = play([http('a', { retry })]);
    const outcome = {
      kind: 'failure',
      retryable: true,
      message: 'busy',
      retryAfterMs: 5_000,
    } as const;
    player.end('a', outcome).shows({ nextFireAt: START + 5_000 });
    player
      .tick()
      .end('a', outcome)
      .shows({ nextFireAt: START + 5_000 + 10_000 });
  });

  test('an output that the context has no room for is kept, and fails the step for good', () => {
    const env = { fitsContext: (data: JsonObject) => JSON.stringify(data).length < 20 };
    const retry = { max_attempts: 3, initial_backoff: 0 };
    const player = play([work('a', { retry }), work('b')], { env, data: { n: 1 } });
    player.complete('a', { text: 'x'.repeat(30) });
    player.shows({ state: 'failed', data: { n: 1 } });
    assert.match(player.snapshot.execution.y!.message, /^context limit: /);
    assert.deepEqual(player.outputOf('a'), { text: 'x'.repeat(30) });
  });

  test('an output with merge_output: false is read as an output only', () => {
    const env = { fitsContext: () => false };
    const blocks = [work('a', { merge_output: false }), transform('b', { n: '{{outputs.a.n}}' })];
    const player = play(blocks, { env });
    player.complete('a', { n: 7 });
    player.shows({ state: 'completed', data: {} });
    assert.deepEqual(player.outputOf('b'), { n: 7 });
  });

  test('without a retry policy fail at once when the engine is set so', () => {
    play([work('a')], { env: { unpoliciedRetry: 'fail' } })
      .after('again a')
      .shows({ state: 'failed', failure: 'broken' });
  });

  test('with a policy are tried max_attempts times, scheduled in between', () => {
    const retry = { max_attempts: 3, initial_backoff: 100, max_backoff: 1_000 };
    const player = play([work('a', { retry })]);
    player.after('again a').shows({ state: 'scheduled', nextFireAt: START + 100 });
    assert.equal(player.dispatched.length, 1);
    player.after('tick', 'again a').shows({ nextFireAt: START + 100 + 200 });
    player.after('tick', 'again a').shows({ state: 'failed' });
    assert.deepEqual(column(player.dispatched, 'attempt'), [0, 1, 2]);
    assert.deepEqual(player.rows, [], 'the error stands on the task');
  });

  test('that fail for good are not tried again', () => {
    const player = play([work('a', { retry: { max_attempts: 9 } })]);
    player.fail('a', false);
    assert.equal(player.state, 'failed');
  });

  test('that time out fail finally without a policy, and are withdrawn', () => {
    const player = play([work('a', { timeout: 500 })]).after('claim a');
    assert.equal(player.last!.wakeAt, START + 500);
    player.after('tick').shows({ state: 'failed' });
    assert.deepEqual(lines(player.last!.withdrawals, 'reason', 'external'), ['timed_out true']);
  });

  test('that time out are tried again under a policy', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = play([work('a', { timeout: 500, retry })]).after('claim a', 'tick');
    assert.equal(player.state, 'waiting');
    assert.equal(player.dispatched[1]!.attempt, 1);
  });

  test('take no outcome of another try, iteration, kind or node', () => {
    const player = play([work('a')]);
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
    const player = play([work('a', { retry: { max_attempts: 5 } })]);
    player.send({ kind: 'step.refused', node: 0, iteration: '', attempt: 0, message: 'bad data' });
    player.shows({ state: 'failed', failure: 'bad data', atWork: [] });
  });
});

describe('in-process steps', () => {
  test('keep the instance running and leave an __error__ row when they fail', () => {
    const player = play([http('a')]);
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
    play([parallel('p', [http('a')], [work('b')])])
      .after('recover')
      .shows({ tries: ['a0', 'b0', 'a0'] });
  });

  test('that time out are aborted and tried again', () => {
    const retry = { max_attempts: 2, initial_backoff: 50, max_backoff: 50 };
    const player = play([http('a', { timeout: 10, retry })]).tick();
    assert.equal(player.state, 'scheduled');
    assert.equal(player.last!.withdrawals[0]!.reason, 'timed_out');
    player.after('tick').shows({ atWork: ['a'] });
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
      const player = play([http('a', { retry: policy })]);
      while (player.state !== 'failed') player.fail('a', true, 'broken', details);
      assert.equal(player.dispatched.length, tries, JSON.stringify(policy));
    }
  });

  test('output_schema is checked, and a violation is final', () => {
    const compileSchema = () => (value: unknown) => (value === 1 ? undefined : 'must be 1');
    const blocks = [http('a', { output_schema: {}, retry: { max_attempts: 3 } })];
    const good = play(blocks, { compileSchema });
    good.complete('a', 1);
    assert.equal(good.state, 'completed');
    const bad = play(blocks, { compileSchema });
    bad.complete('a', 2);
    assert.equal(bad.state, 'failed');
    assert.match(bad.snapshot.execution.y!.message, /must be 1/);
  });
});

describe('sleep and delay', () => {
  test('sleep is a durable timer, runs on time and reports the requested duration', () => {
    const player = play([sleep('a', 300)]);
    player.shows({ state: 'running', wakeAt: START + 300 });
    assert.deepEqual(player.dispatched, []);
    player.now += 10_000;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.outputOf('a'), { slept_ms: 300 });
    assert.equal(player.state, 'completed');
  });

  test('a sleep that is longer than its timeout fails', () => {
    const player = play([sleep('a', 300, { timeout: 100 })]).tick();
    assert.equal(player.now, START + 100);
    assert.equal(player.state, 'failed');
  });

  test('delay makes the instance scheduled, once, and not again for a retry', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = play([work('a', { delay: { duration: 1_000 }, retry })]);
    player.shows({ state: 'scheduled', nextFireAt: START + 1_000 });
    player.after('tick', 'again a').shows({ state: 'waiting' });
  });

  test('with a delay and an open task the instance is neither waiting nor scheduled', () => {
    const delayed = work('b', { delay: { duration: 1_000 } });
    const player = play([parallel('p', [work('a')], [delayed])]);
    assert.equal(player.state, 'running');
    player.after('ok a').shows({ state: 'scheduled' });
    player.after('tick').shows({ state: 'waiting' });
  });

  test('of several deferrals the earliest is next_fire_at', () => {
    const at = (id: string, duration: number) => ({ ...noop(id), delay: { duration } }) as Block;
    const player = play([parallel('p', [at('a', 900)], [at('b', 300)])]);
    assert.equal(player.snapshot.nextFireAt, START + 300);
    player.after('tick').shows({ nextFireAt: START + 900 });
    player.after('tick').shows({ done: ['b', 'a'] });
  });
});

describe('rate limits', () => {
  const blocks = [
    work('a', { rate_limit_key: 'k', retry: { max_attempts: 2, initial_backoff: 0 } }),
  ];
  const env = { isRateLimited: (key: string) => key === 'k' };
  const step = { node: 0, iteration: '', attempt: 0 };

  test('a key without a limit passes', () => {
    assert.deepEqual(play(blocks).atWork, ['a']);
  });

  test('a try asks, is put off without being consumed, asks again, and runs when granted', () => {
    const player = play(blocks, { env });
    assert.equal(player.state, 'running');
    assert.deepEqual(player.asked[0], { ...step, blockId: 'a', key: 'k' });
    player.send({ kind: 'rate.deferred', ...step, until: START + 700 });
    player.shows({ state: 'scheduled', nextFireAt: START + 700 });
    player.after('tick').shows({ asked: 2 });
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.dispatched[0]!.attempt, 0);
    player.fail('a', true);
    assert.equal(player.asked.length, 3, 'the next try takes a token of its own');
  });

  test('a question that was lost with its process is asked again', () => {
    play(blocks, { env }).after('recover').shows({ asked: 2 });
  });
});

describe('bounds', () => {
  test('a turn stops at its budget and the next one goes on', () => {
    const player = new Player([loop('l', 'true', 100, [noop('a')])], { env: { stepBudget: 10 } });
    player.sendOnce({ kind: 'wake' });
    assert.equal(player.state, 'running');
    assert.equal(player.last!.more, true);
    assert.ok(player.rows.length <= 10);
    player.after('wake').shows({ state: 'completed' });
  });

  test('a turn stops when its outputs are large enough', () => {
    const big = transform('a', { text: 'x'.repeat(1_000) });
    const player = new Player([loop('l', 'true', 10, [big])], {
      env: { outputBytesBudget: 3_000 },
    });
    player.sendOnce({ kind: 'wake' });
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'a').length, 3);
  });

  test('100,000 iterations are many short turns and leave a small execution', () => {
    const plan = planOf([loop('l', 'true', 100_000, [noop('a')])]);
    const snapshot = freshSnapshot();

    let rows = 0;
    let progress = advance(plan, snapshot, { kind: 'wake' }, ENV);
    for (;;) {
      assert.ok(progress.outputs.length <= 500);
      assert.ok(JSON.stringify(snapshot.execution).length < 200);
      rows += progress.outputs.length;
      if (!progress.more) break;
      progress = advance(plan, snapshot, { kind: 'wake' }, ENV);
    }
    assert.equal(snapshot.state, 'completed');
    assert.equal(rows, 200_000);
  });

  test('4,600 tasks at once complete one by one, whatever their order', () => {
    const branch = (b: number) => Array.from({ length: 18 }, (_, i) => [work(`t${b}.${i}`)]);
    const branches = Array.from({ length: 256 }, (_, b) => [parallel(`p${b}`, ...branch(b))]);
    const plan = planOf([parallel('root', ...branches)]);
    const snapshot = freshSnapshot();
    const dispatches: Dispatch[] = [];
    let more = true;
    while (more) {
      const progress = advance(plan, snapshot, { kind: 'wake' }, ENV);
      dispatches.push(...progress.dispatches);
      more = progress.more;
    }
    assert.equal(dispatches.length, 18 * 256);
    for (const { node, iteration, attempt } of dispatches.reverse()) {
      assert.equal(snapshot.state, 'waiting');
      const outcome = { kind: 'success', output: null } as const;
      const event = {
        kind: 'step.outcome',
        node,
        iteration,
        attempt,
        outcome,
        external: true,
      } as const;
      advance(plan, snapshot, event, ENV);
    }
    assert.equal(snapshot.state, 'completed');
  });

  test('a race that is open beside an endless loop is decided all the same', () => {
    const endless = loop('l', 'true', 100_000, [noop('a')]);
    const player = new Player([race('r', [endless], [work('b')])], { env: { stepBudget: 50 } });
    player.sendOnce({ kind: 'wake' });
    assert.deepEqual(player.atWork, ['b']);
    player.after('ok b').shows({ state: 'completed' });
    assert.ok(player.rows.length < 200);
  });
});

describe('the tree', () => {
  test('has a node for every block, with parents, branches, times and stable ids', () => {
    const player = play([parallel('p', [work('a')], [noop('b')]), noop('z')]);
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
