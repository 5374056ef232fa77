/** Streams of an instance and of the changes of a tenant. */

import assert from 'node:assert/strict';
import { after, describe } from 'node:test';
import type { AuditEntry } from '../../schema/instance.js';
import { LIMITS } from '../../src/base/limits.js';
import {
  beforeWith,
  eventually,
  type Json,
  loop,
  newHandler,
  step,
  type Tenant,
  testsOf,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import type { StreamOptions } from '../helpers/changes.js';
import { allChanges, assertSame, auditOf, changesOf, openChanges } from '../helpers/changes.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { closeStreams, type EventReader, openEvents } from '../helpers/event-stream.js';

const UNKNOWN = '01950000-0000-7000-8000-00000000abcd';

const api = useSharedApi();
const test = testsOf(api);
after(closeStreams);

/** Opens the stream of an instance, as fast as streams go unless `query` says otherwise. */
function openStream(tenant: string, id: string, query = 'poll_ms=100'): Promise<EventReader> {
  return openEvents({
    url: `${api.url}/api/v1/instances/${id}/stream?${query}`,
    headers: { 'x-api-key': DEFAULT_API_KEY, 'x-tenant-id': tenant },
  });
}

const states = ({ events }: EventReader) =>
  events.filter(({ event }) => event === 'state').map(({ data }) => data.state);
const outputs = ({ events }: EventReader) =>
  events.filter(({ event }) => event === 'output').map(({ data }) => data);
const has = (event: string, state?: string) => (reader: EventReader) =>
  reader.events.some((it) => it.event === event && [undefined, it.data.state].includes(state));

/** The events say that the instance ended so, and that was the last of them. */
async function endsWith(reader: EventReader, state: string): Promise<void> {
  await reader.ended;
  const { event, data } = reader.events.at(-1)!;
  assert.deepEqual([event, data.state], ['done', state]);
  assert.equal(data.failure !== undefined, state === 'failed');
  assert.equal(reader.events.filter(({ event }) => event === 'done').length, 1);
  assert.equal(states(reader).at(-1), state);
}

let silent: EventReader;
beforeWith(api, async () => {
  const tenant = api.tenant();
  silent = await openStream(tenant.name, await tenant.run([step('a', newHandler())]));
});
const open = (tenant: Tenant, id: string, query?: string) => openStream(tenant.name, id, query);

test('A stream has at least one state event, one output event per step, and ends with done in a terminal state', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const id = await tenant.run([step('a', 'noop'), step('b', handler), transform('c', { x: 1 })]);
  const stream = await open(tenant, id);
  assert.deepEqual([stream.status, stream.headers['content-type']], [200, 'text/event-stream']);
  assert.equal(stream.headers['cache-control'], 'no-store');
  assert.equal(stream.headers['x-accel-buffering'], 'no');
  await stream.until(has('output'));
  const { updated_at } = await tenant.instance(id);
  const data = { instance_id: id, state: 'waiting', updated_at };
  assert.deepEqual(stream.events[0], { event: 'state', data });
  await tenant.complete(await tenant.task(handler), { y: 2 });
  await endsWith(stream, 'completed');
  assert.deepEqual(outputs(stream), await tenant.outputs(id));
  assert.deepEqual(column(outputs(stream), 'block_id'), ['a', 'b', 'c']);
});

test('each change of state is told, also long after the one before', async (tenant) => {
  const id = await tenant.run([step('a', newHandler())]);
  const stream = await open(tenant, id);
  await stream.until(has('state', 'waiting'));
  await tenant.signal(id, 'pause');
  await stream.until(has('state', 'paused'));
  await tenant.signal(id, 'resume');
  await stream.until((reader) => states(reader).length > 2 && states(reader).at(-1) === 'waiting');
  await tenant.signal(id, 'cancel');
  await endsWith(stream, 'cancelled');
  assert.deepEqual(states(stream).slice(0, 2), ['waiting', 'paused']);
});

test('an instance that ended before is told at once, its failure with the error row', async (tenant) => {
  const failed = await tenant.runUntil('failed', [step('a', 'noop'), step('b', 'fail')]);
  const stream = await open(tenant, failed);
  await endsWith(stream, 'failed');
  assert.deepEqual(column(stream.events, 'event'), ['state', 'output', 'output', 'done']);
  assert.equal(outputs(stream)[1]?.output_ref, '__error__');
});

