/** Executions: enrolment, provenance, the receipts of their effects, and what is fenced. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Action } from '../../schema/action.js';
import type {
  EffectReceipt,
  Execution,
  ProvenanceEntry,
  ProvenanceVerdict,
} from '../../schema/continuity.js';
import type { WorkerTask } from '../../schema/worker.js';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { accepted, exported, imported, type Passage, passageOf } from '../helpers/capsules.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { continuityOf } from '../helpers/continuity.js';
import { MIGRATE, migrate, resumeFrom } from '../helpers/edits.js';
import { useHeldRequests } from '../helpers/held-requests.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const EXECUTIONS = '/continuity/executions';

const api = useSharedApi();
const tenant = api.tenant();
const continuity = continuityOf(tenant);

/** An instance that waits for a worker. */
const waiting = () => tenant.runUntil('waiting', [step('a', newHandler())]);

const enrol = (instance_id: string, as: Tenant = tenant) =>
  as.post<Execution>(EXECUTIONS, { instance_id, runtime_id: randomUUID() });

describe('an execution', () => {
  test('Enrolling an instance creates an execution at epoch 0 for any owner UUID; an unknown or foreign instance is 404, a second enrolment 409, a malformed id 400', async () => {
    const instance_id = await waiting();
    const runtime_id = randomUUID();
    const created = await continuity.enrol(instance_id, runtime_id);
    assert.deepEqual(created, {
      continuity_id: instance_id,
      tenant_id: tenant.name,
      current_instance_id: instance_id,
      owner_runtime_id: runtime_id,
      epoch: 0,
      state: 'owned',
      updated_at: created.updated_at,
    });
    assert.deepEqual(await continuity.execution(created.continuity_id), created);
    expectStatus(await enrol(instance_id), 409);
    expectStatus(await enrol(UNKNOWN), 404);
    expectStatus(await enrol(instance_id, api.tenant()), 404);
    expectStatus(await enrol(await waiting(), api.tenant()), 404);
    expectStatus(await tenant.get(`${EXECUTIONS}/no-uuid`), 400);
    expectStatus(await tenant.get(`${EXECUTIONS}/${UNKNOWN}`), 404);
    expectStatus(await tenant.post(EXECUTIONS, { instance_id }), 400);
    expectStatus(await tenant.post(EXECUTIONS, { instance_id: 'x', runtime_id }), 400);
  });

  test('Locations begin with one row without handoff_id, ascend with distinct epochs, and are 404 for another tenant', async () => {
    const created = await continuity.enrol(await waiting());
    const { continuity_id, tenant_id, owner_runtime_id, current_instance_id } = created;
    assert.deepEqual(await continuity.locations(continuity_id), [
      {
        continuity_id,
        tenant_id,
        epoch: 0,
        runtime_id: owner_runtime_id,
        instance_id: current_instance_id,
        handoff_id: null,
        entered_at: created.updated_at,
      },
    ]);
    expectStatus(await api.tenant().get(`${EXECUTIONS}/${continuity_id}/locations`), 404);
  });

  test('ends as its instance does, is owned again by a retry, and outlives it', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const states = (...ids: string[]) =>
      Promise.all(ids.map(async (id) => (await continuity.execution(id)).state));
    const [cancelled, failed] = [await tenant.create(sequence), await tenant.create(sequence)];
    for (const id of [cancelled, failed]) {
      await tenant.until(id, 'waiting');
      assert.equal((await continuity.enrol(id)).state, 'owned');
    }
    await tenant.signal(cancelled, 'cancel');
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(failed, 'failed');
    assert.deepEqual(await states(cancelled, failed), ['cancelled', 'failed']);
    expectStatus(await tenant.post(`/instances/${failed}/retry`, {}), 200);
    assert.deepEqual(await states(failed), ['owned']);
    await tenant.move(failed, 'failed');
    const last = await continuity.execution(failed);
    expectStatus(await tenant.delete(`/sequences/${sequence}?cascade=true`), 204);
    await eventually(async () => {
      const text = 'select 1 from instances where id = any($1)';
      assert.equal((await api.sql.query(text, [[cancelled, failed]])).rowCount, 0);
    });
    expectStatus(await tenant.get(`/instances/${failed}`), 404);
    assert.deepEqual(await continuity.execution(failed), last);
  });
});

