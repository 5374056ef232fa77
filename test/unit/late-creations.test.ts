/** Keyed creations that wait for rows: what was decided before is not what becomes of them. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Plans } from '../../actors/catalog/plans.js';
import { Instances } from '../../actors/instance/instances.js';
import type { InstanceEnv } from '../../actors/instance/live-instance.js';
import type { Creation } from '../../actors/instance/messages.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Rows } from '../../actors/runtime/loader.js';
import type { LoadedInstance } from '../../actors/runtime/rows.js';
import { conflict } from '../../src/errors.js';
import { createLogger } from '../../src/log.js';

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
    ...{ metadata: '{}', context_audit: '[]', data: '{}', config: '{}', runtime: '{}' },
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
    shard: 0,
    taskDecided: () => undefined,
    env: { now: () => 0 } as InstanceEnv,
    commits: new CommitLog(),
    loader: {
      instances: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    } as unknown as Rows,
    plans: {
      get deletions() {
        return deletions;
      },
      get: () => undefined,
      compile: async () => whileRestored(),
    } as unknown as Plans,
    log: createLogger('silent', 'test'),
    changed: () => undefined,
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'error') refused.push([effect.request, effect.error.status]);
      }
    },
    schedule: (work) => work(),
    scheduleSpare: (work) => work(),
    whenWriterKnown: (then) => then(),
    createAgain: ({ request }) => void again.push(request),
  });
});

/** Somebody asks for the instance, so that its row is looked for. */
function lookFor(): void {
  const call = { request: 1, tenant: '', target: ID, body: undefined, traceparent: undefined };
  instances.tell(ID, { kind: 'get', ...call });
  instances.endTurn();
}

const creation = (request: number) => {
  const instance = { id: ID, body: { idempotency_key: 'k' } };
  return { kind: 'create', request, instance } as unknown as Creation;
};

test('a creation that waited for a row which is not there is decided anew', async () => {
  lookFor();
  instances.create(creation(2));
  instances.create(creation(3));
  assert.deepEqual(again, []);
  answer(new Map());
  await new Promise(setImmediate);
  assert.deepEqual(again, [2, 3]);
  assert.deepEqual(refused, [[1, 404]]);
});

test('a creation that is refused unless it is a repeat is refused when there is no row', async () => {
  const { instance } = creation(2);
  instances.tell(ID, { kind: 'repeat', request: 2, instance, otherwise: conflict('no') });
  instances.endTurn();
  assert.deepEqual(refused, []);
  answer(new Map());
  await new Promise(setImmediate);
  assert.deepEqual([refused, again], [[[2, 409]], []]);
});

test('a creation is refused for as long as a deleted sequence has an instance under its key', async () => {
  lookFor();
  instances.create(creation(2));
  answer(new Map([[ID, ORPHAN]]));
  await new Promise(setImmediate);
  const expected = [
    [1, 404],
    [2, 503],
  ];
  assert.deepEqual([refused, again], [expected, []]);
});

test('a row is read again when a sequence was deleted while its instance was brought to life', async () => {
  whileRestored = () => {
    deletions = 1;
  };
  lookFor();
  instances.create(creation(2));
  answer(new Map([[ID, ORPHAN]]));
  await new Promise(setImmediate);
  assert.deepEqual([refused, again], [[], []]);
  instances.endTurn();
  answer(new Map());
  await new Promise(setImmediate);
  assert.deepEqual([refused, again], [[[1, 404]], [2]]);
});
