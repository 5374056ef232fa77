/** GET /instances/{id}/stream over both HTTP backends: events, their order, limits, and the end. */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  eventually,
  type Json,
  loop,
  newHandler,
  sleep,
  step,
  type Tenant,
  transform,
  useApi,
} from '../helpers/api.js';
import { column } from '../helpers/columns.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { type EventReader, openEvents } from '../helpers/event-stream.js';

const UNKNOWN = '01950000-0000-7000-8000-00000000abcd';

/** One server, which is started again with the second backend. */
const envOf = (backend: string) => ({ ENGINE_SHARDS: '2', ENGINE_HTTP_BACKEND: backend });

const api = useApi({ env: envOf('auto') });

/** Opens the stream of an instance, as fast as streams go unless `query` says otherwise. */
function openStream(
  tenant: string,
  id: string,
  query = 'poll_ms=100',
  method: 'GET' | 'HEAD' = 'GET',
): Promise<EventReader> {
  return openEvents({
    url: `${api.url}/api/v1/instances/${id}/stream?${query}`,
    headers: { 'x-api-key': DEFAULT_API_KEY, 'x-tenant-id': tenant },
    method,
  });
}

const states = ({ events }: EventReader) =>
  events.filter(({ event }) => event === 'state').map(({ data }) => data.state);
const outputs = ({ events }: EventReader) =>
  events.filter(({ event }) => event === 'output').map(({ data }) => data);
const has = (event: string, state?: string) => (reader: EventReader) =>
  reader.events.some(
    (it) => it.event === event && (state === undefined || it.data.state === state),
  );

/** The events say that the instance ended so, and that was the last of them. */
async function endsWith(reader: EventReader, state: string): Promise<void> {
  await reader.ended;
  const { event, data } = reader.events.at(-1)!;
  assert.deepEqual([event, data.state], ['done', state]);
  assert.equal(data.failure !== undefined, state === 'failed');
  assert.equal(reader.events.filter(({ event }) => event === 'done').length, 1);
  assert.equal(states(reader).at(-1), state);
}

