/** POST batch-action: what each action does to each state, what is counted, and what is audited. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BatchActionResult } from '../../schema/edits.js';
import type { AuditEntry } from '../../schema/instance.js';
import {
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';

const api = useSharedApi();

const FAR = '2100-01-01T00:00:00.000Z';

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

const states = (tenant: Tenant, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));

/** One instance in each of these states, in this order. */
const STATES = ['scheduled', 'waiting', 'paused', 'failed', 'completed', 'cancelled'] as const;

async function oneOfEach(tenant: Tenant): Promise<string[]> {
  const waiting = [step('a', newHandler())];
  const [paused, cancelled] = [
    await tenant.runUntil('waiting', waiting),
    await tenant.runUntil('waiting', waiting),
  ];
  await tenant.signal(paused, 'pause');
  await tenant.signal(cancelled, 'cancel');
  const ids = [
    await tenant.run([step('a', 'noop')], { next_fire_at: FAR }),
    await tenant.runUntil('waiting', waiting),
    paused,
    await tenant.runUntil('failed', [step('a', 'fail')]),
    await tenant.runUntil('completed', [step('a', 'noop')]),
    cancelled,
  ];
  assert.deepEqual(await states(tenant, ids), STATES);
  return ids;
}

describe('Batch-action appends one audit entry per touched instance', () => {
  test('touched instances get one entry, whatever follows from the action; skipped ones none', async () => {
    const tenant = api.tenant();
    const ids = await oneOfEach(tenant);
    assert.deepEqual(await counts(tenant, 'pause'), [6, 4, 2, 0]);
    assert.deepEqual(await states(tenant, ids), [
      'paused',
      'paused',
      'paused',
      'paused',
      'completed',
      'cancelled',
    ]);
    const entries = await Promise.all(ids.map((id) => actions(tenant, id)));
    const once = [{ action: 'pause' }];
    assert.deepEqual(entries, [once, once, once, once, [], []]);
    // The cause comes before what followed from it, newest first.
    const trail = (await audit(tenant, ids[1] ?? '')).map(({ event_type, to_state }) => [
      event_type,
      to_state,
    ]);
    assert.deepEqual(trail[0], ['state_transition', 'paused']);
    assert.ok(trail.findIndex(([type]) => type === 'batch_action') > 0);
  });

  test('the entry names the custom signal as the call did', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
    const custom = { signal_type: 'approve', payload: { by: 'me' } };
    assert.deepEqual(await counts(tenant, 'signal', custom), [1, 1, 0, 0]);
    assert.deepEqual(await actions(tenant, id), [{ action: 'signal', signal_type: 'approve' }]);
    const { rows } = await api.sql.query(
      'select signal_type, payload, seq from signals where instance_id = $1',
      [id],
    );
    assert.deepEqual(rows, [{ signal_type: 'custom:approve', payload: { by: 'me' }, seq: 1 }]);
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });
});

