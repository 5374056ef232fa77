/** How actors come to life: their order, keyed creations meanwhile, and names. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Names, wordOf } from '../../actors/catalog/names.js';
import type { Plans } from '../../actors/catalog/plans.js';
import { Instances } from '../../actors/instance/instances.js';
import { type InstanceEnv, liveInstance } from '../../actors/instance/live-instance.js';
import type { LoadedInstance } from '../../actors/instance/loads.js';
import type { Creation } from '../../actors/instance/messages.js';
import { newRecord } from '../../actors/instance/record.js';
import { ActorHost } from '../../actors/runtime/host.js';
import type { NamedId, SequenceName } from '../../actors/runtime/sequence-name.js';
import type { Loads } from '../../actors/shard/loads.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { hostDeps, instancesDeps } from '../helpers/host-deps.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { planOf, work } from '../helpers/player.js';
import { MUTATION_KINDS } from '../helpers/store.js';
import { created, told } from '../helpers/turns.js';
import { readRow } from '../helpers/unit-rows.js';

/** Actors that are loaded one by one, whose rows are there in the other order. */
async function orderOf(loadsInOrder: boolean) {
  const answers = new Map<string, (rows: ReadonlyMap<string, object>) => void>();
  const told: string[] = [];
  const host = new ActorHost<object, { readonly kind: 'wake' }, object>(
    {
      noun: 'row',
      keyOf: (id) => id,
      nameOf: (actor) => ({ actor }),
      tenantOf: () => undefined,
      residentMax: 3,
      load: ([id = '']) => new Promise((resolve) => answers.set(id, resolve)),
      loadsInOrder,
      restore: () => ({}),
      isIdle: () => true,
      handle: ({ id }) => void told.push(id),
    },
    hostDeps(),
  );
  for (const id of ['first', 'second']) {
    host.tell(id, { kind: 'wake' });
    host.endTurn();
  }
  for (const id of ['second', 'first']) {
    answers.get(id)?.(new Map());
    await new Promise(setImmediate);
    told.push(`rows of ${id}`);
  }
  return told;
}

test('instances come to life in the order in which they were asked for, other actors as soon as their rows are there', async () => {
  assert.deepEqual(await orderOf(true), ['rows of second', 'first', 'second', 'rows of first']);
  assert.deepEqual(await orderOf(false), ['second', 'rows of second', 'first', 'rows of first']);
});

describe('names', () => {
  type Read = { readonly name: SequenceName; readonly resolve: (id: NamedId) => void };

  const NAME: SequenceName = { tenant: 't', namespace: 'n', name: 's', version: null };
  const WORD = wordOf('t', 'n', 's');

  let reads: Read[];
  let since: number;
  let names: Names;

  beforeEach(() => {
    reads = [];
    since = 0;
    names = new Names({
      since: () => since,
      forgotten: () => undefined,
      loader: { namedSequence: (name) => new Promise((resolve) => reads.push({ name, resolve })) },
    });
  });

  async function answer(id: NamedId): Promise<void> {
    reads.shift()?.resolve(id);
    await new Promise(setImmediate);
  }

  async function loaded(id: NamedId, name = NAME): Promise<NamedId> {
    const loading = names.load(name);
    await answer(id);
    return loading;
  }

  test('a name is read once and then at hand, one that leads nowhere each time, and nothing after a deletion', async () => {
    for (const nowhere of [undefined, null]) {
      assert.equal(await loaded(nowhere), nowhere);
      assert.equal(names.get(NAME), undefined);
    }
    assert.equal(await loaded('v1'), 'v1');
    assert.equal(names.get(NAME), 'v1');
    assert.equal(await names.load(NAME), 'v1');
    assert.equal(reads.length, 0);
    await loaded('v1');
    since += 1;
    assert.equal(names.get(NAME), undefined);
    const loading = names.load(NAME);
    since += 1;
    await answer('v1');
    await answer('v2');
    assert.equal(await loading, 'v2');
  });

  test('what was read while the name was forgotten is read again', async () => {
    const loading = names.load(NAME);
    names.forget([WORD]);
    await answer('v1');
    assert.equal(names.get(NAME), undefined);
    await answer('v2');
    assert.equal(await loading, 'v2');
    assert.equal(names.get(NAME), 'v2');
  });
});

