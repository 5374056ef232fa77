/** GET /instances/{id}/logs: what workers send along and what the handler `log` writes. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StepLogLine } from '../../schema/edits.js';
import type { WorkerTask } from '../../schema/worker.js';
import {
  eventually,
  type Json,
  loop,
  newHandler,
  parallel,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();

const UNKNOWN = '01950000-0000-7000-8000-00000000abcd';

const logs = async (tenant: Tenant, id: string, query = '') =>
  expectStatus(await tenant.get<StepLogLine[]>(`/instances/${id}/logs${query}`), 200);

/** The lines as [block, level, message]. */
const said = async (tenant: Tenant, id: string, query = '') =>
  (await logs(tenant, id, query)).map((line) => [line.block_id, line.level, line.message]);

const log = (id: string, message?: unknown, level?: string) =>
  step(id, 'log', { params: { ...(message === undefined ? {} : { message }), level } });

/** Ends the task with lines; resolves with the status. */
async function end(
  tenant: Tenant,
  task: WorkerTask,
  how: 'complete' | 'fail',
  lines: unknown,
  more: Json = {},
): Promise<number> {
  const { worker_id, claim_epoch } = task;
  const body = how === 'complete' ? { output: {} } : { message: 'no' };
  const reply = await tenant.post(`/workers/tasks/${task.id}/${how}`, {
    worker_id,
    claim_epoch,
    ...body,
    logs: lines,
    ...more,
  });
  return reply.status;
}

/** An instance that waits for a worker, and its task. */
async function claimed(tenant: Tenant, more: Json = {}): Promise<[id: string, task: WorkerTask]> {
  const handler = newHandler();
  const id = await tenant.run([step('work', handler, more)]);
  return [id, await tenant.task(handler)];
}

describe('lines of workers', () => {
  test('come with complete, oldest first by their own times, which are given back in UTC', async () => {
    const tenant = api.tenant();
    const [id, task] = await claimed(tenant);
    const lines = [
      { ts: '2026-03-01T12:00:02.5Z', level: 'warn', message: 'second' },
      { ts: '2026-03-01T13:00:01+01:00', level: 'debug', message: 'first' },
      { ts: '2026-03-01T12:00:02.500Z', level: 'AUDIT', message: 'third' },
    ];
    assert.equal(await end(tenant, task, 'complete', lines), 200);
    assert.deepEqual(await logs(tenant, id), [
      { block_id: 'work', ts: '2026-03-01T12:00:01.000Z', level: 'debug', message: 'first' },
      { block_id: 'work', ts: '2026-03-01T12:00:02.500Z', level: 'warn', message: 'second' },
      { block_id: 'work', ts: '2026-03-01T12:00:02.500Z', level: 'AUDIT', message: 'third' },
    ]);
  });

  test('come with fail too, for each try', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('work', handler)]);
    const lines = (message: string) => [{ message }];
    const retryable = { retryable: true };
    assert.equal(await end(tenant, await tenant.task(handler), 'fail', lines('1'), retryable), 200);
    assert.equal(await end(tenant, await tenant.task(handler), 'fail', lines('2')), 200);
    await tenant.until(id, 'failed');
    assert.deepEqual(await said(tenant, id), [
      ['work', 'info', '1'],
      ['work', 'info', '2'],
    ]);
  });

  test('have a time and a level when the worker gives none', async () => {
    const tenant = api.tenant();
    const [id, task] = await claimed(tenant);
    const lines = [
      { message: 'a' },
      { message: 'b', ts: null, level: null },
      { message: '', level: '' },
    ];
    assert.equal(await end(tenant, task, 'complete', lines), 200);
    const stored = await logs(tenant, id);
    assert.deepEqual(columns(stored, 'level', 'message'), [
      ['info', 'a'],
      ['info', 'b'],
      ['info', ''],
    ]);
    for (const { ts } of stored) assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 60_000, ts);
  });

  test('as many as 1,000 of 8,192 characters are kept', async () => {
    const tenant = api.tenant();
    const [id, task] = await claimed(tenant);
    const lines = Array.from({ length: 1_000 }, (_, index) => ({
      message: String(index).padStart(8_192, 'x'),
      level: 'l'.repeat(32),
    }));
    assert.equal(await end(tenant, task, 'complete', lines), 200);
    const stored: StepLogLine[] = [];
    for (let isMore = true; isMore; ) {
      const path = `/instances/${id}/logs?offset=${stored.length}`;
      const { body, headers } = await tenant.get<StepLogLine[]>(path);
      stored.push(...body);
      isMore = headers.link !== undefined;
    }
    assert.deepEqual(
      stored.map(({ level, message }) => ({ message, level })),
      lines,
    );
  });

  test('that are wrong are 400, and the task stays claimed', async () => {
    const tenant = api.tenant();
    const [id, task] = await claimed(tenant);
    const wrong: unknown[] = [
      'text',
      [null],
      [{}],
      [{ message: 5 }],
      [{ message: 'x'.repeat(8_193) }],
      [{ message: 'x', level: 'l'.repeat(33) }],
      [{ message: 'x', level: 1 }],
      [{ message: 'x', ts: 'today' }],
      [{ message: 'x', ts: 1_700_000_000 }],
      [{ message: 'nul \u0000' }],
      Array(1_001).fill({ message: 'x' }),
    ];
    for (const lines of wrong) {
      const what = JSON.stringify(lines).slice(0, 80);
      assert.equal(await end(tenant, task, 'complete', lines), 400, what);
      assert.equal(await end(tenant, task, 'fail', lines), 400, what);
    }
    assert.deepEqual(await logs(tenant, id), []);
    assert.equal(await end(tenant, task, 'complete', null), 200);
    assert.deepEqual(await logs(tenant, id), []);
    await tenant.until(id, 'completed');
  });

  test('of a call that does not hold the claim are not kept', async () => {
    const tenant = api.tenant();
    const [id, task] = await claimed(tenant);
    const stale = { ...task, claim_epoch: 7 };
    assert.equal(await end(tenant, stale, 'complete', [{ message: 'stale' }]), 409);
    assert.equal(await end(tenant, task, 'complete', [{ message: 'held' }]), 200);
    assert.equal(await end(tenant, task, 'complete', [{ message: 'late' }]), 409);
    assert.deepEqual(await said(tenant, id), [['work', 'info', 'held']]);
  });
});

