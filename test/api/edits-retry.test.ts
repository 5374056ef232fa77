/** A failed instance is retried with other data, in one request. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AuditEntry } from '../../schema/instance.js';
import { type Json, step, transform, useSharedApi } from '../helpers/api.js';
import { fork, resumeFrom } from '../helpers/edits.js';

const api = useSharedApi();
const tenant = api.tenant();

/** a, then b, which fails until context.data.ok is set. */
const TWO = [
  transform('a', { n: '{{ data.n }}' }),
  step('b', 'assert', { params: { condition: 'data.ok' } }),
];

const retry = (id: string, body?: Json) =>
  tenant.post<{ error: string }>(`/instances/${id}/retry`, body);

describe('a retry with other data', () => {
  test('goes on from the failed block with the members merged', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1, keep: true });
    const reply = await retry(id, { context: { ok: true } });
    assert.deepEqual([reply.status, reply.body], [200, { id, state: 'scheduled' }]);
    const { context, failure } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { n: 1, keep: true, ok: true });
    assert.equal(failure, null);
    assert.deepEqual((await tenant.outputsOf(id)).a, { n: 1 });
  });

  test('is told in the audit, without the data', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1 });
    await retry(id, { context: { secret: 'word' } });
    await tenant.until(id, 'failed');
    await retry(id);
    const { body } = await tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
    const told = body.filter(({ event_type }) => event_type === 'data_changed');
    const details = { by: 'retry', context_mode: 'merge' };
    assert.deepEqual(
      told.map((entry) => entry.details),
      [details],
    );
    assert.doesNotMatch(JSON.stringify(body), /secret|word/);
  });

  test('or in place of all that was there', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1, keep: true });
    await retry(id, { context: { ok: true }, context_mode: 'replace' });
    assert.deepEqual((await tenant.until(id, 'completed')).context.data, { ok: true });
  });

  test('without a body it takes the data as it is', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1 });
    assert.equal((await retry(id)).status, 200);
    assert.deepEqual((await tenant.until(id, 'failed')).context.data, { n: 1 });
  });

  test('a misspelt member, and data that is too large, are refused and nothing is changed', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1 });
    const misspelt = await retry(id, { contxt: { ok: true } });
    assert.equal(misspelt.status, 400);
    assert.match(misspelt.body.error, /context/);
    assert.equal((await retry(id, { context: { text: 'x'.repeat(300_000) } })).status, 413);
    const { state, context } = await tenant.until(id, 'failed');
    assert.deepEqual([state, context.data], ['failed', { n: 1 }]);
  });

  test('resuming and forking can replace the data, too', async () => {
    const id = await tenant.runUntil('failed', TWO, { n: 1, keep: true });
    const given = { context: { ok: true, n: 2 }, context_mode: 'replace' };
    const forked = await fork(tenant, id, 'a', given);
    assert.deepEqual((await tenant.until(forked.id, 'completed')).context.data, given.context);
    await resumeFrom(tenant, id, 'a', given);
    assert.deepEqual((await tenant.until(id, 'completed')).context.data, given.context);
  });
});
