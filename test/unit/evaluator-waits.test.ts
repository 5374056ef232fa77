/** Waits and time in the evaluator: people, events, hooks, timeouts, deadlines, windows and fire times. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readTree, writeTree } from '../../actors/continuity/core/execution-tree.js';
import type { Block, Hooks } from '../../schema/blocks.js';
import type { StepRecord } from '../../schema/execution.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { parseAnswer } from '../../src/core/blocks/gate.js';
import { cancellingIn } from '../../src/core/instance-state.js';
import { iterationOf } from '../../src/core/paths.js';
import { compilePlan } from '../../src/core/plan.js';
import type { KeptSignal } from '../../src/core/progress.js';
import { remapExecution } from '../../src/core/remap.js';
import { column, lines } from '../helpers/columns.js';
import {
  failing,
  forEach,
  http,
  noop,
  Player,
  type PlayerOptions,
  parallel,
  planOf,
  play,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

const MINUTE = 60_000;

const gated = (block: Block, wait_for_input: object = {}, more: object = {}): Block =>
  ({ ...block, wait_for_input, ...more }) as Block;

/** Somebody says this at the open gate of the block. */
function say(player: Player, block: string, payload: JsonObject): Player {
  const node = player.plan.nodes[player.plan.indexOf.get(block)!]!;
  assert.ok(node.type === 'step' && node.gate !== undefined);
  const answer = parseAnswer(node.gate, payload, null);
  assert.ok(answer !== undefined, 'is no choice');
  const iteration = iterationOf(player.snapshot.execution, node);
  player.send({ kind: 'gate.answered', node: node.index, iteration, attempt: 0, answer });
  return player;
}

const rowsOf = ({ rows }: Player): [string, string | null, JsonValue][] =>
  rows.map(({ blockId, outputRef, output }) => {
    const { answered_at: _at, ...rest } = output as JsonObject;
    return [blockId, outputRef, rest];
  });

describe('a gate', () => {
  test('stores the answer, puts its value into the data, and lets the handler run', () => {
    const player = play([gated(work('a'), { store_as: 'ok', allow_comment: true }), noop('b')]);
    say(player, 'a', { value: 'no', comment: 'hm', note: 1 });
    player.shows({ state: 'waiting', data: { ok: 'no' }, atWork: ['a'] });
    player.complete('a', { x: 1 });
    assert.equal(player.state, 'completed');
    const said = { value: 'no', comment: 'hm', note: 1, answered_by: null };
    assert.deepEqual(rowsOf(player).slice(0, 2), [
      ['a', 'human_input', said],
      ['a', null, { x: 1 }],
    ]);
  });

  test('comes behind when, delay and rate limit, each of which is asked once', () => {
    assert.equal(play([gated(noop('a'), {}, { when: 'data.no' })]).state, 'completed');
    const late = play([gated(noop('a'), {}, { delay: { duration: MINUTE } })]);
    late.shows({ state: 'scheduled', wakeAt: START + MINUTE }).tick();
    assert.equal(say(late.shows({ state: 'waiting' }), 'a', { value: 'yes' }).state, 'completed');
    const limited = play([gated(work('a'), {}, { rate_limit_key: 'k' })], {
      env: { isRateLimited: () => true },
    });
    limited.shows({ asked: 1, state: 'running' });
    limited.send({ kind: 'rate.granted', node: 0, iteration: '', attempt: 0 });
    limited.shows({ state: 'waiting', atWork: [] });
    say(limited, 'a', { value: 'yes' }).shows({ asked: 1, atWork: ['a'] });
  });

  test('needs no other permit when a crash comes between the answer and the try', () => {
    const player = play([gated(http('a'), {}, { rate_limit_key: 'k' })], {
      env: { isRateLimited: () => true },
    });
    player.send({ kind: 'rate.granted', node: 0, iteration: '', attempt: 0 });
    player.send({ kind: 'pause' });
    say(player, 'a', { value: 'yes' }).sendOnce({ kind: 'resume' });
    player.after('recover').shows({ state: 'running', asked: 1, atWork: ['a'] });
    player.after('recover').shows({ asked: 2, atWork: [] });
  });

  test('fails the step when its question cannot be put', () => {
    const player = play([gated(noop('a'), { prompt: '{{ nowhere.x }}?' })]);
    assert.equal(player.snapshot.execution.y?.code, 'expression_error');
  });

  test('is answered by a dry run that says so with the first choice', () => {
    const choices = [
      { label: 'Go', value: 'go' },
      { label: 'Stop', value: 'stop' },
    ];
    for (const isAuto of [true, false]) {
      const player = new Player([gated(work('a'), { choices })]);
      player.snapshot.runtime.dry_run = true;
      if (isAuto) player.snapshot.runtime.dry_run_auto_approve = true;
      player.start().shows({ state: isAuto ? 'completed' : 'waiting' });
      assert.deepEqual(player.snapshot.data, isAuto ? { a: 'go' } : {});
    }
  });
});

