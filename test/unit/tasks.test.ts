/** Worker tasks, their histories and texts, and why instances failed and how that is explained. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ExplanationContext, explain } from '../../actors/instance/core/explanation.js';
import type { InstanceEnv, LiveInstance } from '../../actors/instance/live-instance.js';
import { liveInstance } from '../../actors/instance/live-instance.js';
import { TaskCache } from '../../actors/instance/memory.js';
import type { InstanceMessage } from '../../actors/instance/messages.js';
import { failureOf, newRecord, permitStatus } from '../../actors/instance/record.js';
import { TASK } from '../../actors/instance/task-tables.js';
import type { InstanceStatus } from '../../actors/instance/waits.js';
import { wireTask } from '../../actors/instance/wire-texts.js';
import {
  type Attempt,
  historyOf,
  isDerived,
  newTask,
  shorten,
  type WorkerTaskRecord,
} from '../../actors/instance/worker-task.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import { WorkerTask } from '../../schema/worker.js';
import { stepIdempotencyKey } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Dispatch } from '../../src/core/progress.js';
import { type WaitFacts, whole } from '../../src/core/waits.js';
import { rowOf } from '../../src/db/lines.js';
import { fieldsOf } from '../../src/db/mutation.js';
import { column } from '../helpers/columns.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  type Player,
  planOf,
  play,
  tryCatch,
  work,
} from '../helpers/player.js';
import { MUTATION_KINDS } from '../helpers/store.js';
import { created, told } from '../helpers/turns.js';
import { readRow } from '../helpers/unit-rows.js';

const OWNER = { id: 'instance', tenant_id: 't', priority: 1, ownership_epoch: 0 };

function task(id: string, blockId = 'a', iteration = ''): WorkerTaskRecord {
  const dispatch: Dispatch = {
    node: 0,
    iteration,
    attempt: 0,
    blockId,
    handler: 'h',
    external: true,
    queueName: null,
    params: {},
    timeoutMs: null,
    overlay: null,
    runs: 0,
  };
  return newTask(id, OWNER, dispatch, undefined, 0);
}

function shelfOf(...tasks: readonly WorkerTaskRecord[]): TaskCache {
  const shelf = new TaskCache();
  for (const one of tasks) shelf.set(one);
  return shelf;
}

const last = (shelf: TaskCache, blockId = 'a', iteration = '') =>
  shelf.lastOf({ blockId, iteration })?.id;

test('the last task of a step is the newest one of its block and iteration', () => {
  const shelf = shelfOf(task('1'), task('2'), task('3', 'b'), task('4', 'a', '0'));
  assert.deepEqual([last(shelf), last(shelf, 'b'), last(shelf, 'a', '0')], ['2', '3', '4']);
  assert.equal(last(shelf, 'a', '1'), undefined);
  // One that comes back for a late call does not hide the one that is open.
  const open = shelfOf(task('2'));
  open.set({ ...task('1'), state: 'failed' });
  assert.equal(last(open), '2');
  open.set({ ...task('2'), node: 9 });
  assert.equal(open.lastOf({ blockId: 'a', iteration: '' })?.node, 9, 'a record is replaced');
});

test('of the tasks that ended some are kept, the oldest go first, and open ones stay', () => {
  const shelf = shelfOf(task('open', 'open'));
  for (let i = 10; i < 60; i += 1) {
    const ended = task(String(i), `b${i}`);
    shelf.set(ended);
    ended.state = 'completed';
    shelf.ended(ended.id);
  }
  assert.equal(shelf.size, 33);
  assert.deepEqual([last(shelf, 'b10'), last(shelf, 'b59')], [undefined, '59']);
  assert.equal(last(shelf, 'open'), 'open');
});

const AT = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-01T00:00:05.000Z';

const PENDING = {
  ...{ id: '01950000-0000-7000-8000-000000000001', state: 'pending' as const, claim_epoch: 0 },
  ...{ worker_id: null, claimed_at: null, completed_at: null, history: '[]' },
};
const CLAIM = { worker_id: 'w', claim_epoch: 1, claimed_at: AT };
const CLAIMED = { ...PENDING, state: 'claimed' as const, ...CLAIM };
const COMPLETED = { ...CLAIMED, state: 'completed' as const, completed_at: LATER };
const RECLAIMED: Attempt = {
  id: '01950000-0000-7000-8000-000000000002',
  task_id: PENDING.id,
  claim_epoch: 1,
  worker_id: 'w',
  event: 'reclaimed',
  created_at: LATER,
};

const shownOf = (task: Parameters<typeof historyOf>[0]) =>
  historyOf(task).map(({ event, claim_epoch, worker_id, created_at }) =>
    [event, claim_epoch, worker_id, created_at].join(' '),
  );

test('one claim and a completion are told from the columns of the task, a stored history as it is', () => {
  const failed = { ...CLAIMED, state: 'failed' as const, completed_at: LATER };
  assert.deepEqual(shownOf(PENDING), []);
  assert.deepEqual(shownOf(CLAIMED), [`claimed 1 w ${AT}`]);
  assert.deepEqual(shownOf(COMPLETED), [`claimed 1 w ${AT}`, `completed 1 w ${LATER}`]);
  assert.deepEqual(shownOf(failed), [`claimed 1 w ${AT}`]);
  assert.deepEqual(historyOf({ ...COMPLETED, history: JSON.stringify([RECLAIMED]) }), [RECLAIMED]);
});

test('what is told has the same ids each time, and each entry one of its own', () => {
  const ids = column(historyOf(COMPLETED), 'id');
  assert.deepEqual(column(historyOf(COMPLETED), 'id'), ids);
  assert.equal(historyOf(CLAIMED)[0]?.id, ids[0]);
  const others = column(historyOf({ ...COMPLETED, id: RECLAIMED.id }), 'id');
  assert.equal(new Set([...ids, ...others]).size, 4);
});

test('only the first claim and its completion go without an entry', () => {
  assert.ok(isDerived(CLAIMED, 'claimed'));
  assert.ok(isDerived(COMPLETED, 'completed'));
  assert.ok(!isDerived({ ...CLAIMED, claim_epoch: 2 }, 'claimed'));
  assert.ok(!isDerived({ ...CLAIMED, history: JSON.stringify([RECLAIMED]) }, 'claimed'));
  assert.ok(!isDerived({ ...COMPLETED, history: JSON.stringify([RECLAIMED]) }, 'completed'));
  for (const event of ['reclaimed', 'failed', 'timed_out', 'cancelled'] as const) {
    assert.ok(!isDerived(CLAIMED, event), event);
  }
});

test('a history that is full drops its oldest refusal first, then its oldest entry', () => {
  const events = ['claimed', 'stale_mutation_rejected', 'completed', 'stale_mutation_rejected'];
  const history = events.map((event, at) => {
    return { ...RECLAIMED, event: event as Attempt['event'], claim_epoch: 1 + at };
  });
  const left = () => {
    shorten(history);
    return column(history, 'claim_epoch').join();
  };
  assert.deepEqual([left(), left(), left()], ['1,3,4', '1,3', '3']);
});

const ID = '01950000-0000-7000-8000-000000000001';
const NOTED_AT = '2026-01-02T03:04:05.678Z';

const OVERLAY = { item: 'i "1"' };

const madeIn = (runs: number) =>
  newTask(
    ID,
    { id: ID, tenant_id: 't "1"', priority: 1, ownership_epoch: 7 },
    {
      ...{ node: 3, iteration: '0.1', attempt: 1, blockId: 'block "1"', handler: 'handler\n1' },
      ...{ external: true, queueName: 'queue\\1', timeoutMs: 5_000_000_000, secrets: [] },
      params: { amount: 5, note: 'ä "b"' },
      overlay: OVERLAY,
      runs,
    },
    undefined,
    Date.parse(NOTED_AT),
  );

const FULL = {
  ...madeIn(0),
  state: 'failed' as const,
  worker_id: 'w "1"',
  claim_epoch: 2,
  claimed_at: NOTED_AT,
  heartbeat_at: NOTED_AT,
  completed_at: NOTED_AT,
  output: '{"paid":true}',
  error_message: 'no "no"',
  error_retryable: false,
  checkpoint_seq: 4,
  resume_checkpoint: '{"page":3}',
};

const CONTEXT = { data: { a: 'ä' }, config: { b: 1 } };

test('the record of a task has the fields of its shape, in their order', () => {
  const record = JSON.parse(wireTask(FULL, CONTEXT, OVERLAY, 'trace "1"'));
  assert.deepEqual(Object.keys(record), Object.keys(WorkerTask.properties));
  const { block_id, handler_name, queue_name, worker_id, error_message } = FULL;
  assert.deepEqual(record, {
    ...record,
    ...{ block_id, handler_name, queue_name, worker_id, error_message },
    params: { amount: 5, note: 'ä "b"' },
    context: { data: { a: 'ä', item: 'i "1"' }, config: { b: 1 } },
    output: { paid: true },
    resume_checkpoint: { page: 3 },
    traceparent: 'trace "1"',
  });
});

test('the idempotency key of a step that was begun anew is stored, that of its first run follows', () => {
  const keyOf = (task: WorkerTaskRecord) =>
    JSON.parse(wireTask(task, CONTEXT, null)).idempotency_key;
  for (const runs of [0, 1, 2]) {
    const key = stepIdempotencyKey(ID, 'block "1"', '0.1', runs);
    const task = madeIn(runs);
    assert.equal(task.idempotency_key, runs === 0 ? null : key);
    assert.equal(keyOf(task), key);
    // Before migration 0058 all were stored.
    assert.equal(keyOf({ ...task, idempotency_key: key }), key);
  }
});

test('what a task does not have is left out of its record, or null', () => {
  const task = { ...FULL, queue_name: null, resume_checkpoint: null, output: null, overlay: null };
  const record = JSON.parse(
    wireTask({ ...task, worker_id: null, claimed_at: null }, CONTEXT, null),
  );
  for (const name of ['queue_name', 'resume_checkpoint', 'traceparent']) {
    assert.equal(name in record, false);
  }
  assert.deepEqual([record.output, record.worker_id, record.claimed_at], [null, null, null]);
  assert.deepEqual(record.context, CONTEXT);
});

test('the row of its end has the columns that its end changes', () => {
  const row = readRow('task.end', rowOf(TASK.end, FULL));
  assert.deepEqual(
    Object.keys(row),
    fieldsOf(TASK.end).map(([name]) => name),
  );
  const { id, state, worker_id, claim_epoch, error_message } = FULL;
  const expected = { id, state, worker_id, claim_epoch, error_message, history: [] };
  assert.deepEqual(row, { ...row, ...expected, output: { paid: true } });
});

test('its own row has what it was made of', () => {
  const task = { ...FULL, handler_name: 'h', queue_name: null };
  const row = readRow('task.insert', rowOf(TASK.insert, task));
  assert.deepEqual(row, {
    ...task,
    params: { amount: 5, note: 'ä "b"' },
    output: { paid: true },
    resume_checkpoint: { page: 3 },
    overlay: OVERLAY,
    secrets: [],
    history: [],
    ownership_epoch: 7,
  });
});

const ENV = instanceEnv();

const actorOf = (...blocks: Parameters<typeof planOf>[0]): LiveInstance =>
  liveInstance(
    newRecord(newInstance(ENV.ids.next(1), {}), ENV.now(), undefined),
    planOf(blocks),
    ENV,
  );

/** What the turn writes into the column; undefined: it leaves it as it is. */
function written(turn: Turn): { code: string } | null | undefined {
  const at = turn.mutations.indexOf(MUTATION_KINDS.indexOf('instance.failure'));
  return at < 0 ? undefined : JSON.parse(String(turn.mutations[at + 2])).failure;
}

