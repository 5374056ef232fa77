/** Receipts: what every step that acts outside leaves, and what somebody says became of it. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { EffectReceipt } from '../../schema/continuity.js';
import {
  eventually,
  newHandler,
  type SharedApi,
  sharedApi,
  step,
  type Tenant,
  tryCatch,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { type Continuity, continuityOf } from '../helpers/continuity.js';
import { MIGRATE, migrate, resumeFrom } from '../helpers/edits.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const HASH = /^[0-9a-f]{64}$/;

let api: SharedApi;
let tenant: Tenant;
let continuity: Continuity;

/** Requests that have arrived, by path, in order; a test answers them. */
const held = new Map<string, ServerResponse[]>();
const sink = createServer((request, response) => {
  const path = request.url ?? '';
  held.set(path, [...(held.get(path) ?? []), response]);
});

before(async () => {
  sink.listen(0, '127.0.0.1');
  await once(sink, 'listening');
  api = await sharedApi();
  tenant = api.tenant();
  continuity = continuityOf(tenant);
});
after(async () => {
  await api.stop();
  sink.closeAllConnections();
  sink.close();
});

const call = (id: string, path: string, more = {}) => {
  const { port } = sink.address() as AddressInfo;
  return step(id, 'http_request', { params: { url: `http://127.0.0.1:${port}${path}` }, ...more });
};

/** The n-th request to the path, counted from 1. */
const request = (path: string, n = 1) =>
  eventually(() => {
    const response = held.get(path)?.[n - 1];
    assert.ok(response, `no request ${n} to ${path}`);
    return response;
  });

const effects = async (id: string, as: Tenant = tenant) =>
  expectStatus(await as.get<EffectReceipt[]>(`/instances/${id}/effects`), 200);

async function onlyEffect(id: string): Promise<EffectReceipt> {
  const [receipt, ...more] = await effects(id);
  assert.ok(receipt !== undefined && more.length === 0, `${more.length + 1} receipts`);
  return receipt;
}

const resolve = (id: string, body: object, as: Tenant = tenant): Promise<Reply<EffectReceipt>> =>
  as.post(`/continuity/effects/${id}/resolve`, body);

async function resolved(id: string, body: object): Promise<EffectReceipt> {
  return expectStatus(await resolve(id, body), 200);
}

/** The words of the receipts' states, in the order of the tries. */
const states = async (id: string) => (await effects(id)).map(({ state }) => state);

/** An instance whose only task a worker has taken. */
async function claimed(): Promise<{ id: string; handler: string }> {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  await tenant.task(handler);
  return { id, handler };
}

/** The same, stopped behind the worker's back. */
async function doubtful(): Promise<{ id: string; receipt: EffectReceipt }> {
  const { id } = await claimed();
  await tenant.move(id, 'failed');
  return { id, receipt: await onlyEffect(id) };
}

