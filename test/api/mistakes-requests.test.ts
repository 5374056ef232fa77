/** Mistakes in requests, and what bodies may be. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from '../helpers/api.js';
import { beforeWith, newHandler, PREPARED, step, useSharedApi, useTenant } from '../helpers/api.js';

const api = useSharedApi();
const tenant = api.tenant();

/** What a row may name. */
const known = { waiting: '', sequence: '' };
let before: string;

beforeWith(api, async () => {
  known.sequence = await tenant.sequence([step('a', newHandler())], { name: 'orders' });
  known.waiting = await tenant.create(known.sequence);
  await tenant.until(known.waiting, 'waiting');
  before = await everything();
});

/** Everything of the tenant that one of these mistakes could have changed. */
async function everything(): Promise<string> {
  const paths = ['/instances', '/sequences', `/instances/${known.waiting}/audit`];
  return (await Promise.all(paths.map(async (path) => (await tenant.get(path)).text))).join('\n');
}

const unkeyed = { tenant_id: tenant.name, namespace: 'test', sequence: 'orders' };
const emptyKey = { ...unkeyed, concurrency_key: '' };
const shown = '[REDACTED]';

// A filter that is not understood would reach everything, and a secret as it is shown would take its place. `unit/requests` has which routes are strict.
for (const [what, request, body, says] of [
  [
    'a misspelt filter of a bulk change',
    'PATCH /instances/bulk/state',
    { filter: { namespce: 'x' }, state: 'paused' },
    'filter.namespce is unknown; did you mean namespace?',
  ],
  [
    'a misspelt dry run of a deletion',
    'DELETE /sequences/ID?dryrun=true',
    undefined,
    'the parameter dryrun is unknown; did you mean dry_run?',
  ],
  [
    'a misspelt member of the config of an event trigger',
    'POST /triggers',
    {
      ...{ slug: 's', tenant_id: tenant.name, sequence_name: 'orders', trigger_type: 'event' },
      config: { event_name: 'paid', corelation_key: 'x' },
    },
    'config.corelation_key is unknown; did you mean correlation_key?',
  ],
  ['an empty key', 'POST /instances', emptyKey, ': concurrency_key must not be empty'],
  [
    'an empty key in a batch',
    'POST /instances/batch',
    { instances: [unkeyed, emptyKey] },
    'instances[1].concurrency_key must not be empty',
  ],
  ...(
    [
      ['POST /triggers', 'secret', { slug: 's', tenant_id: tenant.name, sequence_name: 'orders' }],
      ['PATCH /triggers/s', 'secret', {}],
      ['POST /credentials', 'value', { id: 's' }],
      ['PATCH /credentials/s', 'value', {}],
      ['PATCH /credentials/s', 'refresh_token', {}],
      ['POST /webhooks', 'secret', { url: 'https://example.com' }],
      ['PATCH /webhooks/ID', 'secret', {}],
    ] as const
  ).map(([to, member, body]) => {
    const says = `${member} must not be [REDACTED], which stands for a secret in answers`;
    return [`${member} as it is shown in ${to}`, to, { ...body, [member]: shown }, says] as const;
  }),
] as const) {
  test(`${what} is 400 with words that help, and changes nothing`, async () => {
    const [method = '', path = ''] = request.replace('ID', known.sequence).split(' ');
    const reply = await tenant.request<{ error: string }>(method, path, { body });
    assert.equal(reply.status, 400, reply.text);
    assert.ok(reply.body.error.includes(says), reply.text);
    assert.equal(await everything(), before);
  });
}

// ---------------------------------------------------------------- bodies

const created = (sequence_id: string, data: string) =>
  `{"tenant_id":"${tenant.name}","namespace":"test","sequence_id":"${sequence_id}","context":{"data":${data}}}`;

const instancesOf = async (sequence: string) =>
  (await tenant.get<unknown[]>(`/instances?sequence_id=${sequence}&limit=1`)).body.length;

test('more values and names than a body may have are 413 with the number, and nothing is made', async () => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const empties = `[${Array(600_000).fill('[]').join()}]`;
  for (const path of ['/instances', '/events/batch']) {
    const body = created(sequence, `{"a":${empties}}`);
    const reply = await tenant.request<Json>('POST', path, { raw: body });
    assert.equal(reply.status, 413, path);
    assert.match(String(reply.body.error), /more than 500000 values and names of members/, path);
  }
  assert.equal(await instancesOf(sequence), 0);
});

test('a large body is kept as it came', async () => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const data = {
    list: Array.from({ length: 6_000 }, (_, at) => ({ at, text: 'é😀"\\' })),
    names: { 1: [[]], 0: {} },
  };
  assert.ok(JSON.stringify(data).length > 100_000);
  const reply = await tenant.request<Json>('POST', '/instances', {
    raw: created(sequence, JSON.stringify(data)),
  });
  assert.equal(reply.status, 201, JSON.stringify(reply.body));
  const read = await tenant.get<Json>(`/instances/${reply.body.id}`);
  assert.deepEqual((read.body.context as Json).data, data);
});