test('a step whose outcome the database refuses fails of that', () => {
  const actor = actorOf(work('a'));
  assert.equal(written(created(actor)), undefined);
  const step = { node: 0, iteration: '', attempt: 0 };
  const turn = told(actor, { kind: 'unit.refused', step, code: 'data_refused', reason: 'no' });
  assert.equal(written(turn)?.code, 'data_refused');
  assert.equal(failureOf(actor.record)?.path, 'a');
});

test('an instance that the database refuses as a whole names no block', () => {
  const actor = actorOf(work('a'));
  created(actor);
  told(actor, { kind: 'unit.refused', step: undefined, code: 'data_refused', reason: 'no' });
  const { block_id, code, message } = failureOf(actor.record)!;
  assert.deepEqual([block_id, code, message], [null, 'data_refused', 'no']);
});

test('the column is written by a failure and by what takes it back, and by nothing else', () => {
  const actor = actorOf(failing('a'));
  // The row of the creation carries it.
  assert.equal(written(created(actor)), undefined);
  const call = { request: 1, tenant: '', target: '', traceparent: undefined };
  const signal = (signal_type: string) =>
    written(told(actor, { kind: 'signal', ...call, body: { signal_type } }));
  assert.deepEqual([signal('custom:x'), signal('pause')], [undefined, undefined]);
  assert.equal(signal('resume'), null);
  assert.equal(written(told(actor, { kind: 'wake', recovered: false }))?.code, 'handler_failed');
  assert.equal(signal('cancel'), null);
});

