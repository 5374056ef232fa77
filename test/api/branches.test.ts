/** Parallel, race, router and try_catch, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TreeNode } from '../../schema/instance.js';
import {
  type Json,
  newHandler,
  parallel,
  race,
  router,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';

const api = useSharedApi();

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');
const began = (node: TreeNode | undefined) => Date.parse(node?.started_at ?? '');
const ended = (node: TreeNode | undefined) => Date.parse(node?.completed_at ?? '');

/** Runs to the state and gives the blocks that left a row, in order. */
async function rows(state: string, blocks: readonly Json[], data: Json = {}): Promise<string[]> {
  const tenant = api.tenant();
  return tenant.rowsOf(await tenant.runUntil(state, blocks, data));
}

describe('Parallel: every branch leaf has one output; two in-process sleeps overlap; one failing branch fails the instance; inside try_catch it is rescued; empty branches complete', () => {
  test('every branch leaf has one output', async () => {
    const blocks = [parallel('p', [noop('a'), noop('b')], [noop('c')], [sleep('d', 10)])];
    assert.deepEqual((await rows('completed', blocks)).sort(), ['a', 'b', 'c', 'd']);
  });

  test('two in-process sleeps overlap', async () => {
    const tenant = api.tenant();
    const blocks = [parallel('p', [sleep('a', 300)], [sleep('b', 300)])];
    const { p, a, b } = await tenant.tree(await tenant.runUntil('completed', blocks));
    assert.ok(began(a) < ended(b) && began(b) < ended(a));
    const slept = ended(a) - began(a) + (ended(b) - began(b));
    assert.ok(slept >= 600 && ended(p) - began(p) < 0.8 * slept, `${slept} ms`);
  });

  test('one failing branch fails the instance', async () => {
    const blocks = [parallel('p', [fail('bad')], [sleep('good', 20), noop('rest')]), noop('after')];
    // The other branch is not cancelled by the failure.
    assert.deepEqual(await rows('failed', blocks), ['bad', 'good', 'rest']);
  });

  test('inside try_catch it is rescued', async () => {
    const blocks = [tryCatch('t', [parallel('p', [fail('bad')], [noop('good')])], [noop('saved')])];
    assert.deepEqual(await rows('completed', blocks), ['bad', 'good', 'saved']);
  });

  test('empty branches complete', async () => {
    assert.deepEqual(await rows('completed', [parallel('p', [], []), noop('after')]), ['after']);
    assert.deepEqual(await rows('completed', [parallel('p', [], [noop('a')])]), ['a']);
  });
});

test('Steps within a parallel branch keep their order', async () => {
  const branch = (name: string) => [
    sleep(`${name}1`, 20),
    noop(`${name}2`),
    sleep(`${name}3`, 1),
    noop(`${name}4`),
  ];
  const order = await rows('completed', [parallel('p', branch('a'), branch('b'))]);
  for (const name of ['a', 'b']) {
    const own = order.filter((id) => id.startsWith(name));
    assert.deepEqual(own, [`${name}1`, `${name}2`, `${name}3`, `${name}4`]);
  }
});

describe("Race: fast branch wins and the instance completes although the other branch's worker never answers; all branches failing fails; first_to_succeed ignores a fast failure", () => {
  test('the fast branch wins, whatever the worker of the other does', async () => {
    const tenant = api.tenant();
    const [slow, fast] = [newHandler(), newHandler()];
    const id = await tenant.run([race('r', [[step('slow', slow)], [step('fast', fast)]])]);
    await tenant.task(slow);
    await tenant.complete(await tenant.task(fast));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['fast', 'r']);
    assert.equal((await tenant.nodeStates(id)).slow, 'cancelled');
  });

  for (const semantics of ['first_to_resolve', 'first_to_succeed']) {
    test(`all branches failing fails with ${semantics}`, async () => {
      await rows('failed', [race('r', [[fail('a')], [fail('b')]], semantics)]);
    });
  }

  test('first_to_succeed ignores a fast failure', async () => {
    const blocks = [
      race('r', [[fail('fast')], [sleep('slow', 30), noop('rest')]], 'first_to_succeed'),
    ];
    assert.deepEqual(await rows('completed', blocks), ['fast', 'slow', 'rest', 'r']);
  });
});

describe('try_catch inside a race competes normally', () => {
  const contest = (rescueMs: number, otherMs: number) => [
    race('r', [
      [tryCatch('t', [fail('tried')], [sleep('rescue', rescueMs)])],
      [sleep('other', otherMs)],
    ]),
  ];

  test('it wins when its catch is the first to end', async () => {
    assert.deepEqual(await rows('completed', contest(20, 60_000)), ['tried', 'rescue', 'r']);
  });

  test('it loses when the other branch is faster', async () => {
    assert.deepEqual(await rows('completed', contest(60_000, 20)), ['tried', 'other', 'r']);
  });
});

