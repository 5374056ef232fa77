/** Executions that go over to another plan or go back to a block: what is kept, begun anew and refused. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CarriedTask, carryOver, isCarried } from '../../actors/instance/core/carry-over.js';
import type { Block } from '../../schema/blocks.js';
import { COMPLETED, type Execution, SKIPPED, type StepRecord } from '../../schema/execution.js';
import type { JsonObject } from '../../src/base/json.js';
import { advance } from '../../src/core/evaluator.js';
import type { Progress } from '../../src/core/progress.js';
import { clashOf, continueAfterEnd, passedRoots, remapExecution } from '../../src/core/remap.js';
import { blocksFrom } from '../../src/core/runs-again.js';
import { column, lines } from '../helpers/columns.js';
import {
  ENV,
  failing,
  forEach,
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
  tryCatch,
  work,
} from '../helpers/player.js';

function router(id: string, ...lists: Block[][]): Block {
  const routes = lists.map((blocks) => ({ condition: 'data.never', blocks }));
  return { type: 'router', id, routes, default: [work(`${id}-default`)] };
}

/** An instance of these blocks that runs until it waits. */
const started = (...blocks: Block[]) => new Player(blocks, { data: { items: [1, 2] } }).start();

const clash = ({ snapshot, plan }: Player, ...blocks: Block[]) =>
  clashOf(snapshot.execution, plan, planOf(blocks));

/** The player's execution in the plan of other blocks, with what is done or open by block. */
function moved({ snapshot, plan }: Player, ...blocks: Block[]) {
  const to = planOf(blocks);
  const execution = remapExecution(snapshot.execution, plan, to);
  const named = (entries: object) => Object.keys(entries).map((index) => to.nodes[+index]!.id);
  const { o, d, q = [] } = execution;
  return { execution, to, open: named(o), done: named(d), queued: q.map((i) => to.nodes[i]!.id) };
}

/** An instance that stopped in the middle of its first turn. */
function cutOff(...blocks: Block[]): Player {
  const player = new Player(blocks, { env: { stepBudget: 1 } });
  player.sendOnce({ kind: 'wake' });
  return player;
}

/** Which was then asked to be retried. */
function retried(player: Player, ...acts: (`ok ${string}` | `fail ${string}`)[]): Player {
  player.after(...acts).sendOnce({ kind: 'retry' });
  return player;
}

const looping = (max: number, ...body: Block[]) => loop('l', 'true', max, body);
const [a, b, c, z] = ['a', 'b', 'c', 'z'].map((id) => work(id)) as [Block, Block, Block, Block];

const OTHER_ROUTES = parallel('p', [router('r', [a], [b])]);

describe('what is open has to be in the target', () => {
  const nested = (id: string) => parallel('p', [tryCatch(id, [looping(3, a)], [failing('c')])]);
  const other = { ...a, handler: 'other' } as Block;
  const twice = [tryCatch('t', [tryCatch('u', [a], [])], [])];
  const swapped = [tryCatch('u', [tryCatch('t', [a], [])], [])];
  const again = retried(started(looping(3, a)), 'ok a', 'fail a');
  const routed = parallel('p', [router('r', [a])]);
  const CASES: readonly (readonly [player: Player, target: Block[], message: string])[] = [
    [started(a, z), [z], 'a is open and is not in the target'],
    [started(a, z), [other], 'a is open and has the handler other in the target'],
    [started(a), [parallel('a', [b])], 'a is open and is a parallel in the target'],
    [started(a), [tryCatch('t', [a], [])], 'a is open and is at another place in the target'],
    [started(parallel('p', [a], [b])), [parallel('p', [b], [a])], 'a is open and is at another'],
    [started(...twice), swapped, 't is open and is at another place in the target'],
    [started(parallel('p', [a])), [parallel('p', [a], [b])], 'p is open and has another number'],
    [
      started(race('r', [a], [b])),
      [race('r', [a])],
      'r is open and has another number of branches',
    ],
    [started(router('r', [a])), [router('r', [a], [b])], 'r-default is open and is at another'],
    [started(sleep('s', 5_000)), [noop('s')], 's is open and has the handler noop'],
    [cutOff(noop('a'), b), [noop('a')], 'b is open and is not in the target'],
    // What a retry goes on from: a counter, a choice, and blocks within others than before.
    [again, [noop('x')], 'l is open and is not in the target'],
    [retried(started(routed), 'fail r-default'), [OTHER_ROUTES], 'r is open and has another'],
    [
      retried(started(nested('t')), 'ok a', 'fail a'),
      [nested('u')],
      't is open and is not in the target',
    ],
  ];
  for (const [player, target, message] of CASES) {
    test(`block ${message}`, () =>
      assert.match(clash(player, ...target) ?? '', new RegExp(`^block ${message}`)));
  }

  test('everything else may differ, and an instance that has not begun fits anywhere', () => {
    const player = started(noop('x'), tryCatch('t', [work('a', { timeout: 9_000 })], [c]));
    const target = [noop('n'), tryCatch('t', [noop('m'), work('a', { retry: undefined })], [])];
    assert.equal(clash(player, ...target), undefined);
    assert.equal(clash(retried(started(nested('t')), 'ok a', 'fail a'), nested('t')), undefined);
    assert.equal(clash(new Player([a]), b), undefined);
  });
});