const HOLDER = '01950000-0000-7000-8000-000000000001';

function explained(waits: readonly WaitFacts[], around: Partial<ExplanationContext> = {}) {
  const standing: InstanceStatus = {
    id: '01950000-0000-7000-8000-000000000000',
    sequence_id: HOLDER,
    tenant_id: 't',
    state: 'scheduled',
    created_at: AT,
    failure: null,
    cancelling: undefined,
    ...{ again: null, owes: false, is_dry_run: false, owed: [], cut: [], cancelOn: [] },
    parent: null,
    root: 'a',
    continuity_id: 'c',
    waits,
    count: waits.length,
  };
  const nobody = {
    moves: [],
    pollers: [],
    holders: [],
    ahead: 0,
    limits: [],
    approvals: [],
    children: new Map(),
  };
  return explain(standing, { now: Date.parse(AT), ...nobody, ...around });
}

const HANDOFFS: readonly (readonly [WaitFacts['reason'], string | null, RegExp])[] = [
  ['transferring', AT, /^It is being handed over to another runtime, which has to take it by 2026/],
  ['transferring', null, /^It is being handed over to another runtime\.$/],
  ['moved', null, /^It was handed over to another runtime/],
  ['imported', null, /^It was imported/],
];
for (const [reason, until, words] of HANDOFFS) {
  test(`one that is fenced, ${reason}${until === null ? '' : ' for a time'}, can only be looked for where it is`, () => {
    const { summary, next } = explained([whole('handoff', { reason: reason!, until })]);
    assert.match(summary, words);
    const seen = next.map(({ method, path }) => [method, path]);
    assert.deepEqual(seen, [['GET', '/continuity/executions/c']]);
  });
}

