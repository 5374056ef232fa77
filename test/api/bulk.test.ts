/** Changes of many instances: by filter, by action, and as jobs that go on behind their answer. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { BulkJob } from '../../schema/bulk-job.js';
import type { BatchActionResult } from '../../schema/edits.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { AuditEntry } from '../../schema/instance.js';
import type { StoredSignal } from '../../schema/signal.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, FAR, newHandler, step, testsOf, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';

const api = useSharedApi();
const test = testsOf(api);

const bulk = (tenant: Tenant, filter: unknown, state: unknown) =>
  tenant.patch<{ count: number; updated: number; error: string }>('/instances/bulk/state', {
    filter,
    state,
  });
const states = async (tenant: Tenant, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));

test('Bulk cancel applies its tenant, namespace, sequence and state filters; no match is count 0', async () => {
  const [tenant, other] = [api.tenant(), api.tenant()];
  const theirs = await other.runUntil('waiting', [step('a', newHandler())]);
  const [a, b] = [
    await tenant.sequence([step('a', newHandler())]),
    await tenant.sequence([step('a', newHandler())]),
  ];
  const make = (sequence: string, namespace: string, more = {}) =>
    tenant.create(sequence, { namespace, ...more });
  const far = { next_fire_at: '2100-01-01T00:00:00Z' };
  const ids = [
    await make(a, 'n1'),
    await make(a, 'n2', { metadata: { team: 'x' } }),
    await make(b, 'n1', { metadata: { team: 'x' } }),
    await make(b, 'n1', far),
  ];
  const steps: [object, number, string[]][] = [
    [{ namespace: 'n3' }, 0, ['waiting', 'waiting', 'waiting', 'scheduled']],
    [{ states: ['failed'] }, 0, ['waiting', 'waiting', 'waiting', 'scheduled']],
    [{ states: ['scheduled'], namespace: 'n1' }, 1, ['waiting', 'waiting', 'waiting', 'cancelled']],
    [{ sequence_id: b, states: [] }, 1, ['waiting', 'waiting', 'cancelled', 'cancelled']],
    [{ metadata: { team: 'x' } }, 1, ['waiting', 'cancelled', 'cancelled', 'cancelled']],
    [{ tenant_id: tenant.name, states: null }, 1, Array(4).fill('cancelled')],
    [{}, 0, Array(4).fill('cancelled')],
  ];
  for (const [filter, count, after] of steps) {
    const reply = await bulk(tenant, filter, 'cancelled');
    assert.deepEqual([reply.status, reply.body], [200, { count, updated: count }]);
    assert.deepEqual(await states(tenant, ids), after);
  }
  assert.equal((await other.instance(theirs)).state, 'waiting');
});

test('a dry run reports how many instances it would change, and changes none', async (tenant) => {
  const ids = [
    await tenant.runUntil('waiting', [step('a', newHandler())]),
    await tenant.runUntil('failed', [step('a', 'fail')]),
    await tenant.runUntil('completed', [step('a', 'noop')]),
  ];
  const before = await Promise.all(ids.map((id) => tenant.instance(id)));
  for (const [filter, count] of [
    [{}, 2],
    [{ states: ['failed', 'completed'] }, 1],
    [{ namespace: 'nowhere' }, 0],
  ] as const) {
    const body = { filter, state: 'cancelled', dry_run: true };
    const reply = await tenant.patch('/instances/bulk/state', body);
    assert.deepEqual([reply.status, reply.body], [200, { count, updated: 0, dry_run: true }]);
  }
  assert.deepEqual(await Promise.all(ids.map((id) => tenant.instance(id))), before);
  const real = { filter: {}, state: 'cancelled', dry_run: false };
  const reply = await tenant.patch('/instances/bulk/state', real);
  assert.deepEqual(reply.body, { count: 2, updated: 2 });
});

// ---------------------------------------------------------------- PATCH bulk/reschedule

const DAY_SECS = 86_400;
const YEAR_SECS = 365 * DAY_SECS;

const reschedule = (tenant: Tenant, filter: unknown, offset_secs: unknown) =>
  tenant.patch<{ count: number; updated: number; error: string }>('/instances/bulk/reschedule', {
    filter,
    offset_secs,
  });

/** How many were shifted, by a call that is answered 200. */
async function shifted(tenant: Tenant, filter: object, offset: number): Promise<number> {
  const { status, body, text } = await reschedule(tenant, filter, offset);
  assert.equal(status, 200, text);
  assert.equal(body.updated, body.count);
  return body.count;
}

