/** Creations: alone while routes change, and batches, whose one unit is made in several turns. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredSequence } from '../../actors/catalog/plans.js';
import { createBatch } from '../../actors/instance/batch-creation.js';
import { Creations } from '../../actors/instance/creations.js';
import type { LiveInstance } from '../../actors/instance/live-instance.js';
import type { KeyedInstance } from '../../actors/instance/loads.js';
import type { Creation, Repeat } from '../../actors/instance/messages.js';
import type { NewInstance } from '../../actors/instance/record.js';
import { askedOf } from '../../actors/release/attribution.js';
import { RouteTable } from '../../actors/release/core/routes.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import { InternalRequests } from '../../actors/runtime/internal-requests.js';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import type { EngineError } from '../../src/base/errors.js';
import { createIdGenerator, keyedInstanceId } from '../../src/base/ids.js';
import type { Plan } from '../../src/core/plan.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { rowsOf } from '../helpers/hand-shard.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { planOf } from '../helpers/player.js';
import { MUTATION_KINDS } from '../helpers/store.js';
import { readRow } from '../helpers/unit-rows.js';

const TENANT = 'tenant';
const RELEASE = '00000000-0000-4000-8000-000000000001';

let table: RouteTable;
/** Plans that are being read, by sequence. */
let loading: Map<string, (sequence: StoredSequence | undefined) => void>;
/** Plans at hand. */
let plans: Map<string, StoredSequence>;
/** Names that are being read, and those at hand. */
let naming: Map<string, (id: string | undefined) => void>;
let names: Map<string, string>;
/** Instances that were created alone, as `sequence keyed?`. */
let made: string[];
let repeats: Repeat[];
let errors: EngineError[];
let replies: string[];
let stored: Set<string>;
let commits: CommitLog;
let creations: Creations;

beforeEach(() => {
  routeTo(undefined);
  loading = new Map();
  plans = new Map();
  naming = new Map();
  names = new Map();
  made = [];
  repeats = [];
  errors = [];
  replies = [];
  stored = new Set();
  commits = new CommitLog();
  const make = ({ instance, sequence }: Creation) => {
    const stamp = instance.route === undefined ? 'plain' : instance.route.variant;
    made.push(`${sequence.id} ${stamp} ${instance.body.idempotency_key ?? 'unkeyed'}`);
  };
  creations = new Creations({
    shard: 0,
    env: instanceEnv({
      ids: createIdGenerator(
        () => 1,
        () => 7,
      ),
    }),
    clock: { monotonic: () => 0, setTimeout: () => undefined },
    random32: () => 7,
    commits,
    loader: {
      keyedInstance: async (id) => (stored.has(id) ? ({ id } as KeyedInstance) : undefined),
      orphanedInstances: async () => [],
    },
    plans: {
      deletions: 0,
      isBlocked: () => false,
      get: (id) => plans.get(id),
      seek: (id) => {
        if (plans.has(id)) return Promise.resolve(plans.get(id));
        const joined = loading.get(id);
        return new Promise<StoredSequence | undefined>((resolve) => {
          loading.set(id, (found) => {
            joined?.(found);
            resolve(found);
          });
        });
      },
    },
    names: {
      get: ({ name }) => names.get(name),
      load: ({ name }) =>
        names.has(name)
          ? Promise.resolve(names.get(name))
          : new Promise<string | undefined>((resolve) => naming.set(name, resolve)),
    },
    routing: {
      routed: (instance) => {
        const route = table.route(askedOf(instance), TENANT, () => '');
        return route === undefined ? instance : { ...instance, route };
      },
    },
    instances: {
      create: make,
      adopt: () => undefined,
      isResident: () => false,
      send: (_id, message) => void (message.kind === 'repeat' && repeats.push(message)),
    },
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'error') errors.push(effect.error);
        if (effect.kind === 'reply') replies.push(effect.body);
      }
    },
    schedule: (work) => work(),
    internalRequests: new InternalRequests(),
    underKeys: { create: make, maySkip: () => false, createSkipping: async () => '' },
  });
});

const statusesOf = (effects: readonly Effect[] = []) =>
  effects.map((effect) => (effect.kind === 'error' ? effect.error.status : effect.kind));

/** From now on creations of `v1` go there; undefined: no release routes. */
function routeTo(candidate: string | undefined): void {
  const at = '2026-01-01T00:00:00.000Z';
  const row = {
    ...{ id: RELEASE, tenant_id: TENANT, baseline_sequence_id: 'v1', state: 'promoted' as const },
    ...{ canary_percent: 1, created_at: at, updated_at: at, is_deprecated: false },
  };
  table = new RouteTable(
    candidate === undefined ? [] : [{ ...row, candidate_sequence_id: candidate }],
  );
}

function sequence(id: string, problem?: string): StoredSequence {
  const checkInput = problem === undefined ? undefined : () => problem;
  return { id, tenantId: TENANT, checkInput, plan: planOf([]) } as unknown as StoredSequence;
}

async function arrive(id: string, isThere = true): Promise<void> {
  const found = isThere ? sequence(id) : undefined;
  if (found !== undefined) plans.set(id, found);
  loading.get(id)?.(found);
  loading.delete(id);
  await new Promise(setImmediate);
}

