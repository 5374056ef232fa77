/** Built-in handlers, templates in their parameters, and the order of steps. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Json, newHandler, step, useTenant } from '../../helpers/api.js';

const tenant = useTenant();

/** Runs the blocks to the state and gives outputs by block id; an error row by its message. */
async function outcome(blocks: Json[], state = 'completed', context: Json = {}) {
  const id = await tenant.run(blocks, { context });
  await tenant.until(id, state);
  return Object.fromEntries((await tenant.outputs(id)).map((row) => [row.block_id, row.output]));
}
const errorOf = async (handler: string, params: Json, context: Json = {}) => {
  const rows = await outcome([step('a', handler, { params })], 'failed', context);
  return rows.a as { __error__: boolean; retryable: boolean; message: string };
};
const templated = async (params: Json, context: Json = {}) =>
  (await outcome([step('a', 'transform', { params })], 'completed', context)).a;

describe('handlers', () => {
  test('noop gives an empty object', async () => {
    assert.deepEqual(await outcome([step('a', 'noop'), step('b', 'noop', { params: { x: 1 } })]), {
      a: {},
      b: {},
    });
  });

  test('log gives its message as it is, and "no message" without one', async () => {
    const rows = await outcome([
      step('text', 'log', { params: { message: 'hello', level: 'warn' } }),
      step('json', 'log', { params: { message: { n: [1] } } }),
      step('none', 'log'),
      step('level', 'log', { params: { message: 'x', level: 'loud' } }),
    ]);
    assert.deepEqual(rows, {
      text: { message: 'hello' },
      json: { message: { n: [1] } },
      none: { message: 'no message' },
      level: { message: 'x' },
    });
  });

  test('sleep waits at least its duration and says it; 100 ms without one', async () => {
    const began = Date.now();
    const rows = await outcome([
      step('a', 'sleep', { params: { duration_ms: 250 } }),
      step('b', 'sleep'),
      step('c', 'sleep', { params: { duration_ms: 0 } }),
    ]);
    assert.ok(Date.now() - began >= 350);
    assert.deepEqual(rows, { a: { slept_ms: 250 }, b: { slept_ms: 100 }, c: { slept_ms: 0 } });
  });

  test('an instance that sleeps is running', async () => {
    const id = await tenant.run([step('a', 'sleep', { params: { duration_ms: 600_000 } })]);
    assert.equal((await tenant.instance(id)).state, 'running');
  });

  test('a sleep of a wrong duration fails permanently', async () => {
    for (const duration_ms of [-1, 'long', 1.5]) {
      const error = await errorOf('sleep', { duration_ms });
      assert.equal(error.retryable, false, String(duration_ms));
    }
  });

  test('fail fails with its message, "forced failure" without one', async () => {
    assert.deepEqual(await errorOf('fail', { message: 'broken' }), {
      __error__: true,
      retryable: false,
      message: 'broken',
    });
    assert.match((await errorOf('fail', {})).message, /forced failure/);
  });

  test('transform gives its parameters', async () => {
    const params = { a: 1, b: { c: [true, null] } };
    assert.deepEqual(await templated(params), params);
    assert.deepEqual(await outcome([step('a', 'transform')]), { a: {} });
  });

  test('assert passes or fails by its condition over the context', async () => {
    const context = { data: { plan: 'pro', n: 3 } };
    for (const condition of ['plan == pro', 'n > 2', 'n']) {
      const rows = await outcome(
        [step('a', 'assert', { params: { condition } })],
        'completed',
        context,
      );
      assert.deepEqual(rows.a, { condition, passed: true });
    }
    const error = await errorOf('assert', { condition: 'n > 3', message: 'too few' }, context);
    assert.equal(error.retryable, false);
    assert.match(error.message, /too few/);
  });

  test('a failed step ends the instance: later steps are not run', async () => {
    const rows = await outcome([step('a', 'noop'), step('b', 'fail'), step('c', 'noop')], 'failed');
    assert.deepEqual(Object.keys(rows), ['a', 'b']);
  });

  test('in-process outputs are not merged into context.data', async () => {
    const id = await tenant.run([step('a', 'transform', { params: { x: 1 } })]);
    const done = await tenant.until(id, 'completed');
    assert.deepEqual(done.context.data, {});
  });

  test('built-in and external steps run in order', async () => {
    const [one, two] = [newHandler(), newHandler()];
    const id = await tenant.run([
      step('a', 'noop'),
      step('b', one),
      step('c', 'log', { params: { message: 'between' } }),
      step('d', two),
      step('e', 'noop'),
    ]);
    await tenant.complete(await tenant.task(one));
    assert.deepEqual(await tenant.poll(one), []);
    await tenant.complete(await tenant.task(two));
    await tenant.until(id, 'completed');
    assert.deepEqual(
      (await tenant.outputs(id)).map((row) => row.block_id),
      ['a', 'b', 'c', 'd', 'e'],
    );
  });

  test('names of other families are external handlers', async () => {
    for (const handler of ['set_state', 'human_review', 'llm_call', 'wait_for_input', 'NOOP']) {
      const id = await tenant.run([step('a', handler)]);
      const task = await tenant.task(handler);
      assert.equal(task.instance_id, id);
      await tenant.complete(task);
    }
  });

  test('1,000 pure steps run to their end', async () => {
    const blocks = Array.from({ length: 1_000 }, (_, index) => step(`s${index}`, 'noop'));
    assert.equal(Object.keys(await outcome(blocks)).length, 1_000);
  });

  test('a step whose guard is false is skipped, later ones go on', async () => {
    const rows = await outcome(
      [
        step('yes', 'noop', { when: 'n > 1' }),
        step('no', 'fail', { when: 'n > 100' }),
        step('missing', 'fail', { when: 'nothing.here' }),
        step('last', 'noop'),
      ],
      'completed',
      { data: { n: 5 } },
    );
    assert.deepEqual(Object.keys(rows), ['yes', 'last']);
  });

  test('an output against its output_schema fails the step', async () => {
    const output_schema = { type: 'object', required: ['n'] };
    await outcome([step('a', 'transform', { params: { n: 1 }, output_schema })]);
    const rows = await outcome(
      [step('a', 'transform', { params: { m: 1 }, output_schema })],
      'failed',
    );
    assert.match(String((rows.a as Json).message), /n/);
  });
});

