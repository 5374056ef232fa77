/**
 * An instance under orders of its execution's replyTo, and behind a fence: the actor alone, in virtual
 * time, without a database.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plans } from '../../actors/catalog/plans.js';
import type { Sources } from '../../actors/instance/live-instance.js';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import type { InstanceMessage } from '../../actors/instance/messages.js';
import type { Expectations, Order, OrderedChange } from '../../actors/instance/orders.js';
import { carryOut, fenced } from '../../actors/instance/ownership.js';
import { newRecord } from '../../actors/instance/record.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import type { Block } from '../../schema/blocks.js';
import type { StepRecord } from '../../schema/execution.js';
import { routeOf } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { updatedAt } from '../../src/base/unchanged-since.js';
import type { CreationBody } from '../../src/core/creation-key.js';
import type { Plan } from '../../src/core/plan.js';
import { column } from '../helpers/columns.js';
import { idsOf, instanceEnv, newInstance } from '../helpers/instances.js';
import { http, noop, planOf, work } from '../helpers/player.js';
import { MUTATION_KINDS } from '../helpers/store.js';
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
  const actor = liveInstance(newRecord(instance, now, undefined), planOf(blocks), ENV);
  created(actor);
  return actor;
}

const stateOf = (actor: LiveInstance): string => actor.record.snapshot.state;

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
    } as unknown as Loads,
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

function kindsOf(turn: Turn): string[] {
  return turn.mutations.flatMap((at) =>
    typeof at === 'number' ? [MUTATION_KINDS[at] as string] : [],
  );
}

/** The row of that kind which the turn writes last. */
function rowOf(turn: Turn, kind: string): JsonObject {
  const at = turn.mutations.lastIndexOf(MUTATION_KINDS.indexOf(kind));
  assert.ok(at >= 0, `no ${kind} in ${kindsOf(turn).join(', ')}`);
  return readRow(kind, String(turn.mutations[at + 2]));
}

const peersOf = ({ effects }: Turn): PeerMessage[] =>
  effects.flatMap((effect) => (effect.kind === 'peer' ? [effect.message] : []));

const timerOf = (actor: LiveInstance) => actor.timer?.fireAt ?? null;

/** Of the one step that is open. */
const stepRecordOf = (actor: LiveInstance) =>
  Object.values(actor.record.snapshot.execution.o)[0] as StepRecord;

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

const CALL = { request: 1, tenant: TENANT, target: '', traceparent: undefined };
const CLAIM = { kind: 'claim', handler: 'h', poll: 1, worker: 'w', queueShard: 0 } as const;
const WAKE = { kind: 'wake', recovered: false } as const;

// ---------------------------------------------------------------- fences

test('a fence keeps out everything but reads, its replyTo, its timer and grants', async () => {
  const actor = await fencedActor([work('a')]);
  const step = { node: 0, iteration: '', attempt: 0 };
  const asMessages = (kinds: string) =>
    kinds.split(' ').map((kind) => ({ kind, ...CALL, task: 'x', step })) as InstanceMessage[];
  for (const message of asMessages(
    'patchState patchContext signal retry resumeFrom injectBlocks fork migrate saveCheckpoint ' +
      'pruneCheckpoints change task.complete task.fail task.heartbeat claim unclaim reap ' +
      'step.outcome unit.refused rate.deferred rate.changed',
  )) {
    assert.equal(fenced(actor, message)?.status, 409, message.kind);
  }
  for (const message of asMessages('get tree look order wake permit.granted rate.granted')) {
    assert.equal(fenced(actor, message), undefined, message.kind);
  }
  const foreign = { kind: 'retry', ...CALL, tenant: 'another', body: {} } as const;
  assert.equal(fenced(actor, foreign), undefined, 'another tenant is not told of the fence');
  const [effect] = told(actor, foreign).effects;
  assert.ok(effect?.kind === 'error' && effect.error.status === 404);
});