test('of workers count those that can take the task, by its queue, and that polled lately', () => {
  const task: WaitFacts = { ...whole('task'), block_id: 'a', path: 'a', handler: 'h', queue: 'q' };
  const polled = (worker_id: string, queue_name: string, ago: number, handler_name = 'h') => {
    const last_seen_at = new Date(Date.parse(AT) - ago).toISOString();
    return { worker_id, queue_name, handler_name, last_seen_at };
  };
  const pollers = [
    polled('any', '', 10_000),
    polled('any', 'q', 20_000),
    polled('own', 'q', 5_000),
    polled('late', 'q', 61_000),
    polled('elsewhere', 'other', 0),
    polled('other', 'q', 0, 'i'),
  ];
  const [wait] = explained([task], { pollers }).waiting_for;
  const last_polled_at = new Date(Date.parse(AT) - 5_000).toISOString();
  assert.deepEqual(wait?.workers, { polled_lately: 2, last_polled_at });
  const [old] = explained([task], { pollers: pollers.slice(3) }).waiting_for;
  const seen = old!.summary;
  assert.match(seen, /no worker polls for the handler h and the queue q; the last time was/);
});

describe('the idempotency key of a step', () => {
  const items = { data: { items: [1, 2] } };
  const undone: Block = {
    type: 'saga',
    id: 's',
    steps: [
      { id: 'one', action: work('a'), compensation: noop('undo') },
      { id: 'two', action: failing('b') },
    ],
  };
  const late = http('a', { deadline: 10, on_deadline_breach: { handler: 'http_request' } });

  const play1 = (...blocks: Parameters<typeof play>[0]) => play(blocks, items);
  const CASES: Readonly<
    Record<'the same' | 'another one', Readonly<Record<string, () => Player>>>
  > = {
    'the same': {
      'the next try': () => play1(work('a')).after('again a'),
      'a call that a crash repeats': () => play1(http('a')).after('recover'),
      'a retry of the instance': () => play1(work('a')).after('fail a', 'retry'),
    },
    'another one': {
      'the next item': () => play1(forEach('l', '{{ data.items }}', [work('a')])).after('ok a'),
      'the next pass of a loop': () => play1(loop('l', 'true', 2, [work('a')])).after('ok a'),
      'another block': () => play1(work('a'), work('b')).after('ok a'),
      'a run behind compensations': () => play1(undone).after('ok a', 'retry'),
      'an asked-for second run': () =>
        play1(work('a'), work('b')).after('ok a', { kind: 'rewind', node: 0 }),
      'what its missed deadline calls': () => play1(late).after('tick'),
    },
  };
  for (const [which, cases] of Object.entries(CASES)) {
    for (const [what, played] of Object.entries(cases)) {
      test(`is ${which} for ${what}`, () => {
        const { dispatched, snapshot } = played();
        const keys = dispatched.map(({ blockId, iteration, runs }) =>
          stepIdempotencyKey(snapshot.id, blockId, iteration, runs),
        );
        assert.ok(keys.length > 1);
        assert.equal(new Set(keys).size, which === 'the same' ? 1 : keys.length);
      });
    }
  }

  test('is another one for what each missed deadline of a loop calls', () => {
    const guarded = tryCatch('t', [late], []);
    const player = play1(forEach('l', '{{ data.items }}', [guarded])).after('tick');
    const calls = () => player.dispatched.filter(({ node }) => node < 0);
    const [first] = calls();
    player.send({ ...first!, kind: 'step.outcome', outcome: { kind: 'success', output: {} } });
    player.after('tick');
    assert.deepEqual(column(calls(), 'iteration'), ['deadline.0', 'deadline.1']);
  });
});

