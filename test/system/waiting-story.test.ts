/**
 * A story over two weeks that takes minutes: orders wait for people, events and their carriers, go over to
 * another version, to another server and back. It is told twice, by servers that stay alive and by servers
 * that are killed after every step, and has to end in the same way.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Approval, ApprovalPage } from '../../schema/approval.js';
import type { InstancesMigrated } from '../../schema/continuity.js';
import type { EventReceipt } from '../../schema/event.js';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import type { Release, ValidationReport } from '../../schema/release.js';
import type { WorkerTask } from '../../schema/worker.js';
import { eventually, type Json, newHandler, step, type Tenant, tryCatch } from '../helpers/api.js';
import { accepted, type Bundle, imported } from '../helpers/capsules.js';
import { expectStatus, NoReplyError, UnexpectedStatusError } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { shadowClock } from '../helpers/database-clock.js';
import { askRollback, rollBack } from '../helpers/migrations.js';
import { keyOn, move } from '../helpers/routed.js';
import {
  announce,
  claiming,
  type Pair,
  type Place,
  send,
  startPair,
} from '../helpers/two-engines.js';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const PERCENT = 50;
/** For how long a runtime says that it is there. */
const LIVE_MS = 240_000;
/** Between the tries of a worker whose server is away. */
const AWAY_MS = 25;
/** Carriers are on their way for long, and say nothing meanwhile. */
const ENV = { ENGINE_WORKER_REAPER_STALE_SECS: '86400' };

let pair: Pair;
const databases: TestDatabase[] = [];
const admins: pg.Client[] = [];
const clocks: ((aheadMs: number) => Promise<void>)[] = [];
/** How far the time of the servers is ahead of this machine's. */
let aheadMs = 0;

before(async () => {
  const [a, b] = [await database(), await database()];
  pair = await startPair({ a, b }, ENV);
});
after(async () => {
  await pair?.stop();
  for (const admin of admins) await admin.end();
  for (const each of databases) await each.drop();
});

/** With a clock of its own. */
async function database(): Promise<TestDatabase> {
  const made = await createTestDatabase();
  databases.push(made);
  const admin = new pg.Client({ connectionString: made.connectionString });
  await admin.connect();
  admins.push(admin);
  clocks.push(await shadowClock(admin));
  return made;
}

/** On both servers, which follow their databases within a second. */
async function letPass(ms: number): Promise<void> {
  aheadMs += ms;
  const engines = [pair.a.api.engine, pair.b.api.engine];
  const jumps = () =>
    engines.map((engine) => {
      const told = engine.logs().filter(({ msg }) => msg === 'the clock of the database was set');
      return told.length;
    });
  const before = jumps();
  for (const set of clocks) await set(aheadMs);
  await eventually(() => assert.ok(jumps().every((count, at) => count > before[at]!)));
}

// ---------------------------------------------------------------- the sequences

const WORK = ['reserve', 'pack', 'unpack', 'carry'] as const;
type Work = (typeof WORK)[number];
type Handlers = Readonly<Record<Work, string>>;

const work = (id: Work, handlers: Handlers): Json =>
  step(id, handlers[id], { params: { order: '{{ data.order }}' } });

/** Version 2 thanks at the end. */
function orderBlocks(handlers: Handlers, version: 1 | 2): Json[] {
  const prompt = 'Ship order {{ data.order }}?';
  const input = { order: '{{ data.order }}' };
  const saga: Json = {
    type: 'saga',
    id: 'deliver',
    steps: [
      { id: 'packing', action: work('pack', handlers), compensation: work('unpack', handlers) },
      {
        id: 'carriage',
        action: { type: 'sub_sequence', id: 'carrier', sequence_name: 'carrier', input },
      },
    ],
  };
  return [
    work('reserve', handlers),
    step('approve', 'noop', {
      wait_for_input: { prompt, store_as: 'decision', timeout: WEEK_MS },
    }),
    tryCatch('delivery', [saga], [step('excuse', 'log', { params: { message: 'no carrier' } })]),
    step('paid', 'wait_for_event', { params: { name: 'order.paid', key: '{{ data.order }}' } }),
    ...(version === 2 ? [step('thank', 'log', { params: { message: 'thank you' } })] : []),
  ];
}