/** As a signal that nothing has taken yet. */
function kept(block: string, payload: JsonValue, seq: number): KeptSignal {
  const name = `human_input:${block}`;
  return { id: `signal-${seq}`, seq, name, payload, characters: 10, by: `key ${seq}` };
}

describe('an answer that came before its gate', () => {
  const ahead = (payloads: JsonValue[], blocks: Block[], options: PlayerOptions = {}) => {
    const player = new Player(blocks, options);
    player.snapshot.signals = payloads.map((payload, seq) => kept('a', payload, seq));
    return player.start();
  };

  test('is taken when the gate is reached, the oldest first, and what is no choice is used up', () => {
    const player = ahead(
      [{ value: 'maybe' }, { value: 'no' }, { value: 'yes' }],
      [gated(work('a'))],
    );
    player.shows({ data: { a: 'no' }, atWork: ['a'] });
    assert.equal((rowsOf(player)[0]![2] as JsonObject).answered_by, 'key 1');
    assert.deepEqual(column(player.snapshot.signals ?? [], 'payload'), [{ value: 'yes' }]);
    assert.deepEqual(column(player.last?.takenSignals ?? [], 'status'), ['refused', 'taken']);
  });

  test('is for the iteration or path that it names', () => {
    const blocks = [forEach('f', 'items', [gated(noop('a'))])];
    const data = { items: [1, 2, 3] };
    for (const meant of [{ iteration: 1 }, { iteration: '1' }, { path: 'f[1]/a' }]) {
      const player = ahead([{ value: 'no', ...meant }], blocks, { data });
      player.shows({ state: 'waiting', data });
      say(player, 'a', { value: 'yes' }).shows({ state: 'waiting', data: { ...data, a: 'no' } });
      assert.equal(iterationOf(player.snapshot.execution, player.plan.nodes[1]!), '2');
    }
  });
});

describe('a gate in another version', () => {
  const moved = (to: Block[], wait: object = { timeout: 10 * MINUTE }) => {
    const player = play([parallel('p', [gated(work('a'), wait)], [sleep('s', 1)])]).tick();
    player.snapshot.execution.o[1]!.b = 0;
    (player.snapshot.execution.o[1] as StepRecord).k = 'id';
    const target = planOf(to);
    return { target, execution: remapExecution(player.snapshot.execution, player.plan, target) };
  };
  const within = (wait?: object) => [
    parallel('p', [wait === undefined ? work('a') : gated(work('a'), wait)], [sleep('s', 1)]),
  ];

  test('stays open, with the time that the target gives it from when the wait began', () => {
    const open = (wait: object) => moved(within(wait)).execution.o[1] as StepRecord;
    const seen = [open({ timeout: 10 * MINUTE }).d, open({}).d];
    assert.deepEqual(seen, [START + 10 * MINUTE, undefined]);
    assert.deepEqual([open({ timeout: 5 }).d, open({ timeout: 5 }).k], [START + 5, 'id']);
  });

  test('is passed where the target has none', () => {
    const { execution } = moved(within());
    assert.deepEqual([(execution.o[1] as StepRecord).p, execution.q], ['ready', [1]]);
  });
});