describe('the execution in the new plan', () => {
  test('blocks that the target puts before an open one are skipped, at every level', () => {
    const player = started(noop('a'), tryCatch('t', [b], []));
    const inner = tryCatch('t', [noop('new2'), b], [noop('c')]);
    const { execution, done } = moved(player, noop('new1'), noop('a'), inner, noop('new3'));
    assert.deepEqual(done, ['new1', 'a', 'new2']);
    assert.deepEqual([execution.d[0]?.[0], execution.d[3]?.[0]], [SKIPPED, SKIPPED]);
  });

  test('a finished block is forgotten when the target has it not, or moves it into or out of a loop', () => {
    const player = started(noop('a'), noop('b'), c);
    assert.deepEqual(moved(player, c).done, []);
    const target = [c, parallel('p', [noop('a')]), looping(2, noop('b'))];
    assert.deepEqual(moved(player, ...target).done, ['a']);
    const inLoop = started(looping(2, noop('a'), b), noop('c'));
    assert.deepEqual(moved(inLoop, looping(2, b), noop('a')).done, []);
  });

  test('what is queued, counted and kept goes over too', () => {
    const player = started(noop('x'), looping(3, noop('a'), b), noop('y'));
    retried(player, 'ok b', 'fail b');
    const { execution, queued } = moved(player, looping(9, noop('a'), b, noop('c')));
    assert.deepEqual(queued, ['l']);
    assert.deepEqual(execution.c, { 1: 2, 2: 1 });
    assert.deepEqual(execution.k, { 0: { b: 0, i: 1 } });
  });

  test('where a caller resumed from goes over too', () => {
    const player = started(failing('a'), b);
    player.snapshot.execution = { t: 1, o: {}, d: { 0: [1, 0, 0] }, q: [1], s: 1 };
    assert.equal(moved(player, noop('new'), failing('a'), b).execution.s, 2);
    assert.equal(moved(player, failing('a')).execution.s, undefined);
  });

  test('a kept record of another kind is dropped', () => {
    const player = started(tryCatch('t', [looping(3, failing('a'))], [c]));
    const kept = (block: Block) => {
      const { execution, to } = moved(player, tryCatch('t', [block], [c]));
      return execution.d[to.indexOf.get('l')!]?.length;
    };
    assert.deepEqual([kept(noop('l')), kept(looping(1, failing('a')))], [3, 4]);
  });
});

describe('how far the list of the root has come', () => {
  const passed = ({ snapshot, plan }: Player) => passedRoots(snapshot.execution, plan);

  test('up to the present block, done or not', () => {
    assert.equal(passed(new Player([noop('a'), noop('b')])), 0);
    assert.equal(passed(started(noop('a'), work('b'), noop('c'))), 2);
    assert.equal(passed(started(noop('a'), noop('b'))), 2);
    assert.equal(passed(cutOff(noop('a'), noop('b'), noop('c'))), 2, 'a queued one is passed');
  });

  test('after a failure nothing is passed, but what a caller resumed behind', () => {
    const player = started(noop('a'), failing('b'), noop('c'));
    assert.equal(passed(player), 0);
    player.snapshot.execution.s = 1;
    assert.equal(passed(player), 2);
  });
});

