/**
 * Handlers of the process that do what no handler may: only the step that met one fails, with a
 * reason in the dead letter queue; its neighbours complete, and nothing is left over.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { OUTPUT_ROWS } from '../../actors/instance/output-tables.js';
import { isJsonObject, type JsonValue } from '../../src/base/json.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { EffectHandler, HandlerContext } from '../../src/handlers/registry.js';
import { eventually, type Json, parallel, step } from '../helpers/api.js';
import { type LocalShard, startShard } from '../helpers/shard.js';

/** What a handler of this test does is named by the parameter `does`. */
type Behaviour = (context: HandlerContext) => unknown;

const success = (output: unknown) => Promise.resolve({ kind: 'success', output });
const never = () => new Promise(() => undefined);

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

const throwing = (what: string): never => {
  throw new TypeError(what);
};

/** Some of what makes a step fail for good, and the reason that is given for it: `test/unit/handlers.test.ts`. */
const POISONS: Readonly<Record<string, readonly [Behaviour, RegExp]>> = {
  'throws at once': [() => throwing('secret'), /^http_request threw TypeError; see the log$/],
  'returns a promise that throws': [
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: a promise of bad manners is what is tested
      get then() {
        return throwing('then');
      },
    }),
    /threw TypeError/,
  ],
  'fails with a message that no row can hold': [
    () => ({ kind: 'failure', message: `a\0b\ud83d${'x'.repeat(10_000_000)}` }),
    /^a\ufffdb\ufffdx+…$/,
  ],
  'returns 100 MB of text': [
    () => success('x'.repeat(100_000_000)),
    /more than 10 MiB in its output/,
  ],
};

/** Odd, but nobody's fault: the step completes with this output. */
const ODDITIES: Readonly<Record<string, readonly [Behaviour, JsonValue]>> = {
  'blocks the thread for 200 ms': [
    () => {
      block(200);
      return success({ blocked: true });
    },
    { blocked: true },
  ],
  'returns __proto__ as a key': [
    () => success(JSON.parse('{"__proto__":{"x":1},"constructor":2}')),
    JSON.parse('{"__proto__":{"x":1},"constructor":2}') as JsonValue,
  ],
};

/** How often each was called. */
const calls = new Map<string, number>();
/** Those that do not end by themselves. */
const HANGING: Readonly<Record<string, Behaviour>> = { 'never ends': never };

/** Just within the limit: sixteen of them are as much as may be on its way to the database. */
const LARGE = 'x'.repeat(8 * 1024 * 1024);
const BULKY: Readonly<Record<string, Behaviour>> = { 'returns 8 MiB': () => success(LARGE) };

const neighbourly: Behaviour = () => success({ fine: true });

const behave: EffectHandler = (params, context) => {
  const does = isJsonObject(params) ? String(params.does) : '';
  calls.set(does, (calls.get(does) ?? 0) + 1);
  const listed = POISONS[does]?.[0] ?? ODDITIES[does]?.[0] ?? HANGING[does] ?? BULKY[does];
  return (listed ?? neighbourly)(context) as Promise<StepOutcome>;
};

/** Says that its calls are short: long ones have slots of their own. */
const handler: EffectHandler = Object.assign(behave, { limitMs: () => 1_000 });

const misbehaving = (id: string, does: string, more: Json = {}) =>
  step(id, 'http_request', { params: { url: 'http://x', does }, ...more });

let shard: LocalShard;
let neighbours: string;

before(async () => {
  shard = await startShard(new Map([['http_request', handler]]));
  neighbours = await shard.sequence([misbehaving('a', 'nothing wrong')]);
});
after(() => shard?.stop());

/** Runs `work` between two neighbours, which must complete. */
async function amongNeighbours(work: () => Promise<void>): Promise<void> {
  const first = await shard.create(neighbours);
  await work();
  const second = await shard.create(neighbours);
  for (const id of [first, second]) await shard.until(id, 'completed');
}

async function outputs(instance: string): Promise<{ output: JsonValue; ref: string | null }[]> {
  const { rows } = await shard.sql.query(
    `select case when output_size < 100000 then output end as output, output_ref as ref
     from ${OUTPUT_ROWS} o where instance_id = $1 order by block_id, attempt`,
    [instance],
  );
  return rows;
}

/** Of the failure of an instance. */
const codeOf = async (instance: string): Promise<unknown> =>
  ((await shard.ask('instances.get', instance)).failure as Json | null)?.code;

