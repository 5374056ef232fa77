/**
 * An instance under orders of its execution's replyTo, and behind a fence: the actor alone, in virtual
 * time, without a database.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plans } from '../../actors/catalog/plans.js';
import type { Sources } from '../../actors/instance/action.js';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import type { InstanceMessage } from '../../actors/instance/messages.js';
import type { Expectations, Order, OrderedChange } from '../../actors/instance/orders.js';
import { carryOut, fenced } from '../../actors/instance/ownership.js';
import { type CreationBody, newRecord } from '../../actors/instance/record.js';
import type { Rows } from '../../actors/runtime/loader.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import type { StepRecord } from '../../src/core/execution.js';
import { routeOf } from '../../src/core/ids.js';
import type { JsonObject } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import { isoTime } from '../../src/core/time.js';
import { MUTATION_KINDS, type MutationKind } from '../../src/db/mutations.js';
import { EngineError } from '../../src/errors.js';
import { idsOf, instanceEnv, newInstance } from '../helpers/instances.js';
import { http, loop, noop, planOf, work } from '../helpers/player.js';
import { column } from '../helpers/rows.js';
import { created, told } from '../helpers/turns.js';
import { readRow } from '../helpers/unit-rows.js';

const START = 1_700_000_000_000;
const TENANT = 't';
const SOURCE = 'source';
const TARGET = 'target';

let now = START;
const ENV = instanceEnv({ now: () => now, stamp: () => now, ids: idsOf(() => now) });

const KEYED = { concurrency_key: 'k', max_concurrency: 1 };

/** As far as it goes without the outside world. */
function begin(blocks: Block[], more: Partial<CreationBody> = {}): LiveInstance {
  const instance = newInstance(ENV.ids.next(1), {
    sequence_id: SOURCE,
    tenant_id: TENANT,
    ...more,
  });
  const actor = liveInstance(newRecord(instance, now), planOf(blocks), ENV);
  created(actor);
  return actor;
}

function stateOf(actor: LiveInstance): string {
  return actor.record.snapshot.state;
}

interface World {
  readonly plans: Readonly<Record<string, Plan>>;
  readonly ended?: readonly string[];
  readonly checkpoint?: string;
}

function sourcesOf({ plans, ended = [], checkpoint }: World): Sources {
  return {
    rows: {
      newestCheckpoint: async () => checkpoint,
      outputs: async () => new Map(),
      endedBlocks: async () => new Set(ended),
    } as unknown as Rows,
    plans: {
      deletions: 0,
      seek: async (id: string) => plans[id] && { id, tenantId: TENANT, plan: plans[id] },
      compile: async (id: string) => plans[id] && { ok: true, plan: plans[id] },
      checkUsable: () => undefined,
    } as unknown as Plans,
    createBeside: () => assert.fail('nothing is created'),
  };
}

const NO_PLANS: World = { plans: {} };

/** Carries an order out as `Instances` does it; rejects when the instance refuses. */
async function command(
  actor: LiveInstance,
  changes: readonly OrderedChange[],
  expect: Expectations = {},
  world: World = NO_PLANS,
): Promise<Turn> {
  const mutations = [MUTATION_KINDS.indexOf('handoff.set'), 'h', '{"id":"h"}'];
  const order: Order = { ticket: 1, replyTo: 0, tenant: TENANT, expect, changes, mutations };
  const message = { kind: 'order', request: -1, tenant: TENANT, order } as const;
  return told(actor, message, await carryOut(actor, sourcesOf(world), message));
}

function kindsOf(turn: Turn): MutationKind[] {
  return turn.mutations.flatMap((at) =>
    typeof at === 'number' ? [MUTATION_KINDS[at] as MutationKind] : [],
  );
}

/** The row of that kind which the turn writes last. */
function rowOf(turn: Turn, kind: MutationKind): JsonObject {
  const at = turn.mutations.lastIndexOf(MUTATION_KINDS.indexOf(kind));
  assert.ok(at >= 0, `no ${kind} in ${kindsOf(turn).join(', ')}`);
  return readRow(kind, String(turn.mutations[at + 2]));
}

