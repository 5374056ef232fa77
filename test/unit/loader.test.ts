/** How many questions the loader asks of the database. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { Loader } from '../../actors/runtime/loader.js';

interface Asked {
  readonly name: string;
  readonly values: readonly unknown[];
}

/** Every instance has the output `"<instance>.<block>"` in each of its blocks. */
function setUp(fails = false) {
  const asked: Asked[] = [];
  const query = async ({ name, values }: Asked) => {
    asked.push({ name, values });
    if (fails) throw new Error('no connection');
    const [numbers, instances, blocks] = values as [number[], string[], string[]];
    const rows = numbers.map((n, at) => {
      const output = JSON.stringify(`${instances[at]}.${blocks[at]}`);
      return { n, block_id: blocks[at], output, rows: 1, bytes: output.length };
    });
    return { rows };
  };
  const loader = new Loader({ query } as unknown as pg.Pool, { shard: 0, shards: 1 });
  return { asked, loader };
}

const instances = (count: number) => Array.from({ length: count }, (_, n) => `instance ${n}`);

test('the outputs of instances that come to life together are read by one query', async () => {
  const { asked, loader } = setUp();
  const restore = async (instance: string) => {
    // As an actor does whose plan is at hand.
    await Promise.resolve();
    return loader.outputs(instance, new Set(['a', instance]));
  };
  const outputs = await Promise.all(instances(50).map(restore));
  assert.equal(asked.length, 1);
  for (const [n, found] of outputs.entries()) {
    const own = `instance ${n}`;
    assert.deepEqual(
      [...found],
      [
        ['a', `${own}.a`],
        [own, `${own}.${own}`],
      ],
    );
  }
});

test('what is asked for in one turn is answered to each by its own blocks', async () => {
  const { asked, loader } = setUp();
  const [one, two] = await Promise.all([
    loader.outputTotals('x', ['a']),
    loader.outputTotals('x', ['a', 'b']),
  ]);
  assert.deepEqual([one.rows, two.rows], [1, 2]);
  assert.equal(asked.length, 1);
});

test('instances that read no outputs ask for none', async () => {
  const { asked, loader } = setUp();
  assert.equal((await loader.outputs('x', new Set())).size, 0);
  assert.deepEqual(asked, []);
});

test('a herd is read by several queries, each of a bounded size', async () => {
  const { asked, loader } = setUp();
  const outputs = await Promise.all(
    instances(1_200).map((instance) => loader.outputs(instance, new Set(['a']))),
  );
  assert.equal(asked.length, 3);
  assert.equal(outputs.at(-1)?.get('a'), 'instance 1199.a');
});

test('a query that fails fails each of those who asked', async () => {
  const { loader } = setUp(true);
  const outcomes = await Promise.allSettled(
    instances(3).map((instance) => loader.outputs(instance, new Set(['a']))),
  );
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
});
