/** The execution service of a shard, with the writer and the instances played by hand. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { Plans } from '../../actors/catalog/plans.js';
import { ExecutionService } from '../../actors/continuity/execution-service.js';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import type { Order } from '../../actors/instance/orders.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import { IN_PLACE } from '../../actors/runtime/offload.js';
import type { PeerMessage, UnitEnvelope } from '../../actors/runtime/protocol.js';
import { Turn } from '../../actors/runtime/turn.js';
import { conflict, type EngineError } from '../../src/errors.js';

const EXECUTION = '01950000-0000-7000-8000-000000000001';
const OTHER = '01950000-0000-7000-8000-000000000002';

let service: ExecutionService;
let commits: CommitLog;
let now: number;
/** Orders that were sent, by their shards. */
let sent: { readonly shard: number; readonly order: Order }[];
/** What was answered, as `7: 201 {}` or `7: ENG_CONFLICT`. */
let answers: string[];
/** What waits for the writer; undefined while that is known. */
let waiting: (() => void)[] | undefined;

beforeEach(() => {
  now = 1_000;
  commits = new CommitLog();
  sent = [];
  answers = [];
  waiting = undefined;
  service = newService();
});

function newService(): ExecutionService {
  return new ExecutionService({
    shard: 0,
    shards: 2,
    commits,
    rows: new ContinuityRows({ query: () => assert.fail('no rows are read') } as never),
    plans: new Plans({} as never),
    keyring: undefined,
    unpoliciedRetry: 'fail',
    log: pino({ level: 'silent' }),
    offload: IN_PLACE,
    now: () => now,
    newIdLike: (id) => id,
    schedule: (work) => work(),
    whenWriterKnown: (then) => {
      if (waiting === undefined) then();
      else waiting.push(then);
    },
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'reply')
          answers.push(`${effect.request}: ${effect.status} ${effect.body}`);
        if (effect.kind === 'error') answers.push(`${effect.request}: ${effect.error.code}`);
        if (effect.kind === 'peer') take(effect.shard, effect.message);
      }
    },
  });
}

function take(shard: number, message: PeerMessage): void {
  assert.ok(message.kind === 'continuity.order');
  sent.push({ shard, order: JSON.parse(message.order) as Order });
}

/** Until promises that are settled have been heard. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

const lineOf = (id: string) => () => Promise.resolve(id);

/** A unit that says which it is. */
function unit(name: string): Turn {
  const turn = new Turn();
  turn.put('execution.update', EXECUTION, JSON.stringify({ name }));
  return turn;
}

const names = (units: readonly UnitEnvelope[]) =>
  units.map(({ mutations }) => (JSON.parse(String(mutations[2])) as { name: string }).name);

const VIEW = { state: 'paused', sequenceId: OTHER, currentStep: null, nextFireAt: null } as const;
const EXPECT = { expect: {}, changes: [] };

describe('the execution service', () => {
  test('serves requests about one execution one after the other, and others meanwhile', async () => {
    const serve = (request: number, id: string, name: string) =>
      service.serve(request, lineOf(id), async () => {
        await service.commit(unit(name));
        return { status: 201, body: {} };
      });
    serve(1, EXECUTION, 'first');
    serve(2, EXECUTION, 'second');
    serve(3, OTHER, 'other');
    await settled();
    const units = commits.take();
    assert.deepEqual(names(units), ['first', 'other']);
    commits.settle(units.map(({ seq }) => ({ seq, outcome: 'committed' })));
    await settled();
    assert.deepEqual(answers, ['1: 201 {}', '3: 201 {}']);
    assert.deepEqual(names(commits.take()), ['second']);
  });

  test('goes on with the line after an error', async () => {
    service.serve(1, lineOf(EXECUTION), () => Promise.reject(conflict('no')));
    service.serve(2, lineOf(EXECUTION), () => Promise.reject(new TypeError('defect')));
    service.serve(3, lineOf(EXECUTION), () =>
      Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' })),
    );
    service.serve(
      4,
      () => Promise.reject(conflict('no')),
      async () => assert.fail('not begun'),
    );
    service.serve(5, lineOf(EXECUTION), async () => ({ status: 200, body: {} }));
    await settled();
    assert.deepEqual(answers.sort(), [
      '1: ENG_CONFLICT',
      '2: ENG_INTERNAL',
      '3: ENG_DATABASE_DOWN',
      '4: ENG_CONFLICT',
      '5: 200 {}',
    ]);
  });

  test('reads no rows while the units of a dead writer are not settled', async () => {
    waiting = [];
    let reads = 0;
    const read = async () => {
      reads += 1;
      return EXECUTION;
    };
    service.serve(1, read, async () => ({ status: 200, body: {} }));
    await settled();
    assert.deepEqual([reads, answers], [0, []]);
    const held = waiting;
    waiting = undefined;
    for (const then of held) then();
    await settled();
    assert.deepEqual([reads, answers], [1, ['1: 200 {}']]);
  });

  test('answers 409 to a unit that was decided on an older version, and 503 when nobody can tell', async () => {
    const codes: (string | undefined)[] = [];
    const commit = () =>
      service.commit(unit('a')).then(
        () => codes.push(undefined),
        (error: EngineError) => codes.push(error.code),
      );
    void commit();
    void commit();
    const [stale, twice] = commits.take();
    assert.ok(stale && twice);
    commits.settle([
      { seq: stale.seq, outcome: 'refused', sqlState: '22P02', reason: 'invalid input syntax' },
      { seq: twice.seq, outcome: 'refused', sqlState: '23505', reason: 'duplicate key' },
    ]);
    void commit();
    commits.lose();
    await settled();
    assert.deepEqual(codes, ['ENG_CONFLICT', 'ENG_CONFLICT', 'ENG_DATABASE_DOWN']);
  });

  test('sends an order to the shard of the instance, with its mutations', async () => {
    const view = service.order(EXECUTION, 't', { expect: { epoch: 3 }, changes: [] }, unit('a'));
    const [message] = sent;
    assert.ok(message);
    const seen = [message.shard, message.order.replyTo, message.order.expect];
    assert.deepEqual(seen, [1, 0, { epoch: 3 }]);
    assert.equal(message.order.mutations.length, 3);
    service.answered(message.order.ticket, { ok: true, view: VIEW });
    assert.deepEqual(await view, VIEW);
  });

  test('passes on why an instance refuses', async () => {
    const view = service.order(EXECUTION, 't', EXPECT);
    const error = conflict('it is running').toData();
    service.answered(sent[0]?.order.ticket ?? 0, { ok: false, error });
    await assert.rejects(view, { code: 'ENG_CONFLICT', message: 'conflict: it is running' });
  });

  test('does not know what became of an order whose shard died, and of no other one', async () => {
    const [lost, kept] = [service.order(EXECUTION, 't', EXPECT), service.order(OTHER, 't', EXPECT)];
    service.shardBack(1);
    await assert.rejects(lost, { code: 'ENG_DATABASE_DOWN' });
    service.answered(sent[1]?.order.ticket ?? 0, { ok: true, view: VIEW });
    assert.deepEqual(await kept, VIEW);
  });

  test('that took the place of another one does not take its answers', async () => {
    void service.order(EXECUTION, 't', EXPECT);
    now += 1;
    service = newService();
    let isAnswered = false;
    void service.order(EXECUTION, 't', EXPECT).then(() => {
      isAnswered = true;
    });
    service.answered(sent[0]?.order.ticket ?? 0, { ok: true, view: VIEW });
    await settled();
    assert.equal(isAnswered, false);
  });
});
