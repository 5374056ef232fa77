/**
 * A story over weeks that takes minutes: orders wait for people, events and their carriers, go over to
 * another version, to another server and back, and the server is killed between the chapters.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Approval, ApprovalPage } from '../../schema/approval.js';
import type { InstancesMigrated } from '../../schema/continuity.js';
import type { EventReceipt } from '../../schema/event.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Release, ValidationReport } from '../../schema/release.js';
import type { WorkerTask } from '../../schema/worker.js';
import {
  type Api,
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  tryCatch,
} from '../helpers/api.js';
import { expectStatus, NoReplyError, UnexpectedStatusError } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { askRollback, rollBack } from '../helpers/migrations.js';
import { keyOn, move } from '../helpers/routed.js';
import { announce, land, type Pair, type Place, send, startPair } from '../helpers/two-engines.js';

const WEEK_MS = 7 * 86_400_000;
const PERCENT = 50;
/** Between the tries of a worker whose server is away. */
const AWAY_MS = 25;

let pair: Pair;

before(async () => {
  pair = await startPair();
});
after(() => pair.stop());

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
    while (this.#isAtWork) {
      const tasks = await answered(() => tenant.poll(this.#handlers[name], { wait_ms: 200 }));
      await Promise.all(tasks.map((task) => this.#perform(tenant, name, task)));
    }
  }

  async #perform(tenant: Tenant, name: Work, task: WorkerTask): Promise<void> {
    const { order } = task.params as { order: string };
    const what = `${order} ${name}`;
    this.done.set(what, (this.done.get(what) ?? 0) + 1);
    if (name === 'carry') await this.underway.get(order);
    await answered(() =>
      name === 'carry' && this.failing.has(order)
        ? tenant.fail(task, 'the van broke down')
        : tenant.complete(task, { [name]: order }),
    );
  }
}

/** Asks until there is an answer: the server may be away. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isAway =
        error instanceof NoReplyError ||
        (error instanceof UnexpectedStatusError && error.status === 503);
      if (!isAway) throw error;
      await pause(AWAY_MS);
    }
  }
}

// ---------------------------------------------------------------- what can be seen

async function approvals(tenant: Tenant): Promise<Approval[]> {
  return expectStatus(await tenant.get<ApprovalPage>('/approvals?limit=100'), 200).items;
}

async function children(tenant: Tenant, id: string): Promise<TaskInstance[]> {
  return expectStatus(await tenant.get<TaskInstance[]>(`/instances/${id}/children`), 200);
}

/** Everything of a tenant that a kill must not change. */
async function seen(tenant: Tenant, handlers: Handlers): Promise<Json> {
  const instances = expectStatus(await tenant.get<TaskInstance[]>('/instances?limit=100'), 200);
  const each = await Promise.all(
    instances.map(async ({ id }) => ({
      instance: await tenant.instance(id),
      tree: await tenant.nodeStates(id),
      outputs: await tenant.outputs(id),
      children: (await children(tenant, id)).map((child) => [child.id, child.state]),
    })),
  );
  const tasks = await Promise.all(WORK.map((name) => tenant.tasks(handlers[name])));
  const told = tasks.flat().map(({ id, state, claim_epoch }) => ({ id, state, claim_epoch }));
  return { each, approvals: await approvals(tenant), tasks: told };
}

async function kill(api: Api, tenant: Tenant, handlers: Handlers): Promise<void> {
  const before = await seen(tenant, handlers);
  await api.restart();
  assert.deepEqual(await seen(tenant, handlers), before);
}

async function approve(tenant: Tenant, instance: string): Promise<void> {
  const path = `/approvals/${await approvalOf(tenant, instance)}`;
  expectStatus(await tenant.post(path, { value: 'yes' }), 200);
}

const approvalOf = (tenant: Tenant, instance: string): Promise<string> =>
  eventually(async () => {
    const found = (await approvals(tenant)).find(({ instance_id }) => instance_id === instance);
    assert.ok(found, `nobody is asked about ${instance}`);
    return found.id;
  });

/** The block at which the instance waits, and has settled. */
const untilAt = (tenant: Tenant, id: string, block: string): Promise<void> =>
  eventually(async () => {
    const states = await tenant.nodeStates(id);
    assert.deepEqual([states[block], (await tenant.instance(id)).state], ['waiting', 'waiting']);
  });

const payment = (order: string): Json => ({
  event_name: 'order.paid',
  correlation_key: order,
  producer_event_id: `payment of ${order}`,
  payload: { order },
});

const pay = (tenant: Tenant, order: string) => tenant.post<EventReceipt>('/events', payment(order));

// ---------------------------------------------------------------- the story

test('orders that wait for people, events and carriers go over to a version, a server and back through kills, and each ends once', async (t) => {
  const name = `t-${randomUUID()}`;
  const [a, b] = [pair.a.api.tenant(name), pair.b.api.tenant(name)];
  const handlers = Object.fromEntries(WORK.map((each) => [each, newHandler()])) as Handlers;
  const crew = new Crew(handlers);
  crew.start(a, b);
  const van = new EventEmitter();
  crew.underway.set('o8', once(van, 'arrives'));
  t.after(() => {
    van.emit('arrives');
    return crew.stop();
  });
  const killA = () => kill(pair.a.api, a, handlers);

  const [v1, v2, carrier] = [randomUUID(), randomUUID(), randomUUID()];
  const store = async (on: Tenant, id: string, version: 1 | 2) => {
    const body = on.definition(orderBlocks(handlers, version), { id, version, name: 'order' });
    expectStatus(await on.post('/sequences', body), 201);
  };
  for (const on of [a, b]) {
    const body = on.definition([work('carry', handlers)], { id: carrier, name: 'carrier' });
    expectStatus(await on.post('/sequences', body), 201);
    await store(on, v1, 1);
  }
  const orders = new Map<string, string>();
  const order = async (number: number, more: Json = {}): Promise<string> => {
    const context = { data: { order: `o${number}` } };
    const id = await a.create(v1, { context, ...more });
    orders.set(`o${number}`, id);
    await untilAt(a, id, 'approve');
    return id;
  };
  const idOf = (number: number) => orders.get(`o${number}`) as string;

  // Chapter 1: eight orders, and somebody is asked about each.
  for (let number = 1; number <= 8; number++) await order(number);
  const questions = await approvals(a);
  assert.deepEqual(
    questions.map(({ prompt }) => prompt),
    [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `Ship order o${number}?`),
  );
  for (const { waiting_since, deadline } of questions) {
    assert.equal(Date.parse(deadline ?? '') - Date.parse(waiting_since), WEEK_MS);
  }
  await killA();

  // Chapter 2: the carrier of the first fails, that of the eighth is on its way, the seventh waits for money.
  crew.failing.add('o1').add('o9');
  for (const number of [1, 7, 8]) await approve(a, idOf(number));
  await untilAt(a, idOf(1), 'paid');
  await untilAt(a, idOf(7), 'paid');
  await untilAt(a, idOf(8), 'carrier');
  await eventually(() => assert.equal(crew.done.get('o8 carry'), 1));
  const [broken] = await children(a, idOf(1));
  assert.deepEqual([broken?.state, broken?.failure?.message], ['failed', 'the van broke down']);
  await killA();
  assert.equal(expectStatus(await pay(a, 'o1'), 201).matched, 1);
  await a.until(idOf(1), 'completed');
  await killA();

  // Chapter 3: version 2 is released to half of the customers.
  for (const on of [a, b]) await store(on, v2, 2);
  const release = expectStatus(
    await a.post<Release>('/releases', { baseline_sequence_id: v1, candidate_sequence_id: v2 }),
    201,
  );
  const report = expectStatus(
    await a.post<ValidationReport>(`/releases/${release.id}/validate`),
    200,
  );
  const { replayed, diverged, divergences } = report;
  assert.deepEqual([replayed, diverged], [1, 1]);
  const [{ blocks_added, blocks_removed } = {}] = divergences;
  assert.deepEqual([blocks_added, blocks_removed], [['thank'], []]);
  await move(a, release.id, 'canary', { percent: PERCENT });
  const routed = async (number: number, variant: 'baseline' | 'candidate') => {
    const cohort_key = keyOn(release.id, variant, PERCENT);
    const id = await order(number, { metadata: { cohort_key } });
    const { sequence_id, metadata } = await a.instance(id);
    assert.equal(sequence_id, variant === 'candidate' ? v2 : v1);
    assert.deepEqual(metadata.release, { release_id: release.id, variant });
  };
  await routed(9, 'baseline');
  await routed(10, 'candidate');
  await killA();
  await routed(11, 'candidate');

  // Chapter 4: the newer half of what waits in version 1 goes over, from three kinds of waits.
  const versions = async () => {
    const found: Json = {};
    for (const [each, id] of orders) found[each] = (await a.instance(id)).sequence_id;
    return found;
  };
  const all = { version: 2, filter: { states: ['waiting'] } };
  const path = `/sequences/${v1}/migrate-instances`;
  const dry = expectStatus(await a.post<InstancesMigrated>(path, { ...all, dry_run: true }), 200);
  assert.deepEqual([dry.count, dry.automatic, dry.findings], [8, 8, []]);
  const many = expectStatus(await a.post<InstancesMigrated>(path, { ...all, limit: 4 }), 200);
  assert.deepEqual([many.count, many.migrated, many.done], [4, 4, false]);
  const moved = new Map(many.migrations.map((one) => [one.instance_id, one.migration_id]));
  assert.deepEqual([...moved.keys()].sort(), [6, 7, 8, 9].map(idOf).sort());
  const inFirst = ['o1', 'o2', 'o3', 'o4', 'o5'];
  const here = await versions();
  for (const each of orders.keys()) assert.equal(here[each], inFirst.includes(each) ? v1 : v2);
  await untilAt(a, idOf(7), 'paid');
  await untilAt(a, idOf(8), 'carrier');
  await killA();
  const still = new Map((await approvals(a)).map((each) => [each.instance_id, each]));
  for (const number of [2, 3, 4, 5, 6]) {
    const question = questions.find(({ instance_id }) => instance_id === idOf(number));
    const { id, deadline } = still.get(idOf(number)) ?? {};
    assert.deepEqual([id, deadline], [question?.id, question?.deadline]);
  }

  // Chapter 5: the sixth is handed to another server, approved there, and ends there.
  const places: Record<'a' | 'b', Place> = {
    a: { tenant: a, continuity: continuityOf(a), runtime: randomUUID() },
    b: { tenant: b, continuity: continuityOf(b), runtime: randomUUID() },
  };
  await announce({ ...places, id: idOf(6), handler: '', posted: () => [] }, pair);
  await places.a.continuity.enrol(idOf(6), places.a.runtime);
  const sealed = await approvalOf(a, idOf(6));
  const sealedAt = Date.now();
  const bundle = await send(idOf(6), places.a, places.b);
  await killA();
  const { instance: there } = await land(bundle, places.a, places.b);
  await kill(pair.b.api, b, handlers);
  await killA();
  if ((await b.instance(there)).state === 'paused') await b.move(there, 'scheduled');
  await untilAt(b, there, 'approve');
  assert.ok((await approvals(a)).every(({ instance_id }) => instance_id !== idOf(6)));
  assert.ok((await a.post(`/approvals/${sealed}`, { value: 'yes' })).status >= 404);
  const [asked] = await approvals(b);
  const before = questions.find(({ instance_id }) => instance_id === idOf(6));
  assert.equal(asked?.prompt, before?.prompt);
  // Limits stand still while an instance is paused: on the way nobody could answer.
  const onTheWayMs = Date.parse(asked?.deadline ?? '') - Date.parse(before?.deadline ?? '');
  assert.ok(onTheWayMs > 0 && onTheWayMs < Date.now() - sealedAt, `${onTheWayMs} ms`);
  await kill(pair.b.api, b, handlers);
  await approve(b, there);
  await untilAt(b, there, 'paid');
  await kill(pair.b.api, b, handlers);
  assert.equal(expectStatus(await pay(b, 'o6'), 201).matched, 1);
  await b.until(there, 'completed');

  // Chapter 6: the ninth goes back to version 1, and ends there.
  const back = String(moved.get(idOf(9)));
  await rollBack(a, back);
  await killA();
  assert.equal((await askRollback(a, back)).status, 409);
  assert.equal((await a.instance(idOf(9))).sequence_id, v1);
  await approve(a, idOf(9));
  await untilAt(a, idOf(9), 'paid');

  // Chapter 7: everybody says yes, the van arrives, and the money comes just as the server dies.
  for (const number of [2, 3, 4, 5, 10, 11]) await approve(a, idOf(number));
  await eventually(async () => assert.deepEqual(await approvals(a), []));
  for (const number of [2, 3, 4, 5, 10, 11]) await untilAt(a, idOf(number), 'paid');
  await killA();
  van.emit('arrives');
  const last = [2, 3, 4, 5, 7, 8, 9, 10, 11];
  for (const number of last) await untilAt(a, idOf(number), 'paid');
  await crew.stop();
  const events = last.map((number) => payment(`o${number}`));
  interface Outcomes {
    readonly outcomes: readonly EventReceipt[];
  }
  const sent = expectStatus(await a.post<Outcomes>('/events/batch', { events }), 200);
  assert.ok(sent.outcomes.every(({ matched }) => matched === 1));
  await pair.a.api.restart();
  const again = expectStatus(await a.post<Outcomes>('/events/batch', { events }), 200);
  assert.ok(again.outcomes.every(({ duplicate }) => duplicate));
  crew.start(a, b);
  for (const number of last) await a.until(idOf(number), 'completed');

  // The end: every order once, every piece of work once, every row once.
  await killA();
  const expected = new Map<string, number>();
  for (const [each, id] of orders) {
    const isBack = each === 'o9';
    const version = isBack || inFirst.includes(each) ? 1 : 2;
    const carriage = crew.failing.has(each) ? 'fails' : 'comes';
    const [on, instance] = each === 'o6' ? [b, there] : [a, id];
    const { sequence_id, context } = await on.instance(instance);
    assert.deepEqual([each, sequence_id], [each, version === 1 ? v1 : v2]);
    assert.equal(context.data.decision, 'yes');
    assert.deepEqual([each, await on.rowsOf(instance)], [each, rowsOf(version, carriage)]);
    assert.deepEqual((await on.outputsOf(instance)).paid, { order: each });
    assert.equal((await children(on, instance)).length, 1);
    const works: Work[] = ['reserve', 'pack', 'carry'];
    if (carriage === 'fails') works.push('unpack');
    for (const what of works) expected.set(`${each} ${what}`, 1);
  }
  assert.deepEqual([...crew.done].sort(), [...expected].sort());
  for (const on of [a, b]) assert.deepEqual(await approvals(on), []);
  assert.equal((await a.instance(idOf(6))).state, 'paused');
});