/** The rows of an order that has ended, in order. */
function rowsOf(version: 1 | 2, carrier: 'comes' | 'fails'): string[] {
  const delivery =
    carrier === 'comes' ? ['pack', 'carrier'] : ['pack', 'carrier', 'unpack', 'excuse'];
  const end = version === 2 ? ['thank'] : [];
  return ['reserve', 'approve', 'approve', ...delivery, 'paid', ...end];
}

// ---------------------------------------------------------------- the workers

/** Workers of all servers, which note what they do; a carrier may fail an order, or keep it for long. */
class Crew {
  /** How often each piece of work was done, as `order work`. */
  readonly done = new Map<string, number>();
  readonly failing = new Set<string>();
  /** Orders whose carrier is on its way until this resolves. */
  readonly underway = new Map<string, Promise<unknown>>();
  readonly #handlers: Handlers;
  #loops: Promise<void>[] = [];
  #isAtWork = false;

  constructor(handlers: Handlers) {
    this.#handlers = handlers;
  }

  start(...tenants: readonly Tenant[]): void {
    this.#isAtWork = true;
    this.#loops = tenants.flatMap((tenant) => WORK.map((name) => this.#serve(tenant, name)));
  }

  async stop(): Promise<void> {
    this.#isAtWork = false;
    await Promise.all(this.#loops);
  }

  async #serve(tenant: Tenant, name: Work): Promise<void> {
    const atWork: Promise<void>[] = [];
    while (this.#isAtWork) {
      const tasks = await this.#answered(() => tenant.poll(this.#handlers[name], { wait_ms: 200 }));
      // Whoever is on its way for long keeps nobody else from work.
      atWork.push(...tasks.map((task) => this.#perform(tenant, name, task)));
    }
    await Promise.all(atWork);
  }

  async #perform(tenant: Tenant, name: Work, task: WorkerTask): Promise<void> {
    const { order } = task.params as { order: string };
    const what = `${order} ${name}`;
    this.done.set(what, (this.done.get(what) ?? 0) + 1);
    if (name === 'carry') await this.underway.get(order);
    await this.#answered(() =>
      name === 'carry' && this.failing.has(order)
        ? tenant.fail(task, 'the van broke down')
        : tenant.complete(task, { [name]: order }),
    );
  }

  /** Asks until there is an answer: the server may be away, and comes back while there is work. */
  async #answered<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const isAway =
          error instanceof NoReplyError ||
          (error instanceof UnexpectedStatusError && error.status === 503);
        if (!isAway || !this.#isAtWork) throw error;
        await pause(AWAY_MS);
      }
    }
  }
}

// ---------------------------------------------------------------- what can be seen

async function approvals(tenant: Tenant): Promise<Approval[]> {
  return expectStatus(await tenant.get<ApprovalPage>('/approvals?limit=100'), 200).items;
}

const read = async <T>(tenant: Tenant, path: string): Promise<T> =>
  expectStatus(await tenant.get<T>(path), 200);

const childrenOf = (tenant: Tenant, id: string) =>
  read<TaskInstance[]>(tenant, `/instances/${id}/children`);

/** Everything of a tenant that a kill must not change. */
async function seen(tenant: Tenant, handlers: Handlers): Promise<Json> {
  const instances = await read<TaskInstance[]>(tenant, '/instances?limit=100');
  const each = await Promise.all(
    instances.map(async ({ id }) => [await tenant.tree(id), await tenant.outputs(id)]),
  );
  const tasks = await Promise.all(WORK.map((name) => tenant.tasks(handlers[name])));
  const told = tasks.flat().map(({ id, state, claim_epoch }) => ({ id, state, claim_epoch }));
  return { instances, each, approvals: await approvals(tenant), tasks: told };
}