const fireTime = async (tenant: Tenant, id: string) => (await tenant.instance(id)).next_fire_at;
const later = (offsetSecs: number, from = FAR) =>
  new Date(Date.parse(from) + offsetSecs * 1_000).toISOString();

describe('Bulk reschedule moves only scheduled instances, requires offset_secs, and accepts negative offsets', () => {
  test('only scheduled instances of the tenant move, and none in a dry run', async (tenant) => {
    const scheduled = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    const others = [
      await tenant.runUntil('waiting', [step('a', newHandler())]),
      await tenant.runUntil('completed', [step('a', 'noop')]),
      await tenant.runUntil('failed', [step('a', 'fail')]),
      await tenant.run([step('a', 'noop')], { next_fire_at: FAR }),
    ];
    await tenant.move(others[3] ?? '', 'paused');
    const before = await Promise.all(others.map((id) => tenant.instance(id)));
    for (const [filter, count] of [
      [{}, 1],
      [{ states: ['waiting'] }, 0],
    ] as const) {
      const body = { filter, offset_secs: 60, dry_run: true };
      const reply = await tenant.patch('/instances/bulk/reschedule', body);
      assert.deepEqual([reply.status, reply.body], [200, { count, updated: 0, dry_run: true }]);
    }
    assert.equal(await shifted(api.tenant(), {}, 60), 0);
    assert.equal((await reschedule(tenant, { tenant_id: api.tenant().name }, 60)).status, 403);
    assert.equal(await fireTime(tenant, scheduled), FAR);
    assert.equal(await shifted(tenant, {}, 3_600), 1);
    assert.equal(await fireTime(tenant, scheduled), later(3_600));
    assert.deepEqual(await Promise.all(others.map((id) => tenant.instance(id))), before);
  });

  test('negative offsets are accepted, and one that makes an instance due starts it', async (tenant) => {
    const far = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const near = await tenant.run([step('a', 'noop')], { next_fire_at: soon });
    assert.equal(await shifted(tenant, {}, -7_200), 2);
    await tenant.until(near, 'completed');
    assert.equal(await fireTime(tenant, far), later(-7_200));
  });

  test('offset_secs is needed', async (tenant) => {
    const id = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    for (const offset of [undefined, '60', 1.5, YEAR_SECS + 1]) {
      const { status, body } = await reschedule(tenant, {}, offset);
      assert.equal(status, 400, String(offset));
      assert.match(body.error, /offset_secs/);
    }
    assert.equal((await reschedule(tenant, undefined, 60)).status, 400);
    assert.equal(await fireTime(tenant, id), FAR);
    assert.equal(await shifted(tenant, {}, YEAR_SECS), 1);
    assert.equal(await fireTime(tenant, id), later(YEAR_SECS));
    // The last time that a timestamp can name is no further away.
    const last = { next_fire_at: '9999-12-31T23:59:59.000Z' };
    const latest = await tenant.run([step('a', 'noop')], last);
    assert.equal(await shifted(tenant, {}, YEAR_SECS), 2);
    assert.equal(await fireTime(tenant, latest), '9999-12-31T23:59:59.999Z');
  });
});

test('a back-off and a delay that are deferred are shifted both ways', async (tenant) => {
  const retry = { max_attempts: 2, initial_backoff: 3_600_000, max_backoff: 3_600_000 };
  const failing = await tenant.runUntil('scheduled', [
    step('a', 'fail', { params: { retryable: true }, retry }),
  ]);
  const delayed = await tenant.runUntil('scheduled', [
    step('a', 'noop', { delay: { duration: 3_600_000 } }),
  ]);
  const at = await Promise.all([fireTime(tenant, failing), fireTime(tenant, delayed)]);
  assert.equal(await shifted(tenant, {}, 60), 2);
  const seen = await Promise.all([fireTime(tenant, failing), fireTime(tenant, delayed)]);
  const expected = at.map((time) => later(60, String(time)));
  assert.deepEqual(seen, expected);
  assert.equal(await shifted(tenant, {}, -DAY_SECS), 2);
  await tenant.until(failing, 'failed');
  await tenant.until(delayed, 'completed');
});

