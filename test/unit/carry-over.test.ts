/** What becomes of everything that an instance waits for when it goes over, wait by wait. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { type CarriedTask, carryOver, isCarried } from '../../src/core/carry-over.js';
import { COMPLETED, type Execution, type StepRecord } from '../../src/core/execution.js';
import type { JsonObject } from '../../src/core/json.js';
import {
  freshSnapshot,
  loop,
  noop,
  planOf,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

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

const a = (more: object = {}): Block => ({ ...work('a'), ...more }) as Block;
const retry = (initial_backoff: number) => ({
  retry: { max_attempts: 9, initial_backoff, max_backoff: 10_000_000 },
});
const napping = (duration_ms: unknown, more: object = {}): Block =>
  ({ type: 'step', id: 'a', handler: 'sleep', params: { duration_ms }, ...more }) as Block;

describe('a time', () => {
  const due = NOW + 5_000;
  const asleep = { p: 'sleep', w: due, m: 6_000 } as const;
  const cases: readonly (readonly [string, Case, number | undefined])[] = [
    [
      'a sleep keeps its deadline',
      { source: napping(6_000), target: napping(6_000), open: asleep },
      due,
    ],
    [
      'a sleep keeps it, too, when data have changed that both read',
      {
        source: napping('{{data.ms}}'),
        target: napping('{{data.ms}}'),
        open: asleep,
        data: { ms: 1 },
      },
      due,
    ],
    [
      'another duration counts from when the sleep began',
      { source: napping(6_000), target: napping(9_000), open: asleep },
      due + 3_000,
    ],
    [
      'a delay keeps its deadline',
      {
        source: a({ delay: { duration: 7 } }),
        target: a({ delay: { duration: 7 } }),
        open: { p: 'delay', w: due },
      },
      due,
    ],
    [
      'another delay counts from when the step was reached',
      {
        source: a({ delay: { duration: 7 } }),
        target: a({ delay: { duration: 500 } }),
        open: { p: 'delay', w: due },
      },
      START + OPEN_AT + 500,
    ],
    [
      'a back-off keeps its deadline',
      { source: a(retry(1_000)), target: a(retry(1_000)), open: { p: 'backoff', a: 1, w: due } },
      due,
    ],
    [
      'another back-off counts from the failure before it',
      { source: a(retry(1_000)), target: a(retry(3_000)), open: { p: 'backoff', a: 1, w: due } },
      due + 2_000,
    ],
    [
      'a step that its rate limit put off keeps its time',
      {
        source: a({ rate_limit_key: 'k' }),
        target: a({ rate_limit_key: 'k' }),
        open: { p: 'limited', w: due },
      },
      due,
    ],
  ];
  for (const [title, asked, expected] of cases) {
    test(title, () => {
      const { record, queued, withdrawn } = carried(asked);
      assert.equal((record as StepRecord).w, expected);
      assert.equal((record as StepRecord).p, asked.open.p);
      assert.deepEqual([queued, withdrawn], [[], []]);
    });
  }

  test('that the target does not have is over', () => {
    const over: readonly Case[] = [
      { source: a({ delay: { duration: 7 } }), target: a(), open: { p: 'delay', w: due } },
      { source: a({ rate_limit_key: 'k' }), target: a(), open: { p: 'limited', w: due } },
      { source: a({ rate_limit_key: 'k' }), target: a(), open: { p: 'asking', w: due } },
      {
        source: a({ send_window: { start_hour: 1, end_hour: 2 } }),
        target: a({ send_window: { start_hour: 1, end_hour: 3 } }),
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
    assert.deepEqual(carried({ source: napping(6_000), target, open: asleep }).codes, [
      'PARAMS_UNRENDERABLE',
    ]);
  });
});

describe('a task', () => {
  const task = (isHeld: boolean): CarriedTask => ({ id: 't', params: { n: 1 }, isHeld });
  const calling = (n: unknown, more: object = {}) => a({ params: { n }, ...more });
  const open = { p: 'task', a: 2 } as const;

  test('that nobody has claimed is withdrawn, and the same try dispatched again', () => {
    for (const target of [calling(1), calling(2), calling(1, { queue_name: 'q' })]) {
      const seen = carried({
        source: calling(1),
        target,
        open,
        task: task(false),
        whole: { p: 1 },
      });
      assert.deepEqual(seen.record, { b: OPEN_AT, p: 'ready', a: 2, g: 1 });
      assert.deepEqual([seen.queued, seen.withdrawn], [['a'], ['t']]);
      assert.equal(seen.execution?.p, undefined, 'it would never wake');
    }
  });

  test('that a worker has stays where the call is the same, however it is written', () => {
    for (const target of [calling(1), calling('{{data.one}}'), calling(1, { queue_name: 'q' })]) {
      const seen = carried({
        source: calling(1),
        target,
        open,
        task: task(true),
        data: { one: 1 },
      });
      assert.deepEqual(seen.record, { b: OPEN_AT, ...open });
      assert.deepEqual([seen.queued, seen.withdrawn], [[], []]);
    }
    const changed = { source: calling(1), target: calling(2), open, task: task(true) };
    assert.deepEqual(carried(changed).codes, ['CLAIMED_CALL_CHANGED']);
    const broken = { ...changed, target: calling('{{nowhere.x}}') };
    assert.deepEqual(carried(broken).codes, ['PARAMS_UNRENDERABLE']);
  });
});

describe('a step at another place', () => {
  const moved = (open: Case['open'], task?: CarriedTask) =>
    carried({
      source: a(),
      target: tryCatch('t', [a()], [noop('r')]),
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
      source: loop('l', 'true', 3, [a()]),
      target: loop('m', 'true', 3, [a()]),
      open: { p: 'ready' },
      whole: { o: { 1: { b: 0, i: 1 }, 2: { b: 0, p: 'ready', a: 0 } } },
    });
    assert.deepEqual(looped.codes, ['WAIT_MOVED']);
  });

  test('is not looked for when the instance has nothing open', () => {
    const seen = carried({
      source: sleep('s', 1),
      target: noop('z'),
      open: { p: 'ready' },
      whole: { o: {} },
    });
    assert.deepEqual(seen.execution?.o, {});
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

  test('of another sequence, too', () => {
    const target = started({ sequence_name: 'third' });
    assert.deepEqual(carried({ source: started(), target, open }).codes, ['WAIT_MOVED']);
  });

  test('that is not made yet is made as the target says', () => {
    const { record } = carried({
      source: started(),
      target: started({ version: 2 }),
      open: { p: 'child' },
    });
    assert.equal((record as StepRecord).p, 'child');
  });
});