test('a fenced instance runs nothing that comes due, and asks its execution when the fence may be over', async () => {
  now = START;
  const actor = await fencedActor([work('a', { queue_timeout: 10 })], 1_000);
  assert.equal(timerOf(actor), START + 1_000);
  now = START + 999;
  const early = told(actor, WAKE);
  assert.deepEqual([early.mutations, early.effects], [[], []]);
  now = START + 1_000;
  const asked = told(actor, { ...WAKE, recovered: true });
  const { id } = actor.record;
  assert.deepEqual(peersOf(asked), [{ kind: 'continuity.ask', execution: id, instance: id }]);
  assert.equal(stateOf(actor), 'waiting');
  assert.equal(timerOf(actor), START + 6_000, 'it asks again');
});

test('no fence is put around a step that is inside of a handler', async () => {
  const actor = begin([http('a')]);
  await assert.rejects(command(actor, [fence(null)]), { status: 409 });
  assert.equal(actor.record.fence, null);
});

for (const isKept of [false, true]) {
  test(`an instance that has gone for good gives its slot back${isKept ? ', also where it was kept for a worker' : ''}`, async () => {
    const actor = begin([work('a')], KEYED);
    told(actor, { kind: 'permit.granted', number: 1 });
    assert.equal(stateOf(actor), 'waiting');
    if (isKept) {
      const [task = ''] = column(actor.tasks.values(), 'id');
      told(actor, { ...CLAIM, task });
      told(actor, { kind: 'signal', ...CALL, body: { signal_type: 'pause' } });
    }
    const turn = await command(actor, [fence(null, 'moved')]);
    // It is paused for good, and its task is no longer offered.
    const gone = isKept ? [] : ['task.gone'];
    assert.deepEqual(column(peersOf(turn), 'kind'), ['permit.left', ...gone]);
    assert.equal(stateOf(actor), 'paused');
    assert.equal(timerOf(actor), null);
  });
}

test('what the fence kept back is due again once the instance is owned', async () => {
  now = START;
  const actor = begin([work('a', { queue_timeout: 5_000 })]);
  const { id } = actor.record;
  const [first] = actor.tasks.values();
  await command(actor, [fence(1_000)]);
  // Nobody had claimed it: it was taken back behind the fence.
  assert.deepEqual([first?.state, first?.withdrawn], ['failed', true]);
  assert.equal(stepRecordOf(actor).p, 'ready');
  const turn = await command(actor, [{ kind: 'own', epoch: 3 }], { fence: 'transferring' });
  assert.deepEqual(column(actor.tasks.values(), 'state'), ['failed', 'pending']);
  const task = column(actor.tasks.values(), 'id').at(-1);
  const seen = peersOf(turn).map((message) => [message.kind, 'task' in message && message.task]);
  assert.deepEqual(seen, [['task.ready', task]]);
  assert.equal(stepRecordOf(actor).p, 'task');
  const ownership = { id, continuity_id: null, ownership_epoch: 3, fence: null };
  assert.deepEqual(rowOf(turn, 'instance.ownership'), ownership);
  assert.deepEqual([actor.record.fence, timerOf(actor)], [null, START + 5_000]);
});

test('the heartbeats of a claimed task are watched again once the instance is owned', async () => {
  const actor = begin([work('a')]);
  const [task = ''] = column(actor.tasks.values(), 'id');
  told(actor, { ...CLAIM, task });
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
  const kinds = kindsOf(turn).join();
  assert.match(kinds, /instance\.ownership.*checkpoint\.insert|checkpoint\.insert.*ownership/);
  assert.match(kinds, /handoff\.set.*timer\.set|timer\.set.*handoff\.set/);
  assert.deepEqual(rowOf(turn, 'instance.ownership'), {
    id,
    continuity_id: id,
    ownership_epoch: 2,
    fence: { reason: 'transferring', until: isoTime(START + 1_000) },
  });
  const [reply] = turn.effects.filter(({ kind }) => kind === 'reply');
  assert.ok(reply?.kind === 'reply' && reply.request === -1);
  const view = { state: 'waiting', sequenceId: SOURCE, currentStep: 'a', nextFireAt: null };
  assert.deepEqual(JSON.parse(reply.body), view);
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
    const refused = command(actor, [fence(1_000)], expect, { ...NO_PLANS, checkpoint: 'newest' });
    await assert.rejects(refused, { status: 409 }, JSON.stringify(expect));
  }
  await assert.rejects(command(begin([http('b')]), [], { isAtRest: true }), { status: 409 });
  assert.equal(JSON.stringify(actor.record), before);
  await command(actor, [], { states: ['waiting'], epoch: 0, fence: 'none', isAtRest: true });
});