test('a capsule carries a gate with its time, and that it was passed, but not the id of the question', () => {
  const timed = gated(work('a'), { timeout: MINUTE });
  const player = play([parallel('p', [timed], [gated(http('b'))], [gated(work('c'))])]);
  say(player, 'b', { value: 'yes' });
  const { execution } = player.snapshot;
  for (const record of Object.values(execution.o) as StepRecord[]) if (record.p) record.k = 'id';
  const entries = writeTree({ execution, items: new Map(), blocks: [] }, player.plan);
  const read = readTree(JSON.parse(JSON.stringify(entries)), player.plan);
  assert.ok(read.ok, read.ok ? '' : read.message);
  const [, a, b, c] = [0, 1, 2, 3].map((index) => read.value.execution.o[index] as StepRecord);
  assert.deepEqual([a?.p, a?.d, a?.k, a?.m], ['gate', START + MINUTE, '', 0]);
  assert.deepEqual([b?.p, b?.k, c?.p], ['run', '', 'gate']);
});

const wait = (id: string, params: JsonObject = {}, more: JsonObject = {}) =>
  ({
    type: 'step',
    id,
    handler: 'wait_for_event',
    params: { name: 'paid', ...params },
    ...more,
  }) as Block;

const keptEvent = (seq: number, payload: JsonValue, name = 'paid'): KeptSignal => ({
  id: `s${seq}`,
  seq,
  name,
  payload,
  characters: 1,
});

function playWith(signals: KeptSignal[], blocks: Block[], options: PlayerOptions = {}): Player {
  const player = new Player(blocks, options);
  player.snapshot.signals = signals;
  return player.start();
}

const recordOf = (player: Player, node = 0) => player.snapshot.execution.o[node] as StepRecord;

describe('a step that waits for an event', () => {
  test('makes the instance waiting without a time, and notes what it waits for', () => {
    const player = play([wait('a', { key: '{{ data.id }}' })], { data: { id: 7 } });
    player.shows({ state: 'waiting', wakeAt: null, tree: { a: 'waiting' } });
    assert.deepEqual(recordOf(player).v, { n: 'paid', k: '7' });
    assert.equal(player.last!.opensEventWait, true);
  });

  test('fails for good with params that cannot be right', () => {
    for (const params of [
      { name: ' ' },
      { name: 7 },
      { name: 'x'.repeat(256) },
      { key: '' },
      { key: {} },
      { key: 'x'.repeat(513) },
      { timeout_ms: 0 },
      { timeout_ms: '5' },
    ]) {
      const player = play([wait('a', params, { retry: { max_attempts: 3 } })]);
      player.shows({ state: 'failed' });
      assert.equal(player.snapshot.execution.y?.code, 'invalid_params');
    }
  });
});

describe('a signal that is kept', () => {
  test('that is none for the wait is used up, and the next one is tried', () => {
    const compileSchema = () => (value: JsonValue) => (value === 1 ? 'it is 1' : undefined);
    const player = playWith([keptEvent(1, 1), keptEvent(2, 2)], [wait('a', { schema: {} })], {
      compileSchema,
    });
    player.shows({ state: 'completed' });
    const statuses = player.last!.takenSignals?.map(({ status }) => status);
    assert.deepEqual(statuses, ['refused', 'taken']);
  });

  test('ends the wait of a dry run, which waits for nothing else', () => {
    const player = new Player([wait('a', { key: 'k' }), wait('b')]);
    player.snapshot.signals = [keptEvent(1, 'here')];
    player.snapshot.runtime.dry_run = true;
    player.start().shows({ state: 'completed' });
    assert.equal(player.outputOf('a'), 'here');
    assert.deepEqual(player.outputOf('b'), {
      dry_run: true,
      handler: 'wait_for_event',
      would: { params: { name: 'paid' } },
    });
  });
});

const hook = (id: string, handler = 'noop', fields: object = {}) => ({
  type: 'step' as const,
  id,
  handler: handler as 'noop',
  ...fields,
});

const TELL = { params: { why: '{{ data._error.message }}', at: '{{ data._error.path }}' } };

/** An instance that has started, of a sequence with hooks. */
const playHooked = (hooks: Hooks, blocks = [work('a')], options: PlayerOptions = {}): Player =>
  new Player(blocks, { ...options, hooks }).start();

const hookRows = (player: Player) =>
  lines(
    player.rows.filter(({ iteration }) => iteration.startsWith('on_')),
    'blockId',
    'iteration',
    'attempt',
  );

