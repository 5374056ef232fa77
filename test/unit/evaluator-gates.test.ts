/** Human gates in the evaluator: when somebody is asked, what an answer leads to, and who is asked no more. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { answerIn } from '../../src/core/blocks/gate.js';
import { readTree, writeTree } from '../../src/core/continuity/execution-tree.js';
import type { StepRecord } from '../../src/core/execution.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { iterationOf } from '../../src/core/paths.js';
import type { KeptSignal } from '../../src/core/progress.js';
import { remapExecution } from '../../src/core/remap.js';
import {
  forEach,
  http,
  noop,
  Player,
  type PlayerOptions,
  parallel,
  planOf,
  play,
  race,
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
  const answer = answerIn(node.gate, payload);
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
  test('waits for somebody outside, before the handler is called, and for ever unless it says how long', () => {
    for (const block of [noop('a'), work('a'), http('a'), sleep('a', 5)]) {
      const player = play([gated(block)]);
      player.shows({ state: 'waiting', tree: { a: 'waiting' }, wakeAt: null, tries: [] });
    }
    play([gated(noop('a'), { timeout: MINUTE })]).shows({ wakeAt: START + MINUTE });
  });

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

  test('asks once: the next try, and the same try after a crash, do not ask again', () => {
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const player = say(play([gated(http('a'), {}, { retry })]), 'a', { value: 'yes' });
    player.recover();
    player.fail('a', true);
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.rows.length, 1);
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

  test('asks anew when the instance is retried', () => {
    const player = say(play([gated(work('a'))]), 'a', { value: 'yes' });
    player.fail('a');
    player.after('retry', 'wake').shows({ state: 'waiting', atWork: [] });
  });

  test('fails the step with timeout when the time is over, unless it escalates', () => {
    const player = play([gated(noop('a'), { timeout: MINUTE }), noop('b')]).tick();
    player.shows({ state: 'failed' });
    assert.equal(player.snapshot.execution.y?.code, 'timeout');
    const caught = play([tryCatch('t', [gated(work('a'), { timeout: 5 })], [noop('c')])]).tick();
    caught.shows({ state: 'completed', tree: { t: 'completed', a: 'failed', c: 'completed' } });
    const timeout = { timeout: 1_500, escalation_handler: 'call_boss' };
    const escalated = play([gated(work('a'), timeout), noop('b')]).tick();
    escalated.shows({ state: 'completed', tries: [] });
    const output = {
      _escalated: true,
      _escalation_handler: 'call_boss',
      _timeout_seconds: 1.5,
    };
    assert.deepEqual(rowsOf(escalated)[0], ['a', null, output]);
  });

  test('takes an answer while the instance is paused or parked; the handler waits for the resume', () => {
    const paused = play([gated(work('a'))]).after('pause');
    say(paused, 'a', { value: 'yes' }).shows({ state: 'paused', atWork: [] });
    paused.after('resume', 'wake').shows({ state: 'waiting', atWork: ['a'] });
    const parked = play([gated(work('a'))]).after('park');
    say(parked, 'a', { value: 'yes' }).shows({ atWork: ['a'] });
  });

  test('is withdrawn by a cancel, and by a branch that wins the race', () => {
    const cancelled = play([gated(work('a'))]).after('cancel');
    cancelled.shows({ state: 'cancelled', tree: { a: 'cancelled' } });
    const lost = play([race('r', [gated(work('a'))], [sleep('s', 10)])]).tick();
    lost.shows({ state: 'completed', tree: { r: 'completed', a: 'cancelled', s: 'completed' } });
  });

  test('asks for each item of a loop, and numbers the rows of the handler without its own', () => {
    const body = [gated(noop('a'), { prompt: 'Item {{ data.item }}?' })];
    const player = play([forEach('f', 'items', body)], { data: { items: [1, 2] } });
    say(player, 'a', { value: 'yes' });
    assert.equal(player.state, 'waiting');
    say(player, 'a', { value: 'no' });
    assert.equal(player.state, 'completed');
    const own = player.rows.filter(({ blockId, outputRef }) => blockId === 'a' && !outputRef);
    assert.deepEqual(
      own.map(({ attempt }) => attempt),
      [0, 1],
    );
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
  return { id: `signal-${seq}`, seq, name: `human_input:${block}`, payload, characters: 10 };
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
    assert.deepEqual(
      player.snapshot.signals?.map(({ payload }) => payload),
      [{ value: 'yes' }],
    );
    assert.deepEqual(
      player.last?.takenSignals?.map(({ status }) => status),
      ['refused', 'taken'],
    );
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
    assert.deepEqual(
      [open({ timeout: 10 * MINUTE }).d, open({}).d],
      [START + 10 * MINUTE, undefined],
    );
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