describe('the step fails for good, and no other, when its handler', () => {
  for (const [does, [, says]] of Object.entries(POISONS)) {
    test(does, () =>
      amongNeighbours(async () => {
        const retry = { max_attempts: 3, initial_backoff: 1 };
        const id = await shard.create(await shard.sequence([misbehaving('a', does, { retry })]));
        await shard.until(id, 'failed');
        assert.match((await shard.reason(id)) ?? '', says);
        // Its message is mended, and it is a failure like any other.
        const isFailure = does === 'fails with a message that no row can hold';
        assert.equal(await codeOf(id), isFailure ? 'handler_failed' : 'handler_crashed');
        assert.equal(calls.get(does), 1, 'tries');
        const [row] = await outputs(id);
        assert.ok(row);
        assert.equal(row.ref, '__error__');
        assert.ok(isJsonObject(row.output));
        assert.equal(row.output.retryable, false);
      }),
    );
  }
});

describe('the step completes when its handler', () => {
  for (const [does, [, output]] of Object.entries(ODDITIES)) {
    test(does, () =>
      amongNeighbours(async () => {
        const id = await shard.create(await shard.sequence([misbehaving('a', does)]));
        await shard.until(id, 'completed');
        assert.deepEqual(await outputs(id), [{ output, ref: null }]);
      }),
    );
  }
});

describe('a handler that does not end', () => {
  const does = 'never ends';
  const started = (times: number) =>
    eventually(() => assert.equal(calls.get(does) ?? 0, times, 'calls'));

  test('is cut off at its cap, which is a time-out', () =>
    amongNeighbours(async () => {
      const retry = { max_attempts: 2, initial_backoff: 1 };
      const id = await shard.create(await shard.sequence([misbehaving('a', does, { retry })]));
      await started(1);
      shard.letHoursPass();
      await started(2);
      shard.letHoursPass();
      await shard.until(id, 'failed');
      const text = (await shard.reason(id)) ?? '';
      assert.match(text, /^http_request did not end within \d+ ms, the maximum of this server/);
      assert.equal(await codeOf(id), 'timeout');
    }));

  test('ends with the timeout of its step', () =>
    amongNeighbours(async () => {
      const blocks = [misbehaving('a', does, { timeout: 30 })];
      const id = await shard.create(await shard.sequence(blocks));
      await shard.until(id, 'failed');
      assert.equal(await shard.reason(id), 'timed out after 30 ms');
    }));

  test('is withdrawn with its instance', () =>
    amongNeighbours(async () => {
      calls.clear();
      const id = await shard.create(await shard.sequence([misbehaving('a', does)]));
      await started(1);
      await shard.ask('instances.signal', id, { signal_type: 'cancel' });
      await shard.until(id, 'cancelled');
      assert.deepEqual(await outputs(id), []);
    }));

  test('leaves room for the others, however often its instance starts it', () =>
    amongNeighbours(async () => {
      calls.clear();
      const branches = Array.from({ length: 250 }, (_, i) => [misbehaving(`b${i}`, does)]);
      const giant = await shard.create(await shard.sequence([parallel('p', ...branches)]));
      await eventually(() => assert.equal(calls.get(does), 100));
      await shard.until(await shard.create(neighbours), 'completed');
      assert.equal(calls.get(does), 100, 'more than its share');
      await shard.ask('instances.signal', giant, { signal_type: 'cancel' });
    }));
});

test('large outputs of one instance wait for one another, and nobody is refused because of them', async () => {
  const branches = Array.from({ length: 100 }, (_, i) => [misbehaving(`b${i}`, 'returns 8 MiB')]);
  const giant = await shard.create(await shard.sequence([parallel('p', ...branches)]));
  await eventually(async () => assert.ok((await outputs(giant)).length > 0));
  assert.equal(calls.get('returns 8 MiB'), 100);
  for (let i = 0; i < 3; i += 1) await shard.until(await shard.create(neighbours), 'completed');
  assert.ok((await outputs(giant)).length < 100);
  await shard.ask('instances.signal', giant, { signal_type: 'cancel' });
  await shard.until(giant, 'cancelled');
});

test('after all that no handler is at work any more', () =>
  eventually(() => assert.equal(shard.active(), 0)));

test('what handlers threw is in the log, with its stack, and in no row', async () => {
  const defects = shard.lines.filter((line) => line.msg === 'defect in a handler');
  assert.ok(defects.some((line) => /Error: secret\n\s+at /.test(String(line.stack))));
  assert.ok(!shard.lines.some((line) => line.msg === 'unit refused by the database'));
  const { rows } = await shard.sql.query(
    `select count(*)::int as n from dead_letters d, block_outputs o
     where o.instance_id = d.instance_id
       and (d.reason like '%secret%' or o.output::text like '%secret%')`,
  );
  assert.equal(rows[0].n, 0);
});
