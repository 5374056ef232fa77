/** Polls: over several shards, with tasks that are not committed yet, and among other requests. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { CollectingPoll } from '../../actors/queue/collecting-poll.js';
import type { FoundTask, Reply, TaskClaim } from '../../actors/runtime/protocol.js';
import { ShardClient } from '../../actors/shard/client.js';
import { EngineError } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { realClock } from '../../src/base/real-clock.js';
import type { OnReply } from '../../src/http/shards.js';
import type { Json } from '../helpers/api.js';
import { HandShard, sequenceOf } from '../helpers/hand-shard.js';
import { check } from '../helpers/properties.js';

class Shards {
  readonly asks: { shard: number; limit: number; until: number }[] = [];
  readonly ended: number[] = [];
  readonly givenBack: TaskClaim[] = [];
  done = 0;
  readonly collecting: CollectingPoll;

  constructor(shards: number, limit: number, until: number) {
    const effects = {
      ask: (shard: number, _: readonly string[], wanted: number, end: number) => {
        this.asks.push({ shard, limit: wanted, until: end });
      },
      end: (shard: number) => this.ended.push(shard),
      giveBack: (claim: TaskClaim) => this.givenBack.push(claim),
      done: () => {
        this.done += 1;
      },
    };
    const all = Array.from({ length: shards }, (_, shard) => [shard, [`h${shard}`]] as const);
    this.collecting = new CollectingPoll(effects, all, limit, until);
    this.collecting.start();
  }

  /** The shard answers what it was asked first. */
  answer(shard: number, count: number, record = '{}'): void {
    const at = this.asks.findIndex((ask) => ask.shard === shard);
    assert.ok(at >= 0, `shard ${shard} was not asked`);
    this.asks.splice(at, 1);
    assert.ok(this.collecting.answered(shard, found(shard, count, record)));
  }
}

let made = 0;
const found = (shard: number, count: number, record: string): FoundTask[] =>
  Array.from({ length: count }, () => ({ task: `${shard}-${made++}`, epoch: 1, record }));

test('what is ready is taken from one shard after the other, each asked for what is left', () => {
  const shards = new Shards(3, 5, 1_000);
  assert.deepEqual(shards.asks, [{ shard: 0, limit: 5, until: 0 }]);
  shards.answer(0, 2);
  assert.deepEqual(shards.asks, [{ shard: 1, limit: 3, until: 0 }]);
  shards.answer(1, 3);
  assert.deepEqual([shards.asks, shards.done, shards.collecting.found.length], [[], 1, 5]);
});

test('it waits at all shards when none has anything, and the first that has ends the others', () => {
  const shards = new Shards(3, 5, 1_000);
  for (const shard of [0, 1, 2]) shards.answer(shard, 0);
  const expected = [0, 1, 2].map((shard) => ({ shard, limit: 5, until: 1_000 }));
  assert.deepEqual(shards.asks, expected);
  shards.answer(1, 4);
  assert.deepEqual(shards.ended, [0, 2]);
  shards.answer(0, 3);
  assert.equal(shards.done, 0, 'the last has yet to say that it does not wait');
  shards.answer(2, 0);
  assert.deepEqual([shards.done, shards.collecting.found.length], [1, 5]);
  assert.equal(shards.givenBack.length, 2, 'what is over the limit is given back');
});

test('one shard is asked to wait at once, and one that may not wait is asked once', () => {
  assert.deepEqual(new Shards(1, 5, 1_000).asks, [{ shard: 0, limit: 5, until: 1_000 }]);
  const shards = new Shards(2, 5, 0);
  shards.answer(0, 0);
  shards.answer(1, 0);
  assert.deepEqual([shards.asks, shards.done], [[], 1]);
  assert.equal(shards.collecting.answered(1, found(1, 1, '{}')), false, 'nobody asked it any more');
});

test('the answer stops at the size limit', () => {
  const shards = new Shards(2, 5, 1_000);
  shards.answer(0, 1, 'x'.repeat(LIMITS.responseBytesMax - 1));
  shards.answer(1, 2);
  assert.deepEqual([shards.collecting.found.length, shards.givenBack.length], [1, 2]);
});