describe('keyed creations', () => {
  const ID = '00000000-0000-8000-8000-000000000001';

  let answer: (rows: Map<string, LoadedInstance>) => void;
  let again: number[];
  /** Requests that were answered with an error, and its status. */
  let refused: [request: number, status: number][];
  let instances: Instances;
  /** Sequences that were deleted so far. */
  let deletions: number;
  /** Happens while the sequence of a row is looked for, which is not there. */
  let whileRestored: () => void;

  const ORPHAN = {
    row: {
      ...{ id: ID, injected: null, fence: null, next_fire_at: null, release_id: null },
      ...{
        metadata: '{}',
        context_audit: '[]',
        data: '{}',
        data_patch: null,
        config: '{}',
        runtime: '{}',
      },
      execution: '{}',
    },
    snapshots: new Map(),
    signals: [],
  } as unknown as LoadedInstance;

  beforeEach(() => {
    deletions = 0;
    whileRestored = () => undefined;
    again = [];
    refused = [];
    instances = new Instances({
      ...instancesDeps(),
      env: { now: () => 0 } as InstanceEnv,
      loader: {
        instances: () =>
          new Promise((resolve) => {
            answer = resolve;
          }),
        keyedInstance: async () => undefined,
        startOfInstance: async () => undefined,
      } as unknown as Loads,
      plans: {
        get deletions() {
          return deletions;
        },
        get: () => undefined,
        compile: async () => whileRestored(),
      } as unknown as Plans,
      release: (effects) => {
        for (const effect of effects) {
          if (effect.kind === 'error') refused.push([effect.request, effect.error.status]);
        }
      },
      createAgain: ({ request }) => void again.push(request),
    });
  });

  /** Somebody asks for the instance, so that its row is looked for. */
  function lookFor(): void {
    const call = { request: 1, tenant: '', target: ID, body: undefined, traceparent: undefined };
    instances.send(ID, { kind: 'get', ...call });
    instances.endTurn();
  }

  const creation = (request: number) => {
    const instance = { id: ID, body: { idempotency_key: 'k' } };
    return { kind: 'create', request, instance } as unknown as Creation;
  };

  const found = async (...rows: LoadedInstance[]) => {
    answer(new Map(rows.map((row) => [ID, row])));
    await new Promise(setImmediate);
  };

  test('a creation that waited for a row which is not there is decided anew', async () => {
    lookFor();
    for (const request of [2, 3]) instances.create(creation(request));
    assert.deepEqual(again, []);
    await found();
    assert.deepEqual([again, refused], [[2, 3], [[1, 404]]]);
  });

  test('a creation that is refused unless it is a repeat is refused when there is no row', async () => {
    const { instance } = creation(2);
    const refusal = { kind: 'error', request: 2, error: conflict('no') } as const;
    instances.send(ID, { kind: 'repeat', request: 2, instance, otherwise: [refusal] });
    instances.endTurn();
    assert.deepEqual(refused, []);
    await found();
    assert.deepEqual([refused, again], [[[2, 409]], []]);
  });

  test('a creation is refused for as long as a deleted sequence has an instance under its key', async () => {
    lookFor();
    instances.create(creation(2));
    await found(ORPHAN);
    assert.deepEqual([refused.sort().join(' '), again], ['1,404 2,503', []]);
  });

  test('a row is read again when a sequence was deleted while its instance was brought to life', async () => {
    whileRestored = () => {
      deletions = 1;
    };
    lookFor();
    instances.create(creation(2));
    await found(ORPHAN);
    assert.deepEqual([refused, again], [[], []]);
    instances.endTurn();
    await found();
    assert.deepEqual([refused, again], [[[1, 404]], [2]]);
  });
});

test('a slot that comes before the time of a creation is given back, and asked for again when it is due', () => {
  // What a reader of the change feed may have been shown everything below.
  const stamp = 1_700_000_000_005;
  let now = stamp - 5;
  const env = instanceEnv({ now: () => now, stamp: () => stamp });
  const instance = newInstance(env.ids.next(1), { concurrency_key: 'k', max_concurrency: 1 });
  const actor = liveInstance(newRecord(instance, now, undefined), planOf([work('a')]), env);
  const { mutations } = created(actor);
  const at = mutations.indexOf(MUTATION_KINDS.indexOf('instance.insert'));
  const row = readRow('instance.insert', String(mutations[at + 2]));
  assert.deepEqual([row.created_at, row.next_fire_at], [isoTime(stamp), isoTime(stamp)]);
  const grant = () => {
    const number = actor.record.snapshot.execution.n ?? 0;
    return told(actor, { kind: 'permit.granted', number }).effects;
  };
  const timers = grant().flatMap((effect) => (effect.kind === 'timer' ? [effect.at] : []));
  assert.deepEqual([timers, actor.record.snapshot.state], [[stamp], 'scheduled']);
  now = stamp;
  told(actor, { kind: 'wake', recovered: false });
  grant();
  assert.equal(actor.record.snapshot.state, 'waiting');
});
