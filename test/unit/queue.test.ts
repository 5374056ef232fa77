/** The queue of one handler on a table in memory: what it asks for is recorded, and answered by hand. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { arrayOf, newPoll, type Poll, type PollRequest } from '../../actors/queue/poll.js';
import { QueueActor } from '../../actors/queue/queue.js';
import {
  compareTasks,
  type Read,
  type ReadyTask,
  type TaskCount,
  type Window,
  type WindowBounds,
} from '../../actors/queue/window.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { column } from '../helpers/columns.js';
import { check } from '../helpers/properties.js';
import { isIn, select } from '../helpers/queue-table.js';

/** A task of the table, by the name of its handler. */
interface Row extends ReadyTask {
  readonly handler: string;
}

const isFor = ({ requested: { tenant, handlers, queues } }: Poll, task: Row) =>
  handlers.includes(task.handler) && queues.some((queue) => isIn({ tenant, queue }, task));

/** The queues of two handlers; tasks and polls are of the first one unless they say otherwise. */
class Recorder {
  readonly claims: { poll: number; task: string; worker: string; handler: string }[] = [];
  readonly unclaims: [task: string, epoch: number][] = [];
  readonly replies: { request: number; body: string }[] = [];
  readonly reads: { window: Window; read: Read; handler: string }[] = [];
  /** And the handler of each. */
  readonly windows = new Map<Window, string>();
  readonly count: TaskCount = { tasks: 0 };
  readonly waits = new FairSlots([{ activeMax: 400 }, { activeMax: 300 }]);
  /** The tasks that are pending. */
  readonly table = new Map<string, Row>();
  readonly queues: ReadonlyMap<string, QueueActor>;
  #polls = 0;

