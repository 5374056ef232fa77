/**
 * What flows decide at their edges, where money is at stake: retries behind catch lists and compensations, items
 * and passes that see what is their own, errors of other blocks, and clean-ups that fail.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { StepRecord } from '../../schema/execution.js';
import type { JsonObject } from '../../src/base/json.js';
import type { ChildEnd, ChildStart } from '../../src/core/progress.js';
import { remapExecution } from '../../src/core/remap.js';
import {
  failing,
  forEach,
  loop,
  noop,
  type Player,
  parallel,
  play,
  race,
  START,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';
import { casesIn } from '../helpers/table.js';

const saga = (id: string, ...steps: [string, Block | Block[], Block?][]): Block => ({
  type: 'saga',
  id,
  steps: steps.map(([name, action, compensation]) =>
    compensation === undefined ? { id: name, action } : { id: name, action, compensation },
  ),
});
const order = tryCatch('t', [work('charge')], [work('cancel')], [work('notify')]);
const route = (...blocks: Block[]): Block => {
  return { type: 'router', id: 'q', routes: [{ condition: 'true', blocks }], default: [work('z')] };
};
const STOP = { kind: 'stop', state: 'failed' } as const;

describe('a retry of a try_catch', () => {
  test('a retry of a try_catch whose catch list has ended resumes the finally list, and not the try list', () => {
    const player = play([order, work('next')]).after('fail charge', 'ok cancel', 'fail notify');
    player.shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['notify'] });
    player.after('ok notify').shows({ atWork: ['next'] });
  });

  test('a retry of a try_catch resumes a failed catch list, and then the finally list runs again', () => {
    const undo = tryCatch('t', [work('charge')], [work('a'), work('b')], [work('notify')]);
    const player = play([undo]).after('fail charge', 'ok a', 'fail b', 'ok notify');
    player.shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['b'] });
    player.after('ok b').shows({ atWork: ['notify'] });
    player.after('ok notify').shows({ state: 'completed', done: ['a', 'b', 'notify'] });
  });

  for (const [how, cut] of [
    ['a hard stop', (blocks: Block[]) => play(blocks).after('fail charge', STOP)],
    [
      'the time of a block around it',
      (blocks: Block[]) => {
        const around = { ...parallel('p', blocks), timeout: 100 };
        return play([around]).after('fail charge', 'tick');
      },
    ],
  ] as const) {
    test(`goes on with the catch list that ${how} has cut off`, () => {
      const player = cut([tryCatch('t', [work('charge'), work('ship')], [work('cancel')])]);
      player.shows({ state: 'failed' });
      player.after('retry').shows({ atWork: ['cancel'] });
    });
  }

  test('runs no item that had not begun behind the catch list', () => {
    const items = forEach('f', 'xs', [work('pay')]);
    const player = play([tryCatch('t', [items], [work('refund')], [work('notify')])], {
      data: { xs: [1, 2, 3] },
    });
    player.after('ok pay', 'fail pay', 'ok refund', 'fail notify', 'retry');
    player.shows({ atWork: ['notify'] });
    player.after('ok notify').shows({ state: 'completed' });
  });
});

describe('a retry of a saga', () => {
  const trip = saga('s', ['pay', work('charge'), work('refund')], ['send', work('ship')]);

  test('a retry of a saga resumes the failed compensation; the saga then fails for its original reason, and the next retry runs it again', () => {
    const player = play([trip]).after('ok charge', 'fail ship', 'fail refund');
    player.shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['refund'] });
    player.after('ok refund').shows({ state: 'failed' });
    assert.equal(player.snapshot.execution.y?.block_id, 'ship');
    player.after('retry').shows({ atWork: ['charge'] });
    assert.equal(player.dispatched.at(-1)?.iteration, '1');
  });

  test('that was stopped before it failed goes on with its action', () => {
    play([trip])
      .after('ok charge', STOP, 'retry')
      .shows({ atWork: ['ship'] });
  });

  test('of which an action had yet to clean up takes that action back, too', () => {
    const action = tryCatch('a', [work('charge')], [], [work('note')]);
    const player = play([saga('s', ['pay', action, work('refund')])]);
    player.after('ok charge', 'cancel', 'fail note').shows({ state: 'failed' });
    player.after('retry', 'ok note').shows({ atWork: ['refund'] });
    player.after('ok refund').shows({ state: 'cancelled' });
  });

  const inner = saga('i', ['x', noop('n'), work('undo')], ['y', work('charge')]);
  for (const [what, action, next] of [
    ['a catch list', tryCatch('a', [work('charge')], [work('undo')]), ['refund']],
    ['a finally list', tryCatch('a', [work('charge')], [failing('x')], [work('undo')]), []],
    ['a saga', inner, []],
    ['a try_catch', [tryCatch('a', [work('charge')], [work('undo')]), work('more')], []],
  ] as const) {
    test(`does first what ${what} in its action has not taken back, and only the next one charges again`, () => {
      const pay = ['pay', action, work('refund')] as [string, Block | Block[], Block];
      const player = play([saga('s', ['fee', noop('f'), work('back')], pay, ['z', work('ship')])]);
      player.after('fail charge', 'fail undo', 'ok back').shows({ state: 'failed' });
      player.after('retry').shows({ atWork: ['undo'] });
      player.after('fail undo', 'retry', 'ok undo').shows({ atWork: next });
      player.after(...next.map((id) => `ok ${id}` as const)).shows({ state: 'failed' });
      player.after('retry').shows({ atWork: ['charge'] });
    });
  }

  for (const [what, around] of [
    ['a branch', (one: Block, other: Block) => parallel('p', [one], [other])],
    [
      'an item',
      (one: Block, other: Block) =>
        forEach(
          'f',
          'xs',
          [
            { ...one, when: 'data.item == 1' },
            { ...other, when: 'data.item == 2' },
          ],
          { concurrency: 2 },
        ),
    ],
  ] as const) {
    test(`charges nothing beside what ${what} of its action has not taken back`, () => {
      const action = around(inner, work('other'));
      const player = play([saga('s', ['pay', action, work('refund')])], { data: { xs: [1, 2] } });
      player.after('fail charge', 'fail undo', 'fail other').shows({ state: 'failed' });
      player.after('retry').shows({ atWork: ['undo'] });
      player.after('ok undo').shows({ state: 'failed' });
      assert.deepEqual(player.after('retry').atWork.sort(), ['charge', 'other']);
    });
  }

  test('owes nothing of what a completed part of its action has caught', () => {
    const inner = tryCatch('o', [tryCatch('i', [failing('x')], [work('y')])], []);
    const player = play([saga('s', ['pay', [inner, work('charge')]])]);
    player.after('fail y', 'fail charge').shows({ state: 'failed' });
    player.after('retry').shows({ state: 'waiting', atWork: ['y'] });
  });

  test('decides a race in its action by what cleans up, and takes back what completes', () => {
    const paid = [work('charge'), tryCatch('a', [noop('n')], [], [work('note')])];
    const action = race('r', paid, [work('other')]);
    const player = play([saga('s', ['pay', action, work('refund')])]);
    player.after('ok charge', 'fail note').shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['note'] });
    player.after('ok note').shows({ atWork: ['refund'] });
    player.after('ok refund').shows({ state: 'failed' });
  });

  test('charges again behind a catch list that has taken back, and hands the failure on', () => {
    const action = tryCatch('a', [work('charge')], [work('undo'), failing('again')]);
    const player = play([saga('s', ['pay', action])]).after('fail charge', 'ok undo');
    player.shows({ state: 'failed' });
    player.after('retry').shows({ atWork: ['charge'] });
  });

  const no = failing('no');
  const scope = (...blocks: Block[]): Block => ({ type: 'cancellation_scope', id: 'c', blocks });
  const each = (...blocks: Block[]) => forEach('f', 'xs', blocks, { concurrency: 2 });
  const item = (of: number, block: Block): Block => ({ ...block, when: `data.item == ${of}` });
  const wait: Block = { type: 'step', id: 'w', handler: 'wait_for_event', params: { name: 'ok' } };
  const until = (...branches: Block[][]) =>
    ({ ...race('r', ...branches), semantics: 'first_to_succeed' }) as Block;
  const CATCHES: Record<string, Block[]> = {
    list: [work('undo'), no],
    'when true': [work('undo'), { ...no, when: 'data.xs' }],
    router: [route(work('undo'), no)],
    'router behind it': [work('undo'), route(no)],
    split: [
      {
        type: 'ab_split',
        id: 'q',
        variants: [{ name: 'v', weight: 1, blocks: [work('undo'), no] }],
      },
    ],
    scope: [scope(work('undo'), no)],
    loop: [loop('l', 'true', 2, [work('undo'), no])],
    item: [forEach('f', 'xs', [work('undo'), no])],
    items: [each(item(1, work('undo')), item(2, no))],
    parallel: [parallel('p', [no], [work('undo')])],
    race: [race('r', [work('undo'), no], [wait, work('z')])],
    'try_catch that passes on a fail': [
      work('undo'),
      tryCatch('u', [failing('y')], [no], [noop('n')]),
    ],
    nested: [scope(parallel('p', [route(loop('l', 'true', 1, [no]))], [work('undo')]))],
    // Something else is left to do, or was taken back.
    'parallel with a failed refund': [parallel('p', [no], [work('undo')])],
    'race of two refunds': [until([work('undo'), no], [work('other')])],
    'race with a refund at work': [race('r', [work('undo'), no], [work('other')])],
    'items, one of which fails': [each(item(1, work('undo')), item(2, no))],
    'try_catch that passes on a refund': [tryCatch('u', [work('undo')], [no])],
    'finally list': [work('undo'), tryCatch('u', [noop('n')], [], [no])],
    saga: [saga('i', ['undone', work('undo')], ['checked', no])],
    compensation: [saga('i', ['x', noop('n'), no], ['y', work('undo')])],
    'child or check': [
      work('undo'),
      { type: 'step', id: 'no', handler: 'assert', params: { condition: 'none' } },
    ],
  };
  for (const [of = '', before = '', again = ''] of casesIn(`
list | ok undo | charge
when true | ok undo | charge
router | ok undo | charge
router behind it | ok undo | charge
split | ok undo | charge
scope | ok undo | charge
loop | ok undo | charge
item | ok undo | charge
items | ok undo | charge
parallel | ok undo | charge
race | ok undo | charge
try_catch that passes on a fail | ok undo | charge
nested | ok undo | charge
parallel with a failed refund | fail undo | undo
race of two refunds | ok undo, fail other | other
race with a refund at work | ok undo |
items, one of which fails | fail undo | undo
try_catch that passes on a refund | fail undo |
finally list | ok undo |
saga | ok undo | undo
compensation | fail undo |
child or check | ok undo |
`)) {
    const what = again === 'charge' ? 'runs again behind' : 'first cleans up in';
    test(`${what} a catch list with fail: ${of}, ${before}`, () => {
      const action = tryCatch('a', [work('charge')], CATCHES[of]!);
      const player = play([saga('s', ['pay', action])], { data: { xs: [1, 2] } });
      player.after('fail charge', ...(before.split(', ') as 'wake'[])).shows({ state: 'failed' });
      assert.equal(player.snapshot.execution.m === 1, again !== 'charge');
      player.after('retry');
      assert.equal(player.atWork.join(', '), again);
      if (again === '') player.shows({ state: 'failed' });
    });
  }
});

describe('what is cut off and cannot clean up', () => {
  test('a cancelled block whose cleanup fails makes the instance fail; a retry finishes the cleanup, and then the instance is cancelled', () => {
    const player = play([tryCatch('o', [order], [], [work('last')])]);
    player.after('cancel', 'fail notify').shows({ atWork: ['last'] });
    player.after('ok last').shows({ state: 'failed', failure: 'broken' });
    assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
    player.after('retry').shows({ atWork: ['notify'] });
    player.after('fail notify').shows({ state: 'failed' });
    player.after('retry', 'ok notify').shows({ state: 'cancelled' });
  });

  const unpaid = saga('s', ['pay', noop('charge'), work('refund')], ['send', failing('ship')]);
  const inTry = tryCatch('c', [failing('x')], [], [work('refund')]);
  for (const [what, owing] of [
    ['a saga', unpaid],
    ['a try_catch', inTry],
    ['a parallel', parallel('q', [unpaid], [noop('n')])],
  ] as const) {
    test(`may have failed to before in another branch: ${what}`, () => {
      const player = play([parallel('p', [owing], [work('other')])]).after('fail refund');
      player.shows({ atWork: ['other'] });
      player.after('cancel').shows({ state: 'failed' });
      assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
      player.after('retry').shows({ atWork: ['refund'] });
      player.after('fail refund', 'retry', 'ok refund').shows({ state: 'cancelled' });
    });
  }

  test('may have failed to in an item, or in the branch that has lost a race', () => {
    const body = [
      { ...unpaid, when: 'data.item == 1' },
      { ...work('other'), when: 'data.item == 2' },
    ];
    const each = forEach('f', 'xs', body, { concurrency: 2 });
    const items = play([each], { data: { xs: [1, 2] } }).after('fail refund', 'cancel');
    items.shows({ state: 'failed' });
    items.after('retry').shows({ atWork: ['refund'] });
    items.after('ok refund').shows({ state: 'cancelled' });
    const lost = {
      ...race('r', [unpaid], [work('other')]),
      semantics: 'first_to_succeed',
    } as Block;
    const player = play([lost, work('z')]).after('fail refund', 'ok other');
    player.shows({ state: 'failed' });
    player.after('retry', 'ok refund').shows({ atWork: ['z'] });
  });

  test('may be a step of a catch list that a cancel left alone', () => {
    const refund = work('refund', { cancellable: false });
    const player = play([tryCatch('c', [failing('x')], [refund, work('tell')])]);
    player.after('cancel', 'fail refund').shows({ state: 'failed' });
    player.after('retry', 'ok refund', 'ok tell').shows({ state: 'cancelled' });
  });

  test('is told by what fails: nothing is owed twice', () => {
    const player = play([parallel('p', [unpaid], [work('other')])]).after(
      'fail refund',
      'ok other',
    );
    player.shows({ state: 'failed' });
    assert.equal(player.snapshot.execution.y?.block_id, 'ship');
    const caught = tryCatch('t', [parallel('p', [unpaid], [work('other')])], [work('alert')]);
    const other = play([caught]).after('fail refund', 'ok other', 'cancel');
    other.shows({ state: 'cancelled' });
  });

  test('may be in a scope, which the signal does not cut off', () => {
    const scope = (block: Block) =>
      play([{ type: 'cancellation_scope', id: 'c', blocks: [block] }]);
    const trip = saga('s', ['pay', noop('p'), work('undo')], ['send', work('ship')]);
    for (const block of [tryCatch('t', [work('ship')], [work('undo')]), trip]) {
      const player = scope(block).after('cancel', 'fail ship', 'fail undo');
      player.shows({ state: 'failed', failure: 'broken' });
      assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
      player.after('retry').shows({ atWork: ['undo'] });
      player.after('ok undo').shows({ state: 'cancelled' });
    }
    const thrown = tryCatch('t', [work('ship')], [failing('again')]);
    scope(thrown).after('cancel', 'fail ship').shows({ state: 'cancelled' });
  });

  test('is also a finally list or a compensation in which something fails on purpose', () => {
    const check = route(parallel('p', [failing('no')], [noop('n')]));
    for (const block of [
      tryCatch('t', [work('a')], [], [check]),
      saga('s', ['pay', noop('x'), check], ['send', work('a')]),
    ]) {
      const player = play([block]).after('cancel').shows({ state: 'failed' });
      assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
      player.after('retry').shows({ state: 'failed' });
      player.after('cancel').shows({ state: 'cancelled' });
    }
  });

  test('is given up by a hard stop, and the failure tells that a retry continues what was cancelled', () => {
    const player = play([order]).after('cancel', STOP).shows({ state: 'failed' });
    assert.match(player.snapshot.execution.y?.message ?? '', /its cancellation had not finished/);
    player.after('retry').shows({ atWork: ['charge'] });
    const other = play([work('charge')]).after(STOP);
    assert.equal(other.snapshot.execution.y?.message, 'failed by request');
  });

  test('is given up by another cancel', () => {
    play([order]).after('cancel', 'fail notify', 'cancel').shows({ state: 'cancelled' });
  });

  test('a failed hook of a cancel is run again by a retry, and so are the hooks skipped after it', () => {
    const hook = { id: 'h', type: 'step', handler: 'http_request' };
    const behind = { ...hook, id: 'g', when: 'outputs.h.sent == false' };
    const player = play([work('a')], { hooks: { on_cancel: [hook, behind] } as never });
    player.after('cancel', 'fail h').shows({ state: 'failed' });
    assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
    const moved = remapExecution(player.snapshot.execution, player.plan, player.plan);
    assert.deepEqual(moved, player.snapshot.execution, 'another version owes it, too');
    player.after('retry').complete('h', { sent: false });
    player.shows({ state: 'cancelled', atWork: ['g'] });
  });

  test('may be a hook that stayed behind in a handover: a retry runs the hooks, and not the flow', () => {
    const hooks = { on_cancel: [{ id: 'h', type: 'step', handler: 'http_request' }] } as never;
    const player = play([work('a')], { hooks }).after('cancel', 'fail h');
    delete player.snapshot.execution.j!.f;
    player.after('retry').shows({ state: 'cancelled', atWork: ['h'] });
  });

  test('tells its compensation that it was cancelled, and never an older error', () => {
    const undo = transform('undo', { why: '{{ data._error.code }}, {{ data._error.message }}' });
    const player = play([
      tryCatch('t', [failing('x')], []),
      saga('s', ['pay', work('charge'), undo], ['send', work('ship')]),
    ]);
    player.after('ok charge', 'cancel').shows({ state: 'cancelled' });
    assert.deepEqual(player.outputOf('undo'), { why: 'cancelled, the instance was cancelled' });
  });
});

describe('a catch list that has failed when its block is cut off', () => {
  const refund = work('refund', { cancellable: false });
  const scope = (...blocks: Block[]): Block => ({ type: 'cancellation_scope', id: 'c', blocks });
  const when = (test: string, block: Block): Block => ({ ...block, when: test });
  const undo = (rescue: Block[], last: Block[] = [work('note')], id = 't') =>
    tryCatch(id, [failing(`${id}x`)], rescue, last);
  const guarded = undo([refund, work('tell')]);
  const plain = undo([work('refund')]);
  const quick = undo([refund], []);
  const withOther = parallel('p', [quick], [work('other')]);
  const items = (concurrency: number, ...body: Block[]) =>
    forEach('f', 'xs', body, { concurrency });
  const first = when('data.item == 1', quick);
  const beside = when('data.item == 2', work('other'));
  const until = (semantics: string, ...branches: Block[][]) =>
    ({ ...race('r', ...branches), semantics }) as Block;
  const timed = (block: Block) => ({ ...block, timeout: 100 }) as Block;
  const CATCHES: Record<string, Block[]> = {
    parallel: [parallel('q', [refund], [work('a')])],
    items: [items(2, when('data.item == 1', refund), when('data.item == 2', work('a')))],
    'one item': [items(1, refund)],
    loop: [loop('l', 'true', 1, [refund])],
    router: [route(refund)],
    scope: [scope(work('refund'))],
    'parallel with fail': [parallel('q', [failing('again')], [refund])],
    'try_catch with a finally list': [
      tryCatch('u', [failing('ux')], [work('a')], [work('m', { cancellable: false })]),
    ],
    'try list': [tryCatch('u', [refund], [work('a')])],
    'try list with a finally list': [tryCatch('u', [refund], [work('a')], [noop('n')])],
    'two lists': [tryCatch('u', [refund], [work('a')], [work('m'), work('last')])],
    'catch list': [undo([refund], [noop('n')], 'u')],
    'catch list with fail': [undo([refund, failing('again')], [], 'u')],
    action: [saga('s', ['pay', refund])],
  };
  const FLOWS: Record<string, Block[]> = {
    guarded: [guarded],
    quick: [quick],
    held: [race('r', [work('a'), work('b')], [quick])],
    'last list': [tryCatch('t', [noop('n')], [], [work('refund')])],
    scoped: [scope(plain)],
    plain: [plain],
    rethrown: [undo([refund, failing('again')])],
    'rethrown in a router': [undo([refund, route(failing('again'))])],
    'rethrown in a scope': [scope(undo([work('refund'), route(failing('again'))]))],
    branch: [withOther],
    'branch in a scope': [scope(parallel('p', [undo([work('refund')], [])], [work('other')]))],
    'scope in a branch': [parallel('p', [scope(undo([work('refund')], []))], [work('other')])],
    'plain branch': [parallel('p', [undo([work('refund')], [])], [work('other')])],
    items: [items(2, first, beside)],
    'one item': [items(1, guarded)],
    loop: [loop('l', 'true', 2, [guarded])],
    'in a try list': [tryCatch('o', [guarded], [work('a')], [work('z')])],
    'in a failed try list': [tryCatch('o', [withOther], [work('a')], [work('z')])],
    'behind a catch list': [tryCatch('o', [quick], [work('a')], [work('z')])],
    'in a catch list': [undo([guarded, work('a')], [work('z')], 'o')],
    'in a finally list': [tryCatch('o', [noop('n')], [], [guarded])],
    'in an action': [saga('s', ['fee', noop('f'), work('back')], ['pay', guarded, work('b')])],
    'in a failed action': [saga('s', ['fee', noop('f'), work('back')], ['pay', quick, work('b')])],
    'in a compensation': [saga('s', ['pay', noop('p'), guarded], ['send', work('ship')])],
    'in a loser': [until('first_to_succeed', [quick], [work('other')]), work('next')],
    'at work in a loser': [until('first_to_resolve', [guarded], [work('other')]), work('next')],
    'plain in a loser': [until('first_to_succeed', [plain], [work('other')]), work('next')],
    timed: [tryCatch('o', [timed(withOther)], [work('next')])],
    'timed itself': [tryCatch('o', [timed(guarded)], [work('next')])],
    'in a timed scope': [timed(scope(plain))],
    'timed in a catch list': [
      undo([timed(parallel('q', [tryCatch('u', [work('a')], [], [work('m')])])), refund]),
    ],
    ...Object.fromEntries(Object.entries(CATCHES).map(([of, list]) => [`of ${of}`, [undo(list)]])),
  };
  for (const [flow = '', before = '', asks = '', then = '', end = ''] of casesIn(`
# At its finally list. What a retry does again is the catch list from what failed, and the finally list once more.
guarded | fail refund, cancel, ok note | refund | ok refund, ok tell, ok note | cancelled
guarded | fail refund, cancel, ok note | refund | ok refund, fail tell, retry, ok tell, ok note | cancelled
guarded | fail refund, cancel, ok note | refund | fail refund, retry, ok refund, ok tell, ok note | cancelled
guarded | fail refund, cancel, ok note | refund | cancel, ok refund, ok tell, ok note | cancelled
guarded | fail refund, cancel, ok note | refund | ok refund, ok tell, fail note, retry, ok note | cancelled
guarded | ok refund, fail tell, cancel, ok note | tell | ok tell, ok note | cancelled
guarded | fail refund, cancel, fail note | note | ok note, retry, ok refund, ok tell, ok note | cancelled
scoped | fail refund, cancel, ok note | refund | ok refund, ok note | cancelled
# A cancel gives up what it would have cut off, and what fail hands on is done.
plain | fail refund, cancel, ok note | | | cancelled
rethrown | ok refund, cancel, ok note | | | cancelled
rethrown in a router | ok refund, cancel, ok note | | | cancelled
rethrown in a scope | ok refund, cancel, ok note | | | cancelled
rethrown in a scope | cancel, ok refund, ok note | | | cancelled
rethrown in a scope | cancel, fail refund | refund | ok refund, ok note | cancelled
of parallel with fail | cancel, ok refund, ok note | | | cancelled
of parallel with fail | ok refund, cancel, ok note | | | cancelled
of parallel with fail | cancel, fail refund | refund | ok refund, ok note | cancelled
of parallel with fail | fail refund, cancel, ok note | refund | ok refund, ok note | cancelled
# It has ended in a pause, in which the instance does not.
quick | pause, fail refund, cancel | refund | ok refund | cancelled
last list | pause, fail refund, cancel | refund | ok refund | cancelled
# Nothing new begins in what is cut off, although it stays open.
held | pause, ok a, fail refund, cancel | refund | ok refund | cancelled
# It has ended, and something else is at work.
branch | fail refund, cancel | refund | ok refund | cancelled
branch in a scope | fail refund, cancel, ok other | refund | ok refund | cancelled
scope in a branch | fail refund, cancel | refund | ok refund | cancelled
plain branch | fail refund, cancel | | | cancelled
items | fail refund, cancel | refund | ok refund | cancelled
one item | fail refund, cancel, ok note | refund | ok refund, ok tell, ok note | cancelled
loop | fail refund, cancel, ok note | refund | ok refund, ok tell, ok note | cancelled
in a try list | fail refund, cancel, ok note, ok z | refund | ok refund, ok tell, ok note | cancelled
in a failed try list | fail refund, cancel, ok z | refund | ok refund | cancelled
# It was caught.
behind a catch list | fail refund, cancel, ok z | | | cancelled
behind a catch list | fail refund, ok a, cancel, ok z | | | cancelled
in a catch list | fail refund, cancel, ok note | refund | ok refund, ok tell, ok note, ok a, ok z | cancelled
in a catch list | fail refund, ok note, cancel, ok z | refund | ok refund, ok tell, ok note, ok a, ok z | cancelled
in a finally list | fail refund, cancel, ok note | refund | ok refund, ok tell, ok note | cancelled
# An action that completes late is taken back.
in an action | fail refund, cancel, ok note, ok back | refund | ok refund, ok tell, ok note, ok b | cancelled
in a failed action | fail refund, cancel, ok back | refund | ok refund, ok b | cancelled
in a compensation | fail ship, fail refund, cancel, ok note | refund | ok refund, ok tell, ok note | cancelled
# Whatever cuts it off.
in a loser | fail refund, ok other | refund | ok refund, ok next | completed
at work in a loser | fail refund, ok other, ok note | refund | ok refund, ok tell, ok note, ok next | completed
plain in a loser | fail refund, ok other, ok note, ok next | | | completed
timed | fail refund, tick | refund | ok refund, ok next | completed
timed itself | fail refund, tick, ok note | refund | ok refund, ok tell, ok note, ok next | completed
# Its own time is over by the retry.
in a timed scope | fail refund, cancel, ok note | refund | tick, ok refund, ok note | cancelled
# It has timed out, and something in it cannot clean up.
timed in a catch list | tick, cancel, fail m | m | ok m, ok a, ok m, ok refund, ok note | cancelled
# At any depth of the list, before the cut and behind it.
of parallel | fail refund, cancel | refund, a | ok refund, ok a, ok note | cancelled
of parallel | cancel, fail refund | refund, a | ok refund, ok a, ok note | cancelled
of parallel | fail refund, ok a, cancel, ok note | refund | ok refund, ok note | cancelled
of parallel | cancel, ok refund, ok note | | | cancelled
of items | fail refund, cancel | refund, a | ok refund, ok a, ok note | cancelled
of items | cancel, fail refund | refund, a | ok refund, ok a, ok note | cancelled
of one item | cancel, fail refund | refund | ok refund, ok refund, ok note | cancelled
of one item | fail refund, cancel, ok note | refund | ok refund, ok refund, ok note | cancelled
of loop | cancel, fail refund | refund | ok refund, ok note | cancelled
of router | cancel, fail refund | refund | ok refund, ok note | cancelled
# What it has inside fails in it as usual, the finally list included.
of try_catch with a finally list | fail a, cancel, ok m | a | fail a, ok m, retry, ok a, ok m, ok note | cancelled
of scope | cancel, fail refund | refund | ok refund, ok note | cancelled
of scope | fail refund, cancel, ok note | refund | ok refund, ok note | cancelled
of try list | cancel, fail refund | refund | ok refund, ok note | cancelled
of try list | fail refund, ok a, cancel, ok note | | | cancelled
of try list with a finally list | cancel, fail refund | refund | ok refund, ok note | cancelled
of two lists | cancel, fail refund, ok m, fail last | last | ok last, ok refund, ok m, ok last, ok note | cancelled
of catch list | cancel, fail refund | refund | ok refund, ok note | cancelled
# The list runs again behind what is inside, and what has failed there fails once more.
of catch list with fail | fail refund, cancel, ok note | refund | ok refund, ok note | cancelled
of catch list with fail | cancel, fail refund | refund | ok refund, ok note | cancelled
of action | cancel, fail refund | refund | ok refund, ok note | cancelled
`)) {
    const what = asks === '' ? 'is not owed' : 'is owed';
    test(`${what}: ${flow}, ${before}${then === '' ? '' : `; retry, ${then}`}`, () => {
      const player = play(FLOWS[flow]!, { data: { xs: [1, 2] } });
      player.after(...(before.split(', ') as 'wake'[]));
      if (asks !== '') {
        player.shows({ state: 'failed' });
        assert.equal(player.snapshot.execution.y?.code, 'cleanup_failed');
        const moved = remapExecution(player.snapshot.execution, player.plan, player.plan);
        assert.deepEqual(moved, player.snapshot.execution, 'another version owes it, too');
        player.after('retry');
        assert.equal(player.atWork.join(', '), asks);
        player.after(...(then.split(', ') as 'wake'[]));
      }
      player.shows({ state: end, atWork: [] });
    });
  }
});

test('items of a finally list that runs once more do not see what those before have merged', () => {
  const ship = work('ship', { params: { to: '{{ data.address | "at the counter" }}' } });
  const body = [ship, work('sign')];
  const each = forEach('f', 'xs', body, { concurrency: 2 });
  const player = play([tryCatch('t', [work('a')], [], [each])], { data: { xs: [1, 2] } });
  player.after('cancel').complete('ship', { address: 'Rome' });
  player.snapshot.data = { ...player.snapshot.data, address: 'Oslo' };
  player.after(STOP, 'retry', 'ok a').shows({ atWork: ['ship', 'ship'] });
  const to = player.dispatched.slice(-2).map(({ params }) => (params as JsonObject).to);
  assert.deepEqual(to, ['Oslo', 'Oslo']);
});

describe('data._error', () => {
  const seen = (id: string) => transform(id, { by: '{{ data._error.block_id }}' });

  test('_error in catch and finally lists is that of their own block, and is gone after it', () => {
    const guarded = (id: string) =>
      tryCatch(id, [work(`${id}x`)], [work(`${id}c`), seen(`${id}1`)], [seen(`${id}2`)]);
    const player = play([parallel('p', [guarded('a')], [guarded('b'), seen('behind')]), seen('z')]);
    player.after('fail ax', 'fail bx', 'ok ac', 'ok bc').shows({ state: 'completed', data: {} });
    const by = ['a1', 'a2', 'b1', 'b2', 'behind', 'z'].map(
      (id) => (player.outputOf(id) as JsonObject).by,
    );
    assert.deepEqual(by, ['a', 'a', 'b', 'b', null, null]);
  });

  test('is gone when somebody asks for the state completed in a catch list', () => {
    const player = play([tryCatch('t', [work('x')], [work('c')])]).after('fail x');
    player.after({ kind: 'stop', state: 'completed' }).shows({ state: 'completed', data: {} });
  });

  test('is gone behind a race whose loser had caught one', () => {
    const loser = saga('s', ['pay', noop('charge'), work('refund')], ['send', failing('ship')]);
    const player = play([race('r', [loser], [work('b')])]);
    player.after('ok b').shows({ atWork: ['refund'] });
    player.after('ok refund').shows({ state: 'completed' });
    assert.deepEqual(player.snapshot.data, {});
  });

  test('is null in a finally list behind a try list that went well', () => {
    const fine = tryCatch('u', [noop('n')], [], [seen('last')]);
    const player = play([tryCatch('t', [failing('x')], [fine])]);
    assert.deepEqual(player.outputOf('last'), { by: null });
  });
});

describe('items side by side', () => {
  const XS = { data: { xs: [1, 2, 3] } };
  const at = (player: ReturnType<typeof play>, block: string, item: number, output: JsonObject) => {
    const step = [...player.open.values()].find(
      ({ blockId, iteration }) => blockId === block && iteration === `${item}`,
    )!;
    player.open.delete(`${step.node}/${step.iteration}/${step.attempt}`);
    player.send({ kind: 'step.outcome', ...step, outcome: { kind: 'success', output } });
  };

  test('concurrent items do not see merged data of each other, and their data is merged in their order', () => {
    const ship = work('ship', { params: { to: '{{ data.address | "at the counter" }}' } });
    const player = play([forEach('f', 'xs', [work('lookup'), ship], { concurrency: 2 })], XS);
    at(player, 'lookup', 1, { address: 'Oslo' });
    at(player, 'lookup', 0, { address: 'Rome' });
    at(player, 'ship', 0, {});
    at(player, 'lookup', 2, {});
    const to = player.dispatched.flatMap(({ blockId, params }) =>
      blockId === 'ship' ? [(params as JsonObject).to] : [],
    );
    assert.deepEqual(to, ['Oslo', 'Rome', 'at the counter']);
    assert.equal(player.snapshot.data.address, 'Oslo');
  });
});

describe('outputs of another pass', () => {
  const paid = [tryCatch('t', [work('pay')], []), transform('ship', {})].map(
    (block, i): Block => (i === 1 ? { ...block, when: 'outputs.pay.ok == true' } : block),
  );

  for (const [title, around] of [
    ['a loop', loop('l', 'true', 2, paid)],
    ['a for_each', forEach('l', 'xs', paid)],
    ['a for_each with items side by side', forEach('l', 'xs', paid, { concurrency: 2 })],
  ] as const) {
    test(`do not ship what was declined in ${title}`, () => {
      const player = play([around], { data: { xs: [1, 2] } });
      player.complete('pay', { ok: true });
      player.after('fail pay').shows({ state: 'completed' });
      const shipped = player.done.filter((id) => id.startsWith('ship'));
      assert.deepEqual(shipped, ['ship@0']);
    });
  }

  test('outputs of a loop are those of the latest iteration until the block starts, and null after a skipped one', () => {
    const body = [
      transform('before', { n: '{{ outputs.pay.n }}' }),
      tryCatch('t', [work('pay')], []),
      transform('after', { n: '{{ outputs.pay.n }}' }),
    ];
    const player = play([loop('l', 'true', 2, body)]);
    player.complete('pay', { n: 1 });
    player.after('fail pay').shows({ state: 'completed' });
    const seen = player.rows.flatMap(({ blockId, output }) =>
      blockId === 'before' || blockId === 'after' ? [(output as JsonObject).n] : [],
    );
    assert.deepEqual(seen, [null, 1, 1, null]);
  });

  test('of a for_each over nothing, and of one that failed, there are none', () => {
    const inner = forEach('in', 'data.item', [transform('x', {})]);
    const body = [inner, transform('see', { in: '{{ outputs.in }}', x: '{{ outputs.x }}' })];
    const player = play([forEach('f', 'xs', body)], { data: { xs: [[1], []] } });
    assert.deepEqual(player.outputOf('see'), { in: null, x: null });
    const broken = forEach('g', 'xs', [failing('y')]);
    const caught = play([tryCatch('t', [broken], []), transform('see', { g: '{{ outputs.g }}' })], {
      data: { xs: [1] },
    });
    assert.deepEqual(caught.outputOf('see'), { g: null });
  });
});

describe('a retry of a parent', () => {
  const child = (id = 'c'): Block => ({ type: 'sub_sequence', id, sequence_name: 'other' });

  /** What the child comes to that the block has waited for last; it is made before. */
  function ends(player: Player, block: string, how: string): void {
    const { children, plan, snapshot } = player;
    const { o } = snapshot.execution;
    const { node, iteration, attempt, child } = children.findLast(
      (order): order is ChildStart =>
        order.kind === 'start' &&
        plan.nodes[order.node]!.id === block &&
        (o[order.node] as StepRecord | undefined)?.a === order.attempt,
    )!;
    const step = { node, iteration, attempt };
    const isMade = (o[node] as StepRecord).c !== undefined;
    if (!isMade) player.send({ kind: 'child.made', ...step, child });
    const failed = { kind: 'failed', code: 'child_failed', message: how } as const;
    const note = `${player.children.length}`;
    const told: Record<string, ChildEnd> = {
      completes: { kind: 'completed', output: [] },
      fails: { ...failed, note },
      owes: { ...failed, note, owes: true },
      'is cancelled': failed,
      'is gone': { ...failed, isGone: true },
    };
    player.send({ kind: 'child.ended', ...step, end: told[how]! });
  }

  /** `ok x`, `fail x` and events as the player has them; `c owes` and the like are ends of children. */
  function live(player: Player, acts: string): void {
    for (const act of acts.split(', ')) {
      const [, block = '', how = ''] = /^(\w+) (completes|fails|owes|is \w+)$/.exec(act) ?? [];
      if (how !== '') ends(player, block, how);
      else player.after(act as 'wake');
    }
  }

  /** What was asked of children since: `start`, `retry` or `clean_up`, with their blocks. */
  const askedOf = (player: Player, from: number) =>
    player.children.slice(from).map(({ kind, node }) => `${kind} ${player.plan.nodes[node]!.id}`);

  test('asks for the child that failed, and takes its stale end for none', () => {
    const player = play([child()]);
    ends(player, 'c', 'fails');
    const from = player.children.length;
    player.shows({ state: 'failed' }).after('retry', { kind: 'wake', recovered: true });
    // Who makes it live again looks first whether the child has failed since.
    assert.deepEqual(askedOf(player, from), ['retry c', 'look c']);
    const { node, iteration, attempt } = player.children[0]!;
    const end = { kind: 'failed', code: 'child_failed', message: 'no', note: '1' } as const;
    const stale = player.send({ kind: 'child.ended', node, iteration, attempt, end });
    assert.equal(stale.stale, true);
    ends(player, 'c', 'completes');
    player.shows({ state: 'completed' });
  });

  const handsOn = (...body: Block[]) => tryCatch('t', body, [work('undo'), failing('no')]);
  const pay = ['pay', work('charge'), work('refund')] as [string, Block, Block];
  const both = parallel('p', [child()], [child('d')], [work('x')]);
  const each = (concurrency: number) => forEach('f', 'xs', [child()], { concurrency });
  const FLOWS: Record<string, Block[]> = {
    plain: [child()],
    saga: [saga('s', pay, ['send', [child(), work('ship')], work('back')])],
    'no payment': [saga('s', ['send', child(), work('back')])],
    caught: [saga('s', pay, ['send', handsOn(child())])],
    'caught alone': [handsOn(child())],
    finally: [saga('s', pay, ['send', tryCatch('t', [], [], [child()])])],
    parallel: [saga('s', pay, ['send', both])],
    'caught parallel': [handsOn(both)],
    items: [saga('s', pay, ['send', each(1)])],
    'items side by side': [saga('s', pay, ['send', each(2)])],
    compensation: [saga('s', ['pay', work('charge'), child()], ['send', work('ship')])],
  };
  for (const [flow = '', before = '', asks = '', then = '', comesTo = ''] of casesIn(`
# The child of a saga that owes a refund is the one that goes on, and the saga runs again only behind that.
saga | ok charge, c owes, ok refund | clean_up c | c fails | failed, retry: charge
saga | ok charge, c owes, ok refund | clean_up c, clean_up c | c owes, retry, c fails | failed, retry: charge
saga | ok charge, c owes, fail refund | clean_up c | c fails, ok refund | failed, retry: charge
saga | ok charge, c owes, ok refund | clean_up c | c is cancelled | failed, retry: charge
saga | ok charge, c owes, ok refund | clean_up c | c is gone | failed, retry: charge
saga | ok charge, c fails, ok refund | start c | ok charge | running:
# It was retried by itself, and is taken as it is: then it has to be taken back.
no payment | c owes | clean_up c | c completes, ok back | failed, retry:
# Where the catch list of a try_catch hands the failure on, the child cleans up before that, and nothing else runs.
caught | ok charge, c owes, ok undo, ok refund | clean_up c | c fails | failed, retry: charge
caught alone | c owes, ok undo | clean_up c | c fails | failed, retry:
caught parallel | c owes, d fails, fail x, ok undo | clean_up c | c fails | failed, retry:
finally | ok charge, c owes, ok refund | retry c | c completes | failed, retry: charge
parallel | ok charge, c owes, d fails, fail x, ok refund | clean_up c | c fails | failed, retry: charge
parallel | ok charge, c owes, d owes, fail x, ok refund | clean_up c, clean_up d | d fails, c fails | failed, retry: charge
items | ok charge, c owes, ok refund | clean_up c | c completes | failed, retry: charge
items side by side | ok charge, c owes, c fails, ok refund | clean_up c | c fails | failed, retry: charge
compensation | ok charge, fail ship, c fails | retry c | c completes | failed, retry: charge
# What of a plain flow has failed goes on as it would by itself, and one that was cancelled fails the block.
plain | c owes | retry c | c fails | failed, retry:
plain | c fails | retry c | c is cancelled | failed, retry:
plain | c is cancelled | start c | c completes | completed:
plain | c fails | retry c, start c | c is gone, c completes | completed:
`)) {
    test(`${flow}: after ${before} asks ${asks || 'no child'}`, () => {
      const player = play(FLOWS[flow]!, { data: { xs: [1, 2, 3] } });
      live(player, before);
      player.shows({ state: 'failed' });
      const from = player.children.length;
      player.after('retry', 'wake');
      live(player, then);
      const [end = '', atWork = ''] = comesTo.split(':').map((one) => one.trim());
      const [state, again] = end.split(', ');
      assert.equal(player.state, state);
      assert.deepEqual(askedOf(player, from).join(', '), asks);
      if (again !== undefined) player.after('retry', 'wake');
      assert.deepEqual(player.atWork.join(', '), atWork);
    });
  }
});