test('of claims that were lost people are told', () => {
  const task: WaitFacts = { ...whole('task'), block_id: 'a', path: 'a', handler: 'h', queue: null };
  const { summary, next } = explained([{ ...task, lost_claims: 1 }]);
  assert.match(summary, /none ever did\. 1 worker has fallen silent over this try before\.$/);
  // One that is scheduled is put off, or waits for its slot.
  assert.deepEqual(column(next, 'action'), ['pause', 'cancel'], 'nobody is given the task');
});

// ---------------------------------------------------------------- claims, lost and given back

/** An instance with tasks for workers, whose clock the test moves. */
class Claimed {
  now = ENV.now();
  turn: Turn;
  readonly actor: LiveInstance;

  constructor(blocks: Parameters<typeof planOf>[0], more: Partial<InstanceEnv> = {}, body = {}) {
    const env = instanceEnv({ now: () => this.now, ...more });
    const record = newRecord(newInstance(env.ids.next(1), body), this.now, undefined);
    this.actor = liveInstance(record, planOf(blocks), env);
    this.turn = created(this.actor);
  }

  get task(): WorkerTaskRecord {
    const task = [...this.actor.tasks.values()].at(-1);
    assert.ok(task);
    return task;
  }

  get state(): string {
    return this.actor.record.snapshot.state;
  }

  tell(message: InstanceMessage): Turn {
    this.turn = told(this.actor, message);
    return this.turn;
  }

  /** @returns the epoch; 0: it is not offered */
  claim(): number {
    const { id } = this.task;
    const place = { handler: 'work', poll: 1, task: id, instance: this.actor.record.id } as const;
    this.tell({ kind: 'claim', ...place, worker: 'w', queueShard: 0 });
    const [answer] = this.turn.effects.flatMap((effect) =>
      effect.kind === 'peer' && effect.message.kind === 'claimed' ? [effect.message] : [],
    );
    assert.ok(answer);
    return answer.epoch;
  }

  reap(): Turn {
    return this.tell({ kind: 'reap', task: this.task.id });
  }