describe('on_failure', () => {
  test('runs its steps in order once the instance has failed, and tells them why', () => {
    const hooks = { on_failure: [hook('tell', 'transform', TELL), hook('then')] };
    const player = playHooked(hooks, [parallel('p', [work('a')])]).after('fail a');
    player.shows({ state: 'failed', wakeAt: null });
    assert.deepEqual(hookRows(player), ['tell on_failure.0 0', 'then on_failure.0 0']);
    assert.deepEqual(player.outputOf('tell'), { why: 'broken', at: 'p/a' });
    assert.equal(player.snapshot.data._error, undefined);
    assert.deepEqual(Object.keys(player.tree), ['p', 'a']);
  });

  test('does not begin before the failure is stored', () => {
    const player = playHooked({ on_failure: [hook('tell')] }, [work('a')]);
    const { node, iteration, attempt } = player.dispatched[0]!;
    const outcome = { kind: 'failure', retryable: false, message: 'broken' } as const;
    const progress = player.sendOnce({
      kind: 'step.outcome',
      node,
      iteration,
      attempt,
      outcome,
      external: true,
    });
    assert.deepEqual([player.state, progress.more, player.rows.length], ['failed', true, 0]);
    player.after('wake');
    assert.equal(player.rows.length, 1);
  });

  test('goes on behind a step that fails, which leaves a line in the audit and no row', () => {
    const broken = hook('broken', 'transform', { params: { x: '{{ nonsense.x }}' } });
    const player = playHooked({ on_failure: [hook('x', 'fail'), broken, hook('last')] });
    player.after('fail a').shows({ state: 'failed', failure: 'broken' });
    assert.deepEqual(hookRows(player), ['last on_failure.0 0']);
    assert.deepEqual(column(player.last!.audit, 'eventType'), ['hook_failed', 'hook_failed']);
    assert.equal(player.last!.audit[0]?.details?.hooks, 'on_failure');
  });

  test('reads the outputs of blocks and of hooks before it, and is skipped by its when', () => {
    const hooks = {
      on_failure: [
        hook('one', 'transform', { params: { n: '{{ outputs.t.n }}' } }),
        hook('skipped', 'noop', { when: 'data._error.code == timeout' }),
        hook('two', 'transform', { params: { n: '{{ outputs.one.n }}' } }),
      ],
    };
    const t = { type: 'step', id: 't', handler: 'transform', params: { n: 4 } } as const;
    const player = playHooked(hooks, [t, failing('f')]);
    assert.deepEqual(player.outputOf('two'), { n: 4 });
    assert.deepEqual(column(player.rows, 'blockId').includes('skipped'), false);
  });

  test('does so for one that is failed by request, too', () => {
    const player = playHooked({ on_failure: [hook('tell', 'transform', TELL)] });
    player.after({ kind: 'stop', state: 'failed' }).shows({ state: 'failed' });
    assert.deepEqual(player.outputOf('tell'), { why: 'failed by request', at: null });
  });
});

describe('a hook that takes a while', () => {
  const call = hook('call', 'http_request', { params: { url: 'https://x.example' } });
  const hooks = { on_failure: [call, hook('last')] };

  test('is given up after 30 s, or after its timeout if that is shorter', () => {
    const player = playHooked(hooks).after('fail a', 'tick');
    player.shows({ withdrawn: ['call'], wakeAt: null });
    assert.deepEqual(hookRows(player), ['last on_failure.0 0']);
    const other = playHooked({ on_failure: [{ ...call, timeout: 50 }] }).after('fail a');
    other.shows({ wakeAt: other.now + 50 });
    const long = playHooked({ on_failure: [{ ...call, timeout: 90_000 }] }).after('fail a');
    long.shows({ wakeAt: long.now + 30_000 });
  });

  test('runs again when its process died, with the same idempotency key', () => {
    const player = playHooked(hooks)
      .after('fail a', 'recover')
      .shows({ atWork: ['call'] });
    assert.deepEqual(lines(player.dispatched.slice(1), 'blockId', 'iteration', 'attempt'), [
      'call on_failure.0 0',
      'call on_failure.0 0',
    ]);
    player.after('ok call').shows({ atWork: [] });
  });

  test('comes before the hooks of a later end', () => {
    const both = { ...hooks, on_cancel: [hook('sorry')] };
    const player = playHooked(both).after('fail a', 'cancel').shows({ state: 'cancelled' });
    assert.deepEqual(hookRows(player), []);
    player.after('ok call');
    assert.deepEqual(hookRows(player), [
      'call on_failure.0 0',
      'last on_failure.0 0',
      'sorry on_cancel.1 1',
    ]);
  });

  test('what makes the engine throw is dropped with what is left of the list, and taken back', () => {
    const player = playHooked(hooks).after('fail a');
    player.sendOnce({ kind: 'hooks.dropped', message: 'refused' });
    const taken = lines(player.last!.withdrawals, 'blockId', 'iteration');
    assert.deepEqual(taken, ['call on_failure.0']);
    assert.deepEqual(column(player.last!.audit, 'eventType'), ['hook_failed']);
    player.shows({ wakeAt: null, state: 'failed' });
  });
});