describe('templates', () => {
  const context = {
    data: { name: 'Ada', n: 3, list: [{ x: 1 }, { x: 2 }], none: null, 'with-hyphen': 'h' },
    config: { region: 'eu' },
  };
  const rows: readonly [string, unknown, unknown][] = [
    ['whole text keeps its type', '{{ data.n }}', 3],
    ['objects keep theirs', '{{ data.list }}', [{ x: 1 }, { x: 2 }]],
    ['text around it makes text', 'n={{ data.n }}!', 'n=3!'],
    ['objects in text are JSON', 'v={{ data.list.0 }}', 'v={"x":1}'],
    [
      'both spellings of the context',
      '{{ context.data.name }} {{context.config.region}}',
      'Ada eu',
    ],
    ['config', '{{ config.region }}', 'eu'],
    ['an index is a segment', '{{ data.list.1.x }}', 2],
    ['a missing path is null', '{{ data.nothing.here }}', null],
    ['a missing path in text', 'x{{ data.nothing }}', 'xnull'],
    ['a fallback', '{{ data.nothing | data.none | data.name }}', 'Ada'],
    ['a literal fallback', '{{ data.nothing | "x y" }}', 'x y'],
    ['filters', '{{ data.name | upper }}', 'ADA'],
    ['an unclosed template is text', 'a {{ data.n', 'a {{ data.n'],
    ['nested values', { a: ['{{ data.n }}', { b: '{{ data.name }}' }] }, { a: [3, { b: 'Ada' }] }],
    ['keys are not templates', { '{{ data.n }}': 1 }, { '{{ data.n }}': 1 }],
  ];
  for (const [what, value, expected] of rows) {
    test(what, async () => {
      assert.deepEqual(await templated({ v: value }, context), { v: expected });
    });
  }

  test('outputs of earlier steps, and instance_id', async () => {
    const id = await tenant.run([
      step('one', 'transform', { params: { deep: { list: [10, 20] } } }),
      step('two', 'transform', {
        params: {
          a: '{{ outputs.one.deep.list.1 }}',
          b: '{{ steps.one.deep }}',
          c: '{{ instance_id }}',
        },
      }),
    ]);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputs(id))[1]?.output, {
      a: 20,
      b: { list: [10, 20] },
      c: id,
    });
  });

  test('an unknown root fails the step and is named', async () => {
    const error = await errorOf('transform', { v: '{{ secrets.key }}' });
    assert.equal(error.retryable, false);
    assert.match(error.message, /secrets/);
  });

  test('an external task has its parameters filled in', async () => {
    const handler = newHandler();
    await tenant.run([step('a', handler, { params: { who: '{{ data.name }}' } })], { context });
    assert.deepEqual((await tenant.task(handler)).params, { who: 'Ada' });
  });

  test('a template cannot reach prototypes', async () => {
    for (const path of [
      'data.__proto__',
      'data.constructor',
      'data.name.length',
      'data.list.map',
    ]) {
      assert.deepEqual(await templated({ v: `{{ ${path} }}` }, context), { v: null }, path);
    }
  });
});