// ---------------------------------------------------------------- actions

function act(
  tenant: Tenant,
  action: unknown,
  more: Json = {},
): Promise<Reply<BatchActionResult & { error: string }>> {
  return tenant.post('/instances/batch-action', { filter: {}, action, ...more });
}

/** What an action that is answered 200 says, as [matched, applied, skipped, failed]. */
async function counts(tenant: Tenant, action: string, more: Json = {}): Promise<number[]> {
  const { dry_run, ...result } = expectStatus(await act(tenant, action, more), 200);
  assert.equal(dry_run, more.dry_run === true);
  return [result.matched, result.applied, result.skipped, result.failed];
}

const audit = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
const actions = async (tenant: Tenant, id: string) =>
  (await audit(tenant, id))
    .filter((entry) => entry.event_type === 'batch_action')
    .map((entry) => entry.details);

/** A server that has too much work under way refuses a batch for now. */
const createAll = (tenant: Tenant, instances: Json[]) =>
  eventually(async () => expectStatus(await tenant.post('/instances/batch', { instances }), 201));

/** One instance in each of these states, in this order. */
const STATES = ['scheduled', 'waiting', 'paused', 'failed', 'completed', 'cancelled'] as const;

async function oneOfEach(tenant: Tenant): Promise<string[]> {
  const ids: string[] = [];
  for (const state of STATES) ids.push(await tenant.inState(state));
  return ids;
}

describe('Batch-action writes one audit entry per instance that it changes', () => {
  test('touched instances get one entry, whatever follows from the action; skipped ones none', async (tenant) => {
    const ids = await oneOfEach(tenant);
    assert.deepEqual(await counts(tenant, 'pause'), [6, 4, 2, 0]);
    const ended = ['completed', 'cancelled'];
    assert.deepEqual(await states(tenant, ids), [...Array(4).fill('paused'), ...ended]);
    const entries: unknown[] = [];
    for (const id of ids) entries.push(await actions(tenant, id));
    assert.deepEqual(entries, [...Array(4).fill([{ action: 'pause' }]), [], []]);
    // The cause comes before what followed from it, newest first.
    const types = (await audit(tenant, ids[1] ?? '')).map(({ event_type }) => event_type);
    assert.ok(types[0] === 'state_transition' && types.includes('batch_action'), `${types}`);
  });

  test('the entry names the custom signal as the call did', async (tenant) => {
    const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
    const custom = { signal_type: 'approve', payload: { by: 'me' } };
    assert.deepEqual(await counts(tenant, 'signal', custom), [1, 1, 0, 0]);
    assert.deepEqual(await actions(tenant, id), [{ action: 'signal', signal_type: 'approve' }]);
    const { body } = await tenant.get<StoredSignal[]>(`/instances/${id}/signals`);
    assert.deepEqual(columns(body, 'signal_type', 'payload'), [['custom:approve', { by: 'me' }]]);
  });
});