function peersOf({ effects }: Turn): PeerMessage[] {
  return effects.flatMap((effect) => (effect.kind === 'peer' ? [effect.message] : []));
}

const fence = (ms: number | null, reason: 'transferring' | 'moved' = 'transferring') =>
  ({
    kind: 'fence',
    fence: { reason, until: ms === null ? null : isoTime(START + ms) },
  }) as const satisfies OrderedChange;

const OWN = { kind: 'own', epoch: 0 } as const;

async function fencedActor(blocks: Block[], until: number | null = null): Promise<LiveInstance> {
  const actor = begin(blocks);
  await command(actor, [fence(until)]);
  return actor;
}

const refusal = (status: number) => (error: unknown) =>
  error instanceof EngineError && error.status === status;

const CALL = { request: 1, tenant: TENANT, target: '', traceparent: undefined };

// ---------------------------------------------------------------- fences

test('a fence keeps out everything but reads, its replyTo, its timer and grants', async () => {
  const actor = await fencedActor([work('a')]);
  const step = { node: 0, iteration: '', attempt: 0 };
  const kept = [
    { kind: 'patchState', ...CALL },
    { kind: 'patchContext', ...CALL },
    { kind: 'signal', ...CALL },
    { kind: 'retry', ...CALL },
    { kind: 'resumeFrom', ...CALL },
    { kind: 'injectBlocks', ...CALL },
    { kind: 'fork', ...CALL },
    { kind: 'migrate', ...CALL },
    { kind: 'saveCheckpoint', ...CALL },
    { kind: 'pruneCheckpoints', ...CALL },
    { kind: 'change', group: 1, change: { kind: 'state', state: 'paused' } },
    { kind: 'task.complete', ...CALL, task: 'x' },
    { kind: 'task.fail', ...CALL, task: 'x' },
    { kind: 'task.heartbeat', ...CALL, task: 'x' },
    { kind: 'claim', task: 'x' },
    { kind: 'unclaim', task: 'x', epoch: 1 },
    { kind: 'reap', task: 'x' },
    { kind: 'step.outcome', step, outcome: { kind: 'success', output: {} } },
    { kind: 'unit.refused', step, code: 'data_refused', reason: 'no' },
    { kind: 'rate.deferred', step, until: 1 },
    { kind: 'rate.changed', step },
  ] as unknown as InstanceMessage[];
  for (const message of kept) assert.equal(fenced(actor, message)?.status, 409, message.kind);
  const passing = [
    { kind: 'get', ...CALL },
    { kind: 'tree', ...CALL },
    { kind: 'look', ...CALL, version: 1 },
    { kind: 'order', ...CALL },
    { kind: 'wake', recovered: false },
    { kind: 'permit.granted', number: 1 },
    { kind: 'rate.granted', step, grant: 1, usableUntil: 0 },
  ] as unknown as InstanceMessage[];
  for (const message of passing) assert.equal(fenced(actor, message), undefined, message.kind);
});

test('another tenant is not told that there is a fence', async () => {
  const actor = await fencedActor([work('a')]);
  const message = { kind: 'retry', ...CALL, tenant: 'another', body: {} } as const;
  assert.equal(fenced(actor, message), undefined);
  const [effect] = told(actor, message).effects;
  assert.ok(effect?.kind === 'error' && effect.error.status === 404);
});