describe('provenance', () => {
  const verify = async (id: string, query = '') =>
    expectStatus(
      await tenant.get<ProvenanceVerdict>(`${EXECUTIONS}/${id}/provenance/verify${query}`),
      200,
    );
  const append = (id: string, more: object = {}, as: Tenant = tenant) =>
    as.post<ProvenanceEntry>(`${EXECUTIONS}/${id}/provenance`, {
      kind: 'model_selected',
      payload_sha256: 'a1'.repeat(32),
      ...more,
    });

  test('Provenance is a chain that begins with execution_created, has summaries under 500 characters without payloads, detects a stale expected_head, and is signed when keys exist', async () => {
    const { continuity_id: id, owner_runtime_id } = await continuity.enrol(await waiting());
    const second = expectStatus(await append(id), 201);
    const third = expectStatus(await append(id, { kind: 'terminal_outcome' }), 201);
    const chain = await continuity.provenance(id);
    assert.deepEqual(chain.slice(1), [second, third]);
    const [first] = chain;
    assert.ok(first);
    assert.deepEqual([first.kind, first.previous_sha256], ['execution_created', null]);
    assert.equal(second.previous_sha256, first.entry_sha256);
    assert.equal(third.previous_sha256, second.entry_sha256);
    for (const entry of chain) {
      assert.ok((entry.redacted_summary ?? '').length < 500);
      assert.ok(!(entry.redacted_summary ?? '').includes(owner_runtime_id));
      assert.match(entry.signing_key_id ?? '', /^continuity-signing-[0-9a-f]{16}$/);
      assert.equal(Buffer.from(entry.signature ?? '', 'base64').length, 64);
    }
    const head_sha256 = third.entry_sha256;
    assert.deepEqual(await verify(id, `?expected_head=${head_sha256}`), {
      valid: true,
      entries_checked: 3,
      first_invalid_index: null,
      code: null,
      head_sha256,
    });
    const stale = await verify(id, `?expected_head=${second.entry_sha256}`);
    assert.deepEqual([stale.valid, stale.code], [false, 'PROVENANCE_HEAD_MISMATCH']);
  });

  test('takes three kinds of entries of callers, with a hash of 64 digits', async () => {
    const { continuity_id: id } = await continuity.enrol(await waiting());
    const upper = expectStatus(await append(id, { payload_sha256: 'AB'.repeat(32) }), 201);
    assert.equal(upper.payload_sha256, 'ab'.repeat(32));
    expectStatus(await append(id, { kind: 'package_identity' }), 201);
    expectStatus(await append(id, { kind: 'execution_created' }), 400);
    expectStatus(await append(id, { payload_sha256: 'ab' }), 400);
    expectStatus(await append(UNKNOWN), 404);
    expectStatus(await append(id, {}, api.tenant()), 404);
    expectStatus(await append(id, { tenant_id: 'another' }), 403);
  });
});

// ---------------------------------------------------------------- effects

const HASH = /^[0-9a-f]{64}$/;

const { call, request } = useHeldRequests();

const effects = async (id: string, as: Tenant = tenant) =>
  expectStatus(await as.get<EffectReceipt[]>(`/instances/${id}/effects`), 200);

async function onlyEffect(id: string): Promise<EffectReceipt> {
  const [receipt, ...more] = await effects(id);
  assert.ok(receipt !== undefined && more.length === 0, `${more.length + 1} receipts`);
  return receipt;
}

const resolve = (id: string, body: object, as: Tenant = tenant): Promise<Reply<EffectReceipt>> =>
  as.post(`/continuity/effects/${id}/resolve`, body);

const resolved = async (id: string, body: object): Promise<EffectReceipt> =>
  expectStatus(await resolve(id, body), 200);

/** An instance whose only task a worker has taken, stopped behind the worker's back. */
async function doubtful(): Promise<{ id: string; receipt: EffectReceipt }> {
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  await tenant.task(handler);
  await tenant.move(id, 'failed');
  return { id, receipt: await onlyEffect(id) };
}