describe('what the actions do', () => {
  test('those that are refused are named, each with its reason', async (tenant) => {
    const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
    const payload = 'x'.repeat(1_000_000);
    const body = { filter: {}, action: 'signal', signal_type: 'go', payload };
    const send = () => tenant.post<BatchActionResult>('/instances/batch-action', body);
    // It keeps four of them, and has no room for the next one.
    for (let sent = 0; sent < 4; sent += 1) assert.equal((await send()).body.applied, 1);
    const { failed, refusals = [] } = expectStatus(await send(), 200);
    assert.deepEqual([failed, refusals.map((one) => one.instance_id)], [1, [id]]);
    assert.match(refusals[0]?.error ?? '', /the limit is \d+ characters/);
  });

  test('retry touches failed instances only, and none in a dry run', async (tenant) => {
    const ids = await oneOfEach(tenant);
    const failed = ids[3] ?? '';
    const before = await tenant.instance(failed);
    assert.deepEqual(await counts(tenant, 'retry', { dry_run: true }), [1, 1, 0, 0]);
    assert.deepEqual(await tenant.instance(failed), before);
    assert.deepEqual(await counts(tenant, 'retry'), [1, 1, 0, 0]);
    await tenant.until(failed, 'failed');
    assert.deepEqual(await states(tenant, ids), STATES);
    const moves = (await audit(tenant, failed)).filter(({ to_state }) => to_state === 'failed');
    assert.equal(moves.length, 2);
  });

  test('a dry run of a retry counts those that would act outside a second time', async (tenant) => {
    const [pay, refund] = [newHandler(), newHandler()];
    const steps = [
      { id: 'pay', action: step('charge', pay), compensation: step('back', refund) },
      { id: 'send', action: step('ship', 'fail') },
    ];
    const name = 'order';
    const order = await tenant.sequence([{ type: 'saga', id: 'trip', steps }], { name });
    const buy = { type: 'sub_sequence', id: 'buy', sequence_name: name };
    const ids = [
      await tenant.create(order),
      await tenant.run([buy]),
      await tenant.run([step('a', 'fail')]),
    ];
    for (let i = 0; i < 2; i += 1) await tenant.complete(await tenant.task(pay));
    for (let i = 0; i < 2; i += 1) await tenant.complete(await tenant.task(refund));
    for (const id of ids) await tenant.until(id, 'failed');
    const given = { dry_run: true, filter: { ids } };
    const counted = expectStatus(await act(tenant, 'retry', given), 200);
    assert.deepEqual([counted.applied, counted.repeats_effects], [3, 2]);
    const asked = { body: { ...given, action: 'retry' }, headers: { prefer: 'respond-async' } };
    const reply = await tenant.request<BulkJob>('POST', '/instances/batch-action', asked);
    const job = await ended(tenant, expectStatus(reply, 202).id);
    assert.deepEqual([job.applied, job.repeats_effects], [3, 2]);
    const moved = await tenant.patch('/instances/bulk/state', {
      ...{ filter: { ids }, state: 'scheduled', dry_run: true },
    });
    assert.deepEqual(moved.body, { count: 3, updated: 0, dry_run: true, repeats_effects: 2 });
    const { next } = expectStatus(
      await tenant.get<InstanceExplanation>(`/instances/${ids[1]}/explain`),
      200,
    );
    const [{ action, runs_again, why }] = next as [(typeof next)[number]];
    assert.deepEqual([action, runs_again?.blocks[0]?.kind], ['retry', 'child']);
    assert.deepEqual(runs_again?.blocks[0]?.repeats, ['trip[0]/charge']);
    assert.match(
      why,
      /is retried: in it what had completed \(trip\[0\]\/charge\) acts outside a second time/,
    );
  });

  test('resume wakes paused instances; cancel reaches all but the terminal ones', async (tenant) => {
    const ids = await oneOfEach(tenant);
    const paused = { filter: { states: ['paused'] } };
    assert.deepEqual(await counts(tenant, 'resume', paused), [1, 1, 0, 0]);
    await tenant.until(ids[2] ?? '', 'waiting');
    assert.deepEqual(await counts(tenant, 'cancel'), [6, 4, 2, 0]);
    const ended = ['completed', 'cancelled'];
    assert.deepEqual(await states(tenant, ids), [...Array(4).fill('cancelled'), ...ended]);
    assert.deepEqual(await tenant.deadLetters(), []);
    assert.deepEqual(await counts(tenant, 'cancel'), [6, 0, 6, 0]);
  });

  test('1,000 of 1,200 are reached, the newest, unless the limit says other', async (tenant) => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const oldest = await tenant.create(sequence, { next_fire_at: FAR });
    const creation = tenant.creation(sequence, { next_fire_at: FAR });
    await createAll(tenant, Array(1_199).fill(creation));
    assert.deepEqual(await counts(tenant, 'pause', { limit: 3 }), [3, 3, 0, 0]);
    assert.deepEqual(await counts(tenant, 'pause'), [1_000, 1_000, 0, 0]);
    assert.equal((await tenant.instance(oldest)).state, 'scheduled');
    assert.deepEqual(await counts(tenant, 'pause', { limit: 10_000 }), [1_200, 1_200, 0, 0]);
  });

  test('a caller that goes away does not stop it', async (tenant) => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const creation = tenant.creation(sequence, { next_fire_at: FAR });
    await createAll(tenant, Array(3_000).fill(creation));
    const leaving = new AbortController();
    const body = { filter: {}, action: 'cancel', limit: 10_000 };
    tenant.post('/instances/batch-action', body, leaving.signal).catch(() => undefined);
    const one = async (state: string) =>
      (await tenant.get<unknown[]>(`/instances?state=${state}&limit=1`)).body.length;
    await eventually(async () => assert.equal(await one('cancelled'), 1));
    leaving.abort();
    await eventually(async () => assert.equal(await one('scheduled'), 0));
  });
});

