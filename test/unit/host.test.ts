/** How the actors of one kind come to life. The database answers when the test says so. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ActorHost } from '../../actors/runtime/host.js';
import { hostDeps } from '../helpers/host-deps.js';

type Rows = ReadonlyMap<string, object>;

/** Actors that are loaded one by one; `answers` give their rows. */
function world(loadsInOrder: boolean) {
  const answers = new Map<string, (rows: Rows) => void>();
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
  const answer = async (id: string) => {
    answers.get(id)?.(new Map());
    await new Promise(setImmediate);
  };
  return { told, answer };
}

test('instances come to life in the order in which they were asked for, whichever rows are there first', async () => {
  const { told, answer } = world(true);
  await answer('second');
  assert.deepEqual(told, []);
  await answer('first');
  assert.deepEqual(told, ['first', 'second']);
});

test('actors of other kinds come to life as soon as their rows are there', async () => {
  const { told, answer } = world(false);
  await answer('second');
  assert.deepEqual(told, ['second']);
  await answer('first');
  assert.deepEqual(told, ['second', 'first']);
});