describe('lines of the handler log', () => {
  test('text stays as it is, everything else is compact JSON', async () => {
    const tenant = api.tenant();
    const messages = ['plain', '{{ data.order }}', { a: [1, 'x'] }, 5, null, undefined];
    const id = await tenant.runUntil(
      'completed',
      messages.map((message, index) => log(`b${index}`, message, index === 0 ? 'warn' : 'debug')),
      { order: { id: 7 } },
    );
    assert.deepEqual(await said(tenant, id), [
      ['b0', 'warn', 'plain'],
      ['b1', 'debug', '{"id":7}'],
      ['b2', 'debug', '{"a":[1,"x"]}'],
      ['b3', 'debug', '5'],
      ['b4', 'debug', 'null'],
      ['b5', 'debug', 'no message'],
    ]);
  });

  test('stand in the order in which they were said, among those of workers, over many commits', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run(
      [
        log('before', 'one'),
        step('work', handler),
        log('after', 'three'),
        loop('l', 'go', [log('again', '{{ runtime.attempt }}')], 600),
      ],
      { context: { data: { go: true } } },
    );
    await end(tenant, await tenant.task(handler), 'complete', [{ message: 'two' }]);
    await tenant.until(id, 'completed');
    const lines = await said(tenant, id);
    assert.deepEqual(
      lines.slice(0, 4).map(([block]) => block),
      ['before', 'work', 'after', 'again'],
    );
    assert.equal(lines.length, 603);
  });

  test('that a branch wrote before it was cut off stay', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', [
      parallel('p', [log('a', 'said')], [step('b', 'fail')]),
      log('c', 'never'),
    ]);
    assert.deepEqual(await said(tenant, id), [['a', 'info', 'said']]);
  });
});

test('a page has offset and limit, and says when there is more', async () => {
  const tenant = api.tenant();
  const id = await tenant.runUntil('completed', [log('a', '0'), log('b', '1'), log('c', '2')]);
  const { body, headers } = await tenant.get<StepLogLine[]>(`/instances/${id}/logs?limit=2`);
  assert.deepEqual(column(body, 'message'), ['0', '1']);
  assert.match(String(headers.link), /cursor=\w+>; rel="next"/);
  const cursor = headers['x-next-cursor'];
  assert.deepEqual(await said(tenant, id, `?cursor=${cursor}`), [['c', 'info', '2']]);
  assert.deepEqual(await said(tenant, id, '?offset=2&limit=2'), [['c', 'info', '2']]);
  assert.deepEqual(await said(tenant, id, '?offset=9'), []);
  assert.equal((await tenant.get(`/instances/${id}/logs?limit=-1`)).status, 400);
});

test('those of one block, by pages of a size in bytes', async () => {
  const tenant = api.tenant();
  const blocks = ['a', 'b', 'a2'].map((id) => log(id, id.repeat(100)));
  const id = await tenant.runUntil('completed', [loop('again', 'true', blocks, 3)]);
  const path = `/instances/${id}/logs?block_id=a&max_bytes=300`;
  const seen: StepLogLine[] = [];
  for (let cursor = ''; ; ) {
    const page = await tenant.get<StepLogLine[]>(path + cursor);
    seen.push(...page.body);
    const next = page.headers['x-next-cursor'];
    if (next === undefined) break;
    assert.equal(page.body.length, 1);
    cursor = `&cursor=${next}`;
  }
  assert.deepEqual(column(seen, 'block_id'), ['a', 'a', 'a']);
});

test('those of an unknown instance, or of another tenant’s, are 404', async () => {
  const tenant = api.tenant();
  const theirs = await api.tenant().runUntil('completed', [log('a', 'secret')]);
  for (const id of [UNKNOWN, theirs]) {
    assert.equal((await tenant.get(`/instances/${id}/logs`)).status, 404);
  }
});

test('they go with their sequence', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([log('a', 'said')]);
  const id = await tenant.create(sequence);
  await tenant.until(id, 'completed');
  assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 204);
  await eventually(async () =>
    assert.equal((await tenant.get(`/instances/${id}/logs`)).status, 404),
  );
});
