/** Where names lead, on one shard: what is kept, and until when. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { EVERY_NAME, Names, wordOf } from '../../actors/catalog/names.js';
import type { SequenceName } from '../../actors/runtime/rows.js';

interface Read {
  readonly name: SequenceName;
  readonly resolve: (id: string | undefined) => void;
}

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
    loader: {
      namedSequence: (name) => new Promise((resolve) => reads.push({ name, resolve })),
    },
  });
});

async function answer(id: string | undefined): Promise<void> {
  reads.shift()?.resolve(id);
  await new Promise(setImmediate);
}

async function loaded(id: string | undefined, name = NAME): Promise<string | undefined> {
  const loading = names.load(name);
  await answer(id);
  return loading;
}

test('a name is read once, and then at hand', async () => {
  assert.equal(names.get(NAME), undefined);
  assert.equal(await loaded('v1'), 'v1');
  assert.equal(names.get(NAME), 'v1');
  assert.equal(await names.load(NAME), 'v1');
  assert.equal(reads.length, 0);
});

test('a name that leads nowhere is asked for each time', async () => {
  assert.equal(await loaded(undefined), undefined);
  assert.equal(names.get(NAME), undefined);
  assert.equal(await loaded('v1'), 'v1');
});

test('a name that is forgotten is read again, and others stay', async () => {
  const other = { ...NAME, name: 'other' };
  await loaded('v1');
  await loaded('o1', other);
  names.forget([WORD]);
  assert.deepEqual([names.get(NAME), names.get(other)], [undefined, 'o1']);
  names.forget([EVERY_NAME]);
  assert.equal(names.get(other), undefined);
});

test('a version that is named stays when its name gets another one', async () => {
  const pinned = { ...NAME, version: 1 };
  await loaded('v1', pinned);
  names.forget([WORD]);
  assert.equal(names.get(pinned), 'v1');
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

test('after a deletion, and with other routes, nothing is at hand', async () => {
  await loaded('v1');
  since += 1;
  assert.equal(names.get(NAME), undefined);
  const loading = names.load(NAME);
  since += 1;
  await answer('v1');
  await answer('v2');
  assert.equal(await loading, 'v2');
});