test('more outputs than one batch holds reach a client that reads late', async (tenant) => {
  const body = [transform('t', { text: 'y'.repeat(30_000) })];
  const id = await tenant.runUntil('completed', [loop('l', 'go', body, 150)], { go: true });
  const stream = await open(tenant, id);
  stream.pause();
  await tenant.instance(id);
  stream.resume();
  await endsWith(stream, 'completed');
  const rows = outputs(stream);
  assert.deepEqual(
    column(
      rows.filter((row) => row.block_id === 't'),
      'attempt',
    ),
    Array.from({ length: 150 }, (_, index) => index),
  );
});

test('without outputs each change of an instance is an event, also within a state', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('waiting', [step('a', handler)]);
  const stream = await open(tenant, id, 'poll_ms=100&include_outputs=false');
  await stream.until(has('state', 'waiting'));
  const before = stream.events.length;
  const task = await tenant.task(handler);
  await stream.until(({ events }) => events.length > before);
  assert.deepEqual(new Set(states(stream)), new Set(['waiting']));
  await tenant.complete(task, { y: 2 });
  await endsWith(stream, 'completed');
  assert.deepEqual(outputs(stream), []);
});

test('what cannot be streamed is refused before the start', async (tenant) => {
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

test('a silent one is kept alive by comments', async () => {
  await silent.until(({ comments }) => comments > 0);
  assert.deepEqual(states(silent), ['waiting']);
  silent.close();
});

/** As many as a tenant may have. */
/** What a tenant may have open, and what the root key beyond it. */
const [TENANTS, ROOTS] = [LIMITS.streamsPerTenantMax, LIMITS.streamsOfRoot];
const openAll = (open: () => Promise<EventReader>) =>
  eventually(async () => {
    const opened = await Promise.all(Array.from({ length: TENANTS + ROOTS }, open));
    const isFull = opened.every(({ status }) => status === 200);
    if (!isFull) for (const stream of opened) stream.close();
    assert.ok(isFull);
    return opened;
  });

const hasBegun = ({ lastEventId }: EventReader) => lastEventId !== '';
const isTold = ({ events }: EventReader) => events.length > 0;
const changesOfTenant = (tenant: Tenant) => openChanges(api, tenant.name);

for (const [what, openOne, refusal, begun, over] of [
  ['of an instance', open, [503, 'ENG_OVERLOADED'], has('state', 'waiting'), has('done')],
  ['of its changes', changesOfTenant, [429, 'ENG_TOO_MANY_STREAMS'], hasBegun, isTold],
] as const) {
  test(`a tenant has 256 streams ${what} at most, and the root key 32 more: another one is refused until one ends, and other tenants find room`, async (tenant) => {
    const id = await tenant.run([step('a', newHandler())]);
    await tenant.until(id, 'waiting');
    // The streams of earlier tests have to be gone from the count.
    const streams = await openAll(() => openOne(tenant, id));
    const { status, headers } = await openOne(tenant, id);
    assert.deepEqual([status, headers['x-error-code']], refusal);
    assert.match(String(headers['retry-after']), /^\d+$/);
    const other = api.tenant();
    const foreign = await openOne(other, await other.run([step('a', newHandler())]));
    assert.equal(foreign.status, 200);
    foreign.close();
    await Promise.all(streams.map((stream) => stream.until(begun)));
    streams.shift()?.close();
    const another = await eventually(async () => {
      const stream = await openOne(tenant, id);
      assert.equal(stream.status, 200);
      return stream;
    });
    await another.until(begun);
    await tenant.move(id, 'cancelled');
    for (const stream of [...streams, another]) {
      await stream.until(over);
      stream.close();
    }
  });
}

// ---------------------------------------------------------------- changes

/** `cursors.test.ts` has more of them. */
const MALFORMED = ['abc', '%25%25', 'a'.repeat(600)];

const cursorOf = ({ created_at, id }: Pick<AuditEntry, 'created_at' | 'id'>) =>
  Buffer.from(JSON.stringify({ created_at, id })).toString('base64url');
const told = ({ events }: EventReader) => events.map(({ data }) => data as unknown as AuditEntry);

/** Instances that leave some entries each, most of them packed with others. */
async function someChanges(tenant: Tenant, count = 3): Promise<AuditEntry[]> {
  const retry = { max_attempts: 3, initial_backoff: 1 };
  const sequence = await tenant.sequence([
    step('a', 'noop'),
    step('b', 'fail', { params: { retryable: true }, retry }),
  ]);
  for (let i = 0; i < count; i++) await tenant.until(await tenant.create(sequence), 'failed');
  // Streams of the tenant read, too: what asks beside many of them is refused at times.
  return eventually(() => auditOf(tenant));
}

/** Before every entry. */
const START = cursorOf({
  created_at: '2000-01-01T00:00:00Z',
  id: '01950000-0000-7000-8000-00000000abcd',
});

/** Sees the entries, and nothing else before them. */
async function assertStreams(stream: EventReader, expected: readonly AuditEntry[]): Promise<void> {
  await stream.until(({ events }) => events.length >= expected.length);
  assertSame(told(stream), expected);
}

/** A stream that has begun: what happens from now on comes with it. */
async function streamOf(tenant: Tenant, options: StreamOptions = {}): Promise<EventReader> {
  const stream = await openChanges(api, tenant.name, options);
  assert.equal(stream.status, 200);
  await stream.until(({ lastEventId }) => lastEventId !== '');
  return stream;
}

describe('Change feed: ascending with an exclusive cursor; has_more is exact; limit 0 acts as 1 and above 500 is accepted; a malformed cursor is 400; a tenant is required, by header before query; Last-Event-ID resumes without repeats, the query cursor takes precedence', () => {
  test('what happened to all instances is listed once, oldest first', async (tenant) => {
    const expected = await someChanges(tenant);
    assert.ok(expected.length >= 12, String(expected.length));
    for (const limit of [1, 2, 5, 500]) assertSame(await allChanges(tenant, limit), expected);
  });

  test('a cursor is exclusive, and a page of exactly what is left has no more', async (tenant) => {
    const expected = await someChanges(tenant);
    const exact = await changesOf(tenant, `limit=${expected.length}`);
    assertSame(exact.changes, expected);
    assert.equal(exact.has_more, false);
    const most = await changesOf(tenant, `limit=${expected.length - 1}`);
    assert.equal(most.has_more, true);
    assert.equal(most.next_cursor, cursorOf(expected.at(-2) as AuditEntry));
    const rest = await changesOf(tenant, `limit=1&cursor=${most.next_cursor}`);
    assertSame(rest.changes, expected.slice(-1));
    assert.equal(rest.has_more, false);
    const end = await changesOf(tenant, `cursor=${rest.next_cursor}`);
    assert.deepEqual(end, { changes: [], has_more: false });
  });

  test('the entry that a cursor names need not exist', async (tenant) => {
    const expected = await someChanges(tenant);
    const third = expected[2] as AuditEntry;
    const before = { ...third, id: `${third.id.slice(0, -1)}${'0'}` };
    const page = await changesOf(tenant, `cursor=${cursorOf(before)}`);
    const isThere = expected.some(({ id }) => id === before.id);
    assertSame(page.changes, expected.slice(isThere ? 3 : 2));
    const past = { ...third, created_at: '1999-01-01T00:00:00Z' };
    assertSame((await changesOf(tenant, `cursor=${cursorOf(past)}`)).changes, expected);
    const future = { ...third, created_at: '9999-12-31T23:59:59.999Z' };
    const none = await changesOf(tenant, `cursor=${cursorOf(future)}`);
    assert.deepEqual(none, { changes: [], has_more: false });
  });

  test('a limit of 0 acts as 1, and one above 500 as 500', async (tenant) => {
    const expected = await someChanges(tenant, 1);
    assertSame((await changesOf(tenant, 'limit=0')).changes, expected.slice(0, 1));
    const sequence = await tenant.sequence([step('a', newHandler())]);
    const items = Array.from({ length: 260 }, () => tenant.creation(sequence));
    expectStatus(await tenant.post('/instances/batch', { instances: items }), 201);
    await eventually(async () => assert.ok((await allChanges(tenant)).length > 505));
    for (const limit of [501, 100_000]) {
      const page = await changesOf(tenant, `limit=${limit}`);
      assert.deepEqual([page.changes.length, page.has_more], [500, true]);
    }
    assert.equal((await changesOf(tenant)).changes.length, 100);
    for (const limit of ['-1', 'many', '1.5']) {
      assert.equal((await tenant.get(`/changes?limit=${limit}`)).status, 400, limit);
    }
  });

  test('instances without entries are walked past, however many a batch made at one time', async (tenant) => {
    const sequence = await tenant.sequence([step('a', newHandler())]);
    const later = { next_fire_at: '2100-01-01T00:00:00Z' };
    const items = Array.from({ length: 4_500 }, () => tenant.creation(sequence, later));
    const first = await someChanges(tenant, 1);
    expectStatus(await tenant.post('/instances/batch', { instances: items }), 201);
    assertSame(await allChanges(tenant), first);
    await tenant.create(sequence);
    const { next_cursor: cursor } = await changesOf(tenant, `limit=${first.length}`);
    const { changes } = await changesOf(tenant, `cursor=${cursor}`);
    assert.deepEqual(column(changes, 'to_state'), ['running', 'waiting']);
  });

  test('a malformed cursor is refused, wherever it comes from', async (tenant) => {
    for (const cursor of MALFORMED) {
      assert.equal((await tenant.get(`/changes?cursor=${cursor}`)).status, 400, cursor);
      const byQuery = await openChanges(api, tenant.name, { query: `cursor=${cursor}` });
      assert.equal(byQuery.status, 400, cursor);
      const byHeader = await openChanges(api, tenant.name, { lastEventId: cursor });
      assert.equal(byHeader.status, 400, cursor);
    }
  });

  test('a tenant is required, and the header beats the query', async () => {
    const [one, other] = [api.tenant(), api.tenant()];
    const expected = await someChanges(one, 1);
    const ofOther = await someChanges(other, 1);
    assert.equal((await api.root.get('/changes')).status, 400);
    assert.equal((await api.root.get('/changes?tenant_id=')).status, 400);
    assert.equal((await openChanges(api, undefined)).status, 400);
    const byQuery = await api.root.get<{ changes: AuditEntry[] }>(`/changes?tenant_id=${one.name}`);
    assertSame(expectStatus(byQuery, 200).changes, expected);
    assertSame((await changesOf(one, `tenant_id=${other.name}`)).changes, expected);
    const query = `tenant_id=${other.name}&cursor=${START}`;
    const [stream, queried] = [
      await openChanges(api, one.name, { query }),
      await openChanges(api, undefined, { query }),
    ];
    await assertStreams(stream, expected);
    await assertStreams(queried, ofOther);
    for (const reader of [stream, queried]) reader.close();
  });

  test('Last-Event-ID resumes without repeats, and a cursor in the query beats it', async (tenant) => {
    const expected = await someChanges(tenant);
    const [first, second] = expected.map(cursorOf) as [string, string];
    const resumed = await openChanges(api, tenant.name, { lastEventId: first });
    await assertStreams(resumed, expected.slice(1));
    const wanted = expected.slice(1).map((entry) => ['change', cursorOf(entry)]);
    assert.deepEqual(columns(resumed.events, 'event', 'id'), wanted);
    const options = { lastEventId: first, query: `cursor=${second}` };
    const beaten = await openChanges(api, tenant.name, options);
    await assertStreams(beaten, expected.slice(2));
    const malformed = { lastEventId: 'nonsense', query: `cursor=${second}` };
    const winning = await openChanges(api, tenant.name, malformed);
    assert.equal(winning.status, 200);
    for (const reader of [resumed, beaten, winning]) reader.close();
  });

  test('what was answered is in the feed at once', async (tenant) => {
    const id = await tenant.run([step('a', newHandler())]);
    for (let i = 0; i < 10; i++) {
      const before = (await allChanges(tenant)).length;
      await tenant.signal(id, i % 2 === 0 ? 'pause' : 'resume');
      const changes = await allChanges(tenant);
      assert.ok(changes.length > before, `signal ${i}`);
      assert.equal((changes.at(-1) as AuditEntry & Json).instance_id, id);
    }
  });
});

describe('streams of changes', () => {
  test('a stream without a cursor begins with the present, and can be resumed from there', async (tenant) => {
    const old = await someChanges(tenant, 1);
    const stream = await streamOf(tenant);
    assert.equal(stream.headers['content-type'], 'text/event-stream');
    assert.equal(stream.headers['cache-control'], 'no-store');
    assert.deepEqual(stream.events, []);
    stream.close();
    const expected = (await someChanges(tenant, 1)).slice(old.length);
    const resumed = await openChanges(api, tenant.name, { lastEventId: stream.lastEventId });
    await assertStreams(resumed, expected);
    await assertStreams(resumed, (await someChanges(tenant, 2)).slice(old.length));
    resumed.close();
  });

  test('a client that reads late gets everything, page after page', async (tenant) => {
    const retry = { max_attempts: 60, initial_backoff: 1, max_backoff: 1 };
    const sequence = await tenant.sequence([
      step('b', 'fail', { params: { retryable: true }, retry }),
    ]);
    const ids = await Promise.all(Array.from({ length: 12 }, () => tenant.create(sequence)));
    for (const id of ids) await tenant.until(id, 'failed');
    const expected = await auditOf(tenant);
    assert.ok(expected.length > 500, String(expected.length));
    const stream = await openChanges(api, tenant.name, { query: `cursor=${START}` });
    stream.pause();
    await tenant.instance(ids[0] as string);
    stream.resume();
    await assertStreams(stream, expected);
    stream.close();
  });
});