describe('a list of the root that has ended', () => {
  const longer = planOf([noop('a'), noop('b'), noop('c')]);
  const ended: Execution = { t: 1, o: {}, d: { 0: [COMPLETED, 0, 0] }, e: COMPLETED };

  test('goes on with what the plan has got behind its end, and skips what it has got before', () => {
    const { e, q } = continueAfterEnd(ended, longer);
    assert.deepEqual({ e, q }, { e: undefined, q: [1] });
    const last = continueAfterEnd({ ...ended, d: { 1: [COMPLETED, 0, 0] } }, longer);
    assert.deepEqual([last.d[0]?.[0], last.q], [SKIPPED, [2]]);
  });

  test('stays ended when there is nothing, or when it failed', () => {
    assert.equal(continueAfterEnd(ended, planOf([noop('a')])), ended);
    const { execution } = started(failing('a')).snapshot;
    assert.equal(continueAfterEnd(execution, longer), execution);
  });
});

/** Goes back as an actor does: the rows of the forgotten blocks are gone with it. */
function rewind(player: Player, blockId: string): Progress {
  const { plan, snapshot, now } = player;
  const node = plan.indexOf.get(blockId)!;
  const progress = advance(plan, snapshot, { kind: 'rewind', node }, { ...ENV, now });
  const forgotten = new Set(blocksFrom(plan, node));
  player.rows = player.rows.filter((row) => !forgotten.has(row.blockId));
  player.open.clear();
  player.last = progress;
  return progress;
}

/** Goes back, and on. */
function resumeFrom(player: Player, blockId: string): Player {
  rewind(player, blockId);
  player.send({ kind: 'wake' });
  return player;
}

const failed = () => play([noop('a'), failing('b'), work('c'), noop('d')]);