test('Each queued worker step has one receipt: prepared until it is claimed, committed with the receipt id of the provider on completion; a wrong worker changes nothing', async () => {
  const handler = newHandler();
  const params = { idempotency_key: 'order-7', url: 'https://shop.example' };
  const id = await tenant.run([step('a', handler, { params }), step('b', handler)]);
  await tenant.until(id, 'waiting');
  const prepared = await onlyEffect(id);
  const { request_sha256, destination_fingerprint, created_at, updated_at, ...rest } = prepared;
  assert.equal(updated_at, created_at);
  assert.match(request_sha256, HASH);
  assert.match(destination_fingerprint, HASH);
  assert.deepEqual(rest, {
    id: (await tenant.tasks(handler))[0]?.id,
    tenant_id: tenant.name,
    continuity_id: id,
    epoch: 0,
    instance_id: id,
    block_id: 'a',
    attempt: 0,
    kind: 'worker',
    state: 'prepared',
    idempotency_key: 'order-7',
    provider_receipt_id: null,
  });
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
  assert.deepEqual([committed?.state, committed?.provider_receipt_id], ['committed', 'p-1']);
  assert.deepEqual([next?.block_id, next?.state, next?.idempotency_key], ['b', 'prepared', null]);
});

describe('the receipt of an http_request', () => {
  test('is dispatched while the answer is awaited, and committed by it', async () => {
    const id = await tenant.run([call('a', '/answered')]);
    const response = await request('/answered');
    const dispatched = await onlyEffect(id);
    assert.deepEqual([dispatched.kind, dispatched.state], ['http', 'dispatched']);
    response.end('done');
    await tenant.until(id, 'completed');
    const committed = await onlyEffect(id);
    const { updated_at } = committed;
    assert.deepEqual(committed, { ...dispatched, state: 'committed', updated_at });
    assert.ok(committed.updated_at > dispatched.updated_at);
  });

  test('has failed when the answer says so, and is in doubt after an error, a time-out and a cancellation', async () => {
    const retry = { max_attempts: 3, initial_backoff: 1 };
    const id = await tenant.run([call('a', '/tries', { retry })]);
    (await request('/tries')).writeHead(503).end();
    (await request('/tries', 2)).destroy();
    (await request('/tries', 3)).writeHead(404).end();
    await tenant.until(id, 'failed');
    assert.deepEqual(columns(await effects(id), 'attempt', 'state'), [
      [0, 'failed'],
      [1, 'unknown'],
      [2, 'failed'],
    ]);
    const late = await tenant.runUntil('failed', [call('a', '/late', { timeout: 600 })]);
    assert.equal((await onlyEffect(late)).state, 'unknown');
    const cancelled = await tenant.run([call('a', '/cancelled')]);
    await request('/cancelled');
    await tenant.signal(cancelled, 'cancel');
    await tenant.until(cancelled, 'cancelled');
    assert.equal((await onlyEffect(cancelled)).state, 'unknown');
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
});

test('Effects and provenance of an unknown or foreign id are empty lists, and verify is valid: effects', async () => {
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

describe('what became of an effect', () => {
  test('An effect is resolved as documented; an illegal move is 409, a foreign or unknown effect 404; updated_at grows', async () => {
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
    const actions = await tenant.get<Action[]>(`/actions?target=${receipt.id}`);
    assert.deepEqual(column(expectStatus(actions, 200), 'summary'), [
      `recorded the result of effect ${receipt.id} (state: compensated)`,
      `recorded the result of effect ${receipt.id} (state: verified)`,
    ]);
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
});

test('migrate-instance is refused while an effect is in doubt', async () => {
  const handler = newHandler();
  const named = { name: `s-${randomUUID()}` };
  const from = await tenant.sequence([step('a', handler)], named);
  const to = await tenant.sequence([step('a', handler)], { ...named, version: 2 });
  const id = await tenant.create(from);
  await tenant.task(handler);
  await tenant.move(id, 'failed');
  await tenant.post(`/instances/${id}/retry`, {});
  await tenant.until(id, 'waiting');
  expectStatus(await tenant.post(MIGRATE, { instance_id: id, target_sequence_id: to }), 409);
  const [lost] = await effects(id);
  await resolved(lost?.id ?? '', { state: 'abandoned' });
  await migrate(tenant, id, to);
});

// ---------------------------------------------------------------- fences

interface Held extends Passage {
  readonly handler: string;
  readonly task: WorkerTask;
}

/** An execution whose only step a worker has claimed, and says nothing of: it may be handed over. */
async function held(): Promise<Held> {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.until(id, 'waiting');
  const [receipt] = await effects(id, tenant);
  for (const state of ['unknown', 'abandoned']) {
    expectStatus(await resolve(receipt?.id ?? '', { state }, tenant), 200);
  }
  return { ...(await passageOf(tenant, id)), handler, task };
}

/** Asks for every change there is; resolves with the statuses of the answers. */
async function tried({ tenant, id, task }: Held, as: Tenant = tenant): Promise<number[]> {
  const instance = `/instances/${id}`;
  const worker = { worker_id: task.worker_id, claim_epoch: task.claim_epoch };
  const replies = [
    as.patch(`${instance}/state`, { state: 'scheduled' }),
    as.patch(`${instance}/state`, { state: 'cancelled' }),
    as.patch(`${instance}/context`, { context: { data: { n: 1 } } }),
    as.post(`${instance}/signals`, { signal_type: 'resume' }),
    as.post(`${instance}/signals`, { signal_type: 'cancel' }),
    as.post(`${instance}/retry`),
    as.post(`${instance}/resume-from/a`),
    as.post(`${instance}/inject-blocks`, { blocks: [step('x', 'noop')] }),
    as.post(`${instance}/fork`, { from_block_id: 'a' }),
    as.post(`${instance}/checkpoints`, { checkpoint_data: {} }),
    as.post(`${instance}/checkpoints/prune`, { keep: 0 }),
    as.post(MIGRATE, {
      instance_id: id,
      target_sequence_id: (await tenant.instance(id)).sequence_id,
    }),
    as.post(`/workers/tasks/${task.id}/complete`, { ...worker, output: {} }),
    as.post(`/workers/tasks/${task.id}/fail`, { ...worker, message: 'no' }),
    as.post(`/workers/tasks/${task.id}/heartbeat`, worker),
  ];
  return (await Promise.all(replies)).map(({ status }) => status);
}

async function assertUntouchable(world: Held): Promise<void> {
  const { tenant, id, handler } = world;
  const before = await tenant.instance(id);
  assert.deepEqual(new Set(await tried(world)), new Set([409]));
  assert.deepEqual(new Set(await tried(world, api.tenant())), new Set([404]));
  const filter = { sequence_id: before.sequence_id };
  const change = await tenant.patch('/instances/bulk/state', { filter, state: 'cancelled' });
  assert.ok(change.status < 300, change.text);
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.instance(id), before);
}

test('an instance that is being handed over is left alone', async () => {
  const world = await held();
  await exported(world, await world.handoff(world.id, world.destination));
  await assertUntouchable(world);
});

test('one that comes back goes on with the worker that had its task', async () => {
  const world = await held();
  const { tenant, id, task } = world;
  const handoff = await world.handoff(id, world.destination);
  await exported(world, handoff);
  expectStatus(await world.act(handoff.id, 'revoke'), 200);
  await world.handoff(id, world.destination);
  assert.equal((await world.execution(id)).state, 'owned');
  await tenant.complete(task);
  await tenant.until(id, 'completed');
});

test('one that was imported runs once it is owned, and the one that it came from never again', async () => {
  const world = await held();
  const { tenant, handler } = world;
  const bundle = await exported(world, await world.handoff(world.id, world.destination));
  const { instance_id } = await imported(tenant, bundle);
  const changed = (await tried({ ...world, id: instance_id })).slice(0, 12);
  assert.deepEqual(new Set(changed), new Set([409]));
  await accepted(world, bundle.handoff.id, instance_id);
  expectStatus(await world.act(bundle.handoff.id, 'resume'), 200);
  const task = await tenant.task(handler);
  assert.equal(task.instance_id, instance_id);
  await tenant.complete(task);
  await tenant.until(instance_id, 'completed');
  await assertUntouchable(world);
});