describe('the receipt of a worker’s task', () => {
  test('receipts: one receipt per queued worker step, prepared until it is claimed, kind worker, request hash 64 hex, idempotency_key from params or null; committed on completion with provider receipt id; wrong worker changes nothing', async () => {
    const handler = newHandler();
    const params = { idempotency_key: 'order-7', url: 'https://shop.example' };
    const id = await tenant.run([step('a', handler, { params }), step('b', handler)]);
    await tenant.until(id, 'waiting');
    const prepared = await onlyEffect(id);
    assert.match(prepared.request_sha256, HASH);
    assert.match(prepared.destination_fingerprint, HASH);
    assert.deepEqual(
      {
        ...prepared,
        request_sha256: '',
        destination_fingerprint: '',
        created_at: '',
        updated_at: '',
      },
      {
        id: (await tenant.tasks(handler))[0]?.id,
        tenant_id: tenant.name,
        continuity_id: id,
        epoch: 0,
        instance_id: id,
        block_id: 'a',
        attempt: 0,
        kind: 'worker',
        state: 'prepared',
        destination_fingerprint: '',
        idempotency_key: 'order-7',
        request_sha256: '',
        provider_receipt_id: null,
        created_at: '',
        updated_at: '',
      },
    );
    const task = await tenant.task(handler);
    const dispatched = await onlyEffect(id);
    assert.deepEqual(dispatched, { ...prepared, state: 'dispatched' });
    assert.equal(await tenant.call('complete', task, { worker_id: 'somebody else' }), 404);
    assert.equal(await tenant.call('fail', task, { claim_epoch: 9 }), 409);
    assert.deepEqual(await onlyEffect(id), dispatched);
    await tenant.complete(task, { request_id: 'r-1', receipt_id: 'p-1' });
    const [committed, next] = await eventually(async () => {
      const two = await effects(id);
      assert.equal(two.length, 2);
      return two;
    });
    assert.deepEqual(
      { ...committed, updated_at: '' },
      { ...dispatched, state: 'committed', provider_receipt_id: 'p-1', updated_at: '' },
    );
    assert.deepEqual([next?.block_id, next?.state, next?.idempotency_key], ['b', 'prepared', null]);
  });

  test('they come by pages, oldest first, of all kinds', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler), step('b', handler), step('c', handler)]);
    for (let i = 0; i < 3; i += 1) await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    const path = `/instances/${id}/effects?limit=2`;
    const first = await tenant.get<EffectReceipt[]>(path);
    const cursor = first.headers['x-next-cursor'];
    const second = await tenant.get<EffectReceipt[]>(`${path}&cursor=${cursor}`);
    const blocks = [...first.body, ...second.body].map(({ block_id }) => block_id);
    assert.deepEqual(blocks, ['a', 'b', 'c']);
    assert.equal(second.headers['x-next-cursor'], undefined);
  });

  test('each try has one: a failed one is known to have failed, and stands in no other’s way', async () => {
    const handler = newHandler();
    const retry = { max_attempts: 2, initial_backoff_ms: 1 };
    const id = await tenant.run([step('a', handler, { retry })]);
    await tenant.fail(await tenant.task(handler), 'later', true);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(columns(await effects(id), 'attempt', 'state'), [
      [0, 'failed'],
      [1, 'committed'],
    ]);
  });

  test('a task that no worker had taken was never done', async () => {
    const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await states(id), ['abandoned']);
  });

  test('what a worker that had it did is in doubt after a time-out and a cancellation', async () => {
    const handler = newHandler();
    const blocks = [step('a', handler, { timeout: 300 })];
    const late = await tenant.run(blocks);
    await tenant.task(handler);
    await tenant.until(late, 'failed');
    assert.deepEqual(await states(late), ['unknown']);
    const { id } = await claimed();
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await states(id), ['unknown']);
  });

  test('a dry run acts nowhere', async () => {
    const blocks = [step('a', newHandler()), call('b', '/dry')];
    const id = await tenant.runUntil('completed', blocks, {}, { dry_run: true });
    assert.deepEqual(await effects(id), []);
  });
});