describe('an instance that goes back', () => {
  test('is scheduled for now, with everything from the block on forgotten, and says so in its audit', () => {
    const player = play([noop('a'), parallel('p', [noop('b')], [noop('c')]), noop('d')]);
    const { more, audit } = rewind(player, 'p');
    player.shows({ state: 'scheduled', nextFireAt: player.now, done: ['a'] });
    assert.equal(more, true);
    const [p, b, c, d] = Array<string>(4).fill('pending');
    assert.deepEqual(player.tree, { a: 'completed', p, b, c, d });
    assert.equal(
      lines(audit, 'eventType', 'blockId', 'fromState', 'toState').join(),
      'resumed_from p undefined undefined,state_transition undefined completed scheduled',
    );
    player.after('wake').shows({ state: 'completed', done: ['a', 'b', 'c', 'd'] });
  });

  test('leaves a failed block before it as it is, and goes on behind it, also in a retry', () => {
    const player = resumeFrom(failed(), 'c');
    assert.deepEqual(player.tree, { a: 'completed', b: 'failed', c: 'waiting', d: 'pending' });
    player.after('fail c').shows({ state: 'failed' });
    player.after('retry', 'wake').shows({ atWork: ['c'], tree: { b: 'failed' } });
    player.after('ok c').shows({ state: 'completed' });
    const further = resumeFrom(resumeFrom(failed(), 'c'), 'a');
    assert.deepEqual(further.tree, { a: 'completed', b: 'failed', c: 'skipped', d: 'skipped' });
  });

  test('skips what it had not come to before the block', () => {
    const player = play([work('a'), noop('b'), noop('c')]);
    player.send({ kind: 'pause' });
    const { withdrawals } = rewind(player, 'c');
    assert.deepEqual(column(withdrawals, 'blockId'), ['a']);
    assert.deepEqual(player.tree, { a: 'cancelled', b: 'skipped', c: 'pending' });
    player.after('wake').shows({ state: 'completed', done: ['c'] });
  });

  test('begins at the block when it had not begun', () => {
    const player = new Player([work('a'), noop('b')]);
    player.sendOnce({ kind: 'cancel' });
    resumeFrom(player, 'b');
    assert.deepEqual([player.state, player.done], ['completed', ['b']]);
    assert.ok(player.snapshot.runtime.started_at);
  });

  test('cuts off all that is open: tasks, handlers and sleeps', () => {
    const player = play([parallel('p', [work('a')], [http('b')], [sleep('c', 900)])]);
    player.send({ kind: 'pause' });
    const { withdrawals, wakeAt } = rewind(player, 'p');
    assert.deepEqual(lines(withdrawals, 'blockId', 'external'), ['a true', 'b false']);
    assert.equal(wakeAt, player.now);
    assert.deepEqual(player.snapshot.execution.o, {});
  });

  test('counts tries, iterations and the rows of loops afresh', () => {
    const body = [work('a', { retry: { max_attempts: 2, initial_backoff: 0 } })];
    const player = play([loop('l', 'true', 5, body)]);
    player.after('ok a', 'again a', 'again a').shows({ state: 'failed' });
    resumeFrom(player, 'l');
    const [dispatch] = [...player.open.values()];
    assert.deepEqual([dispatch?.iteration, dispatch?.attempt], ['0', 0]);
    player.complete('a');
    assert.deepEqual(lines(player.rows, 'blockId', 'attempt'), ['a 0', 'l 1']);
  });

  test('takes the items of a for_each anew, and begins a loop anew that a retry would have gone on with', () => {
    const player = play([forEach('f', 'items', [work('a')])], { data: { items: [1, 2] } });
    player.fail('a');
    player.snapshot.data = { items: [7] };
    assert.deepEqual(rewind(player, 'f').droppedSnapshots, [':f']);
    player.send({ kind: 'wake' });
    assert.deepEqual([...player.open.values()][0]?.overlay, { item: 7 });
    player.after('ok a').shows({ state: 'completed' });
    const looping = play([noop('x'), loop('l', 'true', 3, [work('a')])]).after('ok a', 'fail a');
    for (const kind of ['retry', 'pause'] as const) looping.sendOnce({ kind });
    resumeFrom(looping, 'x');
    assert.equal([...looping.open.values()][0]?.iteration, '0');
  });

  test('forgets a cancel that was under way, and a retry that a pause stood for', () => {
    const cleaning = play([tryCatch('t', [work('a')], [], [work('f')]), noop('b')]);
    cleaning.after('cancel', 'pause');
    resumeFrom(cleaning, 'b').shows({ state: 'completed' });
    resumeFrom(failed().after('pause'), 'd').shows({ state: 'completed', tree: { b: 'failed' } });
  });

  test('reads the outputs of earlier blocks, not those that it forgot', () => {
    const reads = (id: string, path: string) => transform(id, { x: `{{ ${path} }}` });
    const blocks = [reads('a', 'data.n'), reads('b', 'outputs.a.x'), failing('c')];
    const player = play(blocks, { data: { n: 1 } });
    assert.deepEqual([...player.snapshot.outputs.keys()], ['a']);
    resumeFrom(player, 'b');
    assert.deepEqual(player.outputOf('b'), { x: 1 });
    rewind(player, 'a');
    assert.deepEqual([...player.snapshot.outputs.keys()], []);
  });
});

const NOW = START + 1_000;
const OPEN_AT = 100;

interface Case {
  readonly source: Block;
  readonly target: Block;
  /** Of the step `a`, in the source. */
  readonly open: Partial<StepRecord> & Pick<StepRecord, 'p'>;
  readonly data?: JsonObject;
  readonly task?: CarriedTask;
  readonly whole?: Partial<Execution>;
}

/** Both versions begin with a step that is done, the target with a further one. */
function carried({ source, target, open, data = {}, task, whole = {} }: Case) {
  const from = planOf([noop('done'), source]);
  const to = planOf([noop('done'), noop('new'), target]);
  const at = from.indexOf.get('a') ?? 0;
  const execution: Execution = {
    t: START,
    o: { [at]: { b: OPEN_AT, a: 0, ...open } },
    d: { 0: [COMPLETED, 0, 0] },
    ...whole,
  };
  const before = JSON.stringify(execution);
  const result = carryOver({
    source: from,
    target: to,
    snapshot: { ...freshSnapshot(data), state: 'running', execution },
    data,
    outputs: new Map(),
    ended: new Set(['done']),
    env: {
      now: NOW,
      random: () => 0,
      unpoliciedRetry: 'redispatch',
      stepBudget: 0,
      outputBytesBudget: 0,
    },
    taskOf: () => task,
  });
  assert.equal(JSON.stringify(execution), before, 'the source is left as it is');
  if (!isCarried(result)) return { codes: result.map(({ code }) => code) };
  const there = to.indexOf.get('a');
  return {
    record: there === undefined ? undefined : result.execution.o[there],
    queued: (result.execution.q ?? []).map((index) => to.nodes[index]!.id),
    withdrawn: result.withdrawn,
    execution: result.execution,
  };
}