test('ids of hooks are unique among those of all blocks', () => {
  const on_failure = [hook('a')];
  const compiled = compilePlan({ id: 's', blocks: [noop('a')], on_failure });
  assert.deepEqual(compiled, { ok: false, message: 'block id a is not unique' });
});

const code = ({ snapshot }: Player) => snapshot.execution.y?.code;
const cancellingOf = ({ snapshot }: Player) => cancellingIn(snapshot.runtime);
const audited = ({ last }: Player) => last!.audit.map(({ eventType }) => eventType);

describe('the time of a task', () => {
  test('counts from the claim, and anew from each claim', () => {
    const player = play([work('a', { timeout: 1_000 })]);
    player.shows({ wakeAt: null });
    player.now += 5_000;
    player.after('claim a').shows({ wakeAt: START + 6_000, state: 'waiting' });
    player.now += 500;
    player.after('return a').shows({ wakeAt: null });
    player.after('claim a').shows({ wakeAt: START + 6_500 });
    player.after('tick').shows({ state: 'failed', withdrawn: ['a'] });
    assert.equal(player.last!.withdrawals[0]!.reason, 'timed_out');
    assert.equal(code(player), 'timeout');
  });

  test('a task that nobody claims in time fails its try, which may be tried again', () => {
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const player = play([work('a', { queue_timeout: 100, timeout: 1_000, retry })]);
    player.after('tick').shows({ tries: ['a0', 'a1'], withdrawn: ['a'] });
    assert.equal(player.last!.withdrawals[0]!.reason, 'unclaimed');
    player.after('claim a').shows({ wakeAt: START + 1_100 });
    player.after('return a').shows({ wakeAt: START + 200 });
    player.after('tick').shows({
      state: 'failed',
      failure: 'no worker claimed the task within 100 ms',
    });
    assert.equal(code(player), 'queue_timeout');
  });
});

describe('timeout of an instance', () => {
  const started = (blocks: Block[], timeoutMs: number, options: { hooks?: Hooks } = {}) => {
    const player = new Player(blocks, options);
    player.snapshot = { ...player.snapshot, timeoutMs };
    return player.start();
  };

  test('counts from the first step, fails what is open, and a retry has all of it again', () => {
    const player = started([work('a'), noop('z')], 1_000);
    player.shows({ wakeAt: START + 1_000 });
    player.after('tick');
    player.shows({ state: 'failed', failure: 'the instance timed out after 1000 ms' });
    assert.equal(code(player), 'instance_timeout');
    player.now += 50;
    player.after('retry').shows({ state: 'waiting', wakeAt: START + 2_050 });
  });

  test('lets finally lists run first, and then it has failed', () => {
    const player = started(
      [tryCatch('t', [work('a')], [noop('c')], [work('clean')]), noop('z')],
      100,
    );
    player.after('tick').shows({ atWork: ['clean'], wakeAt: null });
    const noted = { since: new Date(player.now).toISOString(), reason: 'timeout' };
    assert.deepEqual(cancellingOf(player), { ...noted, waiting_for: ['clean'] });
    player.after('ok clean').shows({ state: 'failed', tree: { t: 'cancelled', z: 'cancelled' } });
    assert.equal(cancellingOf(player), undefined);
    player.after('retry').shows({ atWork: ['a'] });
  });

  test('is not over while a hook behind it fails: a retry runs that, and only the next one the flow', () => {
    const hook = { id: 'h', type: 'step', handler: 'http_request' };
    const hooks = { on_failure: [noop('told'), hook] } as never;
    const player = started([work('a'), work('b')], 100, { hooks }).after('ok a', 'tick');
    player.shows({ state: 'failed', atWork: ['h'] });
    for (const act of ['fail h', 'ok h'] as const) {
      player.after('fail h').shows({ state: 'failed' });
      assert.equal(code(player), 'cleanup_failed');
      player.after('retry').shows({ state: 'failed', atWork: ['h'] });
      if (act === 'ok h') player.after(act);
    }
    assert.equal(code(player), 'instance_timeout');
    player.after('retry').shows({ atWork: ['b'] });
    player.after('fail b').shows({ state: 'failed', atWork: ['h'] });
    player.after('fail h').shows({ failure: 'broken' });
  });

  test('a cancel while it cleans up makes it cancelled', () => {
    const player = started([tryCatch('t', [work('a')], [], [work('clean')])], 100);
    player.after('tick', 'cancel');
    assert.equal(cancellingOf(player)?.reason, 'cancel');
    player.after('ok clean').shows({ state: 'cancelled', failure: undefined });
  });

  test('stands still in a pause, counts in every other state, and is nothing to one that ends', () => {
    const player = started([work('a')], 100);
    player.after('pause').shows({ wakeAt: null });
    player.now += 1_000;
    player.after('resume', 'park').shows({ wakeAt: START + 1_100 });
    player.after('ok a').shows({ state: 'completed', wakeAt: null });
    assert.equal(player.snapshot.execution.u, undefined);
  });
});

