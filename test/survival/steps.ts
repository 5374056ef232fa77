/** Steps and hooks in flight: each is a request that waits for its answer. */

import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';
import type { EffectReceipt } from '../../schema/continuity.js';
import { eventually, type Json, newHandler, sleep, step } from '../helpers/api.js';
import { columns } from '../helpers/columns.js';
import { subject } from '../helpers/survival.js';

export const steps = subject();
const { survives } = steps;

/** Requests by path. */
const held = new Map<string, { response: ServerResponse; key: string }[]>();
const outside = createServer((request, response) => {
  const path = request.url ?? '';
  const key = String(request.headers['idempotency-key']);
  held.set(path, [...(held.get(path) ?? []), { response, key }]);
}).listen(0, '127.0.0.1');
after(() => {
  outside.closeAllConnections();
  outside.close();
});

const requestTo = (path: string, more: Json = {}): Json => {
  const { port } = outside.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${path}`, timeout_ms: 60_000, ...more };
};
const requests = (path: string) => held.get(path) ?? [];
const untilRequested = (path: string, times: number) =>
  eventually(() => assert.equal(requests(path).length, times));

survives('a hook that was at work: it is called again, with the same key', async (tenant) => {
  const [handler, path] = [newHandler(), '/hook'];
  const call = step('call', 'http_request', { params: requestTo(path) });
  const hooks = { on_failure: [call, step('last', 'noop')] };
  const id = await tenant.create(await tenant.sequence([step('a', handler)], hooks));
  const atTheKill = async () => {
    await tenant.fail(await tenant.task(handler), 'no');
    await untilRequested(path, 1);
  };
  const check = async () => {
    await untilRequested(path, 2);
    const [first, again] = requests(path);
    assert.equal(again?.key, first?.key);
    again?.response.end('told');
    await eventually(async () => assert.deepEqual(await tenant.rowsOf(id), ['call', 'last']));
    assert.equal((await tenant.instance(id)).state, 'failed');
  };
  return { atTheKill, check };
});

survives('what a missed deadline calls, though its instance has ended', async (tenant) => {
  const path = '/breach';
  const params = requestTo(path, { timeout_ms: 25_000 });
  const on_deadline_breach = { handler: 'http_request', params };
  const blocks = [step('a', newHandler(), { deadline: 1, on_deadline_breach })];
  return {
    atTheKill: async () => {
      await tenant.runUntil('failed', blocks);
      await untilRequested(path, 1);
    },
    check: () => untilRequested(path, 2),
  };
});

survives('a step in flight, with the same attempt, key and receipt', async (tenant) => {
  const path = '/in-flight';
  const params = requestTo(path, { method: 'POST' });
  const blocks = [step('a', 'noop'), step('b', 'http_request', { params }), step('c', 'noop')];
  let id = '';
  const receipts = async () =>
    (await tenant.get<EffectReceipt[]>(`/instances/${id}/effects`)).body.map(
      ({ updated_at: _, ...receipt }) => receipt,
    );
  let receipt: Awaited<ReturnType<typeof receipts>>[number] | undefined;
  return {
    atTheKill: async () => {
      id = await tenant.run(blocks);
      await untilRequested(path, 1);
      assert.equal((await tenant.instance(id)).state, 'running');
      [receipt] = await receipts();
      assert.ok(receipt);
    },
    check: async () => {
      await untilRequested(path, 2);
      const [first, second] = requests(path);
      assert.equal(second?.key, first?.key);
      assert.notEqual(first?.key, 'undefined');
      second?.response.end('done');
      await tenant.until(id, 'completed');
      assert.deepEqual(columns(await tenant.outputs(id), 'block_id', 'attempt'), [
        ['a', 0],
        ['b', 0],
        ['c', 0],
      ]);
      assert.equal(requests(path).length, 2);
      assert.deepEqual(await receipts(), [{ ...receipt, state: 'committed' }]);
    },
  };
});

survives('a cancelled instance does not run its step again', async (tenant) => {
  const path = '/cancelled';
  const id = await tenant.run([step('a', 'http_request', { params: requestTo(path) })]);
  await untilRequested(path, 1);
  await tenant.signal(id, 'cancel');
  await tenant.until(id, 'cancelled');
  return async () => {
    await tenant.runUntil('completed', [sleep('a', 100)]);
    assert.equal(requests(path).length, 1);
  };
});
