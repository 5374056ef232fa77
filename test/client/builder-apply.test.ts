/** `apply` stores a version when the definition changed, and only then, whoever else does so at the same time. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Client, EngineError, sequence, t } from '../../client/src/index.js';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();

function newClient(namespace = 'shop'): Client {
  const tenant = `apply-${randomUUID()}`;
  return new Client({ url: api.url, apiKey: DEFAULT_API_KEY, tenant, namespace });
}

const saying = (text: string) =>
  sequence<object, { name: string }>('greet').step('hello', {
    handler: 'log',
    params: ({ input }) => ({ message: t`${input.name}: ${text}` }),
  });

const versionsOf = async (client: Client) =>
  (await client.sequences.versions({ name: 'greet' })).map(({ version }) => version);

test('a definition becomes the next version when it changed, and nothing when it did not', async () => {
  const client = newClient();
  const first = await saying('hello').apply(client);
  assert.deepEqual([first.version, first.changed], [1, true]);
  assert.deepEqual(await saying('hello').apply(client), { ...first, changed: false });
  const second = await saying('good day').apply(client);
  assert.deepEqual([second.version, second.changed], [2, true]);
  // The newest one counts: what it was before is a change, too.
  const third = await saying('hello').apply(client);
  assert.deepEqual([third.version, third.changed], [3, true]);
  assert.deepEqual(await versionsOf(client), [3, 2, 1]);
});

test('what was stored as JSON, with its members in another order, is the same definition', async () => {
  const client = newClient();
  const { blocks } = saying('hello');
  const reversed = blocks.map((block) => Object.fromEntries(Object.entries(block).reverse()));
  const { id } = await client.sequences.create({
    name: 'greet',
    version: 7,
    blocks: reversed as unknown as typeof blocks,
  });
  assert.deepEqual(await saying('hello').apply(client), {
    id,
    version: 7,
    changed: false,
    warnings: [],
  });
});

test('an input schema, hooks and limits belong to the definition', async () => {
  const client = newClient();
  const made = saying('hello').input({ type: 'object', required: ['name'] });
  assert.equal((await saying('hello').apply(client)).version, 1);
  assert.equal((await made.apply(client)).version, 2);
  assert.equal((await made.apply(client)).changed, false);
  const hooked = made.onCancel((h) => h.step('gone', { handler: 'noop' }));
  assert.equal((await hooked.apply(client)).version, 3);
  assert.equal((await hooked.apply(client)).changed, false);
  const limited = hooked
    .concurrency({ key: '{{ data.name }}', limit: 2, when_full: 'skip' })
    .throttle({ limit: 10, per_ms: 1_000 });
  assert.equal((await limited.apply(client)).version, 4);
  assert.equal((await limited.apply(client)).changed, false);
});

test('the key of a limit may refer to the input, or be a template', () => {
  const { concurrency, throttle } = saying('hello')
    .concurrency({ key: ({ input }) => input.name, limit: 2 })
    .throttle({ key: ({ input }) => t`n-${input.name}`, limit: 10, per_ms: 1_000 }).definition;
  assert.deepEqual(concurrency, { key: '{{ data.name }}', limit: 2 });
  assert.deepEqual(throttle, { key: 'n-{{ data.name }}', limit: 10, per_ms: 1_000 });
  const { concurrency: written } = saying('hello').concurrency({
    key: 'c-{{ data.name }}',
    limit: 1,
  }).definition;
  assert.deepEqual(written, { key: 'c-{{ data.name }}', limit: 1 });
});

test('a number that a deprecated version has is not taken again', async () => {
  const client = newClient();
  await saying('hello').apply(client);
  await client.sequences.deprecate((await saying('oops').apply(client)).id);
  assert.equal((await saying('hello').apply(client)).version, 1);
  const third = await saying('good day').apply(client);
  assert.deepEqual([third.version, third.changed], [3, true]);
  await client.sequences.deprecate(third.id);
  assert.equal((await saying('oops').apply(client)).version, 4);
});

test('what is stored on hold is not stored again, and its name leads on to what it led to', async () => {
  const client = newClient();
  await saying('hello').apply(client);
  const held = await saying('later').apply(client, { hold: true });
  assert.deepEqual([held.version, held.changed, held.hold], [2, true, true]);
  assert.deepEqual(await saying('later').apply(client), { ...held, changed: false });
  assert.deepEqual((await saying('hello').apply(client)).version, 1);
  assert.equal((await client.sequences.byName({ name: 'greet' })).version, 1);
  assert.equal((await saying('now').apply(client)).version, 3);
  // Older than what the name leads to, it is not what comes next.
  assert.equal((await saying('later').apply(client)).version, 4);
});

test('processes that apply at the same time end with one version', async () => {
  const client = newClient();
  for (const version of [1, 2, 3]) {
    const made = saying(`round ${version}`);
    const applied = await Promise.all(Array.from({ length: 8 }, () => made.apply(client)));
    assert.deepEqual(new Set(applied.map((one) => one.version)), new Set([version]));
    assert.equal(new Set(applied.map((one) => one.id)).size, 1);
    assert.equal(applied.filter((one) => one.changed).length, 1);
  }
  assert.deepEqual(await versionsOf(client), [3, 2, 1]);
});

test('different definitions that are applied at the same time each get a number of their own', async () => {
  const client = newClient();
  const applied = await Promise.all(['a', 'b', 'c', 'd'].map((text) => saying(text).apply(client)));
  assert.deepEqual(applied.map(({ version }) => version).toSorted(), [1, 2, 3, 4]);
  assert.ok(applied.every(({ changed }) => changed));
});

test('a definition that the server refuses is an error with all that it found', async () => {
  const twice = sequence('greet').parallel('both', [
    (b) => b.step('same', { handler: 'noop' }),
    (b) => b.step('same', { handler: 'noop' }),
  ]);
  await assert.rejects(twice.apply(newClient()), (error) => {
    assert.ok(error instanceof EngineError);
    assert.equal(error.status, 400);
    assert.match(error.message, /same/);
    return true;
  });
});

test('the namespace of the sequence counts before that of the client', async () => {
  const client = newClient();
  const made = sequence('greet', { namespace: 'other' }).step('hello', { handler: 'noop' });
  const { id } = await made.apply(client);
  assert.equal((await client.sequences.get(id)).namespace, 'other');
  assert.equal((await made.apply(client)).changed, false);
  assert.deepEqual(await versionsOf(client), []);
});
