/** The desk of a shard: lines, orders and units, with the writer and the instances played by hand. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { CommitLog } from '../../actors/commit-log.js';
import { Desk } from '../../actors/continuity/desk.js';
import type { Order } from '../../actors/continuity/orders.js';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import type { PeerMessage, UnitEnvelope } from '../../actors/protocol.js';
import { Turn } from '../../actors/turn.js';
import { conflict, type EngineError } from '../../src/errors.js';

const EXECUTION = '01950000-0000-7000-8000-000000000001';
const OTHER = '01950000-0000-7000-8000-000000000002';

let desk: Desk;
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
  desk = newDesk();
});

function newDesk(): Desk {
  return new Desk({
    shard: 0,
    shards: 2,
    commits,
    rows: new ContinuityRows({ query: () => assert.fail('no rows are read') } as never),
    log: pino({ level: 'silent' }),
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
  assert.equal(message[0], 'continuity.order');
  sent.push({ shard, order: JSON.parse(String(message[2])) as Order });
}

/** Until promises that are settled have been heard. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

const lineOf = (id: string) => () => Promise.resolve(id);

/** A unit that says which it is. */
function unit(name: string): Turn {
  const turn = new Turn();
  turn.put('execution.update', EXECUTION, { name });
  return turn;
}

const names = (units: readonly UnitEnvelope[]) =>
  units.map(([, , , , mutations]) => (JSON.parse(String(mutations[2])) as { name: string }).name);

const VIEW = { state: 'paused', sequenceId: OTHER, currentStep: null, nextFireAt: null } as const;
const EXPECT = { expect: {}, changes: [] };

describe('a desk', () => {
  test('serves requests about one execution one after the other, and others meanwhile', async () => {
    const serve = (request: number, id: string, name: string) =>
      desk.serve(request, lineOf(id), async () => {
        await desk.commit(unit(name));
        return { status: 201, body: {} };
      });
    serve(1, EXECUTION, 'first');
    serve(2, EXECUTION, 'second');
    serve(3, OTHER, 'other');
    await settled();
    const units = commits.take();
    assert.deepEqual(names(units), ['first', 'other']);
    commits.settle(units.map(([seq]) => [seq, 'committed']));
    await settled();
    assert.deepEqual(answers, ['1: 201 {}', '3: 201 {}']);
    assert.deepEqual(names(commits.take()), ['second']);
  });

  test('goes on with the line after an error', async () => {
    desk.serve(1, lineOf(EXECUTION), () => Promise.reject(conflict('no')));
    desk.serve(2, lineOf(EXECUTION), () => Promise.reject(new TypeError('defect')));
    desk.serve(3, lineOf(EXECUTION), () =>
      Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' })),
    );
    desk.serve(
      4,
      () => Promise.reject(conflict('no')),
      async () => assert.fail('not begun'),
    );
    desk.serve(5, lineOf(EXECUTION), async () => ({ status: 200, body: {} }));
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
    desk.serve(1, read, async () => ({ status: 200, body: {} }));
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
      desk.commit(unit('a')).then(
        () => codes.push(undefined),
        (error: EngineError) => codes.push(error.code),
      );
    void commit();
    void commit();
    const [stale, twice] = commits.take();
    assert.ok(stale && twice);
    commits.settle([
      [stale[0], 'refused', '22P02', 'invalid input syntax'],
      [twice[0], 'refused', '23505', 'duplicate key'],
    ]);
    void commit();
    commits.lose();
    await settled();
    assert.deepEqual(codes, ['ENG_CONFLICT', 'ENG_CONFLICT', 'ENG_DATABASE_DOWN']);
  });

  test('sends an order to the shard of the instance, with its mutations', async () => {
    const view = desk.order(EXECUTION, 't', { expect: { epoch: 3 }, changes: [] }, unit('a'));
    const [message] = sent;
    assert.ok(message);
    assert.deepEqual(
      [message.shard, message.order.desk, message.order.expect],
      [1, 0, { epoch: 3 }],
    );
    assert.equal(message.order.mutations.length, 3);
    desk.answered(message.order.ticket, { ok: true, view: VIEW });
    assert.deepEqual(await view, VIEW);
  });

  test('passes on why an instance refuses', async () => {
    const view = desk.order(EXECUTION, 't', EXPECT);
    const error = conflict('it is running').toData();
    desk.answered(sent[0]?.order.ticket ?? 0, { ok: false, error });
    await assert.rejects(view, { code: 'ENG_CONFLICT', message: 'conflict: it is running' });
  });

  test('does not know what became of an order whose shard died, and of no other one', async () => {
    const [lost, kept] = [desk.order(EXECUTION, 't', EXPECT), desk.order(OTHER, 't', EXPECT)];
    desk.shardBack(1);
    await assert.rejects(lost, { code: 'ENG_DATABASE_DOWN' });
    desk.answered(sent[1]?.order.ticket ?? 0, { ok: true, view: VIEW });
    assert.deepEqual(await kept, VIEW);
  });

  test('that took the place of another one does not take its answers', async () => {
    void desk.order(EXECUTION, 't', EXPECT);
    now += 1;
    desk = newDesk();
    let isAnswered = false;
    void desk.order(EXECUTION, 't', EXPECT).then(() => {
      isAnswered = true;
    });
    desk.answered(sent[0]?.order.ticket ?? 0, { ok: true, view: VIEW });
    await settled();
    assert.equal(isAnswered, false);
  });
});