describe('the receipt of an http_request', () => {
  test('is dispatched while the answer is awaited, and committed by it', async () => {
    const blocks = [tryCatch('t', [call('a', '/answered')], [step('c', 'noop')])];
    const id = await tenant.run(blocks);
    const response = await request('/answered');
    const dispatched = await onlyEffect(id);
    assert.deepEqual([dispatched.kind, dispatched.state], ['http', 'dispatched']);
    response.end('done');
    await tenant.until(id, 'completed');
    const committed = await onlyEffect(id);
    assert.deepEqual(
      { ...committed, updated_at: '' },
      { ...dispatched, state: 'committed', updated_at: '' },
    );
    assert.ok(committed.updated_at > dispatched.updated_at);
  });

  test('has failed when the answer says so, and when nothing was sent', async () => {
    const id = await tenant.run([
      call('a', '/answers', { retry: { max_attempts: 2, initial_backoff: 1 } }),
    ]);
    (await request('/answers')).writeHead(503).end();
    (await request('/answers', 2)).writeHead(404).end();
    await tenant.until(id, 'failed');
    assert.deepEqual(columns(await effects(id), 'attempt', 'state'), [
      [0, 'failed'],
      [1, 'failed'],
    ]);
    const unsent = await tenant.run([
      step('a', 'http_request', { params: { url: '{{data.no}}' } }),
    ]);
    await tenant.until(unsent, 'failed');
    assert.deepEqual(await states(unsent), ['failed']);
  });

  test('is in doubt after an error, a time-out and a cancellation', async () => {
    const id = await tenant.run([
      call('a', '/doubt', { retry: { max_attempts: 2, initial_backoff_ms: 1 }, timeout: 300 }),
    ]);
    (await request('/doubt')).destroy();
    await request('/doubt', 2);
    await tenant.until(id, 'failed');
    assert.deepEqual(columns(await effects(id), 'attempt', 'state'), [
      [0, 'unknown'],
      [1, 'unknown'],
    ]);
    const cancelled = await tenant.run([call('a', '/cancelled')]);
    await request('/cancelled');
    await tenant.signal(cancelled, 'cancel');
    await tenant.until(cancelled, 'cancelled');
    assert.deepEqual(await states(cancelled), ['unknown']);
  });

  test('outlives the output that a resume drops', async () => {
    const id = await tenant.run([call('a', '/dropped')]);
    (await request('/dropped')).end('first');
    await tenant.until(id, 'completed');
    const before = await onlyEffect(id);
    await resumeFrom(tenant, id, 'a');
    (await request('/dropped', 2)).end('second');
    await tenant.until(id, 'completed');
    const after = await effects(id);
    assert.deepEqual(after[0], before);
    assert.deepEqual(column(after, 'state'), ['committed', 'committed']);
    const { id: resolvedId } = await resolved(before.id, { state: 'compensated' });
    assert.equal(resolvedId, before.id);
  });

  test('can be resolved while it is open', async () => {
    const id = await tenant.run([call('a', '/open')]);
    const response = await request('/open');
    const { id: effect } = await onlyEffect(id);
    await resolved(effect, { state: 'unknown' });
    await resolved(effect, { state: 'verified', provider_receipt_id: 'p-2' });
    response.end();
    await tenant.until(id, 'completed');
    const { state, provider_receipt_id } = await onlyEffect(id);
    assert.deepEqual([state, provider_receipt_id], ['verified', 'p-2']);
  });
});

describe('lists of receipts', () => {
  test('effects and provenance lists of unknown or foreign ids → `[]`; verify of unknown id → valid true: effects', async () => {
    const list = async (id: string, as: Tenant = tenant) =>
      expectStatus(await as.get<EffectReceipt[]>(`/continuity/executions/${id}/effects`), 200);
    const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
    assert.deepEqual(await list(UNKNOWN), []);
    assert.deepEqual(await list(id, api.tenant()), []);
    const ofInstance = await effects(id);
    assert.equal(ofInstance.length, 1);
    assert.deepEqual(await list(id), ofInstance, 'of a scope that nobody enrolled');
    await continuity.enrol(id);
    assert.deepEqual(await list(id), ofInstance, 'of the execution that adopts it');
    expectStatus(await tenant.get(`/instances/${UNKNOWN}/effects`), 404);
    expectStatus(await api.tenant().get(`/instances/${id}/effects`), 404);
  });

  test('stand in the way of a handoff as long as one is in doubt', async () => {
    const { id, receipt } = await doubtful();
    await continuity.enrol(id);
    const { runtime_id } = await continuity.runtime();
    const before = await continuity.preview(id, runtime_id);
    assert.deepEqual([before.compatible, before.unresolved_effects], [false, [receipt]]);
    await resolved(receipt.id, { state: 'compensated' });
    const after = await continuity.preview(id, runtime_id);
    assert.deepEqual([after.compatible, after.unresolved_effects], [true, []]);
  });
});