test('whatever the shards answer and when, it ends once, and no task is lost or beyond the limit', (t) => {
  const steps = fc.array(fc.tuple(fc.nat(9), fc.nat(4)), { maxLength: 40 });
  const [counts, limits] = [fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 6 })];
  const untils = fc.constantFrom(0, 1_000, Number.POSITIVE_INFINITY);
  check(t, 500, fc.tuple(counts, limits, untils, steps), ([count, limit, until, list]) => {
    const shards = new Shards(count, limit, until);
    let claimed = 0;
    const answer = (n: number, wanted: number) => {
      const ask = shards.asks[n % shards.asks.length];
      if (ask === undefined) return;
      const given = Math.min(wanted, ask.limit);
      claimed += given;
      shards.answer(ask.shard, given);
    };
    for (const [n, wanted] of list) {
      if (n === 9) shards.collecting.end();
      else answer(n, wanted);
    }
    shards.collecting.end();
    while (shards.asks.length > 0) answer(0, 0);
    const kept = shards.collecting.found.length;
    assert.deepEqual([shards.done, kept + shards.givenBack.length], [1, claimed]);
    assert.ok(kept <= limit && (kept === limit || shards.givenBack.length === 0));
  });
});

describe('a poll that waits', () => {
  const STEPS: Json[] = ['a', 'b'].map((id) => ({ type: 'step', id, handler: 'ship' }));

  let shard: HandShard;

  beforeEach(async () => {
    shard = new HandShard(sequenceOf(STEPS));
    await shard.start();
    poll('first', { wait_ms: 0 });
    await shard.run();
    // What a start and a first poll write.
    await shard.ack();
  });
  afterEach(() => shard.shard.stop());

  function poll(worker_id: string, more: Json = {}): number {
    const body = { handler_name: 'ship', worker_id, limit: 1, wait_ms: 10_000, ...more };
    return shard.ask('workers.poll', '', body);
  }

  function tasksOf(request: number): Json[] | undefined {
    const reply = shard.replies.get(request);
    return reply === undefined || 'error' in reply ? undefined : JSON.parse(reply.body);
  }

  /** A poll waits, and its worker is in the registry. */
  async function parked(worker = 'w'): Promise<number> {
    const request = poll(worker);
    await shard.run();
    await shard.ack();
    assert.equal(tasksOf(request), undefined);
    return request;
  }

  /** An instance is created. */
  async function create(more?: Json): Promise<number> {
    const request = shard.create(more);
    await shard.run();
    return request;
  }

  test('a new task is committed with its claim by the poll that waits', async () => {
    const waiting = await parked();
    await create();
    assert.equal(shard.units.length, 2, 'the task and its claim leave together');
    assert.equal(tasksOf(waiting), undefined, 'nothing is told before it is durable');
    await shard.ack();
    const told = tasksOf(waiting)?.map((task) => [task.block_id, task.claim_epoch, task.worker_id]);
    assert.deepEqual(told, [['a', 1, 'w']]);
  });

  test('of a task that the database refused nobody hears, and the poll waits on', async () => {
    const waiting = await parked();
    const refused = await create();
    const [first] = shard.units;
    await shard.ack(({ seq }) =>
      seq === first!.seq
        ? { seq, outcome: 'refused', sqlState: '22P05', reason: 'no such character' }
        : { seq, outcome: 'suffix' },
    );
    assert.equal(shard.answer(refused), 'ENG_REFUSED_DATA');
    assert.equal(tasksOf(waiting), undefined);
    await create();
    await shard.ack();
    assert.equal(tasksOf(waiting)?.length, 1);
  });

  test('what a key has created before gives a waiting poll nothing', async () => {
    const waiting = await parked();
    await create({ idempotency_key: 'k' });
    assert.equal(shard.units.length, 1, 'it is claimed once it is known that the instance is new');
    await shard.ack(({ seq }) => ({ seq, outcome: 'exists' }));
    assert.equal(tasksOf(waiting), undefined);
  });

  test('a poll whose client goes away meanwhile gives the task back', async () => {
    const waiting = await parked();
    await create();
    shard.shard.receiveRequests({ requests: [], aborted: [waiting] });
    await shard.run();
    await shard.ack();
    assert.equal(tasksOf(waiting), undefined);
    await shard.ack();
    const next = poll('other');
    await shard.run();
    await shard.ack();
    assert.equal(tasksOf(next)?.[0]?.claim_epoch, 2);
  });
});