/** Ids, times and hashes are those of one telling. */
const OF_ONE_TELLING: readonly (readonly [RegExp, string])[] = [
  [/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'id'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time'],
  [/[\da-f]{64}/g, 'hash'],
];

function comparable<T>(value: T): T {
  const text = OF_ONE_TELLING.reduce(
    (rest, [pattern, word]) => rest.replace(pattern, word),
    JSON.stringify(value),
  );
  return JSON.parse(text) as T;
}

/** The states that it came to, and beside them everything else that was noted. */
function audited(entries: readonly AuditEntry[]) {
  const isMove = ({ event_type }: AuditEntry) => event_type === 'state_transition';
  const moves = entries.filter(isMove).reverse();
  // A turn that takes too long is gone on with in another one, as running: a matter of the machine.
  const states = moves.map(({ to_state }) => to_state).filter((state) => state !== 'running');
  const changes = states.filter((state, at) => state !== states[at - 1]);
  return { states: changes, others: entries.filter((entry) => !isMove(entry)) };
}

interface Told {
  readonly instance: TaskInstance;
  readonly children: readonly Told[];
  readonly [part: string]: unknown;
}

/** Everything that is told of an instance that has ended, and of its children. */
async function told(tenant: Tenant, id: string): Promise<Told> {
  const children = await childrenOf(tenant, id);
  return {
    instance: await tenant.instance(id),
    outputs: await tenant.outputs(id),
    tree: await read(tenant, `/instances/${id}/tree`),
    audit: audited(await read(tenant, `/instances/${id}/audit`)),
    receipts: await read(tenant, `/instances/${id}/effects`),
    children: await Promise.all(children.map((child) => told(tenant, child.id))),
  };
}

const approvalOf = (tenant: Tenant, instance: string): Promise<string> =>
  eventually(async () => {
    const found = (await approvals(tenant)).find(({ instance_id }) => instance_id === instance);
    assert.ok(found, `nobody is asked about ${instance}`);
    return found.id;
  });

async function approve(tenant: Tenant, instance: string): Promise<void> {
  const path = `/approvals/${await approvalOf(tenant, instance)}`;
  expectStatus(await tenant.post(path, { value: 'yes' }), 200);
}

/** The block at which the instance waits, and has settled. */
const untilAt = (tenant: Tenant, id: string, block: string): Promise<void> =>
  eventually(async () => {
    const [{ state }, tree] = [await tenant.instance(id), await tenant.nodeStates(id)];
    const where = `${id} is ${state}, not at ${block}: ${JSON.stringify(tree)}`;
    assert.ok(tree[block] === 'waiting' && state === 'waiting', where);
  });

const payment = (order: string): Json => ({
  event_name: 'order.paid',
  correlation_key: order,
  producer_event_id: `payment of ${order}`,
  payload: { order },
});

const pay = (tenant: Tenant, order: string) => tenant.post<EventReceipt>('/events', payment(order));

async function payAll(tenant: Tenant, orders: readonly number[]) {
  interface Outcomes {
    readonly outcomes: readonly EventReceipt[];
  }
  const events = orders.map((number) => payment(`o${number}`));
  return expectStatus(await tenant.post<Outcomes>('/events/batch', { events }), 200).outcomes;
}

// ---------------------------------------------------------------- one telling

class Story {
  readonly a: Tenant;
  readonly b: Tenant;
  readonly handlers = Object.fromEntries(WORK.map((each) => [each, newHandler()])) as Handlers;
  readonly crew = new Crew(this.handlers);
  readonly van = new EventEmitter();
  readonly v1 = randomUUID();
  readonly v2 = randomUUID();
  readonly places: Readonly<Record<'a' | 'b', Place>>;
  /** The instances of the orders on the first server, by number. */
  readonly #orders = new Map<number, string>();
  readonly #isKilled: boolean;

  /** @param isKilled both servers, after every step */
  constructor(t: TestContext, isKilled: boolean) {
    this.#isKilled = isKilled;
    const name = `t-${randomUUID()}`;
    this.a = pair.a.api.tenant(name);
    this.b = pair.b.api.tenant(name);
    this.places = {
      a: { tenant: this.a, continuity: continuityOf(this.a), runtime: randomUUID() },
      b: { tenant: this.b, continuity: continuityOf(this.b), runtime: randomUUID() },
    };
    this.crew.start(this.a, this.b);
    this.crew.underway.set('o8', once(this.van, 'arrives'));
    t.after(() => {
      this.van.emit('arrives');
      return this.crew.stop();
    });
  }

  /** What is done in one go; nothing is at work any more when it resolves. */
  async step<T>(act: () => Promise<T>): Promise<T> {
    const result = await act();
    await this.die();
    return result;
  }

  /** A kill changes nothing that can be seen. */
  async die(): Promise<void> {
    if (!this.#isKilled) return;
    const both = () => Promise.all([this.a, this.b].map((on) => seen(on, this.handlers)));
    const before = await both();
    await this.restart();
    assert.deepEqual(await both(), before);
  }

  async restart(): Promise<void> {
    if (!this.#isKilled) return;
    await Promise.all([pair.a.api.restart(), pair.b.api.restart()]);
  }

  async store(id: string, version: number, blocks: readonly Json[], name = 'order') {
    for (const on of [this.a, this.b]) {
      const body = on.definition(blocks, { id, version, name });
      expectStatus(await on.post('/sequences', body), 201);
    }
  }

  id(number: number): string {
    const found = this.#orders.get(number);
    assert.ok(found !== undefined);
    return found;
  }

  get numbers(): number[] {
    return [...this.#orders.keys()];
  }

  /** Somebody is asked about it when this resolves. */
  async order(number: number, more: Json = {}): Promise<TaskInstance> {
    const context = { data: { order: `o${number}` } };
    const id = await this.a.create(this.v1, { context, ...more });
    this.#orders.set(number, id);
    await untilAt(this.a, id, 'approve');
    return this.a.instance(id);
  }

  /** One of a customer whom the release leads there. */
  async routed(number: number, release: string, variant: 'baseline' | 'candidate') {
    const cohort_key = keyOn(release, variant, PERCENT);
    const { sequence_id, metadata } = await this.order(number, { metadata: { cohort_key } });
    assert.equal(sequence_id, variant === 'candidate' ? this.v2 : this.v1);
    assert.deepEqual(metadata.release, { release_id: release, variant });
  }

  async allAt(block: string, numbers: readonly number[]): Promise<void> {
    for (const number of numbers) await untilAt(this.a, this.id(number), block);
  }
}

// ---------------------------------------------------------------- its chapters

/** Eight orders wait for approval, for days. */
async function begin(story: Story): Promise<Approval[]> {
  const { a, handlers } = story;
  await story.step(async () => {
    await story.store(randomUUID(), 1, [work('carry', handlers)], 'carrier');
    await story.store(story.v1, 1, orderBlocks(handlers, 1));
  });
  const questions = await story.step(async () => {
    for (let number = 1; number <= 8; number++) await story.order(number);
    return approvals(a);
  });
  assert.deepEqual(
    questions.map(({ prompt }) => prompt),
    [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `Ship order o${number}?`),
  );
  for (const { waiting_since, deadline } of questions) {
    assert.equal(Date.parse(deadline ?? '') - Date.parse(waiting_since), WEEK_MS);
  }
  await story.step(() => letPass(WEEK_MS - DAY_MS));
  assert.deepEqual(await approvals(a), questions);
  return questions;
}

/** The carrier of the first fails, that of the eighth is on its way, the seventh waits for money. */
async function ship(story: Story): Promise<void> {
  const { a, crew } = story;
  crew.failing.add('o1').add('o9');
  await story.step(async () => {
    await approve(a, story.id(1));
    await untilAt(a, story.id(1), 'paid');
  });
  const [broken] = await childrenOf(a, story.id(1));
  assert.deepEqual([broken?.state, broken?.failure?.message], ['failed', 'the van broke down']);
  await story.step(async () => {
    for (const number of [7, 8]) await approve(a, story.id(number));
    await untilAt(a, story.id(7), 'paid');
    await untilAt(a, story.id(8), 'carrier');
    await eventually(() => assert.equal(crew.done.get('o8 carry'), 1));
  });
  await story.step(async () => {
    assert.equal(expectStatus(await pay(a, 'o1'), 201).matched, 1);
    await a.until(story.id(1), 'completed');
  });
}

/** Version 2 is released to half of the customers. */
async function release(story: Story): Promise<string> {
  const { a, v1, v2, handlers } = story;
  const body = { baseline_sequence_id: v1, candidate_sequence_id: v2 };
  const { id } = await story.step(async () => {
    await story.store(v2, 2, orderBlocks(handlers, 2));
    return expectStatus(await a.post<Release>('/releases', body), 201);
  });
  const { replayed, diverged, divergences } = await story.step(async () =>
    expectStatus(await a.post<ValidationReport>(`/releases/${id}/validate`), 200),
  );
  assert.deepEqual([replayed, diverged], [1, 1]);
  const [{ blocks_added, blocks_removed } = {}] = divergences;
  assert.deepEqual([blocks_added, blocks_removed], [['thank'], []]);
  await story.step(() => move(a, id, 'canary', { percent: PERCENT }));
  await story.step(async () => {
    await story.routed(9, id, 'baseline');
    await story.routed(10, id, 'candidate');
  });
  await story.step(() => story.routed(11, id, 'candidate'));
  return id;
}

/**
 * The newer half of what waits in version 1 goes over, from three kinds of waits; nobody is asked anew.
 * Resolves with the migration of each.
 */
async function migrateHalf(
  story: Story,
  questions: readonly Approval[],
): Promise<ReadonlyMap<string, string>> {
  const { a, v1, v2 } = story;
  const asked = { version: 2, filter: { states: ['waiting'] } };
  const migrate = async (more: Json) => {
    const path = `/sequences/${v1}/migrate-instances`;
    return expectStatus(await a.post<InstancesMigrated>(path, { ...asked, ...more }), 200);
  };
  const dry = await story.step(() => migrate({ dry_run: true }));
  assert.deepEqual([dry.count, dry.automatic, dry.findings], [8, 8, []]);
  const many = await story.step(async () => {
    const half = await migrate({ limit: 4 });
    await untilAt(a, story.id(7), 'paid');
    await untilAt(a, story.id(8), 'carrier');
    return half;
  });
  assert.deepEqual([many.count, many.migrated, many.done], [4, 4, false]);
  const moved = new Map(many.migrations.map((one) => [one.instance_id, String(one.migration_id)]));
  const half = [6, 7, 8, 9];
  assert.deepEqual([...moved.keys()].sort(), half.map((number) => story.id(number)).sort());
  for (const number of story.numbers) {
    const expected = number > 5 ? v2 : v1;
    assert.equal((await a.instance(story.id(number))).sequence_id, expected, `o${number}`);
  }
  const still = new Map((await approvals(a)).map((each) => [each.instance_id, each]));
  for (const number of [2, 3, 4, 5, 6]) {
    const question = questions.find(({ instance_id }) => instance_id === story.id(number));
    const { id, deadline } = still.get(story.id(number)) ?? {};
    assert.deepEqual([id, deadline], [question?.id, question?.deadline]);
  }
  return moved;
}

/** The sixth is handed to another server, approved there, and ends there. Resolves with what it is there. */
async function handOver(story: Story, questions: readonly Approval[]): Promise<string> {
  const { a, b, places } = story;
  const here = story.id(6);
  const sealed = await approvalOf(a, here);
  const sealedAt = Date.now();
  const bundle = await story.step(() => exportTo(story, here));
  const { instance_id: there, import_receipt } = await story.step(() => imported(b, bundle));
  const { ownership_grant } = await story.step(() =>
    accepted(places.a.continuity, bundle.handoff.id, there, { import_receipt }),
  );
  await story.step(async () => expectStatus(await claiming(places.b, ownership_grant), 200));
  await story.step(async () => {
    const resumed = await places.a.continuity.act(bundle.handoff.id, 'resume');
    assert.equal(expectStatus(resumed, 200).state, 'resumed');
    await b.move(there, 'scheduled');
    await untilAt(b, there, 'approve');
  });
  assert.ok((await approvals(a)).every(({ instance_id }) => instance_id !== here));
  assert.ok((await a.post(`/approvals/${sealed}`, { value: 'yes' })).status >= 404);
  const [asked] = await approvals(b);
  const before = questions.find(({ instance_id }) => instance_id === here);
  assert.equal(asked?.prompt, before?.prompt);
  // Limits stand still while an instance is paused: on the way nobody could answer.
  const onTheWayMs = Date.parse(asked?.deadline ?? '') - Date.parse(before?.deadline ?? '');
  assert.ok(onTheWayMs > 0 && onTheWayMs < Date.now() - sealedAt, `${onTheWayMs} ms`);
  await story.step(async () => {
    await approve(b, there);
    await untilAt(b, there, 'paid');
  });
  await story.step(async () => {
    assert.equal(expectStatus(await pay(b, 'o6'), 201).matched, 1);
    await b.until(there, 'completed');
  });
  return there;
}

async function exportTo({ places }: Story, id: string): Promise<Bundle> {
  const at = (ms: number) => new Date(Date.now() + aheadMs + ms).toISOString();
  await announce(places, pair, { observed_at: at(0), expires_at: at(LIVE_MS) });
  await places.a.continuity.enrol(id, places.a.runtime);
  return send(id, places.a, places.b);
}

/** The ninth goes back to version 1, once. */
async function goBack(story: Story, migration: string): Promise<void> {
  const { a, v1 } = story;
  const id = story.id(9);
  await story.step(() => rollBack(a, migration));
  assert.equal((await askRollback(a, migration)).status, 409);
  assert.equal((await a.instance(id)).sequence_id, v1);
  await story.step(async () => {
    await approve(a, id);
    await untilAt(a, id, 'paid');
  });
}

/** Everybody says yes, the van arrives, and the money comes just as the server dies. */
async function endAll(story: Story): Promise<void> {
  const { a, b, crew } = story;
  await story.step(async () => {
    for (const number of [2, 3, 4, 5, 10, 11]) await approve(a, story.id(number));
    await eventually(async () => assert.deepEqual(await approvals(a), []));
    await story.allAt('paid', [2, 3, 4, 5, 10, 11]);
  });
  const last = [2, 3, 4, 5, 7, 8, 9, 10, 11];
  await story.step(async () => {
    story.van.emit('arrives');
    await story.allAt('paid', last);
  });
  await crew.stop();
  assert.ok((await payAll(a, last)).every(({ matched }) => matched === 1));
  await story.restart();
  assert.ok((await payAll(a, last)).every(({ duplicate }) => duplicate));
  crew.start(a, b);
  await story.step(async () => {
    for (const number of last) await a.until(story.id(number), 'completed');
  });
}

/** About the twelfth nobody says anything for a week. */
async function forget(story: Story, released: string): Promise<void> {
  await story.step(() => story.routed(12, released, 'baseline'));
  await story.step(async () => {
    await letPass(WEEK_MS + DAY_MS);
    const { failure } = await story.a.until(story.id(12), 'failed');
    assert.deepEqual([failure?.code, failure?.block_id], ['timeout', 'approve']);
  });
}

// ---------------------------------------------------------------- its end

interface End {
  readonly orders: ReadonlyMap<number, Told>;
  readonly done: readonly [string, number][];
}

/** From the first order to what is left of each, which is checked by itself. */
async function tell(t: TestContext, isKilled: boolean): Promise<End> {
  const story = new Story(t, isKilled);
  const { a, b, crew } = story;
  const questions = await begin(story);
  await ship(story);
  const released = await release(story);
  const moved = await migrateHalf(story, questions);
  const there = await handOver(story, questions);
  await goBack(story, moved.get(story.id(9)) ?? '');
  await endAll(story);
  await forget(story, released);
  const orders = new Map<number, Told>();
  const expected = new Map<string, number>();
  for (const number of story.numbers) {
    const [on, id] = number === 6 ? [b, there] : [a, story.id(number)];
    for (const what of await checkEnd(story, number, on, id)) {
      expected.set(`o${number} ${what}`, 1);
    }
    orders.set(number, comparable(await told(on, id)));
  }
  const done = [...crew.done].sort();
  assert.deepEqual(done, [...expected].sort());
  for (const on of [a, b]) assert.deepEqual(await approvals(on), []);
  assert.equal((await a.instance(story.id(6))).state, 'paused');
  return { orders, done };
}

/** Every order once, every row once. Resolves with the work that it took. */
async function checkEnd(story: Story, number: number, on: Tenant, id: string): Promise<Work[]> {
  const { v1, v2, crew } = story;
  const version = [6, 7, 8, 10, 11].includes(number) ? 2 : 1;
  const { sequence_id, context } = await on.instance(id);
  assert.deepEqual([number, sequence_id], [number, version === 1 ? v1 : v2]);
  if (number === 12) return ['reserve'];
  const carriage = crew.failing.has(`o${number}`) ? 'fails' : 'comes';
  assert.equal(context.data.decision, 'yes');
  assert.deepEqual([number, await on.rowsOf(id)], [number, rowsOf(version, carriage)]);
  assert.deepEqual((await on.outputsOf(id)).paid, { order: `o${number}` });
  assert.equal((await childrenOf(on, id)).length, 1);
  return carriage === 'fails'
    ? ['reserve', 'pack', 'carry', 'unpack']
    : ['reserve', 'pack', 'carry'];
}

test('orders wait for people, events and carriers for days, go over to a version, a server and back, and each ends once; kills between the steps change nothing', async (t) => {
  const ends: End[] = [];
  for (const isKilled of [false, true]) {
    const title = isKilled ? 'both servers are killed after every step' : 'no server dies';
    await t.test(title, async (telling) => void ends.push(await tell(telling, isKilled)));
  }
  assert.equal(ends.length, 2);
  const [alive, killed] = ends;
  for (const [number, end] of alive?.orders ?? []) {
    for (const [part, expected] of Object.entries(end)) {
      assert.deepEqual(killed?.orders.get(number)?.[part], expected, `${part} of o${number}`);
    }
  }
  assert.deepEqual(killed?.done, alive?.done);
});
