/** Creations on their way while routes change: they go by those of the turn that makes their unit. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredSequence } from '../../actors/catalog/plans.js';
import { Creations } from '../../actors/instance/creations.js';
import type { Creation, Repeat } from '../../actors/instance/messages.js';
import { askedOf } from '../../actors/release/attribution.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { LoadedInstance } from '../../actors/runtime/rows.js';
import { createIdGenerator, keyedInstanceId } from '../../src/core/ids.js';
import { RouteTable } from '../../src/core/releases/routes.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import type { EngineError } from '../../src/errors.js';
import { instanceEnv } from '../helpers/instances.js';
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
    shards: 1,
    env: instanceEnv(),
    clock: { monotonic: () => 0, setTimeout: () => undefined },
    random32: () => 7,
    ids: createIdGenerator(
      () => 1,
      () => 7,
    ),
    maxContextBytes: 0,
    commits,
    loader: {
      instances: async (ids: readonly string[]) =>
        new Map(ids.filter((id) => stored.has(id)).map((id) => [id, {} as LoadedInstance])),
      orphanedInstances: async () => [],
    },
    plans: {
      deletions: 0,
      isBlocked: () => false,
      get: (id) => plans.get(id),
      seek: (id) =>
        plans.has(id)
          ? Promise.resolve(plans.get(id))
          : new Promise<StoredSequence | undefined>((resolve) => loading.set(id, resolve)),
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
      tell: (_id, message) => void (message.kind === 'repeat' && repeats.push(message)),
    },
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'error') errors.push(effect.error);
        if (effect.kind === 'reply') replies.push(effect.body);
      }
    },
    schedule: (work) => work(),
  });
});

/** From now on creations of `v1` go there; undefined: no release routes. */
function routeTo(candidate: string | undefined): void {
  const at = '2026-01-01T00:00:00.000Z';
  const row = {
    id: RELEASE,
    tenant_id: TENANT,
    baseline_sequence_id: 'v1',
    state: 'promoted',
    canary_percent: 1,
    created_at: at,
    updated_at: at,
    is_deprecated: false,
  } as const;
  table = new RouteTable(
    candidate === undefined ? [] : [{ ...row, candidate_sequence_id: candidate }],
  );
}

function sequence(id: string, problem?: string): StoredSequence {
  const checkInput = problem === undefined ? undefined : () => problem;
  return { id, tenantId: TENANT, checkInput } as StoredSequence;
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
  assert.equal(repeats[0]?.otherwise.status, 422);
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