// ---------------------------------------------------------------- other versions

const migrate = (data: JsonObject = {}) =>
  ({
    ...{ kind: 'migrate', sequenceId: TARGET, data, epoch: 1, continuityId: 'execution' },
    pauses: true,
  }) as const satisfies OrderedChange;

function parked(blocks: Block[], keyed: Partial<CreationBody>): LiveInstance {
  const actor = begin(blocks, keyed);
  told(actor, { kind: 'permit.granted', number: 1 });
  told(actor, { kind: 'patchState', ...CALL, body: { state: 'waiting' } });
  return actor;
}

test('a worker’s task is not left behind', async () => {
  const actor = begin([work('a')]);
  const plans = { [TARGET]: planOf([noop('b')]) };
  const [task = ''] = column(actor.tasks.values(), 'id');
  told(actor, { ...CLAIM, task });
  await assert.rejects(command(actor, [migrate()], {}, { plans }), { status: 409 });
  await assert.rejects(command(actor, [migrate()], {}, NO_PLANS), { status: 404 });
  assert.equal(actor.record.sequence_id, SOURCE);
});

test('a rollback brings a waiting instance back to where it was, and asks for its slot again', async () => {
  const blocks = [noop('a'), work('b')];
  const actor = parked(blocks, KEYED);
  const before = structuredClone(actor.record.snapshot.execution);
  const { n: wish } = before;
  const plans = { [TARGET]: planOf([noop('a'), work('b')]), [SOURCE]: planOf(blocks) };
  await command(actor, [migrate({ n: 1 })], {}, { plans });
  const restore: OrderedChange = {
    kind: 'restore',
    sequenceId: SOURCE,
    context: { data: { old: true }, config: {}, runtime: { current_step: 'b' }, audit: [] },
    ...{ execution: structuredClone(before), state: 'waiting', dropped: [], outputs: [] },
    ...{ items: [], itemOutputs: {}, nextFireAt: null, epoch: 2 },
  };
  const turn = await command(actor, [restore], {}, { plans });
  const { snapshot, ownership_epoch, sequence_id } = actor.record;
  const seen = [snapshot.state, ownership_epoch, sequence_id, snapshot.data];
  assert.deepEqual(seen, ['waiting', 2, SOURCE, { old: true }]);
  assert.ok(peersOf(turn).some(({ kind }) => kind === 'permit.wanted'));
  told(actor, { kind: 'permit.granted', number: (wish ?? 0) + 1 });
  assert.equal(stateOf(actor), 'waiting');
  assert.deepEqual(snapshot.execution, { ...before, n: (wish ?? 0) + 1 });
});

test('a change of the context is told to whoever read it within the same millisecond', () => {
  const actor = begin([work('a')]);
  const body = { context: { data: {} }, if_unchanged_since: actor.record.updated_at };
  const turns = [1, 2].map(() => told(actor, { ...CALL, kind: 'patchContext', body }));
  const answers = turns.map(({ effects }) => effects.map(({ kind }) => kind).join());
  assert.deepEqual(answers, ['reply', 'error']);
  // Of everything else, also where the clock was set back.
  const times = [7, 5, 3].map((ms) => updatedAt(ms, isoTime(5)));
  assert.deepEqual(times, [7, 6, 6].map(isoTime));
});