test('what is wrong is 400, what is of others 403 or not found, and nothing changes', async (tenant) => {
  const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
  const foreign = await act(tenant, 'cancel', { filter: { tenant_id: api.tenant().name } });
  assert.equal(foreign.status, 403);
  for (const [action, more, says] of [
    [undefined, {}, /action is required/],
    ['stop', {}, /action must be one of/],
    ['signal', {}, /signal_type/],
    ['cancel', { limit: 10_001 }, /limit/],
    ['cancel', { dry_run: 'yes' }, /dry_run/],
    ['cancel', { filter: null }, /filter/],
  ] as const) {
    const reply = await act(tenant, action, more);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, says);
  }
  assert.deepEqual(await counts(api.tenant(), 'cancel'), [0, 0, 0, 0]);
  assert.equal((await tenant.instance(id)).state, 'waiting');
});

// ---------------------------------------------------------------- jobs

const JOBS = '/instances/bulk/jobs';
const signalsTo = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<object[]>(`/instances/${id}/signals`), 200);

async function instances(tenant: Tenant, count: number): Promise<string[]> {
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await tenant.create(sequence));
  return ids;
}

async function ended(tenant: Tenant, id: string): Promise<BulkJob> {
  return eventually(async () => {
    const job = expectStatus(await tenant.get<BulkJob>(`${JOBS}/${id}`), 200);
    assert.notEqual(job.ended_at, null, job.state);
    return job;
  });
}

test('a change of many that is to be a job answers where it can be asked for, and is done', async (tenant) => {
  const ids = await instances(tenant, 5);
  const request = { filter: {}, action: 'signal', signal_type: 'hello', payload: { n: 1 } };
  const reply = await tenant.post<BulkJob>('/instances/batch-action?async=true', request);
  const begun = expectStatus(reply, 202);
  assert.equal(reply.headers.location, `/api/v1${JOBS}/${begun.id}`);
  assert.deepEqual(
    [begun.tenant_id, begun.operation, begun.request, begun.state, begun.matched, begun.ended_at],
    [tenant.name, 'batch_action', request, 'running', 0, null],
  );
  const job = await ended(tenant, begun.id);
  const seen = [job.state, job.matched, job.applied, job.skipped, job.failed, job.error];
  assert.deepEqual(seen, ['completed', 5, 5, 0, 0, null]);
  for (const id of ids) assert.equal((await signalsTo(tenant, id)).length, 1, id);
});

test('the other changes of many are jobs as well, a dry run too', async (tenant) => {
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const id = await tenant.create(sequence, { next_fire_at: '2100-01-01T00:00:00Z' });
  const path = '/instances/bulk';
  const ask = async (name: string, body: object) => {
    const headers = { prefer: 'respond-async' };
    const reply = await tenant.request<BulkJob>('PATCH', `${path}/${name}`, { body, headers });
    return ended(tenant, expectStatus(reply, 202).id);
  };
  const moved = await ask('reschedule', { filter: {}, offset_secs: 60 });
  assert.deepEqual([moved.operation, moved.applied], ['reschedule', 1]);
  assert.equal((await tenant.instance(id)).next_fire_at, '2100-01-01T00:01:00.000Z');
  const seen = await ask('state', { filter: {}, state: 'cancelled', dry_run: true });
  assert.deepEqual([seen.operation, seen.applied, seen.request.dry_run], ['state', 1, true]);
  assert.equal((await tenant.instance(id)).state, 'scheduled');
  await ask('state', { filter: {}, state: 'cancelled' });
  assert.equal((await tenant.instance(id)).state, 'cancelled');
});

// `cursors.test.ts` has its pages.
test('jobs are listed newest first, by state', async (tenant) => {
  const made: string[] = [];
  for (const state of ['paused', 'scheduled', 'cancelled']) {
    const body = { filter: {}, state };
    const reply = await tenant.patch<BulkJob>('/instances/bulk/state?async=true', body);
    made.unshift((await ended(tenant, expectStatus(reply, 202).id)).id);
  }
  const list = async (query: string) =>
    column(expectStatus(await tenant.get<BulkJob[]>(`${JOBS}?${query}`), 200), 'id');
  assert.deepEqual(await list(''), made);
  assert.deepEqual(await list('state=completed'), made);
  assert.deepEqual(await list('state=running'), []);
});