test('a fenced instance runs nothing that comes due, and asks its execution when the fence may be over', async () => {
  now = START;
  const actor = await fencedActor([work('a', { queue_timeout: 10 })], 1_000);
  assert.equal(actor.timer?.fireAt ?? null, START + 1_000);
  now = START + 999;
  const early = told(actor, { kind: 'wake', recovered: false });
  assert.deepEqual([early.mutations, early.effects], [[], []]);
  now = START + 1_000;
  const asked = told(actor, { kind: 'wake', recovered: true });
  const { id } = actor.record;
  assert.deepEqual(peersOf(asked), [{ kind: 'continuity.ask', execution: id, instance: id }]);
  assert.equal(stateOf(actor), 'waiting');
  assert.equal(actor.timer?.fireAt ?? null, START + 6_000, 'it asks again');
});

test('a fence without an end has no timer', async () => {
  const actor = begin([work('a', { queue_timeout: 10 })]);
  assert.notEqual(actor.timer?.fireAt ?? null, null);
  const turn = await command(actor, [fence(null)]);
  assert.ok(kindsOf(turn).includes('timer.clear'));
  assert.equal(actor.timer?.fireAt ?? null, null);
});

test('no fence is put around a step that is inside of a handler', async () => {
  const actor = begin([http('a')]);
  await assert.rejects(command(actor, [fence(null)]), refusal(409));
  assert.equal(actor.record.fence, null);
});

test('an instance that has gone for good gives its slot back', async () => {
  const actor = begin([work('a')], KEYED);
  told(actor, { kind: 'permit.granted', number: 1 });
  assert.equal(stateOf(actor), 'waiting');
  const turn = await command(actor, [fence(null, 'moved')]);
  // It is paused for good, and its task is no longer offered.
  assert.deepEqual(column(peersOf(turn), 'kind'), ['permit.left', 'task.gone']);
  assert.equal(stateOf(actor), 'paused');
  assert.equal(actor.timer?.fireAt ?? null, null);
});

test('what the fence kept back is due again once the instance is owned', async () => {
  now = START;
  const actor = begin([work('a', { queue_timeout: 5_000 })]);
  await command(actor, [fence(1_000)]);
  const turn = await command(actor, [{ kind: 'own', epoch: 3 }], { fence: 'transferring' });
  // Nobody had claimed it: it was taken back behind the fence.
  const task = [...actor.tasks.keys()].at(-1);
  assert.equal(actor.tasks.size, 2);
  const seen = peersOf(turn).map((message) => [message.kind, 'task' in message && message.task]);
  assert.deepEqual(seen, [['task.ready', task]]);
  assert.equal(actor.record.fence, null);
  assert.deepEqual(rowOf(turn, 'instance.ownership'), {
    id: actor.record.id,
    continuity_id: null,
    ownership_epoch: 3,
    fence: null,
  });
  assert.equal(actor.timer?.fireAt ?? null, START + 5_000);
});

test('the heartbeats of a claimed task are watched again once the instance is owned', async () => {
  const actor = begin([work('a')]);
  const [task = ''] = actor.tasks.keys();
  const poll = { handler: 'h', poll: 1, worker: 'w', queueShard: 0 };
  told(actor, { kind: 'claim', task, ...poll } as InstanceMessage);
  await command(actor, [fence(1_000)]);
  const { effects } = await command(actor, [OWN]);
  const seen = effects.flatMap((effect) => (effect.kind === 'reap' ? [effect.task] : []));
  assert.deepEqual(seen, [task]);
});

test('a step that a crash left inside of a handler begins again once the instance is owned', async () => {
  const actor = begin([http('a')]);
  actor.running.clear();
  await command(actor, [fence(1_000)]);
  const { effects } = await command(actor, [OWN]);
  assert.equal(effects.filter(({ kind }) => kind === 'perform').length, 1);
});

// ---------------------------------------------------------------- orders

