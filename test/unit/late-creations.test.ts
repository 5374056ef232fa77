/** Keyed creations that wait for rows: what was decided before is not what becomes of them. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { CommitLog } from '../../actors/commit-log.js';
import type { InstanceEnv } from '../../actors/instance.js';
import type { Creation } from '../../actors/instance-cell.js';
import { Instances } from '../../actors/instances.js';
import type { LoadedInstance, Rows } from '../../actors/loader.js';
import type { Plans } from '../../actors/plans.js';
import { conflict } from '../../src/errors.js';
import { createLogger } from '../../src/log.js';

const ID = '00000000-0000-8000-8000-000000000001';

let answer: (rows: Map<string, LoadedInstance>) => void;
let again: number[];
/** Requests that were answered with an error, and its status. */
let refused: [request: number, status: number][];
let instances: Instances;

beforeEach(() => {
  again = [];
  refused = [];
  instances = new Instances({
    env: { now: () => 0 } as InstanceEnv,
    commits: new CommitLog(),
    loader: {
      instances: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    } as unknown as Rows,
    plans: {} as Plans,
    log: createLogger('silent', 'test'),
    changed: () => undefined,
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'error') refused.push([effect.request, effect.error.status]);
      }
    },
    schedule: (work) => work(),
    createAgain: ({ request }) => void again.push(request),
  });
});

/** Somebody asks for the instance, so that its row is looked for. */
function lookFor(): void {
  instances.tell(ID, { kind: 'get', request: 1, tenant: '' });
  instances.endTurn();
}

const creation = (request: number) =>
  ({ kind: 'create', request, instance: { id: ID } }) as Creation;

test('a creation that waited for a row which is not there is decided anew', async () => {
  lookFor();
  instances.createKeyed(creation(2));
  instances.createKeyed(creation(3));
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
