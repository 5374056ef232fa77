/**
 * The story that docs/releases.md tells: a version with a bug meets traffic, and its release takes it
 * back by itself while that traffic goes on.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Release, ValidationReport } from '../../schema/release.js';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { act, decisionsOf, look, move } from '../helpers/releases.js';
import { expectedVariant, versions } from '../helpers/routed.js';

const PERCENT = 20;
const CLIENTS = 4;

const api = useSharedApi();

/** Orders of one customer each, until told to stop; resolves with the ids by customer. */
function traffic(tenant: Tenant, sequence: string): () => Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  let isOpen = true;
  const client = async () => {
    while (isOpen) {
      const customer = `customer-${randomUUID()}`;
      const order = { metadata: { cohort_key: customer }, context: { data: { amount: 5 } } };
      ids.set(customer, await tenant.create(sequence, order));
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  return async () => {
    isOpen = false;
    await Promise.all(clients);
    return ids;
  };
}

test('a version with a bug is taken back by its error gate while traffic flows', async () => {
  const tenant = api.tenant();
  const ship = newHandler();
  const order = (condition: string) => ({
    blocks: [
      step('charge', 'assert', { params: { condition } }),
      step('ship', ship, { when: 'big' }),
    ],
  });
  const [v1 = '', v2 = ''] = await versions(tenant, order('amount > 0'), order('ammount > 0'));
  const big = { context: { data: { amount: 500, big: true } } };
  const inFlight = await Promise.all([1, 2, 3].map(() => tenant.create(v1, big)));
  for (const id of inFlight) await tenant.until(id, 'waiting');

  // What has run before is replayed first, and shows the bug; it is led on all the same.
  for (let amount = 1; amount <= 5; amount++) {
    const id = await tenant.create(v1, { context: { data: { amount } } });
    await tenant.until(id, 'completed');
  }
  const gate = { metric: 'error_rate', max_regression: 0.05, min_sample: 10 };
  const body = { baseline_sequence_id: v1, candidate_sequence_id: v2, gates: [gate] };
  const release = expectStatus(await tenant.post<Release>('/releases', body), 201);
  const report = await act<ValidationReport>(tenant, release, 'validate');
  assert.deepEqual([report.status, report.body.replayed, report.body.diverged], [200, 5, 5]);

  const stop = traffic(tenant, v1);
  await move(tenant, release, 'canary', { percent: PERCENT });
  await eventually(async () => assert.equal((await look(tenant, release)).state, 'rolled_back'));
  // Behind the answer of a rollback every creation is the baseline's, whoever rolled back.
  await move(tenant, release, 'rollback');
  const orders = await stop();
  const later = new Map<string, string>();
  for (let number = 0; number < 20; number++) {
    const customer = `late-${number}`;
    const more = { metadata: { cohort_key: customer }, context: { data: { amount: 5 } } };
    later.set(customer, await tenant.create(v1, more));
  }

  for (const [customer, id] of orders) {
    const { sequence_id, metadata, state } = await tenant.instance(id);
    const stamp = metadata.release as { release_id: string; variant: string } | undefined;
    if (stamp === undefined) assert.deepEqual([sequence_id, state], [v1, 'completed']);
    else {
      const variant = expectedVariant(release.id, customer, PERCENT);
      assert.deepEqual(stamp, { release_id: release.id, variant });
      const expected = variant === 'candidate' ? [v2, 'failed'] : [v1, 'completed'];
      assert.deepEqual([sequence_id, state], expected);
    }
  }
  for (const id of later.values()) {
    const { sequence_id, metadata, state } = await tenant.instance(id);
    assert.deepEqual([sequence_id, metadata.release, state], [v1, undefined, 'completed']);
  }

  // What ran before stays where it was, and ends there.
  for (const _ of inFlight) await tenant.complete(await tenant.task(ship), {});
  for (const id of inFlight) {
    assert.equal((await tenant.until(id, 'completed')).sequence_id, v1);
  }

  const trail = await decisionsOf(tenant, release);
  assert.deepEqual(
    trail.map(({ from_state, to_state, actor }) => [from_state, to_state, actor]),
    [
      ['draft', 'draft', 'operator'],
      ['draft', 'validating', 'operator'],
      ['validating', 'ready', 'validation'],
      ['ready', 'canary', 'operator'],
      ['canary', 'rolled_back', 'gate:error_rate'],
    ],
  );
  assert.match(trail[3]?.reason ?? '', /20%/);
});