describe('Router: first match of several; default only when none; nested path; missing or null value falls to default; no match without default completes; only the selected branch has outputs', () => {
  const routed = (data: Json) =>
    rows(
      'completed',
      [
        router(
          'r',
          {
            'user.plan == pro': [noop('pro')],
            'user.plan': [noop('any')],
            'user.trial': [noop('trial')],
          },
          [noop('default')],
        ),
      ],
      data,
    );
  for (const [what, data, chosen] of [
    ['first match of several, by a nested path', { user: { plan: 'pro', trial: true } }, 'pro'],
    ['a later match', { user: { trial: true } }, 'trial'],
    ['default only when none matches', { user: { plan: '', trial: false } }, 'default'],
    ['a missing value falls to default', {}, 'default'],
    ['a null value falls to default', { user: { plan: null } }, 'default'],
  ] as const) {
    test(what, async () => assert.deepEqual(await routed(data), [chosen]));
  }

  test('no match without default completes', async () => {
    const blocks = [router('r', { 'no.such': [noop('never')] }), noop('after')];
    assert.deepEqual(await rows('completed', blocks), ['after']);
  });

  test('only the selected branch has outputs, and the others are skipped', async () => {
    const tenant = api.tenant();
    const blocks = [router('r', { a: [noop('x'), noop('y')], b: [noop('z')] }, [noop('d')])];
    const id = await tenant.runUntil('completed', blocks, { a: 1, b: 1 });
    assert.deepEqual(await tenant.rowsOf(id), ['x', 'y']);
    const { z, d } = await tenant.nodeStates(id);
    assert.deepEqual([z, d], ['skipped', 'skipped']);
  });
});

test('Router evaluates arithmetic such as `count * 2 > threshold`', async () => {
  const blocks = [router('r', { 'count * 2 > threshold': [noop('above')] }, [noop('below')])];
  assert.deepEqual(await rows('completed', blocks, { count: 6, threshold: 11 }), ['above']);
  assert.deepEqual(await rows('completed', blocks, { count: 5, threshold: 11 }), ['below']);
});

describe('try ok: no catch output; try failed: catch output and completed; catch failed: failed; finally output present on both paths; empty catch swallows; nested recovery works; all catch steps run', () => {
  const [ok, bad, caught, last] = [noop('ok'), fail('bad'), noop('caught'), noop('last')];

  test('try ok: no catch output', async () => {
    assert.deepEqual(await rows('completed', [tryCatch('t', [ok], [caught])]), ['ok']);
  });

  test('try failed: catch output and completed', async () => {
    const blocks = [tryCatch('t', [bad, ok], [caught]), noop('after')];
    assert.deepEqual(await rows('completed', blocks), ['bad', 'caught', 'after']);
  });

  test('catch failed: failed', async () => {
    const blocks = [tryCatch('t', [bad], [fail('worse')]), noop('after')];
    assert.deepEqual(await rows('failed', blocks), ['bad', 'worse']);
  });

  test('finally output is present on both paths, and behind a failed catch', async () => {
    assert.deepEqual(await rows('completed', [tryCatch('t', [ok], [caught], [last])]), [
      'ok',
      'last',
    ]);
    assert.deepEqual(await rows('completed', [tryCatch('t', [bad], [caught], [last])]), [
      'bad',
      'caught',
      'last',
    ]);
    assert.deepEqual(await rows('failed', [tryCatch('t', [bad], [fail('worse')], [last])]), [
      'bad',
      'worse',
      'last',
    ]);
  });

  test('an empty catch swallows', async () => {
    assert.deepEqual(await rows('completed', [tryCatch('t', [bad], []), ok]), ['bad', 'ok']);
  });

  test('nested recovery works', async () => {
    const inner = tryCatch('inner', [bad], [fail('worse')]);
    assert.deepEqual(await rows('completed', [tryCatch('outer', [inner], [caught])]), [
      'bad',
      'worse',
      'caught',
    ]);
  });

  test('all catch steps run, and see the failure in context.data._error', async () => {
    const tenant = api.tenant();
    const seen = transform('seen', { error: '{{ data._error }}' });
    const id = await tenant.runUntil('completed', [tryCatch('t', [bad], [seen, caught, last])]);
    const outputs = await tenant.outputsOf(id);
    assert.deepEqual(Object.keys(outputs), ['bad', 'seen', 'caught', 'last']);
    const { at, ...error } = (outputs.seen?.error ?? {}) as Json;
    assert.deepEqual(error, {
      failed_blocks: ['bad'],
      source: 'try_catch',
      block_id: 't',
      failed_block_id: 'bad',
      path: 't/bad',
      handler: 'fail',
      attempt: 0,
      code: 'handler_failed',
      message: 'forced failure',
    });
    assert.equal(new Date(String(at)).toISOString(), at);
  });
});