// ---------------------------------------------------------------- settings

const small = useTenant('quick');
const strict = useTenant('open');
const { env } = PREPARED.quick;
const BODY_BYTES = Number(env.ENGINE_MAX_BODY_BYTES);
const CONTEXT_BYTES = Number(env.ENGINE_MAX_CONTEXT_BYTES);
const OUTPUT_BYTES = Number(env.ENGINE_MAX_OUTPUT_BYTES);

/** An output of so many bytes. */
const outputOf = (bytes: number) => ({ y: 'y'.repeat(bytes - '{"y":""}'.length) });
/** Leaves room for a context without much in it. */
const nearlyFull = { x: 'x'.repeat(CONTEXT_BYTES - 100) };

test('with ENGINE_REQUIRE_CLAIM_EPOCH complete, fail and heartbeat without claim_epoch are 400, and the claim stays', async () => {
  const handler = newHandler();
  const id = await strict.run([step('a', handler)]);
  const task = await strict.task(handler);
  for (const [call, more] of [
    ['complete', { output: {} }],
    ['fail', { message: 'm' }],
    ['heartbeat', {}],
  ] as const) {
    const ask = (claim_epoch?: number | null) =>
      strict.post<{ error: string }>(`/workers/tasks/${task.id}/${call}`, {
        ...more,
        worker_id: 'w1',
        claim_epoch,
      });
    for (const none of [undefined, null]) {
      const reply = await ask(none);
      assert.equal(reply.status, 400, call);
      assert.match(reply.body.error, /claim_epoch is required/);
    }
    assert.equal((await ask(7)).status, 409, call);
  }
  await strict.complete(task);
  await strict.until(id, 'completed');
});

describe('`ENGINE_UNPOLICIED_RETRY=fail` makes it a permanent failure of the step', () => {
  test('With ENGINE_UNPOLICIED_RETRY=fail a retryable failure without a policy fails at once', async () => {
    const handler = newHandler();
    const id = await strict.run([step('a', handler)]);
    const task = await strict.task(handler);
    await strict.fail(task, 'later', true);
    assert.equal((await strict.instance(id)).state, 'failed');
    const [listed] = await strict.tasks(handler);
    assert.deepEqual([listed?.id, listed?.state], [task.id, 'failed']);
    assert.deepEqual(await strict.poll(handler), []);
    assert.deepEqual(await strict.deadLetters(), [id]);
  });

  test('a policy still counts', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 2, initial_backoff: 1 };
    const id = await strict.run([step('a', handler, { retry })]);
    await strict.fail(await strict.task(handler), 'later', true);
    await strict.complete(await strict.task(handler));
    await strict.until(id, 'completed');
  });
});

describe('sizes', () => {
  test('ENGINE_MAX_BODY_BYTES bounds every body, ENGINE_MAX_CONTEXT_BYTES the context of a creation', async () => {
    const body = small.creation(await small.sequence([step('a', 'noop')]));
    const rest = JSON.stringify({ ...body, pad: '' }).length;
    const padded = (bytes: number) => ({ ...body, pad: 'x'.repeat(bytes - rest) });
    const large = { ...body, context: { data: { x: 'x'.repeat(CONTEXT_BYTES) } } };
    for (const [asked, status] of [
      [padded(BODY_BYTES), 201],
      [padded(BODY_BYTES + 1), 413],
      [large, 413],
    ] as const) {
      assert.equal((await small.post('/instances', asked)).status, status);
    }
  });

  test('ENGINE_MAX_OUTPUT_BYTES bounds what one worker gives: 413, and it may complete with less, beyond the context', async () => {
    const handler = newHandler();
    const id = await small.run([step('a', handler, { merge_output: false })]);
    const task = await small.task(handler);
    const { worker_id, claim_epoch } = task;
    const output = outputOf(OUTPUT_BYTES + 1);
    const large = { worker_id, claim_epoch, output };
    const reply = await small.post<{ error: string }>(`/workers/tasks/${task.id}/complete`, large);
    assert.equal(reply.status, 413);
    assert.match(reply.body.error, /output is 8193 bytes, the limit is 8192/);
    await small.complete(task, outputOf(OUTPUT_BYTES));
    await small.until(id, 'completed');
  });

  test('a worker that is done is never told 413 for the context: the step fails for good, and its output is kept', async () => {
    const handler = newHandler();
    const id = await small.run([step('a', handler, { retry: { max_attempts: 3 } })], {
      context: { data: nearlyFull },
    });
    const output = outputOf(200);
    await small.complete(await small.task(handler), output);
    await small.until(id, 'failed');
    assert.deepEqual((await small.instance(id)).context.data, nearlyFull);
    assert.deepEqual(await small.outputsOf(id), { a: output });
    assert.deepEqual(await small.poll(handler), []);
  });
});