describe('what became of an effect', () => {
  test('resolve moves as documented; illegal 409; foreign/unknown 404; updated_at grows', async () => {
    const { id, receipt } = await doubtful();
    assert.equal(receipt.state, 'unknown');
    expectStatus(await resolve(UNKNOWN, { state: 'verified' }), 404);
    expectStatus(await resolve(receipt.id, { state: 'verified' }, api.tenant()), 404);
    expectStatus(await resolve(receipt.id, { state: 'lost' }), 400);
    expectStatus(await resolve(receipt.id, { state: 'dispatched' }), 409);
    expectStatus(await resolve(receipt.id, { state: 'verified', tenant_id: 'another' }), 403);
    const verified = await resolved(receipt.id, { state: 'verified', provider_receipt_id: 'p-9' });
    assert.deepEqual([verified.state, verified.provider_receipt_id], ['verified', 'p-9']);
    assert.ok(verified.updated_at > receipt.updated_at);
    assert.deepEqual(await onlyEffect(id), verified);
    const compensated = await resolved(receipt.id, { state: 'compensated' });
    assert.equal(compensated.provider_receipt_id, 'p-9', 'what is known stays');
    assert.ok(compensated.updated_at > verified.updated_at);
    for (const state of ['verified', 'abandoned', 'compensated', 'committed']) {
      expectStatus(await resolve(receipt.id, { state }), 409);
    }
  });

  test('is told in the provenance of an execution, and nowhere for a scope of its own', async () => {
    const alone = await doubtful();
    await resolved(alone.receipt.id, { state: 'abandoned' });
    assert.deepEqual(await continuity.provenance(alone.id), []);
    const { id, receipt } = await doubtful();
    await continuity.enrol(id);
    await resolved(receipt.id, { state: 'verified' });
    const kinds = (await continuity.provenance(id)).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['execution_created', 'effect_resolved']);
  });

  test('of two that say it at once, one is refused', async () => {
    const { receipt } = await doubtful();
    const replies = await Promise.all(
      ['verified', 'abandoned', 'compensated'].map((state) => resolve(receipt.id, { state })),
    );
    const said = replies.filter(({ status }) => status === 200);
    // A verified effect may still be compensated.
    assert.ok(said.length === 1 || said.length === 2, `${said.length} succeeded`);
    assert.ok(replies.every(({ status }) => status === 200 || status === 409));
  });
});

describe('migrate-instance', () => {
  const blocks = (handler: string) => [step('a', handler)];

  async function versions(handler: string): Promise<[string, string]> {
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(blocks(handler), { name, version: 1 });
    const to = await tenant.sequence(blocks(handler), { name, version: 2 });
    return [from, to];
  }

  const ask = (instance_id: string, target_sequence_id: string, as: Tenant = tenant) =>
    as.post(MIGRATE, { instance_id, target_sequence_id });

  test('is refused for an instance of an execution, and while an effect is in doubt', async () => {
    const handler = newHandler();
    const [from, to] = await versions(handler);
    const enrolled = await tenant.create(from);
    await tenant.until(enrolled, 'waiting');
    await continuity.enrol(enrolled);
    expectStatus(await ask(enrolled, to), 409);
    await tenant.signal(enrolled, 'cancel');
    const id = await tenant.create(from);
    await tenant.task(handler);
    await tenant.move(id, 'failed');
    await tenant.post(`/instances/${id}/retry`, {});
    await tenant.until(id, 'waiting');
    expectStatus(await ask(id, to), 409);
    const [lost] = await effects(id);
    await resolved(lost?.id ?? '', { state: 'abandoned' });
    await migrate(tenant, id, to);
  });

  test('is not hindered by a try that is known to have failed', async () => {
    const handler = newHandler();
    const [from, to] = await versions(handler);
    const id = await tenant.create(from);
    await tenant.fail(await tenant.task(handler), 'later', true);
    await tenant.until(id, 'waiting');
    await migrate(tenant, id, to);
  });
});