function streams(backend: string): void {
  describe(`over ${backend}`, () => {
    let silent: EventReader;
    before(async () => {
      const tenant = api.tenant();
      silent = await openStream(tenant.name, await tenant.run([step('a', newHandler())]));
    });
    const open = (tenant: Tenant, id: string, query?: string) => openStream(tenant.name, id, query);

    test('SSE: at least one state event, one output per step, done last with a terminal state', async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const id = await tenant.run([
        step('a', 'noop'),
        step('b', handler),
        transform('c', { x: 1 }),
      ]);
      const stream = await open(tenant, id);
      assert.equal(stream.status, 200);
      assert.equal(stream.headers['content-type'], 'text/event-stream');
      assert.equal(stream.headers['cache-control'], 'no-store');
      assert.equal(stream.headers['x-accel-buffering'], 'no');
      await stream.until(has('output'));
      assert.deepEqual(stream.events[0], {
        event: 'state',
        data: { instance_id: id, state: 'waiting' },
      });
      await tenant.complete(await tenant.task(handler), { y: 2 });
      await endsWith(stream, 'completed');
      assert.deepEqual(outputs(stream), await tenant.outputs(id));
      assert.deepEqual(column(outputs(stream), 'block_id'), ['a', 'b', 'c']);
    });

    test('each change of state is told, also long after the one before', async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const id = await tenant.run([step('a', handler)]);
      const stream = await open(tenant, id);
      await stream.until(has('state', 'waiting'));
      await tenant.signal(id, 'pause');
      await stream.until(has('state', 'paused'));
      await tenant.signal(id, 'resume');
      await stream.until(
        (reader) => states(reader).length > 2 && states(reader).at(-1) === 'waiting',
      );
      await tenant.signal(id, 'cancel');
      await endsWith(stream, 'cancelled');
      assert.deepEqual(states(stream).slice(0, 2), ['waiting', 'paused']);
    });

    test('an instance that ended before is told at once, its failure with the error row', async () => {
      const tenant = api.tenant();
      const failed = await tenant.runUntil('failed', [step('a', 'noop'), step('b', 'fail')]);
      const stream = await open(tenant, failed);
      await endsWith(stream, 'failed');
      assert.deepEqual(column(stream.events, 'event'), ['state', 'output', 'output', 'done']);
      assert.equal(outputs(stream)[1]?.output_ref, '__error__');
    });

    test('outputs that come in many commits are told once each, in order, to every stream', async () => {
      const tenant = api.tenant();
      const body = [step('n', 'noop'), transform('t', { text: 'x'.repeat(300) }), sleep('s', 1)];
      const id = await tenant.run([loop('l', 'go', body, 150)], {
        context: { data: { go: true } },
      });
      const streams = await Promise.all([open(tenant, id), open(tenant, id), open(tenant, id)]);
      for (const stream of streams) await endsWith(stream, 'completed');
      const stored = await tenant.outputs(id);
      assert.ok(stored.length >= 450, String(stored.length));
      for (const stream of streams) assert.deepEqual(outputs(stream), stored);
    });

    test('more outputs than one batch holds reach a client that reads late', async () => {
      const tenant = api.tenant();
      const body = [transform('t', { text: 'y'.repeat(30_000) })];
      const id = await tenant.runUntil('completed', [loop('l', 'go', body, 150)], { go: true });
      const stream = await open(tenant, id);
      stream.pause();
      await tenant.instance(id);
      stream.resume();
      await endsWith(stream, 'completed');
      const rows = outputs(stream);
      assert.equal(rows.length, (await countOf(tenant, id)) as number);
      assert.deepEqual(
        column(
          rows.filter((row) => row.block_id === 't'),
          'attempt',
        ),
        Array.from({ length: 150 }, (_, index) => index),
      );
    });

    test('what cannot be streamed is refused before the start', async () => {
      const tenant = api.tenant();
      const id = await tenant.run([step('a', newHandler())]);
      const refusals: [Promise<EventReader>, number, RegExp][] = [
        [open(tenant, UNKNOWN), 404, /not found/],
        [openStream(api.tenant().name, id), 404, /not found/],
        [open(tenant, 'not-an-id'), 400, /id/],
        [open(tenant, id, 'poll_ms=soon'), 400, /poll_ms/],
        [open(tenant, id, 'poll_ms=-1'), 400, /poll_ms/],
      ];
      for (const [opening, status, says] of refusals) {
        const refused = await opening;
        await refused.ended;
        assert.equal(refused.status, status, refused.text);
        assert.match((JSON.parse(refused.text) as Json).error as string, says);
      }
      for (const query of ['', 'poll_ms=0', 'poll_ms=999999']) {
        const stream = await open(tenant, id, query);
        assert.equal(stream.status, 200, query);
        await stream.until(has('state', 'waiting'));
        stream.close();
      }
    });

    test('HEAD answers without a body', async () => {
      const tenant = api.tenant();
      const id = await tenant.run([step('a', newHandler())]);
      const head = await openStream(tenant.name, id, '', 'HEAD');
      await head.ended;
      assert.equal(head.status, 200);
      assert.equal(head.headers['content-type'], 'text/event-stream');
      assert.deepEqual(head.events, []);
      const gone = await openStream(tenant.name, UNKNOWN, '', 'HEAD');
      assert.equal(gone.status, 404);
    });

    test('a silent one is kept alive by comments', async () => {
      await silent.until(({ comments }) => comments > 0);
      assert.deepEqual(states(silent), ['waiting']);
      silent.close();
    });

    test('the 257th stream of a tenant is refused until another one ends, and other tenants find room', async () => {
      const tenant = api.tenant();
      const id = await tenant.run([step('a', newHandler())]);
      // The streams of earlier tests have to be gone from the count.
      const streams = await eventually(async () => {
        const opened = await Promise.all(Array.from({ length: 256 }, () => open(tenant, id)));
        const isFull = opened.every(({ status }) => status === 200);
        if (!isFull) for (const stream of opened) stream.close();
        assert.ok(isFull);
        return opened;
      });
      const refused = await open(tenant, id);
      assert.equal(refused.status, 503);
      assert.match(String(refused.headers['retry-after']), /^\d+$/);
      const neighbour = api.tenant();
      const foreign = await open(neighbour, await neighbour.run([step('a', newHandler())]));
      assert.equal(foreign.status, 200);
      foreign.close();
      await Promise.all(streams.map((stream) => stream.until(has('state', 'waiting'))));
      streams[7]?.close();
      const another = await eventually(async () => {
        const stream = await open(tenant, id);
        assert.equal(stream.status, 200);
        return stream;
      });
      await tenant.move(id, 'cancelled');
      await endsWith(another, 'cancelled');
      for (const [index, stream] of streams.entries()) {
        if (index !== 7) await endsWith(stream, 'cancelled');
      }
    });
  });
}

/** The server ends while streams are open. */
async function stopped(): Promise<void> {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', 'noop'), step('b', newHandler())]);
  const open = await Promise.all([
    openStream(tenant.name, id, 'poll_ms=100'),
    openStream(tenant.name, id, 'poll_ms=5000'),
  ]);
  for (const stream of open) await stream.until(has('output'));
  assert.deepEqual(await api.engine.kill('SIGTERM'), { code: 0, signal: null });
  for (const stream of open) {
    assert.equal(await stream.ended, 2);
    assert.ok(!has('done')(stream));
  }
}

streams('uws');

test('SIGTERM ends streams properly, and a new one tells all again', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', 'noop'), step('b', handler)]);
  await stopped();
  await api.restart('SIGTERM', { env: envOf('node') });
  const again = await openStream(tenant.name, id);
  await again.until(has('output'));
  await api.restart('SIGKILL');
  await assert.rejects(again.ended);
  const last = await openStream(tenant.name, id);
  await tenant.complete(await tenant.task(handler));
  await endsWith(last, 'completed');
  assert.deepEqual(outputs(last), await tenant.outputs(id));
});

streams('node');

test('SIGTERM ends streams properly with node:http too', stopped);

/** How many rows the outputs have in all, however many answers they fill. */
async function countOf(tenant: Tenant, id: string): Promise<number> {
  let count = 0;
  for (;;) {
    const { body, headers } = await tenant.get<unknown[]>(
      `/instances/${id}/outputs?offset=${count}`,
    );
    count += body.length;
    if (headers.link === undefined) return count;
  }
}