const stepA = (more: object = {}): Block => ({ ...work('a'), ...more }) as Block;
const retry = (initial_backoff: number) => ({
  retry: { max_attempts: 9, initial_backoff, max_backoff: 10_000_000 },
});
const napping = (duration_ms: unknown, more: object = {}): Block =>
  ({ type: 'step', id: 'a', handler: 'sleep', params: { duration_ms }, ...more }) as Block;

describe('a time', () => {
  const due = NOW + 5_000;
  const asleep = { p: 'sleep', w: due, m: 6_000 } as const;
  const templated = napping('{{data.ms}}');
  const delayed = (duration: number) => stepA({ delay: { duration } });
  const inDelay = { p: 'delay', w: due } as const;
  const backingOff = { p: 'backoff', a: 1, w: due } as const;
  const limitedStep = stepA({ rate_limit_key: 'k' });
  const cases: readonly (readonly [string, Block, Block, Case['open'], number])[] = [
    ['a sleep keeps its deadline', napping(6_000), napping(6_000), asleep, due],
    ['a sleep keeps it when data have changed that both read', templated, templated, asleep, due],
    ['another duration counts from the begin', napping(6_000), napping(9_000), asleep, due + 3_000],
    ['a delay keeps its deadline', delayed(7), delayed(7), inDelay, due],
    ['a delay counts from the begin', delayed(7), delayed(500), inDelay, START + OPEN_AT + 500],
    ['a back-off keeps its deadline', stepA(retry(1_000)), stepA(retry(1_000)), backingOff, due],
    [
      'another back-off counts from the failure before it',
      stepA(retry(1_000)),
      stepA(retry(3_000)),
      backingOff,
      due + 2_000,
    ],
    [
      'a step that its rate limit put off keeps its time',
      limitedStep,
      limitedStep,
      { p: 'limited', w: due },
      due,
    ],
  ];
  for (const [title, source, target, open, expected] of cases) {
    test(title, () => {
      const { record, queued, withdrawn } = carried({ source, target, open, data: { ms: 1 } });
      const { w, p } = record as StepRecord;
      assert.deepEqual([w, p], [expected, open.p]);
      assert.deepEqual([queued, withdrawn], [[], []]);
    });
  }

  test('that the target does not have is over', () => {
    const over: readonly Case[] = [
      { source: stepA({ delay: { duration: 7 } }), target: stepA(), open: { p: 'delay', w: due } },
      { source: stepA({ rate_limit_key: 'k' }), target: stepA(), open: { p: 'limited', w: due } },
      { source: stepA({ rate_limit_key: 'k' }), target: stepA(), open: { p: 'asking', w: due } },
      {
        source: stepA({ send_window: { start_hour: 1, end_hour: 2 } }),
        target: stepA({ send_window: { start_hour: 1, end_hour: 3 } }),
        open: { p: 'delay', w: due, a: 1 },
      },
    ];
    for (const asked of over) {
      const { record, queued } = carried(asked);
      assert.deepEqual(record, { b: OPEN_AT, p: 'ready', a: asked.open.a ?? 0 });
      assert.deepEqual(queued, ['a']);
    }
  });

  test('limit of the target counts from the same moment as that of the source', () => {
    const limited = (timeout?: number) => napping(6_000, timeout === undefined ? {} : { timeout });
    const open = { ...asleep, d: NOW + 100 } as const;
    const limitOf = (source: Block, target: Block, more: object = open) =>
      (carried({ source, target, open: more as typeof open }).record as StepRecord).d;
    assert.equal(limitOf(limited(1_000), limited(1_000)), NOW + 100);
    assert.equal(limitOf(limited(1_000), limited(4_000)), NOW + 3_100);
    assert.equal(limitOf(limited(1_000), limited()), undefined);
    assert.equal(limitOf(limited(), limited(4_000), asleep), due - 6_000 + 4_000);
  });

  test('is refused where the target cannot say how long it is', () => {
    const target = napping('{{nowhere.ms}}');
    const { codes } = carried({ source: napping(6_000), target, open: asleep });
    assert.deepEqual(codes, ['PARAMS_UNRENDERABLE']);
  });
});

