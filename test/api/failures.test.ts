/** Why instances failed, over HTTP: every code, everywhere it is shown, and until when. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FAILURE_MESSAGE_MAX, type Failure } from '../../schema/failure.js';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  step,
  type Tenant,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

type Expected = Partial<Failure>;

/** How an instance comes to fail, and what is told of it. */
interface Way {
  readonly blocks: (handler: string) => Json[];
  readonly data?: Json;
  /** What happens to it after its creation. */
  readonly meanwhile?: (tenant: Tenant, id: string, handler: string) => Promise<unknown>;
  readonly failure: Expected;
}

const failTask =
  (retryable: boolean, times = 1) =>
  async (tenant: Tenant, _id: string, handler: string) => {
    for (let i = 0; i < times; i += 1) {
      await tenant.fail(await tenant.task(handler), 'no money', retryable);
    }
  };

const twice = { retry: { max_attempts: 2, initial_backoff: 0 } };
const at = (block_id: string, handler: string, attempt = 0) => ({ block_id, handler, attempt });

const WAYS: Readonly<Record<string, Way>> = {
  'a built-in handler gives up': {
    blocks: () => [step('a', 'fail', { params: { message: 'out of paper' } })],
    failure: { ...at('a', 'fail'), code: 'handler_failed', path: 'a', message: 'out of paper' },
  },
  'a worker says that it is for good': {
    blocks: (handler) => [step('a', handler)],
    meanwhile: failTask(false),
    failure: { block_id: 'a', attempt: 0, code: 'worker_failed', path: 'a', message: 'no money' },
  },
  'the last try of a worker fails': {
    blocks: (handler) => [step('a', handler, twice)],
    meanwhile: failTask(true, 2),
    failure: { block_id: 'a', attempt: 1, code: 'retries_exhausted', message: 'no money' },
  },
  'the last try of a built-in handler fails': {
    blocks: () => [step('a', 'fail', { params: { retryable: true }, ...twice })],
    failure: { ...at('a', 'fail', 1), code: 'retries_exhausted', message: 'forced failure' },
  },
  'a retryable failure has no policy': {
    blocks: () => [step('a', 'fail', { params: { retryable: true } })],
    failure: { ...at('a', 'fail'), code: 'not_retried' },
  },
  'the policy excludes the failure': {
    blocks: () => [
      step('a', 'fail', {
        params: { retryable: true },
        retry: { max_attempts: 3, initial_backoff: 0, retry_if: 'contains(_error.message, "no")' },
      }),
    ],
    failure: { ...at('a', 'fail'), code: 'not_retried' },
  },
  'nobody takes the task in time': {
    blocks: (handler) => [step('a', handler, { queue_timeout: 50 })],
    failure: {
      block_id: 'a',
      attempt: 0,
      code: 'queue_timeout',
      message: 'no worker claimed the task within 50 ms',
    },
  },
  'a sleep is longer than its time-out': {
    blocks: () => [step('a', 'sleep', { params: { duration_ms: 60_000 }, timeout: 50, ...twice })],
    failure: { ...at('a', 'sleep', 1), code: 'timeout' },
  },
  'a template names what there is not': {
    blocks: () => [transform('a', { n: '{{ nowhere.x }}' })],
    failure: { ...at('a', 'transform'), code: 'expression_error' },
  },
  'a when does not parse': {
    blocks: () => [step('a', 'noop', { when: '((' })],
    failure: { ...at('a', 'noop'), code: 'expression_error' },
  },
  'a sleep gets no duration': {
    blocks: () => [step('a', 'sleep', { params: { duration_ms: '{{data.items}}' } })],
    data: { items: 'long' },
    failure: { ...at('a', 'sleep'), code: 'invalid_params' },
  },
  'an http_request gets no address': {
    blocks: () => [step('a', 'http_request', { params: { url: '{{data.none}}' } })],
    failure: { ...at('a', 'http_request'), code: 'invalid_params' },
  },
  'an assertion does not hold': {
    blocks: () => [step('a', 'assert', { params: { condition: 'false' } })],
    failure: { ...at('a', 'assert'), code: 'handler_failed' },
  },
  'a collection is none': {
    blocks: () => [forEach('f', 'items', [step('a', 'noop')])],
    data: { items: 'x' },
    failure: { block_id: 'f', path: 'f', handler: null, attempt: null, code: 'invalid_collection' },
  },
  'a collection is too long': {
    blocks: () => [forEach('f', 'items', [step('a', 'noop')], { max_iterations: 1 })],
    data: { items: [1, 2] },
    failure: { block_id: 'f', code: 'invalid_collection' },
  },
  'a collection cannot be rendered': {
    blocks: () => [forEach('f', '{{ nowhere.x }}', [step('a', 'noop')])],
    failure: { block_id: 'f', code: 'expression_error' },
  },
  'an output does not conform to its schema': {
    blocks: (handler) => [step('a', handler, { output_schema: { required: ['paid'] } })],
    meanwhile: async (tenant, _id, handler) => tenant.complete(await tenant.task(handler), {}),
    failure: { block_id: 'a', code: 'output_schema' },
  },
  'somebody asks for it': {
    blocks: (handler) => [step('a', handler)],
    meanwhile: (tenant, id) => tenant.move(id, 'failed'),
    failure: {
      block_id: null,
      path: null,
      handler: null,
      attempt: null,
      code: 'failed_by_request',
      message: 'failed by request',
    },
  },
  'a pass of a loop within a for_each fails': {
    blocks: () => [
      forEach('f', 'items', [
        router('r', {
          'item == 2': [loop('l', 'yes', [step('x', 'fail', { params: { message: 'no' } })])],
        }),
      ]),
    ],
    data: { items: [1, 2], yes: true },
    failure: { block_id: 'x', path: 'f[1]/r/l[0]/x', code: 'handler_failed', message: 'no' },
  },
  'a branch fails, and what fails behind it is caught': {
    blocks: () => [
      parallel(
        'p',
        [step('first', 'fail', { params: { message: 'first' } })],
        [
          tryCatch('t', [step('second', 'fail', { params: { message: 'second' } })], []),
          step('b', 'noop'),
        ],
      ),
    ],
    failure: { block_id: 'first', path: 'p/first', message: 'first' },
  },
  'every branch of a race fails': {
    blocks: () => [race('r', [[step('a', 'fail')], [step('b', 'fail')]], 'first_to_succeed')],
    failure: { block_id: 'a', path: 'r/a', code: 'handler_failed' },
  },
  'the catch list fails, and the finally list recovers from a failure of its own': {
    blocks: () => [
      tryCatch(
        't',
        [step('a', 'fail', { params: { message: 'tried' } })],
        [step('c', 'fail', { params: { message: 'caught' } })],
        [tryCatch('i', [step('d', 'fail', { params: { message: 'last' } })], [])],
      ),
    ],
    failure: { block_id: 'c', path: 't/c', message: 'caught' },
  },
  'the finally list fails': {
    blocks: () => [
      tryCatch('t', [step('a', 'noop')], [], [step('d', 'fail', { params: { message: 'last' } })]),
    ],
    failure: { block_id: 'd', path: 't/d', message: 'last' },
  },
};