describe('what the actions do', () => {
  test('retry touches failed instances only', async () => {
    const tenant = api.tenant();
    const ids = await oneOfEach(tenant);
    assert.deepEqual(await counts(tenant, 'retry'), [6, 1, 5, 0]);
    await tenant.until(ids[3] ?? '', 'failed');
    assert.deepEqual(await states(tenant, ids), STATES);
    assert.deepEqual(await actions(tenant, ids[3] ?? ''), [{ action: 'retry' }]);
    const moves = (await audit(tenant, ids[3] ?? '')).filter(
      ({ to_state }) => to_state === 'failed',
    );
    assert.equal(moves.length, 2);
  });

  test('resume wakes paused instances; cancel reaches all but the terminal ones', async () => {
    const tenant = api.tenant();
    const ids = await oneOfEach(tenant);
    assert.deepEqual(
      await counts(tenant, 'resume', { filter: { states: ['paused'] } }),
      [1, 1, 0, 0],
    );
    await tenant.until(ids[2] ?? '', 'waiting');
    assert.deepEqual(await counts(tenant, 'cancel'), [6, 4, 2, 0]);
    assert.deepEqual(await states(tenant, ids), [
      ...Array(4).fill('cancelled'),
      'completed',
      'cancelled',
    ]);
    assert.deepEqual(await tenant.deadLetters(), []);
    assert.deepEqual(await counts(tenant, 'cancel'), [6, 0, 6, 0]);
  });

  test('a dry run changes nothing and counts the same', async () => {
    const tenant = api.tenant();
    const ids = await oneOfEach(tenant);
    const before = await Promise.all(ids.map((id) => tenant.instance(id)));
    for (const [action, expected, more] of [
      ['retry', [6, 1, 5, 0], {}],
      ['pause', [6, 4, 2, 0], {}],
      ['signal', [6, 4, 2, 0], { signal_type: 'x' }],
      ['cancel', [2, 1, 1, 0], { filter: { states: ['waiting', 'completed'] } }],
    ] as const) {
      assert.deepEqual(await counts(tenant, action, { ...more, dry_run: true }), expected);
    }
    assert.deepEqual(await Promise.all(ids.map((id) => tenant.instance(id))), before);
    for (const id of ids) assert.deepEqual(await actions(tenant, id), []);
    assert.deepEqual(await counts(tenant, 'cancel'), [6, 4, 2, 0]);
  });

  test('limit bounds what is matched, newest first', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', newHandler())]);
    const ids: string[] = [];
    for (let index = 0; index < 4; index++) ids.push(await tenant.create(sequence));
    assert.deepEqual(await counts(tenant, 'cancel', { limit: 3, dry_run: true }), [3, 3, 0, 0]);
    assert.deepEqual(await counts(tenant, 'cancel', { limit: 3 }), [3, 3, 0, 0]);
    assert.deepEqual(await states(tenant, ids), ['waiting', ...Array(3).fill('cancelled')]);
  });

  test('1,000 of 1,200 are reached unless the limit says more', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const creation = tenant.creation(sequence, { next_fire_at: FAR });
    await tenant.post('/instances/batch', { instances: Array(1_200).fill(creation) });
    assert.deepEqual(await counts(tenant, 'pause'), [1_000, 1_000, 0, 0]);
    const paused = { filter: { states: ['paused'] }, dry_run: true };
    assert.deepEqual(await counts(tenant, 'pause', paused), [1_000, 1_000, 0, 0]);
    assert.deepEqual(await counts(tenant, 'resume', { limit: 10_000 }), [1_200, 1_200, 0, 0]);
    const scheduled = { filter: { states: ['scheduled'] }, dry_run: true };
    assert.deepEqual(await counts(tenant, 'retry', scheduled), [1_000, 0, 1_000, 0]);
  });

  test('a caller that goes away does not stop it', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const creation = tenant.creation(sequence, { next_fire_at: FAR });
    await tenant.post('/instances/batch', { instances: Array(3_000).fill(creation) });
    const leaving = new AbortController();
    const call = tenant.post(
      '/instances/batch-action',
      { filter: {}, action: 'cancel', limit: 10_000 },
      leaving.signal,
    );
    call.catch(() => undefined);
    await eventually(async () => {
      const [matched] = await counts(tenant, 'cancel', {
        filter: { states: ['cancelled'] },
        dry_run: true,
        limit: 10_000,
      });
      assert.ok(matched !== undefined && matched > 0);
    });
    leaving.abort();
    await eventually(async () => {
      const left = await tenant.get<unknown[]>('/instances?state=scheduled&limit=1');
      assert.deepEqual(left.body, []);
    });
  });
});

test('another tenant’s instances are not touched', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  const theirs = await other.runUntil('waiting', [step('a', newHandler())]);
  assert.deepEqual(await counts(tenant, 'cancel'), [0, 0, 0, 0]);
  const foreign = await act(tenant, 'cancel', { filter: { tenant_id: other.name } });
  assert.equal(foreign.status, 403);
  assert.equal((await other.instance(theirs)).state, 'waiting');
});

test('what is wrong is 400, and nothing changes', async () => {
  const tenant = api.tenant();
  const id = await tenant.runUntil('waiting', [step('a', newHandler())]);
  for (const [action, more, says] of [
    [undefined, {}, /action is required/],
    ['stop', {}, /action must be one of/],
    ['signal', {}, /signal_type/],
    ['signal', { signal_type: ' ' }, /signal_type/],
    ['cancel', { limit: 0 }, /limit/],
    ['cancel', { limit: 10_001 }, /limit/],
    ['cancel', { dry_run: 'yes' }, /dry_run/],
    ['cancel', { filter: null }, /filter/],
  ] as const) {
    const reply = await act(tenant, action, more);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, says);
  }
  assert.equal((await tenant.instance(id)).state, 'waiting');
});