test('an order commits its changes and those of its execution in one unit, and is answered by it', async () => {
  const actor = begin([work('a')]);
  const { id } = actor.record;
  const enrol = { kind: 'enrol', continuityId: id, epoch: 2 } as const;
  const capture = { kind: 'capture', checkpointId: ENV.ids.next(routeOf(id)) } as const;
  const turn = await command(actor, [enrol, capture, fence(1_000)]);
  const kinds = kindsOf(turn);
  for (const kind of [
    'instance.ownership',
    'checkpoint.insert',
    'handoff.set',
    'timer.set',
  ] as const) {
    assert.ok(kinds.includes(kind), kind);
  }
  assert.deepEqual(rowOf(turn, 'instance.ownership'), {
    id,
    continuity_id: id,
    ownership_epoch: 2,
    fence: { reason: 'transferring', until: isoTime(START + 1_000) },
  });
  const [reply] = turn.effects.filter(({ kind }) => kind === 'reply');
  assert.ok(reply?.kind === 'reply' && reply.request === -1);
  assert.deepEqual(JSON.parse(reply.body), {
    state: 'waiting',
    sequenceId: SOURCE,
    currentStep: 'a',
    nextFireAt: null,
  });
});

test('an order is refused when the instance is not what was decided on', async () => {
  const actor = begin([work('a')]);
  const stale: Expectations[] = [
    { states: ['paused'] },
    { sequenceId: TARGET },
    { epoch: 1 },
    { fence: 'transferring' },
    { placeSha256: 'another' },
    { checkpointId: 'an older one' },
  ];
  const before = JSON.stringify(actor.record);
  for (const expect of stale) {
    await assert.rejects(
      command(actor, [fence(1_000)], expect, { ...NO_PLANS, checkpoint: 'newest' }),
      refusal(409),
      JSON.stringify(expect),
    );
  }
  await assert.rejects(command(begin([http('b')]), [], { isAtRest: true }), refusal(409));
  assert.equal(JSON.stringify(actor.record), before);
  await command(actor, [], { states: ['waiting'], epoch: 0, fence: 'none', isAtRest: true });
});

test('a task that nobody has claimed is taken back behind a fence, and offered again when that is lifted', async () => {
  const actor = begin([work('a')]);
  const [first] = actor.tasks.values();
  await command(actor, [fence(1_000)]);
  assert.deepEqual([first?.state, first?.withdrawn], ['failed', true]);
  assert.equal(stepRecordOf(actor).p, 'ready');
  await command(actor, [{ kind: 'own', epoch: 0 }]);
  const tasks = [...actor.tasks.values()];
  assert.deepEqual(column(tasks, 'state'), ['failed', 'pending']);
  assert.equal(stepRecordOf(actor).p, 'task');
});

test('a resume by order makes a paused instance go on', async () => {
  const actor = begin([work('a')]);
  told(actor, { kind: 'signal', ...CALL, body: { signal_type: 'pause' } });
  const turn = await command(actor, [{ kind: 'resume' }], { states: ['paused'] });
  assert.equal(stateOf(actor), 'scheduled');
  assert.ok(turn.effects.some(({ kind }) => kind === 'continue'));
});

/** Of the one step that is open. */
const stepRecordOf = (actor: LiveInstance) =>
  Object.values(actor.record.snapshot.execution.o)[0] as StepRecord;

// ---------------------------------------------------------------- other versions

const migrate = (data: JsonObject = {}) =>
  ({
    kind: 'migrate',
    sequenceId: TARGET,
    data,
    epoch: 1,
    continuityId: 'execution',
    pauses: true,
  }) as const satisfies OrderedChange;

function parked(blocks: Block[], keyed?: Partial<CreationBody>): LiveInstance {
  const actor = begin(blocks, keyed);
  if (keyed !== undefined) told(actor, { kind: 'permit.granted', number: 1 });
  told(actor, { kind: 'patchState', ...CALL, body: { state: 'waiting' } });
  return actor;
}