  request(kind: 'signal' | 'patchState' | 'task.complete' | 'task.heartbeat', body: object): Turn {
    const call = { request: 1, tenant: '', target: '', traceparent: undefined };
    return this.tell({ kind, ...call, task: this.task.id, body } as never);
  }

  /** What its queue was told in this turn: that it is ready, or gone. */
  get hint(): string | undefined {
    const kinds = this.turn.effects.map((effect) => effect.kind === 'peer' && effect.message.kind);
    return kinds.filter((it) => it === 'task.ready' || it === 'task.gone').at(-1);
  }

  get rank(): number | undefined {
    const at = this.turn.mutations.lastIndexOf(MUTATION_KINDS.indexOf('task.rank'));
    return at < 0 ? undefined : JSON.parse(String(this.turn.mutations[at + 2])).rank;
  }
}

const STALE_MS = ENV.workerStaleMs;

test('a task that silences one worker after the other fails its step for good, and a claim that is given back does not count', () => {
  const one = new Claimed([work('a')]);
  one.claim();
  one.tell({ kind: 'unclaim', task: one.task.id, epoch: 1 });
  assert.deepEqual([one.task.state, one.task.lost_claims], ['pending', 0]);
  one.claim();
  one.request('task.heartbeat', { worker_id: 'w', release: true });
  assert.deepEqual([one.hint, one.task.state, one.task.lost_claims], ['task.ready', 'pending', 0]);
  for (let lost = 1; lost <= ENV.lostClaimsMax; lost += 1) {
    assert.deepEqual([one.state, one.claim()], ['waiting', lost + 2]);
    one.now += STALE_MS - 1;
    one.reap();
    assert.equal(one.task.lost_claims, lost - 1, 'it is not silent for long enough');
    one.now += 1;
    one.reap();
    assert.equal(one.task.lost_claims, lost);
  }
  assert.deepEqual([one.state, one.task.state, one.hint], ['failed', 'failed', 'task.gone']);
  const { code, block_id, message } = failureOf(one.actor.record)!;
  assert.deepEqual([code, block_id], ['claims_lost', 'a']);
  assert.match(message, /10 claims/);
  assert.equal(historyOf(one.task).at(-1)?.event, 'reclaimed', 'no worker said that it failed');
});

for (const [max, code] of [
  [0, undefined],
  [1, 'claims_lost'],
] as const) {
  test(`a try_catch takes care of it, and with ${max} as the limit ${code ?? 'nothing'} comes of it`, () => {
    const caught = [
      { type: 'try_catch', id: 't', try_block: [work('a')], catch_block: [work('b')] },
    ];
    const one = new Claimed(caught as never, { lostClaimsMax: max });
    one.claim();
    one.now += STALE_MS;
    one.reap();
    const error = one.actor.record.snapshot.data._error as { code?: string } | undefined;
    assert.deepEqual([error?.code, one.state], [code, 'waiting']);
  });
}

