/** Executions: enrolment, where they have been, and what the chain of provenance tells of them. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Execution, ProvenanceEntry, ProvenanceVerdict } from '../../schema/continuity.js';
import {
  beforeWith,
  eventually,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { type Continuity, continuityOf } from '../helpers/continuity.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const EXECUTIONS = '/continuity/executions';

let continuity: Continuity;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  continuity = continuityOf(tenant);
});

/** An instance that waits for a worker. */
const waiting = () => tenant.runUntil('waiting', [step('a', newHandler())]);

const enrol = (instance_id: string, as: Tenant = tenant) =>
  as.post<Execution>(EXECUTIONS, { instance_id, runtime_id: randomUUID() });

describe('an execution', () => {
  test('execution creation: epoch 0, state set, owner any UUID, 404 unknown/foreign instance, 409 duplicate, malformed path id 400; get equals create', async () => {
    const instance_id = await waiting();
    const runtime_id = randomUUID();
    const created = expectStatus(
      await tenant.post<Execution>(EXECUTIONS, { instance_id, runtime_id }),
      201,
    );
    assert.deepEqual(
      { ...created, updated_at: '' },
      {
        continuity_id: instance_id,
        tenant_id: tenant.name,
        current_instance_id: instance_id,
        owner_runtime_id: runtime_id,
        epoch: 0,
        state: 'owned',
        updated_at: '',
      },
    );
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

  test('one initial location row (handoff_id null); locations ascending, distinct epochs; foreign → 404', async () => {
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
    const foreign = await api.tenant().get(`${EXECUTIONS}/${continuity_id}/locations`);
    expectStatus(foreign, 404);
  });

  test('of an instance that has ended can be created too', async () => {
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    assert.equal((await continuity.enrol(id)).epoch, 0);
  });

  test('ends as its instance does, is owned again by a retry, and outlives it', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const states = async (...ids: string[]) =>
      Promise.all(ids.map(async (id) => (await continuity.execution(id)).state));
    const [done, cancelled, failed] = [
      await tenant.create(sequence),
      await tenant.create(sequence),
      await tenant.create(sequence),
    ];
    for (const id of [done, cancelled, failed]) await tenant.until(id, 'waiting');
    const before = await Promise.all([done, cancelled, failed].map((id) => continuity.enrol(id)));
    assert.deepEqual(new Set(before.map(({ state }) => state)), new Set(['owned']));
    const tasks = await tenant.poll(handler, { limit: 3 });
    const taskOf = (id: string) => tasks.find(({ instance_id }) => instance_id === id)!;
    await tenant.complete(taskOf(done));
    await tenant.until(done, 'completed');
    await tenant.signal(cancelled, 'cancel');
    await tenant.until(cancelled, 'cancelled');
    await tenant.fail(taskOf(failed), 'no');
    await tenant.until(failed, 'failed');
    const ended = ['completed', 'cancelled', 'failed'];
    assert.deepEqual(await states(done, cancelled, failed), ended);
    assert.ok((await continuity.execution(done)).updated_at > before[0]!.updated_at);
    expectStatus(await tenant.post(`/instances/${failed}/retry`, {}), 200);
    assert.deepEqual(await states(failed), ['owned']);
    await tenant.move(failed, 'failed');
    const last = await Promise.all([done, cancelled, failed].map((id) => continuity.execution(id)));
    expectStatus(await tenant.delete(`/sequences/${sequence}?cascade=true`), 204);
    await eventually(async () => {
      for (const id of [done, cancelled, failed]) {
        expectStatus(await tenant.get(`/instances/${id}`), 404);
      }
      const { rowCount } = await api.sql.query('select 1 from instances where id = any($1)', [
        [done, cancelled, failed],
      ]);
      assert.equal(rowCount, 0);
    });
    const kept = await Promise.all([done, cancelled, failed].map((id) => continuity.execution(id)));
    assert.deepEqual(kept, last);
  });

  test('of one instance is created once, however many ask at the same time', async () => {
    const id = await waiting();
    const replies = await Promise.all(Array.from({ length: 5 }, () => enrol(id)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409, 409]);
    assert.equal((await continuity.locations(id)).length, 1);
    assert.equal((await continuity.provenance(id)).length, 1);
  });

  test('does not keep its instance from going on', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('waiting', [step('a', handler)]);
    await continuity.enrol(id);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.equal((await continuity.execution(id)).epoch, 0);
  });
});

describe('the tenant of an execution', () => {
  test('may stand in the body, and has to be that of the header', async () => {
    const instance_id = await waiting();
    const body = { instance_id, runtime_id: randomUUID() };
    expectStatus(await tenant.post(EXECUTIONS, { ...body, tenant_id: 'another' }), 403);
    expectStatus(await tenant.post(EXECUTIONS, { ...body, tenant_id: tenant.name }), 201);
  });

  test('may stand in the query of a read, where the header wins', async () => {
    const { continuity_id } = await continuity.enrol(await waiting());
    const path = `${EXECUTIONS}/${continuity_id}`;
    expectStatus(await tenant.get(`${path}?tenant_id=${tenant.name}`), 200);
    expectStatus(await tenant.get(`${path}?tenant_id=another`), 200);
    expectStatus(await api.tenant().get(path), 404);
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

  test('provenance: first entry execution_created with previous null; links; order; summary < 500 chars, no payload; stale expected_head → valid false; signed when keys exist', async () => {
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

  test('of many callers at once is one chain', async () => {
    const { continuity_id: id } = await continuity.enrol(await waiting());
    const replies = await Promise.all(Array.from({ length: 20 }, () => append(id)));
    for (const reply of replies) expectStatus(reply, 201);
    const chain = await continuity.provenance(id);
    assert.equal(chain.length, 21);
    for (const [i, entry] of chain.entries()) {
      assert.equal(entry.previous_sha256, chain[i - 1]?.entry_sha256 ?? null);
    }
    assert.equal((await verify(id)).valid, true);
  });
});