describe('deadline of a step', () => {
  const onBreach = (handler: string, params = {}) => ({
    deadline: 1_000,
    on_deadline_breach: { handler, params },
  });

  const ways: Readonly<Record<string, { block: Block; until: (player: Player) => void }>> = {
    'while its task waits': { block: work('a', { deadline: 1_000 }), until: () => {} },
    'while a worker is at it': {
      block: work('a', { deadline: 1_000, timeout: 10_000 }),
      until: (player) => void player.after('claim a'),
    },
    'between two tries': {
      block: work('a', { deadline: 1_000, retry: { max_attempts: 9, initial_backoff: 700 } }),
      until: (player) => void player.after('again a', 'tick', 'again a'),
    },
    'in a handler': { block: http('a', { deadline: 1_000 }), until: () => {} },
  };
  for (const [when, { block, until }] of Object.entries(ways)) {
    test(`counts from its begin and fails it for good: ${when}`, () => {
      const player = play([block]);
      until(player);
      player.shows({ wakeAt: START + 1_000 });
      player.now = START + 1_234;
      player.after('wake').shows({ state: 'failed', failure: 'missed its deadline of 1000 ms' });
      player.shows({ atWork: [] });
      assert.equal(code(player), 'deadline');
      const row = { _error: 'sla_deadline_breached', _deadline_ms: 1_000, _elapsed_ms: 1_234 };
      assert.deepEqual(player.outputOf('a'), row);
      assert.deepEqual(audited(player).slice(0, 2), ['deadline_breached', 'step_failed']);
      assert.equal(player.last!.counts.breaches, 1);
    });
  }

  test('calls a pure handler in place, with what happened', () => {
    const player = play([work('a', onBreach('log', { message: 'late: {{ data.who }}' }))], {
      data: { who: 'me' },
    });
    player.after('tick');
    assert.deepEqual(player.last!.logs, [{ blockId: 'a', level: 'info', message: 'late: me' }]);
    const failingToo = play([work('a', onBreach('fail', { message: 'no' }))]);
    failingToo.after('tick').shows({ state: 'failed', failure: 'missed its deadline of 1000 ms' });
    assert.ok(audited(failingToo).includes('deadline_handler_failed'));
  });

  test('calls another one durably, beside the instance that has ended', () => {
    const player = play([work('a', onBreach('http_request', { url: 'http://x' }))]);
    player.after('tick').shows({ state: 'failed' });
    const [call] = player.last!.dispatches;
    assert.deepEqual(call?.params, {
      url: 'http://x',
      _breach_block_id: 'a',
      _breach_instance_id: player.snapshot.id,
      _breach_elapsed_ms: 1_000,
      _breach_deadline_ms: 1_000,
    });
    // Its process dies: it is called again, and once it has answered no more.
    assert.deepEqual(player.recover().dispatches, [call]);
    const { node, iteration, attempt } = call!;
    const outcome = { kind: 'failure', retryable: true, message: 'away' } as const;
    const end = { kind: 'step.outcome', node, iteration, attempt, external: false } as const;
    assert.equal(player.send({ ...end, outcome }).audit[0]?.eventType, 'deadline_handler_failed');
    assert.equal(player.snapshot.execution.b, undefined);
    player.shows({ state: 'failed' });
    assert.equal(player.sendOnce({ ...end, outcome }).stale, true);
    assert.deepEqual(player.recover().dispatches, []);
  });

  test('calls nobody outside in a dry run, and nobody with params that cannot be rendered', () => {
    const unrendered = play([work('b', onBreach('http_request', { url: '{{ nowhere.x }}' }))]);
    unrendered.after('tick');
    assert.deepEqual(unrendered.last!.dispatches, []);
    const dry = play([
      { ...sleep('a', 5_000, onBreach('http_request', { url: 'http://x' })) } as Block,
    ]);
    dry.snapshot.runtime.dry_run = true;
    dry.after('tick').shows({ state: 'failed' });
    assert.deepEqual(dry.last!.dispatches, []);
  });

  test('only built-in handlers that do something can be called', () => {
    for (const handler of ['page_somebody', 'sleep']) {
      const compiled = compilePlan({ id: 's', blocks: [work('a', onBreach(handler))] });
      assert.ok(!compiled.ok && compiled.message.includes('on_deadline_breach.handler'), handler);
    }
    assert.ok(compilePlan({ id: 's', blocks: [failing('a')] }).ok);
  });
});