  constructor(bounds?: WindowBounds) {
    this.queues = new Map(['h', 'other'].map((name) => [name, this.#newQueue(name, bounds)]));
  }

  #newQueue(handler: string, bounds?: WindowBounds): QueueActor {
    return new QueueActor(
      {
        claim: ({ number, requested: { worker } }, task) => {
          this.claims.push({ poll: number, task: task.id, worker, handler });
        },
        unclaim: (task, epoch) => this.unclaims.push([task, epoch]),
        answer: ({ requested: { request }, claimed }) =>
          this.replies.push({ request, body: arrayOf(claimed) }),
        again: (poll) => this.begin(poll),
        read: (window, read) => this.reads.push({ window, read, handler }),
        expireLater: () => undefined,
        used: (window) => this.windows.set(window, handler),
      },
      this.count,
      this.waits,
      bounds,
    );
  }

  of(handler: string): QueueActor {
    return this.queues.get(handler)!;
  }

  get queue(): QueueActor {
    return this.of('h');
  }

  /** A task is committed, and its queue is told of it. */
  add(id: string, changes: Partial<Row> = {}): void {
    const task = this.addUntold(id, changes);
    this.of(task.handler).ready(task);
  }

  addUntold(id: string, changes: Partial<Row> = {}): Row {
    const base = { instance: `i-${id}`, tenant: 't1', queue: '', rank: 2, createdAt: 1 };
    const task = { id, handler: 'h', ...base, ...changes };
    this.table.set(id, task);
    return task;
  }

  /** A poll, and what the table has for it. */
  poll(request: number, changes: Partial<PollRequest> = {}): Poll {
    const poll = this.pollUnread(request, changes);
    this.answerReads();
    return poll;
  }

  pollUnread(request: number, changes: Partial<PollRequest> = {}): Poll {
    const worker = { worker: 'w1', version: null };
    const base = { tenant: 't1', ...worker, handlers: ['h'], queues: [''], limit: 1, until: 0 };
    const poll = newPoll({ request, ...base, answer: () => undefined, ...changes });
    this.begin(poll);
    return poll;
  }

  begin(poll: Poll): void {
    this.#polls += 1;
    poll.number = this.#polls;
    const { handlers, queues, tenant } = poll.requested;
    poll.places = handlers.flatMap((handler) =>
      queues.map((queue) => this.of(handler).place(tenant, queue)),
    );
    poll.places[0]!.queue.poll(poll, 10);
  }

  answerReads(): void {
    for (let next = this.reads.shift(); next !== undefined; next = this.reads.shift()) {
      this.of(next.handler).loaded(next.window, next.read, this.rowsFor(next), 10);
    }
  }

  rowsFor({ window, read, handler }: (typeof this.reads)[number]): ReadyTask[] {
    const rows = [...this.table.values()].filter((task) => task.handler === handler);
    return select(rows, window, read.after, read.limit);
  }

  get claimed(): string[] {
    return this.claims.map(({ task }) => task);
  }

  /** Settles the claim of a task; it is pending no more. */
  settle(task: string, epoch: number, record = ''): void {
    const { poll, handler } = this.claims.findLast((claim) => claim.task === task)!;
    if (epoch >= 0) this.table.delete(task);
    this.of(handler).claimed(poll, task, epoch, record);
  }
}

let recorder: Recorder;
beforeEach(() => {
  recorder = new Recorder();
});

test('tasks are offered by priority, then by age', () => {
  recorder.add('old', { createdAt: 1 });
  recorder.add('young', { createdAt: 5 });
  recorder.add('urgent', { createdAt: 9, rank: 0 });
  recorder.poll(1, { limit: 3 });
  assert.deepEqual(recorder.claimed, ['urgent', 'old', 'young']);
});

test('a poll is answered when all of its claims are settled', () => {
  recorder.add('a');
  recorder.add('b');
  recorder.poll(1, { limit: 2 });
  recorder.settle('a', 1, '{"id":"a"}');
  assert.deepEqual(recorder.replies, []);
  recorder.settle('b', 1, '{"id":"b"}');
  assert.deepEqual(recorder.replies, [{ request: 1, body: '[{"id":"a"},{"id":"b"}]' }]);
});

test('of the long polls that may have a task, the one that came first gets it', () => {
  const scopes = [
    { tenant: '', worker: 'all' },
    { queues: ['gpu'], worker: 'queue' },
    { worker: 'tenant', handlers: ['h', 'other'] },
    { tenant: 't2', worker: 'foreign' },
  ];
  for (const [request, scope] of scopes.entries()) {
    recorder.poll(request, { ...scope, until: 1_000 });
  }
  for (const id of ['a', 'b']) recorder.add(id, { queue: 'gpu' });
  recorder.add('c', { handler: 'other' });
  assert.deepEqual(column(recorder.claims, 'worker'), ['all', 'queue', 'tenant']);
});

test('what a poll claimed is given back when its client has gone, and it takes no more', () => {
  for (const id of ['a', 'b', 'c']) recorder.add(id);
  const poll = recorder.poll(1, { limit: 3 });
  recorder.settle('a', 1);
  recorder.queue.abort(poll);
  recorder.settle('b', 3);
  assert.deepEqual(recorder.unclaims, [['b', 3]], 'at once, with another one on its way');
  recorder.settle('c', 2);
  assert.deepEqual(Object.fromEntries(recorder.unclaims), { a: 1, b: 3, c: 2 });
  assert.deepEqual(recorder.replies, []);
  recorder.queue.abort(recorder.poll(2, { until: 1_000 }));
  recorder.add('d');
  assert.equal(recorder.claims.length, 3);
});

test('the answer to a poll stops at the size limit and gives the rest back', () => {
  recorder.add('a');
  recorder.add('b');
  recorder.poll(1, { limit: 2 });
  const large = 'x'.repeat(LIMITS.responseBytesMax);
  recorder.settle('a', 1, large);
  recorder.settle('b', 1, large);
  assert.deepEqual(recorder.unclaims, [['b', 1]]);
  assert.equal(recorder.replies[0]?.body, `[${large}]`);
});

test('a poll that finds no place to wait is answered at once, and a tenant leaves places to others', () => {
  for (let request = 0; request < 300; request += 1) recorder.poll(request, { until: 1_000 });
  assert.equal(recorder.replies.length, 0);
  recorder.poll(300, { until: 1_000 });
  assert.deepEqual(column(recorder.replies, 'request'), [300]);
  recorder.poll(301, { tenant: 't2', until: 1_000 });
  assert.equal(recorder.replies.length, 1, 'another tenant waits');
  // As when the engine stops.
  recorder.queue.answerParked();
  assert.deepEqual([recorder.waits.active, recorder.replies.at(-1)?.body], [0, '[]']);
});

// ---------------------------------------------------------------- laws

const TENANTS = ['a', 'b'];
const NAMES = ['', 'q', 'r'];
const HANDLERS = [['h', 'other'], ['h'], ['other']];
const QUEUES = [[''], ['q'], ['r'], ['q', 'r'], ['', 'q']];
const SCOPES = ['', ...TENANTS].flatMap((tenant) =>
  HANDLERS.flatMap((handlers) => QUEUES.map((queues) => ({ tenant, handlers, queues }))),
);

/**
 * What may happen, to a queue with little memory and to the table next to it. Each takes a number,
 * by which it chooses among what is there.
 */
class Model extends Recorder {
  readonly hints: { readonly isReady: boolean; readonly task: Row }[] = [];
  /** By request. */
  readonly polls: Poll[] = [];
  /** Whatever became of them. */
  readonly tasks = new Map<string, Row>();
  /** Polls whose window could not be read: they may miss a task. */
  readonly excused = new Set<Poll>();
  readonly snapshots = new Map<Read, ReadyTask[]>();
  /** Claimed tasks, and claims on their way with the number of their poll. */
  readonly held: Row[] = [];
  readonly open = new Map<string, number>();

  constructor() {
    super({ windowTasksMax: 3, readyPageRowsMin: 1, readyPageRowsMax: 3 });
  }

  readonly operations: Readonly<Record<string, (n: number) => void>> = {
    create: (n) => {
      const [tenant, queue] = [TENANTS[n % 2]!, NAMES[n % 3]!];
      const handler = (n >> 6) % 3 === 0 ? 'other' : 'h';
      const place = { rank: (n >> 2) % 2, createdAt: (n >> 3) % 5, handler };
      const task = this.addUntold(`task-${1_000 + this.tasks.size}`, { tenant, queue, ...place });
      this.tasks.set(task.id, task);
      this.hints.push({ isReady: true, task });
    },
    hint: () => {
      const { isReady, task } = this.hints.shift() ?? {};
      if (task === undefined) return;
      const queue = this.of(task.handler);
      if (isReady) queue.ready(task);
      else queue.gone(task.id, task.tenant, task.queue);
    },
    cancel: (n) => {
      const task = at(this.table.values(), n);
      if (task === undefined) return;
      this.table.delete(task.id);
      this.hints.push({ isReady: false, task });
    },
    giveBack: (n) => {
      const [task] = this.held.splice(n % Math.max(1, this.held.length), 1);
      if (task === undefined) return;
      this.table.set(task.id, task);
      this.hints.push({ isReady: true, task });
    },
    poll: (n) => {
      const asked = { limit: 1 + (n % 4), until: n % 2 === 0 ? 0 : 1_000 };
      const scope = SCOPES[n % SCOPES.length];
      this.polls.push(this.pollUnread(this.polls.length, { ...scope, ...asked }));
    },
    settle: (n) => {
      const [id, number] = at(this.open, n) ?? [];
      if (id === undefined || number === undefined) return;
      this.open.delete(id);
      const task = this.table.get(id);
      const epoch = n % 4 === 3 ? -1 : task === undefined ? 0 : 1;
      if (epoch === 1) this.held.push(task!);
      if (epoch === 1) this.table.delete(id);
      this.of(this.tasks.get(id)!.handler).claimed(number, id, epoch, '{}');
    },
    snapshot: (n) => {
      const next = at(this.reads, n);
      if (next !== undefined) this.snapshots.set(next.read, this.rowsFor(next));
    },
    answer: (n) => {
      const [next] = this.reads.splice(n % Math.max(1, this.reads.length), 1);
      if (next === undefined) return;
      const rows = this.snapshots.get(next.read) ?? this.rowsFor(next);
      this.of(next.handler).loaded(next.window, next.read, rows, 10);
    },
    fail: (n) => {
      const [next] = this.reads.splice(n % Math.max(1, this.reads.length), 1);
      for (const poll of next?.window.parked.values() ?? []) this.excused.add(poll);
      if (next !== undefined) this.of(next.handler).loadFailed(next.window, next.read, 10);
    },
    expire: (n) => {
      const poll = at(this.polls, n);
      if (poll !== undefined) poll.places[0]!.queue.expire(poll, poll.until);
    },
    evict: (n) => {
      const [window, handler] = at(this.windows, n) ?? [];
      if (window === undefined || handler === undefined) return;
      if (this.of(handler).evict(window)) this.windows.delete(window);
    },
    shardDied: () => {
      this.hints.length = 0;
      this.open.clear();
      for (const queue of this.queues.values()) queue.dropClaims(() => true);
    },
  };

  /** Does something and holds what the queue made of it against the table. */
  step(operation: string, n: number): void {
    const before = { claims: this.claims.length, replies: this.replies.length };
    this.operations[operation]!(n);
    const claims = this.claims.slice(before.claims);
    for (const { task, poll } of claims) {
      assert.ok(!this.open.has(task), `${task} is offered twice`);
      this.open.set(task, poll);
    }
    for (const { request, body } of this.replies.slice(before.replies)) {
      const poll = this.polls[request]!;
      if (body !== '[]' || this.excused.has(poll)) continue;
      assert.deepEqual(this.visible(poll), [], `poll ${request} is answered empty`);
    }
    for (const { task, poll: number } of claims) {
      const poll = this.polls.find((known) => known.number === number)!;
      const picked = this.tasks.get(task)!;
      assert.ok(isFor(poll, picked), `${task} is not for this poll`);
      const earlier = this.visible(poll).filter((other) => compareTasks(other, picked) < 0);
      assert.deepEqual(earlier, [], `${task} is offered before its turn`);
    }
  }

  /** What a poll must find: neither a hint of it nor a claim is on its way. */
  visible(poll: Poll): ReadyTask[] {
    const untold = new Set(this.hints.map(({ task }) => task.id));
    return [...this.table.values()].filter(
      (task) => isFor(poll, task) && !untold.has(task.id) && !this.open.has(task.id),
    );
  }
}

function at<T>(items: Iterable<T>, n: number): T | undefined {
  const list = [...items];
  return list[n % list.length];
}

test('a poll gets the first tasks that it may have, and is answered empty only if there is none', (t) => {
  const often = ['create', 'create', 'hint', 'hint', 'poll', 'settle', 'answer'];
  const names = [...often, ...often, ...Object.keys(new Model().operations)];
  const step = fc.tuple(fc.constantFrom(...names), fc.nat(10_000));
  check(t, 500, fc.array(step, { maxLength: 150, size: 'max' }), (list) => {
    const model = new Model();
    for (const [name, n] of list) model.step(name, n);
    // Everything under way arrives, and what waits is polled for until there is no more.
    while (model.hints.length > 0) model.step('hint', 0);
    const isUnderWay = () => model.reads.length + model.open.size > 0;
    for (let turns = 0; isUnderWay() || model.table.size > 0; turns++) {
      assert.ok(turns < 1_000, `no poll gets ${[...model.table.keys()].join()}`);
      if (model.reads.length > 0) model.step('answer', 0);
      else model.step(isUnderWay() ? 'settle' : 'poll', 0);
    }
    for (const poll of model.polls) poll.places[0]!.queue.expire(poll, poll.until);
    const answered = model.replies.map(({ request }) => request).sort((a, b) => a - b);
    assert.deepEqual(answered, [...model.polls.keys()], 'each poll is answered once');
    for (const [window, handler] of model.windows) model.of(handler).evict(window);
    assert.equal(model.count.tasks, 0);
  });
});