async function failed(
  tenant: Tenant,
  { blocks, data = {}, meanwhile }: Way,
): Promise<TaskInstance> {
  const handler = newHandler();
  const id = await tenant.run(blocks(handler), { context: { data } });
  await meanwhile?.(tenant, id, handler);
  return tenant.until(id, 'failed');
}

const FAILS: Way = WAYS['a built-in handler gives up']!;

describe('Failure: Every instance that failed says which block did, where, at which try, by which code, with which message and when', () => {
  for (const [title, way] of Object.entries(WAYS)) {
    test(title, async () => {
      const { failure } = await failed(api.tenant(), way);
      assert.ok(failure !== null);
      for (const [name, value] of Object.entries(way.failure)) {
        assert.deepEqual(failure[name as keyof Failure], value, name);
      }
      assert.equal(new Date(failure.at).toISOString(), failure.at);
    });
  }

  test('a long message is cut', async () => {
    const way = {
      ...FAILS,
      blocks: () => [step('a', 'fail', { params: { message: 'x'.repeat(9_000) } })],
    };
    const { failure } = await failed(api.tenant(), way);
    assert.equal(failure?.message.length, FAILURE_MESSAGE_MAX);
  });
});

describe('Failure: It is shown alike in reads, lists, the dead letter queue, the audit, the feed and the stream, and gone once it is retried', () => {
  test('everywhere the same', async () => {
    const tenant = api.tenant();
    const { id, failure } = await failed(tenant, FAILS);
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    const dead = expectStatus(await tenant.get<TaskInstance[]>('/instances/dlq'), 200);
    assert.deepEqual([list[0]?.failure, dead[0]?.failure], [failure, failure]);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    const { changes } = expectStatus(await tenant.get<{ changes: AuditEntry[] }>('/changes'), 200);
    for (const entries of [audit, changes]) {
      const moves = entries.filter((entry) => entry.failure !== undefined);
      assert.deepEqual(
        moves.map((entry) => [entry.to_state, entry.failure]),
        [['failed', failure]],
      );
    }
    const { text } = await tenant.get(`/instances/${id}/stream`);
    const events = text.split('\n\n').map((frame) => frame.split('\ndata: '));
    for (const name of ['state', 'done']) {
      const data = events.find(([event]) => event === `event: ${name}`)?.[1];
      assert.deepEqual(JSON.parse(data ?? '{}').failure, failure, name);
    }
  });

  test('one that did not fail has null', async () => {
    const tenant = api.tenant();
    const blocks = [tryCatch('t', [step('a', 'fail')], []), step('b', newHandler())];
    const id = await tenant.run(blocks);
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    await tenant.move(id, 'cancelled');
    assert.equal((await tenant.instance(id)).failure, null);
    const list = expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200);
    assert.deepEqual(
      list.map((instance) => instance.failure),
      [null],
    );
  });

  test('a retry clears it, a pause does not, and the next failure is another one', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const failWith = async (message: string) => {
      await tenant.fail(await tenant.task(handler), message);
      return (await tenant.until(id, 'failed')).failure?.message;
    };
    const listed = async () =>
      expectStatus(await tenant.get<TaskInstance[]>('/instances'), 200).map(
        (instance) => instance.failure?.message,
      );
    assert.equal(await failWith('first'), 'first');
    await tenant.signal(id, 'pause');
    assert.deepEqual(await listed(), ['first']);
    await tenant.signal(id, 'resume');
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    assert.deepEqual(await listed(), [undefined]);
    assert.equal(await failWith('second'), 'second');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    assert.equal(await failWith('third'), 'third');
    expectStatus(await tenant.post(`/instances/${id}/resume-from/a`), 200);
    assert.equal((await tenant.until(id, 'waiting')).failure, null);
    assert.equal(await failWith('fourth'), 'fourth');
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).failure, null);
    assert.deepEqual(await listed(), [undefined]);
  });

  test('a fork of a failed instance has not failed', async () => {
    const tenant = api.tenant();
    const { id } = await failed(tenant, WAYS['a worker says that it is for good']!);
    const body = { from_block_id: 'a', dry_run: false };
    const fork = expectStatus(
      await tenant.post<{ id: string }>(`/instances/${id}/fork`, body),
      201,
    );
    assert.equal((await tenant.until(fork.id, 'waiting')).failure, null);
  });
});

describe('Failure: A catch list sees it in context.data._error', () => {
  test('of the block that failed deep inside, with its pass', async () => {
    const tenant = api.tenant();
    const tried = forEach('f', 'items', [
      step('x', 'fail', { params: { message: '{{ data.item }}' } }),
    ]);
    const seen = transform('seen', { code: '{{ data._error.code }}', error: '{{ data._error }}' });
    const data = { items: ['red', 'blue'] };
    const id = await tenant.runUntil('completed', [tryCatch('t', [tried], [seen])], data);
    const output = (await tenant.outputsOf(id)).seen ?? {};
    assert.equal(output.code, 'handler_failed');
    const { at: when, ...error } = output.error as Json;
    assert.deepEqual(error, {
      failed_blocks: ['f'],
      source: 'try_catch',
      block_id: 't',
      failed_block_id: 'x',
      path: 't/f[0]/x',
      handler: 'fail',
      attempt: 0,
      code: 'handler_failed',
      message: 'red',
    });
    assert.equal(typeof when, 'string');
    assert.equal((await tenant.instance(id)).failure, null);
  });
});
