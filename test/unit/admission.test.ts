/** Admission by cost: buckets of tenants, rows that are bounded, work under way. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { IN_PLACE, type Offload } from '../../actors/runtime/offload.js';
import { WorkUnderWay } from '../../actors/shard/work-under-way.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { Admission } from '../../src/admission.js';
import { BoundedRows } from '../../src/bounded-rows.js';
import { itemsIn } from '../../src/core/batch-size.js';
import { TokenBucket } from '../../src/core/token-bucket.js';
import type { EngineError } from '../../src/errors.js';
import { LIMITS } from '../../src/limits.js';
import { type SetLimits, TenantLimitRegistry } from '../../src/tenant-limits.js';

test('a bucket gives its burst at once, then its rate; what costs more than the burst takes a full one', () => {
  const bucket = new TokenBucket({ perSecond: 10, burst: 20 }, 0);
  assert.equal(bucket.waitMs(20, 0), 0);
  bucket.take(20);
  assert.equal(bucket.waitMs(1, 0), 100);
  assert.equal(bucket.waitMs(5, 500), 0);
  assert.equal(bucket.waitMs(50, 1_000), 1_000);
  assert.equal(bucket.waitMs(50, 9_000), 0);
  bucket.take(50);
  assert.equal(bucket.waitMs(1, 9_000), 3_100, 'it is in debt by 30');
});

test('items are counted in a text whatever it is', () => {
  const rows: [text: string, items: number][] = [
    ['', 0],
    ['{"instances":[]}', 0],
    ['{"instances":[{"context":{"data":{"a":[{}]}}},{},{"x":"},{\\"["}]}', 3],
    ['{"instances":[{"a":"', 1],
    [']]]]{{{', 0],
  ];
  for (const [text, items] of rows) assert.equal(itemsIn(text), items, text);
});

interface Asked {
  readonly set?: SetLimits['limits'];
  readonly isRoot?: boolean;
}

function admissionWith({ set, isRoot = false }: Asked = {}) {
  const limits = new TenantLimitRegistry();
  const clock = { now: 0 };
  const admission = new Admission({
    limits,
    reads: { rows: async () => [] },
    offload: IN_PLACE,
    monotonic: () => clock.now,
  });
  if (set !== undefined) limits.set('a', { limits: set, updatedAt: '' });
  const ask = (id: RouteId, body: string) => {
    try {
      void admission.admit(ROUTES[id], 'a', isRoot, Buffer.from(body), {});
      return 'admitted';
    } catch (error) {
      const { status, message, retryAfterMs } = error as EngineError;
      return { status, message, retryAfterMs };
    }
  };
  return { ask, clock, limits };
}

describe('a tenant', () => {
  const batch = JSON.stringify({ instances: Array.from({ length: 1_000 }, () => ({ s: 'x' })) });

  test('is never refused by default what one server can do', () => {
    const { ask, clock } = admissionWith();
    for (let second = 0; second < 60; second += 1) {
      clock.now = second * 1_000;
      for (let n = 0; n < 25; n += 1) assert.equal(ask('instances.createBatch', batch), 'admitted');
      assert.equal(ask('instances.create', ' '.repeat(50_000_000)), 'admitted');
    }
  });

  test('that has used up a unit is told which, its bound and when to come again', () => {
    const { ask, clock } = admissionWith({ set: { rows_per_second: 100, rows_burst: 2 } });
    assert.equal(ask('instances.create', '{}'), 'admitted');
    assert.equal(ask('instances.create', '{}'), 'admitted');
    const refused = {
      status: 429,
      message:
        'too many requests: the tenant has used up its rows: 100 a second, at most 2 at once; this takes 1',
      retryAfterMs: 10,
    };
    assert.deepEqual(ask('instances.create', '{}'), refused);
    clock.now = 10;
    assert.equal(ask('instances.create', '{}'), 'admitted');
  });

  test('pays for the blocks of a long definition, too, which are counted beside the thread', async () => {
    const limits = new TenantLimitRegistry();
    limits.set('a', { limits: { blocks_per_second: 1, blocks_burst: 1_000 }, updatedAt: '' });
    const jobs: string[] = [];
    const offload: Offload = {
      run: (tenant, name, input) => {
        jobs.push(`${tenant} ${name}`);
        return IN_PLACE.run(tenant, name, input);
      },
    };
    const reads = { rows: async () => [] };
    const admission = new Admission({ limits, reads, offload, monotonic: () => 0 });
    const blocks = Array.from({ length: 1_000 }, (_, at) => ({
      type: 'step',
      id: `s${at}`,
      handler: 'noop',
    }));
    const body = Buffer.from(JSON.stringify({ blocks, pad: 'x'.repeat(64 * 1024) }));
    const admit = () => admission.admit(ROUTES['sequences.create'], 'a', false, body, {});
    await admit();
    await assert.rejects(async () => admit(), { status: 429, message: /blocks.*this takes 1000/ });
    assert.deepEqual(jobs, ['a countBlocks', 'a countBlocks']);
  });

  test('pays for the blocks of a definition wherever they are, and for nothing that looks like one', () => {
    const block = (id: string, more: object = {}) => ({
      type: 'step',
      id,
      handler: 'noop',
      ...more,
    });
    const definition = {
      name: 'x',
      input_schema: { type: 'object', properties: { type: { type: 'string' } } },
      blocks: [
        block('a', { params: { type: 'step', list: [{ type: 'step' }], text: '{"type":"step"}' } }),
        { type: 'parallel', id: 'p', branches: [[block('b')], [block('c'), block('d')]] },
        {
          type: 'router',
          id: 'r',
          routes: [{ condition: 'x', blocks: [block('e')] }],
          default: [],
        },
      ],
      on_failure: [block('f')],
    };
    const { ask } = admissionWith({ set: { blocks_per_second: 1, blocks_burst: 8 } });
    assert.equal(ask('sequences.create', JSON.stringify(definition)), 'admitted');
    const refused = ask('sequences.validate', '{"blocks":[{"type":"step"}]}');
    assert.match(JSON.stringify(refused), /1 a second, at most 8 at once; this takes 1/);
    const { ask: askMore } = admissionWith({ set: { blocks_per_second: 1, blocks_burst: 9 } });
    askMore('sequences.create', JSON.stringify(definition));
    assert.equal(askMore('instances.injectBlocks', '{"blocks":[{"type":"step"}]}'), 'admitted');
    assert.equal(askMore('sequences.create', 'no JSON'), 'admitted', 'it is refused later');
  });

  test('pays nothing for what is refused: not its bytes when there are no rows left', () => {
    const set = { rows_per_second: 1, rows_burst: 1, bytes_per_second: 1, bytes_burst: 10 };
    const { ask, clock } = admissionWith({ set });
    assert.equal(ask('instances.create', '12345'), 'admitted');
    for (let n = 0; n < 5; n += 1) assert.notEqual(ask('instances.create', '1'), 'admitted');
    clock.now = 1_000;
    assert.equal(ask('instances.create', '123456'), 'admitted');
  });

  test('has full buckets of the new size when its limits are changed', () => {
    const { ask, limits } = admissionWith({ set: { rows_per_second: 1, rows_burst: 1 } });
    assert.equal(ask('instances.create', '{}'), 'admitted');
    assert.notEqual(ask('instances.create', '{}'), 'admitted');
    limits.set('a', undefined);
    assert.equal(ask('instances.create', '{}'), 'admitted');
  });

  test('is bound with the root key by what was set for it, and by nothing else', () => {
    const free = admissionWith({ isRoot: true });
    for (let n = 0; n < 1_000; n += 1) free.ask('instances.createBatch', batch);
    assert.equal(free.ask('instances.createBatch', batch), 'admitted');
    const bound = admissionWith({ isRoot: true, set: { rows_per_second: 1, rows_burst: 1 } });
    assert.equal(bound.ask('instances.create', '{}'), 'admitted');
    assert.notEqual(bound.ask('instances.create', '{}'), 'admitted');
    assert.notEqual(bound.ask('instances.createBatch', batch), 'admitted');
  });
});

test('rows are counted only where what is known leaves no room, by one query at a time', async () => {
  let stored = 3;
  let queries = 0;
  const rows = new BoundedRows({
    count: async () => {
      queries += 1;
      return stored;
    },
  });
  const enter = async () => (await rows.enter('a', 1, 5)) !== undefined;
  assert.deepEqual([await enter(), await enter(), queries], [true, true, 1]);
  const three = await Promise.all([enter(), enter(), enter()]);
  assert.deepEqual([three, queries], [[false, false, false], 2], 'two are under way');
  const other = new BoundedRows({ count: async () => stored });
  const leave = await other.enter('a', 2, 5);
  assert.equal(await other.enter('a', 1, 5), undefined);
  leave?.();
  stored = 4;
  assert.notEqual(await other.enter('a', 1, 5), undefined, 'one of the two has ended since');
});

describe('work under way', () => {
  const room = LIMITS.workBytesUnmeasured;
  const begin = (work: WorkUnderWay, tenant: string, bytes: number, rows = 1, now = 0) => {
    try {
      return work.begin(tenant, bytes, rows, now);
    } catch (error) {
      return (error as EngineError).status;
    }
  };

  test('of 16 clients of one tenant with batches of 500 of 4 KiB is not refused, 256 batches of 1,000 mostly are', () => {
    const normal = new WorkUnderWay();
    const ofFourKib = 500 * (4_096 + 150);
    for (let n = 0; n < 16; n += 1) assert.ok(begin(normal, 'a', ofFourKib, 500) > 503);
    const flood = new WorkUnderWay();
    const answers = Array.from({ length: 256 }, () => begin(flood, 'a', 300_000, 1_000));
    const taken = answers.filter((answer) => answer !== 503);
    assert.deepEqual(taken.length, Math.floor((room * 0.75) / (300_000 + 1_000 * 3_072)));
  });

  test('of one tenant leaves room for the others, and is given back with the answer', () => {
    const work = new WorkUnderWay();
    const weight = begin(work, 'a', room * 0.7);
    assert.equal(begin(work, 'a', room * 0.1), 503);
    assert.notEqual(begin(work, 'b', room * 0.1), 503);
    work.end('a', weight, 1);
    assert.notEqual(begin(work, 'a', room * 0.1), 503);
  });

  test('that goes on with what is there is refused later than what makes more', () => {
    const work = new WorkUnderWay();
    begin(work, 'a', room * 0.7);
    begin(work, 'b', room * 0.2);
    assert.equal(begin(work, 'b', room * 0.15), 503);
    assert.notEqual(begin(work, 'b', room * 0.15, 0), 503);
    assert.equal(work.refusalOf(LIMITS.workBytesMax * 0.05), undefined);
    assert.equal(work.refusalOf(LIMITS.workBytesMax * 0.2)?.status, 503, 'also before it has come');
  });

  test('has as much room as was answered lately in a second, within its bounds', () => {
    const work = new WorkUnderWay();
    begin(work, 'a', LIMITS.workBytesMin);
    assert.notEqual(begin(work, 'b', 1), 503, 'nothing was measured yet');
    for (let now = 0; now < 60_000; now += 1_000) {
      const weight = begin(work, 'c', 1_000_000, 0, now) as number;
      work.end('c', weight, now + 1_000);
    }
    // A megabyte a second: the least counts, which is under way.
    assert.equal(begin(work, 'd', LIMITS.workBytesMin / 2, 1, 60_000), 503);
    assert.equal(begin(work, 'a', 1, 1, 60_000), 503);
    assert.notEqual(begin(work, 'd', 1, 1, 60_000), 503, 'who has little finds room all the same');
    for (let now = 60_000; now < 70_000; now += 1_000) {
      const weight = begin(work, 'c', 20_000_000, 0, now) as number;
      work.end('c', weight, now + 1_000);
    }
    assert.notEqual(begin(work, 'd', LIMITS.workBytesMin / 2, 1, 70_000), 503);
  });

  /** 16 clients with batches of 500 of 4 KiB, of which the answers of one round come at these times. */
  const rounds = (work: WorkUnderWay, times: readonly (readonly number[])[]) => {
    const bytes = 500 * (4_096 + 150);
    const refused: number[] = [];
    let open = Array.from({ length: 16 }, () => begin(work, 'a', bytes, 500));
    for (const answers of times) {
      const next: number[] = [];
      open.forEach((weight, n) => {
        const now = answers[n]!;
        work.end('a', weight, now);
        const begun = begin(work, 'a', bytes, 500, now);
        if (begun === 503) refused.push(now);
        else next.push(begun);
      });
      open = next;
    }
    return refused;
  };

  test('of few clients with batches is not refused for a wait of a second, or for answers that come together', () => {
    const together = Array.from({ length: 5 }, (_, round) =>
      Array.from({ length: 16 }, (_, n) => (round + 1) * 1_100 + n * 3),
    );
    assert.deepEqual(rounds(new WorkUnderWay(), together), []);
    const behindAStop = [
      Array.from({ length: 16 }, (_, n) => 1_500 + n * 100),
      Array.from({ length: 16 }, (_, n) => 3_200 + n * 100),
    ];
    assert.deepEqual(rounds(new WorkUnderWay(), behindAStop), []);
  });

  test('is refused where nothing is answered any more, once that has lasted', () => {
    const work = new WorkUnderWay();
    assert.deepEqual(rounds(work, [Array.from({ length: 16 }, (_, n) => 500 + n * 10)]), []);
    assert.notEqual(begin(work, 'b', 1_000_000, 1, 2_000), 503);
    assert.equal(begin(work, 'a', 1_000_000, 1, 12_000), 503);
  });

  test('of one caller after the other tells nothing of what the server can do', () => {
    const work = new WorkUnderWay();
    for (let now = 0; now < 60_000; now += 2_000) {
      work.end('a', begin(work, 'a', LIMITS.workBytesMin, 1, now), now + 2_000);
    }
    for (let n = 0; n < 16; n += 1) assert.ok(begin(work, 'a', 2_100_000, 500, 60_000) > 503);
  });

  test('of a single body is served, however large it is', () => {
    assert.notEqual(begin(new WorkUnderWay(), 'a', LIMITS.workBytesMax * 2), 503);
  });
});