test('a change of any size is listed with who asked for it, and a retry with its outcome', async (tenant) => {
  const handler = newHandler();
  const broken = await tenant.runUntil('failed', [step('a', 'fail')]);
  const waiting = await tenant.runUntil('waiting', [step('a', handler)]);
  await tenant.move(waiting, 'failed');
  const filter = { ids: [broken, waiting] };
  const result = expectStatus(await act(tenant, 'retry', { filter }), 200);
  assert.equal(result.applied, 2);
  await act(tenant, 'retry', { dry_run: true });
  const jobs = expectStatus(await tenant.get<BulkJob[]>(JOBS), 200);
  assert.deepEqual(column(jobs, 'id'), [result.job_id]);
  await tenant.until(broken, 'failed');
  const read = async () => expectStatus(await tenant.get<BulkJob>(`${JOBS}/${result.job_id}`), 200);
  await eventually(async () => assert.equal((await read()).state, 'completed'));
  const { applied, requested_by, outcome } = await read();
  assert.deepEqual([applied, typeof requested_by], [2, 'string']);
  assert.deepEqual(outcome, { completed: 0, failed: 1, cancelled: 0, open: 1 });
  await tenant.complete(await tenant.task(handler));
  await tenant.until(waiting, 'completed');
  const later = { completed: 1, failed: 1, cancelled: 0, open: 0 };
  assert.deepEqual((await read()).outcome, later);
});

test('a retry at a pace changes an instance at a time, and can be cancelled', async (tenant) => {
  const sequence = await tenant.sequence([step('a', 'fail')]);
  const ids: string[] = [];
  for (let made = 0; made < 3; made += 1) ids.push(await tenant.create(sequence));
  for (const id of ids) await tenant.until(id, 'failed');
  const given = { filter: { sequence_id: sequence }, per_minute: 1 };
  const reply = await tenant.post<BulkJob>('/instances/batch-action', {
    ...given,
    action: 'retry',
  });
  const { id } = expectStatus(reply, 202);
  const read = async () => expectStatus(await tenant.get<BulkJob>(`${JOBS}/${id}`), 200);
  await eventually(async () => assert.notEqual((await read()).next_at, null));
  const { applied, updated_at, next_at } = await read();
  assert.equal(applied, 1);
  const restMs = Date.parse(next_at ?? '') - Date.parse(updated_at);
  assert.ok(restMs >= 59_000 && restMs <= 60_000, `${restMs}`);
  expectStatus(await tenant.post(`${JOBS}/${id}/cancel`, {}), 200);
  assert.equal((await ended(tenant, id)).state, 'cancelled');
  assert.equal((await read()).applied, 1);
});

test('failures of a period are changed, and others are left', async (tenant) => {
  const before = await tenant.runUntil('failed', [step('a', 'fail')]);
  const at = String((await tenant.instance(before)).failure?.at);
  const after = await tenant.runUntil('failed', [step('a', 'fail')]);
  const given = { filter: { failed_after: at } };
  assert.deepEqual(await counts(tenant, 'cancel', given), [1, 1, 0, 0]);
  assert.deepEqual(await states(tenant, [before, after]), ['failed', 'cancelled']);
  const left = await tenant.get<unknown[]>(`/instances/dlq?failed_before=${at}`);
  assert.deepEqual(left.body, []);
});

test('a job that has ended cannot be ended, and that of another tenant is nowhere', async () => {
  const [tenant, other] = [api.tenant(), api.tenant()];
  const asked = { filter: {}, state: 'paused' };
  const reply = await tenant.patch<BulkJob>('/instances/bulk/state?async=true', asked);
  const { id } = expectStatus(reply, 202);
  expectStatus(await other.get(`${JOBS}/${id}`), 404);
  expectStatus(await other.post(`${JOBS}/${id}/cancel`, {}), 404);
  assert.deepEqual((await other.get(JOBS)).body, []);
  assert.equal((await ended(tenant, id)).state, 'completed');
  const late = await tenant.post<{ error: string }>(`${JOBS}/${id}/cancel`, {});
  assert.deepEqual([late.status, late.body.error], [409, `conflict: job ${id} is completed`]);
});