test('a wait for an event whose key is null fails, and takes no event', () => {
  const wait = (key: string | null): Block => ({
    type: 'step',
    id: 'w',
    handler: 'wait_for_event',
    params: { name: 'paid', key },
  });
  const player = play([wait('{{ data.none }}')]);
  assert.deepEqual([player.state, player.snapshot.execution.y?.code], ['failed', 'invalid_params']);
  assert.equal(play([wait(null)]).state, 'waiting');
  assert.equal(player.now, START);
});

describe('an expression that comes to null', () => {
  const headers = { 'idempotency-KEY': 'o-{{ data.none }}' };
  for (const [handler, params, member] of [
    ['wait_for_event', { name: 'paid', key: 'o-{{ data.none }}' }, 'key'],
    ['wait_for_event', { name: 'paid-{{ data.none }}' }, 'name'],
    ['charge', { idempotency_key: '{{ data.id }}/{{ data.none }}' }, 'idempotency_key'],
    ['charge', { idempotency_key: '{{ data.none }}' }, 'idempotency_key'],
    ['http_request', { url: 'http://x', headers }, 'headers.idempotency-KEY'],
    ['wait_for_event', { name: 'paid', key: "o-{{ data.none | 'x' }}" }, undefined],
    ['wait_for_event', { name: 'paid', key: "o-{{ data.none | default('x') }}" }, undefined],
    ['charge', { idempotency_key: '{{ data.id }}', note: 'o-{{ data.none }}' }, undefined],
    ['transform', { idempotency_key: '{{ data.none }}' }, undefined],
  ] as const) {
    const what = member === undefined ? 'is taken' : `fails the step in ${member}`;
    test(`${what}: ${handler} ${JSON.stringify(params)}`, () => {
      const block = { type: 'step', id: 'w', handler, params, retry: { max_attempts: 3 } };
      const player = play([block as Block], { data: { id: 7 } });
      const { code, message } = player.snapshot.execution.y ?? {};
      const why = `${handler}: ${member} must not come to null, and {{ data.none }} does`;
      assert.deepEqual(
        [code, message],
        member === undefined ? [undefined, undefined] : ['invalid_params', why],
      );
    });
  }
});