describe('polls in flight', () => {
  const { pollsInFlightMax, pollsInFlightPerTenantMax } = LIMITS;
  let deliver: (replies: readonly Reply[]) => void;
  const PORT = {
    on: (_: string, onReplies: typeof deliver) => {
      deliver = onReplies;
    },
    postMessage: () => undefined,
    close: () => undefined,
  };

  let client: ShardClient;

  beforeEach(() => {
    client = new ShardClient({ shards: 1, clock: realClock, setImmediate: () => undefined });
    client.attach(0, PORT as never);
  });

  afterEach(() => client.stop());

  const ask = (operation: string, tenant: string, onReply: OnReply = () => undefined) =>
    client.send(0, { operation, tenant, target: '', body: '{}' }, onReply);

  const poll = (tenant: string) => ask('workers.poll', tenant);

  function refusalOf(work: () => unknown): string {
    try {
      work();
    } catch (error) {
      assert.ok(error instanceof EngineError);
      assert.ok(error.retryAfterMs !== undefined);
      return `${error.status} ${error.message}`;
    }
    return 'none';
  }

  test('one tenant has a part of the polls, and is told so; others poll on', () => {
    for (let n = 0; n < pollsInFlightPerTenantMax; n++) poll('a');
    const text = refusalOf(() => poll('a'));
    assert.match(text, /^429 .*11250 polls of this tenant are in flight/);
    poll('b');
    assert.equal(client.pollsInFlight, pollsInFlightPerTenantMax + 1);
  });

  test('however many polls are in flight, other requests find room', () => {
    for (let n = 0; n < pollsInFlightMax; n++) poll(`t${n % 2}`);
    const said = refusalOf(() => poll('c'));
    assert.match(said, /^503 .*15000 polls are in flight/);
    const read = () => ask('workers.complete', 'c');
    assert.equal(refusalOf(read), 'none');
  });

  test('a poll whose caller is gone ends at once, and is answered by nobody', () => {
    const unwanted = () => assert.fail('it was answered');
    const id = ask('workers.exchange', 'a', unwanted);
    client.abort(id);
    assert.deepEqual([client.inFlight, client.pollsInFlight], [0, 0]);
    client.detach(0);
  });

  describe('a creation that waits', () => {
    const running = { status: 202, body: '{"state":"running"}' };
    const create = (replies: unknown[], onParked = () => undefined) => {
      const message = { operation: 'instances.create', tenant: 'a', target: '', body: '{}' };
      const request = client.send(0, message, (reply) => replies.push(reply), onParked);
      return { request, parks: () => deliver([{ request, ...running, parks: true }]) };
    };

    test('is work until it is created, and then counts as a poll until its answer', () => {
      const replies: unknown[] = [];
      let parked = 0;
      const { request, parks } = create(replies, () => {
        parked += 1;
      });
      assert.equal(client.pollsInFlight, 0);
      assert.ok(client.workInProgress > 0);
      parks();
      parks();
      assert.deepEqual([client.pollsInFlight, client.workInProgress, parked], [1, 0, 1]);
      deliver([{ request, status: 200, body: 'done' }]);
      assert.deepEqual(replies, [{ status: 200, body: 'done' }]);
      assert.deepEqual([client.pollsInFlight, client.inFlight], [0, 0]);
    });

    test('is answered with what is known when its shard dies: 503 before its creation, its state after it', () => {
      const replies: unknown[] = [];
      create(replies);
      create(replies).parks();
      client.detach(0);
      const [lost, known] = replies as [{ error: EngineError }, unknown];
      assert.equal(lost.error.status, 503);
      assert.deepEqual(known, running);
    });

    test('is answered at once with its state when the tenant has no place among the polls', () => {
      for (let n = 0; n < pollsInFlightPerTenantMax; n++) poll('a');
      const replies: unknown[] = [];
      create(replies).parks();
      assert.deepEqual(replies, [running]);
    });

    test('is forgotten when its caller has gone away, before or after its creation', () => {
      const unwanted: unknown[] = [];
      const [before, after] = [create(unwanted), create(unwanted)];
      after.parks();
      client.abort(after.request);
      client.abort(before.request);
      before.parks();
      assert.deepEqual([client.inFlight, client.pollsInFlight], [0, 0]);
    });
  });

  test('a poll that has its answer leaves its place', () => {
    for (let n = 0; n < pollsInFlightPerTenantMax; n++) poll('a');
    client.detach(0);
    assert.equal(client.pollsInFlight, 0);
    client.attach(0, PORT as never);
    poll('a');
    assert.equal(client.pollsInFlight, 1);
  });
});