describe('tasks of an instance that is held back', () => {
  const far = new Date(ENV.now() + 3_600_000).toISOString();
  const ways: Record<string, readonly [hold: [never, object], free: [never, object]]> = {
    paused: [
      ['signal' as never, { signal_type: 'pause' }],
      ['signal' as never, { signal_type: 'resume' }],
    ],
    'put off': [
      ['patchState' as never, { state: 'scheduled', next_fire_at: far }],
      ['patchState' as never, { state: 'running' }],
    ],
  };
  for (const [how, [hold, free]] of Object.entries(ways)) {
    test(`it is ${how}: they are withdrawn, and offered again behind that`, () => {
      const one = new Claimed([work('a')]);
      one.request(...hold);
      assert.deepEqual([one.hint, (one.rank ?? 0) < 0, one.claim()], ['task.gone', true, 0]);
      one.request(...free);
      assert.deepEqual([one.hint, (one.rank ?? -1) >= 0, one.claim()], ['task.ready', true, 1]);
    });

    test(`it is ${how}: the slot of its key is kept until the worker is done`, () => {
      const key = { concurrency_key: 'k', max_concurrency: 1 };
      const one = new Claimed([work('a'), work('b')], {}, key);
      const grant = (number: number) => one.tell({ kind: 'permit.granted', number });
      grant(1);
      one.claim();
      one.request(...hold);
      assert.equal(permitStatus(one.actor.record), 'held');
      one.request('task.complete', { worker_id: 'w', output: {} });
      assert.equal(permitStatus(one.actor.record), 'none');
      assert.ok(
        one.turn.effects.some((e) => e.kind === 'peer' && e.message.kind === 'permit.left'),
      );
      one.request(...free);
      one.tell({ kind: 'wake', recovered: false });
      assert.deepEqual([permitStatus(one.actor.record), one.state], ['wanted', 'scheduled']);
      grant(2);
      assert.deepEqual([one.state, one.task.block_id, one.claim()], ['waiting', 'b', 1]);
    });
  }

  test('its slot is kept in a delay, also in one that it begins with', () => {
    const key = { concurrency_key: 'k', max_concurrency: 1 };
    const one = new Claimed([work('a', { delay: { duration: 1_000 } })], {}, key);
    one.tell({ kind: 'permit.granted', number: 1 });
    assert.deepEqual([one.state, permitStatus(one.actor.record)], ['scheduled', 'held']);
    one.now += 1_000;
    one.tell({ kind: 'wake', recovered: false });
    assert.deepEqual([one.state, one.claim()], ['waiting', 1]);
    one.request('signal', { signal_type: 'cancel' });
    assert.equal(permitStatus(one.actor.record), 'none');
  });

  test('without a slot of its key nobody is given them', () => {
    const one = new Claimed([work('a')], {}, { concurrency_key: 'k', max_concurrency: 1 });
    one.tell({ kind: 'permit.granted', number: 1 });
    one.request('signal', { signal_type: 'pause' });
    one.request('signal', { signal_type: 'resume' });
    assert.equal(one.claim(), 0);
    one.tell({ kind: 'wake', recovered: false });
    assert.equal(one.claim(), 0);
    one.tell({ kind: 'permit.granted', number: 2 });
    assert.deepEqual([one.hint, one.claim()], ['task.ready', 1]);
  });

  test('a queue_timeout that runs out while it is put off has its time again from then on', () => {
    const one = new Claimed([work('a', { queue_timeout: 1_000 })]);
    one.request('patchState', { state: 'scheduled', next_fire_at: far });
    one.now += 5_000;
    one.tell({ kind: 'wake', recovered: false });
    assert.equal(one.state, 'scheduled');
    one.now = Date.parse(far);
    one.tell({ kind: 'wake', recovered: false });
    assert.equal(one.state, 'waiting');
    one.now += 1_000;
    one.tell({ kind: 'wake', recovered: false });
    assert.equal(failureOf(one.actor.record)?.code, 'queue_timeout');
  });
});

describe('time limits of tasks in an outage', () => {
  /** What counts, and whether a worker has the task. */
  const limits = { timeout: true, queue_timeout: false };
  for (const [limit, isClaimed] of Object.entries(limits)) {
    test(`a ${limit} that runs out in it is over some time behind its end`, () => {
      let end = 0;
      const one = new Claimed([work('a', { [limit]: 1_000 })], { outageEnd: () => end });
      if (isClaimed) one.claim();
      one.now += 500;
      const look = (atMs: number) => {
        one.now = ENV.now() + atMs;
        one.tell({ kind: 'wake', recovered: false });
        return one.state;
      };
      // It lasts: its end is now.
      end = ENV.now() + 20_000;
      assert.equal(look(20_000), 'waiting');
      end = ENV.now() + 40_000;
      assert.equal(look(40_000 + LIMITS.reportGraceMs - 1), 'waiting');
      assert.equal(look(40_000 + LIMITS.reportGraceMs), 'failed');
      assert.equal(failureOf(one.actor.record)?.code, limit);
    });
  }

  test('one that begins behind it has no more than its time', () => {
    const end = ENV.now() - 1;
    const one = new Claimed([work('a', { timeout: 1_000 })], { outageEnd: () => end });
    one.claim();
    one.now += 1_000;
    one.tell({ kind: 'wake', recovered: false });
    assert.equal(failureOf(one.actor.record)?.code, 'timeout');
  });
});