describe('a task', () => {
  const task = (isHeld: boolean): CarriedTask => ({ id: 't', params: { n: 1 }, isHeld });
  const calling = (n: unknown, more: object = {}) => stepA({ params: { n }, ...more });
  const source = calling(1);
  const open = { p: 'task', a: 2 } as const;

  test('that nobody has claimed is withdrawn, and the same try dispatched again', () => {
    for (const target of [calling(1), calling(2), calling(1, { queue_name: 'q' })]) {
      const seen = carried({ source, target, open, task: task(false), whole: { p: 1 } });
      assert.deepEqual(seen.record, { b: OPEN_AT, p: 'ready', a: 2, g: 1 });
      assert.deepEqual([seen.queued, seen.withdrawn], [['a'], ['t']]);
      assert.equal(seen.execution?.p, undefined, 'it would never wake');
    }
  });

  test('that a worker has stays where the call is the same, however it is written', () => {
    for (const target of [calling(1), calling('{{data.one}}'), calling(1, { queue_name: 'q' })]) {
      const seen = carried({ source, target, open, task: task(true), data: { one: 1 } });
      assert.deepEqual(seen.record, { b: OPEN_AT, ...open });
      assert.deepEqual([seen.queued, seen.withdrawn], [[], []]);
    }
    const changed = { source, target: calling(2), open, task: task(true) };
    assert.deepEqual(carried(changed).codes, ['CLAIMED_CALL_CHANGED']);
    const broken = { ...changed, target: calling('{{nowhere.x}}') };
    assert.deepEqual(carried(broken).codes, ['PARAMS_UNRENDERABLE']);
  });
});

describe('a step at another place', () => {
  const moved = (open: Case['open'], task?: CarriedTask) =>
    carried({
      source: stepA(),
      target: tryCatch('t', [stepA()], [noop('r')]),
      open,
      ...(task && { task }),
    });

  test('begins anew where nothing is lost by that', () => {
    const unclaimed = moved({ p: 'task' }, { id: 't', params: {}, isHeld: false });
    assert.deepEqual([unclaimed.withdrawn, unclaimed.execution?.t], [['t'], null]);
    for (const p of ['ready', 'run', 'asking', 'limited'] as const) {
      assert.deepEqual(moved({ p, w: NOW }).execution?.o, {});
    }
  });

  test('is refused where a time, a worker’s task or a pass of a loop would be lost', () => {
    for (const p of ['delay', 'backoff', 'sleep'] as const) {
      assert.deepEqual(moved({ p, w: NOW, m: 1 }).codes, ['WAIT_MOVED']);
    }
    const held = moved({ p: 'task' }, { id: 't', params: {}, isHeld: true });
    assert.deepEqual(held.codes, ['WAIT_MOVED']);
    const looped = carried({
      source: loop('l', 'true', 3, [stepA()]),
      target: loop('m', 'true', 3, [stepA()]),
      open: { p: 'ready' },
      whole: { o: { 1: { b: 0, i: 1 }, 2: { b: 0, p: 'ready', a: 0 } } },
    });
    assert.deepEqual(looped.codes, ['WAIT_MOVED']);
  });
});

describe('a child', () => {
  const started = (more: object = {}): Block =>
    ({ type: 'sub_sequence', id: 'a', sequence_name: 'other', version: 1, ...more }) as Block;
  const open = { p: 'child', c: 'its-id' } as const;

  test('goes on where the call is the same', () => {
    const source = started({ input: { n: '{{ data.n }}' } });
    const target = started({ input: { n: '{{ data.m }}' } });
    const { record } = carried({ source, target, open, data: { n: 1, m: 1 } });
    assert.equal((record as StepRecord).c, 'its-id');
  });

  for (const [what, more] of [
    ['version', { version: 2 }],
    ['input', { input: { n: 1 } }],
  ] as const) {
    test(`keeps the instance where it is when the target says another ${what}`, () => {
      const { codes } = carried({ source: started(), target: started(more), open });
      assert.deepEqual(codes, ['CHILD_CALL_CHANGED']);
    });
  }
});