const OFFICE = { start_hour: 9, end_hour: 17 };
const HOUR = 60 * MINUTE;

/** An instance that starts on the Wednesday of 2024-03-06 at this time of UTC. */
function at(clock: string, blocks: Block[], options: PlayerOptions & { timezone?: string } = {}) {
  const { timezone = 'UTC', ...rest } = options;
  const player = new Player(blocks, rest);
  player.now = Date.parse(clock.length === 5 ? `2024-03-06T${clock}:00Z` : clock);
  player.snapshot = { ...player.snapshot, timezone, nextFireAt: player.now };
  return player.start();
}

function nextFireAt(player: Player): string | null {
  const { nextFireAt } = player.snapshot;
  return nextFireAt === null ? null : new Date(nextFireAt).toISOString();
}

const withFields = (block: Block, fields: object): Block => ({ ...block, ...fields }) as Block;

describe('send_window', () => {
  test('outside it the instance stays scheduled until it opens, and nothing is asked of anybody', () => {
    for (const block of [work('a'), http('a'), noop('a'), sleep('a', 5)]) {
      const player = at('20:00', [withFields(block, { send_window: OFFICE })]);
      assert.equal(player.state, 'scheduled');
      assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
      player.shows({ wakeAt: player.snapshot.nextFireAt, tree: { a: 'waiting' } });
      assert.deepEqual([player.dispatched, player.rows], [[], []]);
    }
  });

  test('is judged in the zone of the instance', () => {
    const blocks = [work('a', { send_window: OFFICE })];
    const player = at('09:30', blocks, { timezone: 'America/New_York' });
    assert.equal(nextFireAt(player), '2024-03-06T14:00:00.000Z');
  });

  test('comes behind when: a step that is skipped waits for nothing', () => {
    const player = at('20:00', [work('a', { when: 'no', send_window: OFFICE }), noop('b')]);
    player.shows({ state: 'completed', done: ['b'] });
  });

  test('a try that the rate limit lets pass too late waits for the next opening and asks again', () => {
    const env = { isRateLimited: () => true };
    const player = at('16:59', [work('a', { send_window: OFFICE, rate_limit_key: 'k' })], { env });
    const step = { node: 0, iteration: '', attempt: 0 };
    player.now += MINUTE;
    player.send({ kind: 'rate.granted', ...step });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.after('tick').shows({ asked: 2 });
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
  });

  test('holds for every try: a retry that falls behind it waits for the next opening', () => {
    const retry = { max_attempts: 2, initial_backoff: 20 * MINUTE, max_backoff: HOUR };
    const player = at('16:50', [work('a', { retry, send_window: OFFICE })]);
    player.fail('a', true);
    assert.equal(nextFireAt(player), '2024-03-06T17:10:00.000Z');
    player.after('tick').shows({ state: 'scheduled' });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.tick();
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

  test('is not opened by a reschedule to an earlier time', () => {
    const player = at('20:00', [work('a', { send_window: OFFICE })]);
    player.after({ kind: 'reschedule', at: null }).shows({ atWork: [] });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
  });
});

describe('fire_at_local', () => {
  const local = (fields: object) => [work('a', { delay: fields })];

  test('is a time of the zone of the instance, unless the delay names one', () => {
    const delay = { fire_at_local: '2024-03-07T09:00:00' };
    const timezone = 'Europe/Berlin';
    assert.equal(nextFireAt(at('09:00', local(delay), { timezone })), '2024-03-07T08:00:00.000Z');
    const named = { ...delay, timezone: 'Asia/Tokyo' };
    assert.equal(nextFireAt(at('09:00', local(named), { timezone })), '2024-03-07T00:00:00.000Z');
  });
});

describe('what a definition may say', () => {
  const validators = createValidators();

  function refusal(fields: object): string | undefined {
    const block = work('a', fields);
    const body = { tenant_id: 't', namespace: 'n', name: 's', version: 1, blocks: [block] };
    const checked = validators.validateBody('sequences.create', body);
    if (!checked.ok) return checked.message;
    const compiled = compilePlan({ id: 's', blocks: checked.value.blocks });
    return compiled.ok ? undefined : compiled.message;
  }

  const FORM = 'step a: delay.fire_at_local must be a day and time as YYYY-MM-DDTHH:MM:SS';
  const sameHour = (hour: number) =>
    `step a: send_window must not start and end at the same hour, ${hour}`;
  const day = '2030-01-01T00:00:00';
  const windows: [window: JsonValue, refused: string | undefined][] = [
    [null, undefined],
    [{}, undefined],
    [{ start_hour: 0, end_hour: 23, days: [0, 6] }, undefined],
    [{ start_hour: 22, end_hour: 6, days: [] }, undefined],
    [[], 'blocks[0].send_window must be an object'],
    [{ start_hour: -1 }, 'blocks[0].send_window.start_hour must be >= 0'],
    [{ end_hour: 24 }, 'blocks[0].send_window.end_hour must be <= 23'],
    [{ end_hour: 9.5 }, 'blocks[0].send_window.end_hour must be an integer'],
    [{ days: [7] }, 'blocks[0].send_window.days[0] must be <= 6'],
    [{ days: 1 }, 'blocks[0].send_window.days must be an array'],
    [{ start_hour: 5, end_hour: 5 }, sameHour(5)],
    [{ start_hour: 17 }, sameHour(17)],
  ];
  const BOTH = 'step a: delay must not have both a duration and fire_at_local';
  const UNKNOWN = 'blocks[0].delay.timezone must be a known IANA time zone';
  const delays: typeof windows = [
    [{ fire_at_local: day }, undefined],
    [{ fire_at_local: day, duration: 0 }, undefined],
    [{ duration: 5, fire_at_local: null, timezone: 'Asia/Tokyo' }, undefined],
    [{ fire_at_local: day, duration: 1 }, BOTH],
    [{ fire_at_local: '2030-02-30T00:00:00' }, FORM],
    [{ fire_at_local: `${day}Z` }, FORM],
    [{ fire_at_local: 5 }, 'blocks[0].delay.fire_at_local must be a string'],
    [{ fire_at_local: day, timezone: 'Mars/Base' }, UNKNOWN],
  ];
  const cases: [fields: object, refused: string | undefined][] = [
    ...windows.map(([send_window, no]) => [{ send_window }, no] as [object, typeof no]),
    ...delays.map(([delay, refused]) => [{ delay }, refused] as [object, typeof refused]),
  ];
  for (const [fields, refused] of cases) {
    test(`${JSON.stringify(fields)} is ${refused === undefined ? 'accepted' : 'refused'}`, () => {
      assert.equal(refusal(fields), refused);
    });
  }

  test('false, which older definitions hold for absent, stays absent', () => {
    const fields = { send_window: false, delay: { fire_at_local: false, timezone: false } };
    assert.deepEqual(at('20:00', [work('a', fields)]).atWork, ['a']);
  });
});