test('a migration pauses the instance where it is, in the other version', async () => {
  const actor = parked([noop('a'), work('b')]);
  const plans = { [TARGET]: planOf([noop('a'), noop('new'), work('b'), noop('c')]) };
  const turn = await command(actor, [migrate({ n: 1 })], {}, { plans });
  const seen = [stateOf(actor), actor.record.sequence_id, actor.record.ownership_epoch];
  assert.deepEqual(seen, ['paused', TARGET, 1]);
  assert.deepEqual(actor.record.snapshot.data, { n: 1 });
  assert.ok(kindsOf(turn).includes('instance.rebind'));
  const { d, o } = actor.record.snapshot.execution;
  const names = (of: object) => Object.keys(of).map((at) => actor.plan.nodes[Number(at)]?.id);
  assert.deepEqual([names(o), names(d)], [['b'], ['a', 'new']]);
});

test('where the open block is gone, the other version begins anew behind what is done', async () => {
  const actor = parked([loop('l', 'false', 3, [noop('in')]), noop('a'), { ...noop('gate') }]);
  const { execution } = actor.record.snapshot;
  assert.notEqual(execution.e, undefined, 'it has ended by now');
  const waiting = begin([loop('l', 'false', 3, [noop('in')]), noop('a'), http('b')]);
  waiting.running.clear();
  const target = planOf([loop('l', 'false', 3, [noop('in')]), noop('a'), work('c')]);
  await command(waiting, [migrate()], {}, { plans: { [TARGET]: target }, ended: ['a'] });
  const resumed = await command(waiting, [{ kind: 'resume' }]);
  assert.ok(resumed.effects.some(({ kind }) => kind === 'continue'));
  told(waiting, { kind: 'wake', recovered: false });
  assert.deepEqual(column([...waiting.tasks.values()], 'block_id'), ['c']);
});

test('a worker’s task is not left behind', async () => {
  const actor = begin([work('a')]);
  const plans = { [TARGET]: planOf([noop('b')]) };
  const [task] = actor.tasks.values();
  told(actor, {
    kind: 'claim',
    handler: 'work',
    poll: 1,
    task: task!.id,
    worker: 'w',
    queueShard: 0,
  });
  await assert.rejects(command(actor, [migrate()], {}, { plans }), refusal(409));
  await assert.rejects(command(actor, [migrate()], {}, NO_PLANS), refusal(404));
  assert.equal(actor.record.sequence_id, SOURCE);
});

for (const keyed of [undefined, KEYED]) {
  const what = keyed === undefined ? '' : ', and asks for its slot again';
  test(`a rollback brings a waiting instance back to where it was${what}`, async () => {
    const blocks = [noop('a'), work('b')];
    const actor = parked(blocks, keyed);
    const before = structuredClone(actor.record.snapshot.execution);
    const { n: wish } = before;
    const plans = { [TARGET]: planOf([noop('a'), work('b')]), [SOURCE]: planOf(blocks) };
    await command(actor, [migrate({ n: 1 })], {}, { plans });
    const restore: OrderedChange = {
      kind: 'restore',
      sequenceId: SOURCE,
      context: { data: { old: true }, config: {}, runtime: { current_step: 'b' }, audit: [] },
      execution: structuredClone(before),
      state: 'waiting',
      dropped: [],
      outputs: [],
      items: [],
      itemOutputs: {},
      nextFireAt: null,
      epoch: 2,
    };
    const turn = await command(actor, [restore], {}, { plans });
    const { snapshot, ownership_epoch, sequence_id } = actor.record;
    const seen = [snapshot.state, ownership_epoch, sequence_id, snapshot.data];
    assert.deepEqual(seen, ['waiting', 2, SOURCE, { old: true }]);
    if (keyed === undefined) {
      // What nobody had claimed is offered again, for which it is parked no more.
      const { p: _parked, ...woken } = before;
      assert.deepEqual(snapshot.execution, woken);
      return;
    }
    assert.ok(peersOf(turn).some(({ kind }) => kind === 'permit.wanted'));
    told(actor, { kind: 'permit.granted', number: (wish ?? 0) + 1 });
    assert.equal(stateOf(actor), 'waiting');
    assert.deepEqual(snapshot.execution, { ...before, n: (wish ?? 0) + 1 });
  });
}
