/**
 * The time of a server that a test controls.
 *
 * Cost: 40 s, since it starts a server with a Postgres, and tries steps and deliveries some hundred times.
 */

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { Worker } from '../../client/src/index.js';
import { durationMs } from '../../client/src/testing/duration.js';
import { startServer, type TestServer } from '../../client/src/testing/index.js';
import { listen } from '../helpers/http-handler.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('with a manual clock', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      clock: 'manual',
      env: { ENGINE_RETENTION_DAYS: '30', ENGINE_ALLOW_INTERNAL_URLS: 'true' },
    });
  });
  after(() => server.stop());

  const store = (name: string, blocks: object[]) =>
    server.client.sequences.create({ name, version: 1, blocks: blocks as never });
  const sleep = (id: string, duration_ms: number) => ({
    type: 'step',
    id,
    handler: 'sleep',
    params: { duration_ms },
  });
  const begin = async (name: string) =>
    (await server.client.instances.create({ sequence: name })).id;
  const state = async (id: string) => (await server.client.instances.get(id)).state;
  const ended = async (id: string) => {
    const outputs = await server.client.instances.outputs(id);
    return outputs.items.map(({ block_id, created_at }) => [block_id, created_at]);
  };
  const at = (ms: number) => new Date(ms).toISOString();

  test('time stands still until it is moved, and then all records show it', async () => {
    await store('rest', [sleep('a', 5)]);
    const began = server.now().getTime();
    const id = await begin('rest');
    assert.equal((await server.client.instances.get(id)).created_at, at(began));
    assert.equal((await server.advance('4ms')).getTime(), began + 4);
    assert.equal(await state(id), 'running');
    await server.advance('1ms');
    assert.equal(await state(id), 'completed');
    assert.deepEqual(
      [server.now().getTime(), await ended(id)],
      [began + 5, [['a', at(began + 5)]]],
    );
  });

  test('a timer that sets another one fires at its own time, in days that pass at once', async () => {
    await store('remind', [sleep('first', 2 * DAY), sleep('second', HOUR)]);
    const began = server.now().getTime();
    const id = await begin('remind');
    await server.advance('7d');
    assert.equal(await state(id), 'completed');
    assert.deepEqual(await ended(id), [
      ['first', at(began + 2 * DAY)],
      ['second', at(began + 2 * DAY + HOUR)],
    ]);
    assert.equal(server.now().getTime(), began + 7 * DAY);
  });

  test('schedules start their instances at each of their times', async () => {
    await store('daily', [{ type: 'step', id: 'a', handler: 'noop' }]);
    const { id } = await server.client.cron.create({
      sequence: 'daily',
      cron_expr: '0 30 9 * * * *',
      overlap_policy: 'allow',
    } as never);
    await server.advance('3d');
    const { items } = await server.client.instances.list({ sequence: 'daily' } as never);
    assert.equal(items.length, 3, JSON.stringify(await server.client.cron.get(id)));
    assert.deepEqual(
      items.map(({ created_at }) => created_at.slice(11, 16)),
      ['09:30', '09:30', '09:30'],
    );
    await server.client.cron.delete(id);
  });

  test('a worker does its task before the time goes on, and a claim that is only held is lost', async () => {
    const { client } = server;
    await store('work', [
      sleep('wait', HOUR),
      { type: 'step', id: 'do', handler: 'do', timeout: 30_000 },
      sleep('rest', HOUR),
    ]);
    const began = server.now().getTime();
    const worker = new Worker(client, { handlers: { do: async () => ({ at: server.now() }) } });
    const running = worker.run();
    const id = await begin('work');
    await server.advance('1d');
    await worker.stop();
    await running;
    assert.deepEqual(
      (await ended(id)).map(([, when]) => when),
      [at(began + HOUR), at(began + HOUR), at(began + 2 * HOUR)],
    );

    await store('held', [{ type: 'step', id: 'a', handler: 'hold' }]);
    await begin('held');
    const poll = { handler_name: 'hold', worker_id: 'w' };
    const [task] = await client.workers.poll(poll);
    await server.advance('2m');
    const [again] = await client.workers.poll(poll);
    assert.deepEqual([again?.id, again?.lost_claims], [task?.id, 1]);
  });

  test('limits of time and retention come in their turn', async () => {
    const { client } = server;
    await store('slow', [{ type: 'step', id: 'a', handler: 'nobody', queue_timeout: 10 * DAY }]);
    const began = server.now().getTime();
    const id = await begin('slow');
    await server.advance('11d');
    const { state, failure } = await client.instances.get(id);
    assert.deepEqual([state, failure?.at], ['failed', at(began + 10 * DAY)]);
    await store('kept', [{ type: 'step', id: 'a', handler: 'noop' }]);
    const old = await begin('kept');
    await server.advance('31d');
    await assert.rejects(client.instances.get(old), { status: 404 });
  });

  test('a step that always fails is tried all the time that passes, and a hot loop of it is an error', async (t) => {
    const { client } = server;
    const boom = (retry?: object) => ({ type: 'step', id: 'do', handler: 'boom', retry });
    let calls = 0;
    const fails = () => {
      calls += 1;
      throw new Error('no');
    };
    const worker = new Worker(client, { handlers: { boom: fails } });
    const running = worker.run();
    t.after(async () => {
      await worker.stop();
      await running;
    });
    await store('failing', [boom()]);
    const id = await begin('failing');
    const target = server.now().getTime() + HOUR;
    assert.equal((await server.advance('1h')).getTime(), target);
    assert.ok(calls >= 60, `${calls} calls`);
    await client.instances.signal(id, { signal_type: 'cancel' });
    for (const [name, initial_backoff, said] of [
      ['hot', 1, /would be tried more than 10000 times until/],
      ['at-once', 0, /no time passes/],
    ] as const) {
      await store(name, [boom({ max_attempts: 1e9, initial_backoff, max_backoff: 1 })]);
      const loop = await begin(name);
      await assert.rejects(server.advance('2d'), (error: Error) => {
        assert.match(error.message, said);
        return error.message.includes(`the step do of the instance ${loop} has been tried`);
      });
      await client.instances.signal(loop, { signal_type: 'cancel' });
    }
  });

  const push = async (t: TestContext, name: string, url: string) => {
    const { workerEndpoints } = server.client;
    const secret = `whsec_${Buffer.from('a key of thirty-two random bytes').toString('base64')}`;
    await workerEndpoints.put(name, { handlers: [name], url, secret, timeout_ms: 90_000 });
    t.after(() => workerEndpoints.delete(name));
  };

  test('a request to a worker endpoint that does not answer ends by its time limit, and by that of the step', async (t) => {
    const { origin } = await listen(t, () => undefined);
    await push(t, 'mute', origin);
    for (const [name, timeout, end, ms] of [
      ['mute-long', 300_000, 'failed', 90_000],
      ['mute-short', 80_000, 'timed_out', 80_000],
    ] as const) {
      const retry = { max_attempts: 1 };
      await store(name, [{ type: 'step', id: 'a', handler: 'mute', timeout, retry }]);
      const id = await begin(name);
      await server.advance('6m');
      const { items } = await server.client.instances.attempts(id);
      const took = items.map(({ state, started_at, ended_at }) => [
        state,
        Date.parse(ended_at ?? '') - Date.parse(started_at ?? ''),
      ]);
      assert.deepEqual(took, [[end, ms]]);
    }
  });

  test('deliveries to an endpoint that is down keep no time from passing, and too many of them are an error', async (t) => {
    const { client } = server;
    await push(t, 'down', 'http://127.0.0.1:9');
    await store('down', [{ type: 'step', id: 'a', handler: 'down' }]);
    const id = await begin('down');
    const target = server.now().getTime() + 10 * DAY;
    assert.equal((await server.advance('10d')).getTime(), target);
    const body = [sleep('minute', 60_000)];
    await store('minutes', [
      { type: 'loop', id: 'all', condition: 'true', max_iterations: 1_000, body },
    ]);
    const loop = await begin('minutes');
    await assert.rejects(
      server.advance('365d'),
      /of the handler down \(worker endpoint down\) has been tried \d+ times, and would be tried more than 10000 times/,
    );
    for (const one of [id, loop]) await client.instances.signal(one, { signal_type: 'cancel' });
  });

  test('webhooks are admitted', async () => {
    const { client, url } = server;
    const secret = 'correct-horse-battery-staple';
    const verify = { scheme: 'bearer' as const, secret };
    await client.triggers.create({ slug: 'in', verify, publish: { event: 'came' } });
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/webhooks/in`, { method: 'POST', headers, body: '{"n":1}' });
    assert.equal(answer.status, 202);
    const { items } = await client.events.list({ event_name: 'came' });
    assert.equal(items.length, 1);
  });

  test('a duration that is none is refused, and changes nothing', async () => {
    const now = server.now();
    for (const wrong of ['2 days', '', 'P1M', -1, 0.5, Number.NaN]) {
      await assert.rejects(server.advance(wrong), TypeError);
    }
    assert.deepEqual(server.now(), now);
  });
});

test('durations are read with their units', () => {
  const read = ['500ms', '90s', '1.5m', '2h', '3d', 'P1DT12H', 'PT0.5S', 'P2W', 7].map(durationMs);
  const wanted = [500, 90_000, 90_000, 2 * HOUR, 3 * DAY, 36 * HOUR, 500, 14 * DAY, 7];
  assert.deepEqual(read, wanted);
});