const body = (key?: string) => ({
  sequence_id: 'v1',
  tenant_id: TENANT,
  namespace: 'n',
  ...(key === undefined ? {} : { idempotency_key: key }),
});

const CALL = { request: 1, tenant: TENANT, target: '', traceparent: undefined };

function create(key?: string): void {
  creations.create({ ...CALL, body: body(key) });
}

/** The sequences of the instances of the last batch, in their order. */
function batch(): string[] {
  const unit = commits.take().at(-1);
  const mutations = unit?.mutations ?? [];
  const rows: string[] = [];
  for (let at = 0; at < mutations.length; at += 3) {
    if (MUTATION_KINDS[mutations[at] as number] !== 'instance.insert') continue;
    rows.push(readRow('instance.insert', mutations[at + 2] as string).sequence_id as string);
  }
  return rows;
}

for (const key of [undefined, 'k']) {
  const which = key === undefined ? 'without a key' : 'with a key';
  const name = key ?? 'unkeyed';

  test(`a creation ${which} whose plan is being read goes where a new release has it go`, async () => {
    create(key);
    routeTo('v2');
    await arrive('v1');
    assert.deepEqual(made, []);
    await arrive('v2');
    assert.deepEqual(made, [`v2 candidate ${name}`]);
  });

  test(`a creation ${which} whose candidate is being read stays when the release is over`, async () => {
    routeTo('v2');
    plans.set('v1', sequence('v1'));
    create(key);
    routeTo(undefined);
    await arrive('v2');
    assert.deepEqual(made, [`v1 plain ${name}`]);
  });
}

test('a creation that was handed on, or whose instance is gone, is routed anew', () => {
  plans.set('v1', sequence('v1'));
  const route = { releaseId: RELEASE, variant: 'candidate', sequenceId: 'v2' } as const;
  creations.again(1, { id: 'i', body: body('k'), route });
  assert.deepEqual(made, ['v1 plain k']);
});

test('a batch goes by the routes of the turn that makes its unit', async () => {
  creations.createBatch({ ...CALL, body: { instances: [body(), body('k')] } });
  routeTo('v2');
  await arrive('v1');
  assert.deepEqual(batch(), []);
  await arrive('v2');
  assert.deepEqual(batch(), ['v2', 'v2']);
});

test('data that is refused is looked for under its key, and refused without one', async () => {
  plans.set('v1', sequence('v1', 'is wrong'));
  create('k');
  assert.deepEqual(statusesOf(repeats[0]?.otherwise), [422]);
  assert.deepEqual([made, errors], [[], []]);
  assert.throws(() => create(), { status: 422 });
});

test('a batch with refused data is taken when all of it is there already', async () => {
  plans.set('v1', sequence('v1', 'is wrong'));
  stored.add(keyedInstanceId(TENANT, 'k'));
  creations.createBatch({ ...CALL, body: { instances: [body('k'), body('k')] } });
  await nextTurn();
  assert.deepEqual(replies, ['{"count":2,"created":0}']);
  creations.createBatch({ ...CALL, request: 2, body: { instances: [body('k'), body('new')] } });
  await nextTurn();
  assert.equal(errors[0]?.status, 422);
  assert.match(String(errors[0]?.message), /instances\[1\]/);
});

test('what the caller named is what is not found, never where it was routed', async () => {
  routeTo('v2');
  create();
  await arrive('v2', false);
  assert.match(String(errors[0]?.message), /v1/);
  assert.doesNotMatch(String(errors[0]?.message), /v2/);
});

const ENV = instanceEnv();
const NOOP = planOf([step('noop')]);
const WORKING = planOf([step('packs')]);
const ACTING = planOf([step('http_request', { url: 'https://example.org' })]);

let effects: Effect[];
/** What is to be done in a later turn. */
let later: (() => void)[];
let msPerLook: number;
/** Actors that stay in memory. */
let adopted: string[];

beforeEach(() => {
  effects = [];
  later = [];
  msPerLook = 0;
  adopted = [];
});

function step(handler: string, params = {}): Block {
  return { type: 'step', id: 'a', handler, params } as Block;
}

function makeBatch(plan: Plan, asked: readonly NewInstance[]): void {
  let ms = 0;
  const deps = {
    commits,
    release: (released: readonly Effect[]) => void effects.push(...released),
    loader: { orphanedInstances: async () => [] },
    env: ENV,
    clock: {
      monotonic: () => {
        ms += msPerLook;
        return ms;
      },
      setTimeout: (work: () => void) => void later.push(work),
    },
    schedule: (work: () => void) => work(),
    instances: { adopt: (actor: LiveInstance) => void adopted.push(actor.record.id) },
  };
  const sequence = { plan } as StoredSequence;
  const placed = asked.map((instance) => ({ instance, sequence }));
  createBatch(deps, 1, placed, new Set());
}

const instances = (count: number, more: Parameters<typeof newInstance>[1] = {}): NewInstance[] =>
  Array.from({ length: count }, () => newInstance(ENV.ids.next(1), more));

function unit(): UnitEnvelope | undefined {
  const units = commits.take();
  assert.ok(units.length <= 1);
  return units[0];
}

const statesOf = (made: UnitEnvelope) =>
  rowsOf([made], 'instance.insert').map(({ state }) => state);

const answers = () => effects.filter(({ kind }) => kind === 'reply' || kind === 'error');

test('an output is in the row of its instance only if that is completed and the output is short', () => {
  const blocks = (count: number, name: string) =>
    Array.from({ length: count }, (_, n) => ({
      type: 'step' as const,
      id: `${name}${n}`,
      handler: 'noop',
      params: {},
    }));
  const unitOf = (plan: Plan) => {
    makeBatch(plan, instances(1));
    const made = unit()!;
    const packed = (rowsOf([made], 'instance.insert')[0]?.end_outputs ?? []) as object[];
    return [packed.length, rowsOf([made], 'output.insert').length];
  };
  assert.deepEqual(unitOf(planOf(blocks(3, 'a'))), [3, 0]);
  const [packed = 0, own = 0] = unitOf(planOf(blocks(3, 'a'.repeat(400))));
  assert.deepEqual([packed > 0, own > 0, packed + own], [true, true, 3]);
  const worker = { type: 'step' as const, id: 'w', handler: 'worker', params: {} };
  assert.deepEqual(unitOf(planOf([...blocks(3, 'a'), worker])), [0, 3]);
});

test('instances of a batch run as far as they can in the unit that inserts them', () => {
  makeBatch(NOOP, instances(3));
  const made = unit()!;
  assert.deepEqual(statesOf(made), ['completed', 'completed', 'completed']);
  for (const { end_outputs } of rowsOf([made], 'instance.insert')) {
    const [output, ...others] = end_outputs as { block_id: string; output: unknown }[];
    assert.deepEqual([output?.block_id, output?.output, others], ['a', {}, []]);
  }
  assert.deepEqual(rowsOf([made], 'output.insert'), []);
  assert.deepEqual(rowsOf([made], 'timer.set'), []);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  assert.deepEqual(answers(), [
    { kind: 'reply', request: 1, status: 201, body: '{"count":3,"created":3}' },
  ]);
  assert.equal(effects.filter(({ kind }) => kind === 'completed').length, 3);
});

test('what a batch has started stays in memory once it is committed, and not before', () => {
  const asked = instances(2);
  makeBatch(WORKING, asked);
  const made = unit()!;
  assert.deepEqual(adopted, []);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  const expected = asked.map(({ id }) => id);
  assert.deepEqual(adopted, expected);
});

test('with a key in the batch all are inserted as they stand, since they may be there already', () => {
  makeBatch(NOOP, [...instances(1), ...instances(1, { idempotency_key: 'k' })]);
  const made = unit()!;
  assert.equal(made.gate, 'batch');
  assert.deepEqual(statesOf(made), ['scheduled', 'scheduled']);
  assert.equal(rowsOf([made], 'timer.set').length, 2);
});

test('a step that reports to its actor is begun by that, after the commit', () => {
  makeBatch(ACTING, instances(2));
  const made = unit()!;
  assert.deepEqual(statesOf(made), ['scheduled', 'scheduled']);
  assert.equal(rowsOf([made], 'timer.set').length, 2);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  const told = effects.map((effect) =>
    effect.kind === 'peer' ? effect.message.kind : effect.kind,
  );
  assert.deepEqual(told, ['counted', 'wake', 'counted', 'wake', 'reply']);
});

test('a large batch takes several turns, and is waited for as if it were made in the first', () => {
  msPerLook = 1;
  let isSettled = false;
  makeBatch(NOOP, instances(20));
  commits.whenSettled(() => {
    isSettled = true;
  });
  let turns = 1;
  for (; later.length > 0; turns++) later.shift()!();
  assert.ok(turns > 2, `it took ${turns} turns`);
  assert.equal(isSettled, false);
  const made = unit()!;
  assert.equal(statesOf(made).length, 20);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  assert.equal(isSettled, true);
});

test('a batch whose eager starts take too long leaves the others to their actors', () => {
  msPerLook = 100;
  makeBatch(NOOP, instances(50));
  while (later.length > 0) later.shift()!();
  const states = statesOf(unit()!);
  assert.deepEqual([states[0], states.at(-1), states.length], ['completed', 'scheduled', 50]);
});

test('nothing is sent of a batch that was being made when the writer died', () => {
  msPerLook = 5;
  makeBatch(NOOP, instances(3));
  commits.lose();
  while (later.length > 0) later.shift()!();
  assert.equal(unit(), undefined);
  const [answer] = answers();
  assert.equal(answer?.kind === 'error' && answer.error.status, 503);
});

test('when it is unknown what became of a batch its instances are looked for', () => {
  const asked = instances(2);
  makeBatch(NOOP, asked);
  unit();
  commits.lose();
  const woken = effects.flatMap((effect) => (effect.kind === 'continue' ? [effect.instance] : []));
  const expected = asked.map(({ id }) => id);
  assert.deepEqual(woken, expected);
});
