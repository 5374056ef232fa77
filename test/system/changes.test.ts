/** GET /changes and GET /changes/stream, over both HTTP backends: order, cursors, tenants, limits. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import type { Changes } from '../../schema/change.js';
import type { AuditEntry } from '../../schema/instance.js';
import { eventually, type Json, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { allChanges, assertSame, auditOf, changesOf, openChanges } from '../helpers/changes.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { isDeep } from '../helpers/depth.js';
import type { EventReader } from '../helpers/event-stream.js';

/** One server, which is started again with the second backend. */
const envOf = (backend: string) => ({
  ENGINE_SHARDS: '2',
  ENGINE_WRITER_LANES: '2',
  ENGINE_HTTP_BACKEND: backend,
});

const api = useApi({ env: envOf('auto') });

const MALFORMED = [
  'abc',
  '%25%25',
  'e30',
  'bnVsbA',
  Buffer.from('{"created_at":"soon","id":"01950000-0000-7000-8000-00000000abcd"}').toString(
    'base64url',
  ),
  Buffer.from('{"created_at":"2026-01-01T00:00:00Z","id":"x"}').toString('base64url'),
  'a'.repeat(600),
];

const cursorOf = ({ created_at, id }: AuditEntry) =>
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
  return auditOf(tenant);
}

function pages(backend: string): void {
  describe(`Change feed: ascending, exclusive cursor, exact-size page has_more false, limit 0 acts as 1, limit above 500 accepted, malformed cursor 400, tenant required, header beats query, Last-Event-ID resumes without repeats, query cursor beats it, over ${backend}`, () => {
    test('what happened to all instances is listed once, oldest first', async () => {
      const tenant = api.tenant();
      const expected = await someChanges(tenant);
      assert.ok(expected.length >= 12, String(expected.length));
      for (const limit of [1, 2, 5, 500]) assertSame(await allChanges(tenant, limit), expected);
    });

    test('a cursor is exclusive, and a page of exactly what is left has no more', async () => {
      const tenant = api.tenant();
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

    test('the entry that a cursor names need not exist', async () => {
      const tenant = api.tenant();
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

    test('a limit of 0 acts as 1, and one above 500 as 500', async () => {
      const tenant = api.tenant();
      const expected = await someChanges(tenant, 1);
      assertSame((await changesOf(tenant, 'limit=0')).changes, expected.slice(0, 1));
      const handler = newHandler();
      const sequence = await tenant.sequence([step('a', handler)]);
      const items = Array.from({ length: 260 }, () => tenant.creation(sequence));
      expectStatus(await tenant.post('/instances/batch', { instances: items }), 201);
      await eventually(async () => assert.ok((await allChanges(tenant)).length > 505));
      for (const limit of [501, 100_000]) {
        const page = await changesOf(tenant, `limit=${limit}`);
        assert.equal(page.changes.length, 500);
        assert.equal(page.has_more, true);
      }
      assert.equal((await changesOf(tenant)).changes.length, 100);
      for (const limit of ['-1', 'many', '1.5']) {
        assert.equal((await tenant.get(`/changes?limit=${limit}`)).status, 400, limit);
      }
    });

    test('instances without entries are walked past, however many a batch made at one time', async () => {
      const tenant = api.tenant();
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

    test('a malformed cursor is refused, wherever it comes from', async () => {
      const tenant = api.tenant();
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
      const byQuery = await api.root.get<{ changes: AuditEntry[] }>(
        `/changes?tenant_id=${one.name}`,
      );
      assertSame(expectStatus(byQuery, 200).changes, expected);
      assertSame((await changesOf(one, `tenant_id=${other.name}`)).changes, expected);
      const start = cursorOf({
        ...(expected[0] as AuditEntry),
        created_at: '2000-01-01T00:00:00Z',
      });
      const query = `tenant_id=${other.name}&cursor=${start}`;
      const [stream, queried] = [
        await openChanges(api, one.name, { query }),
        await openChanges(api, undefined, { query }),
      ];
      await stream.until(({ events }) => events.length >= expected.length);
      await queried.until(({ events }) => events.length >= ofOther.length);
      assertSame(told(stream), expected);
      assertSame(told(queried), ofOther);
      for (const reader of [stream, queried]) reader.close();
    });

    test('Last-Event-ID resumes without repeats, and a cursor in the query beats it', async () => {
      const tenant = api.tenant();
      const expected = await someChanges(tenant);
      const [first, second] = expected.map(cursorOf) as [string, string];
      const resumed = await openChanges(api, tenant.name, { lastEventId: first });
      await resumed.until(({ events }) => events.length >= expected.length - 1);
      assertSame(told(resumed), expected.slice(1));
      assert.deepEqual(
        columns(resumed.events, 'event', 'id'),
        expected.slice(1).map((entry) => ['change', cursorOf(entry)]),
      );
      const options = { lastEventId: first, query: `cursor=${second}` };
      const beaten = await openChanges(api, tenant.name, options);
      await beaten.until(({ events }) => events.length >= expected.length - 2);
      assertSame(told(beaten), expected.slice(2));
      const malformed = { lastEventId: 'nonsense', query: `cursor=${second}` };
      const winning = await openChanges(api, tenant.name, malformed);
      assert.equal(winning.status, 200);
      for (const reader of [resumed, beaten, winning]) reader.close();
    });
  });
}

function streams(backend: string): void {
  describe(`streams of changes over ${backend}`, () => {
    test('a stream without a cursor begins with the present, and can be resumed from there', async () => {
      const tenant = api.tenant();
      const old = await someChanges(tenant, 1);
      const stream = await openChanges(api, tenant.name);
      assert.equal(stream.status, 200);
      assert.equal(stream.headers['content-type'], 'text/event-stream');
      assert.equal(stream.headers['cache-control'], 'no-store');
      await stream.until(({ lastEventId }) => lastEventId !== '');
      assert.deepEqual(stream.events, []);
      stream.close();
      const expected = (await someChanges(tenant, 1)).slice(old.length);
      const resumed = await openChanges(api, tenant.name, { lastEventId: stream.lastEventId });
      await resumed.until(({ events }) => events.length >= expected.length);
      assertSame(told(resumed), expected);
      const more = (await someChanges(tenant, 2)).slice(old.length);
      await resumed.until(({ events }) => events.length >= more.length);
      assertSame(told(resumed), more);
      resumed.close();
    });

    test('tenants do not see each other', async () => {
      const [one, other] = [api.tenant(), api.tenant()];
      const [stream, foreign] = [
        await openChanges(api, one.name),
        await openChanges(api, other.name),
      ];
      for (const reader of [stream, foreign]) {
        await reader.until(({ lastEventId }) => lastEventId !== '');
      }
      const expected = await someChanges(one, 2);
      await stream.until(({ events }) => events.length >= expected.length);
      const ofOther = await someChanges(other, 1);
      await foreign.until(({ events }) => events.length >= ofOther.length);
      assertSame(told(stream), expected);
      assertSame(told(foreign), ofOther);
      for (const reader of [stream, foreign]) reader.close();
    });

    test('the key of a tenant sees its own changes, whatever the query says', async () => {
      const [one, other] = [api.tenant(), api.tenant()];
      const expected = await someChanges(one, 1);
      await someChanges(other, 1);
      const minting = { tenant_id: one.name, name: 'reader', capabilities: ['auditor'] };
      const minted = await api.root.post<{ secret: string }>('/api-keys', minting);
      const key = one.with({ apiKey: expectStatus(minted, 201).secret });
      const page = await key.get<Changes>(`/changes?tenant_id=${other.name}`);
      assertSame(expectStatus(page, 200).changes, expected);
      assert.equal((await key.with({ tenant: other.name }).get('/changes')).status, 403);
    });

    test('HEAD answers without a body', async () => {
      const head = await openChanges(api, api.tenant().name, { method: 'HEAD' });
      await head.ended;
      assert.equal(head.status, 200);
      assert.equal(head.headers['content-type'], 'text/event-stream');
    });

    test('a tenant has 256 streams at most: one more is 429 until another one ends, and other tenants find room', async () => {
      const tenant = api.tenant();
      const streams = await eventually(async () => {
        const opening = Array.from({ length: 256 }, () => openChanges(api, tenant.name));
        const opened = await Promise.all(opening);
        const isFull = opened.every(({ status }) => status === 200);
        if (!isFull) for (const stream of opened) stream.close();
        assert.ok(isFull);
        return opened;
      });
      const refused = await openChanges(api, tenant.name);
      assert.equal(refused.status, 429);
      assert.equal(refused.headers['x-error-code'], 'ENG_TOO_MANY_STREAMS');
      assert.match(String(refused.headers['retry-after']), /^\d+$/);
      const foreign = await openChanges(api, api.tenant().name);
      assert.equal(foreign.status, 200);
      foreign.close();
      await Promise.all(
        streams.map((stream) => stream.until(({ lastEventId }) => lastEventId !== '')),
      );
      streams[7]?.close();
      const another = await eventually(async () => {
        const stream = await openChanges(api, tenant.name);
        assert.equal(stream.status, 200);
        return stream;
      });
      await another.until(({ lastEventId }) => lastEventId !== '');
      const expected = await someChanges(tenant, 1);
      for (const [index, stream] of [...streams, another].entries()) {
        if (index !== 7) await stream.until(({ events }) => events.length >= expected.length);
        if (index !== 7) assertSame(told(stream), expected);
        stream.close();
      }
    });

    test('a client that reads late gets everything, page after page', async () => {
      const tenant = api.tenant();
      const retry = { max_attempts: 60, initial_backoff: 1, max_backoff: 1 };
      const sequence = await tenant.sequence([
        step('b', 'fail', { params: { retryable: true }, retry }),
      ]);
      const ids = await Promise.all(Array.from({ length: 12 }, () => tenant.create(sequence)));
      for (const id of ids) await tenant.until(id, 'failed');
      const expected = await auditOf(tenant);
      assert.ok(expected.length > 500, String(expected.length));
      const start = cursorOf({
        ...(expected[0] as AuditEntry),
        created_at: '2000-01-01T00:00:00Z',
      });
      const stream = await openChanges(api, tenant.name, { query: `cursor=${start}` });
      stream.pause();
      await tenant.instance(ids[0] as string);
      stream.resume();
      await stream.until(({ events }) => events.length >= expected.length);
      assertSame(told(stream), expected);
      stream.close();
    });
  });
}

pages('uws');
streams('uws');

test('what was answered is in the feed at once', async () => {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', newHandler())]);
  for (let i = 0; i < 20; i++) {
    const before = (await allChanges(tenant)).length;
    await tenant.signal(id, i % 2 === 0 ? 'pause' : 'resume');
    const changes = await allChanges(tenant);
    assert.ok(changes.length > before, `signal ${i}`);
    assert.equal((changes.at(-1) as AuditEntry & Json).instance_id, id);
  }
});

test('SIGTERM ends streams properly, and the next server goes on with their last ids', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  const stream = await openChanges(api, tenant.name);
  await stream.until(({ lastEventId }) => lastEventId !== '');
  await tenant.signal(id, 'pause');
  await stream.until(({ events }) => events.length > 0);
  await api.restart('SIGTERM', { env: envOf('node') });
  const count = await stream.ended;
  await tenant.signal(id, 'cancel');
  const resumed = await openChanges(api, tenant.name, { lastEventId: stream.lastEventId });
  await resumed.until(({ events }) => events.length > 0);
  const all = [...told(stream).slice(0, count), ...told(resumed)];
  assertSame(all, (await auditOf(tenant)).slice(-all.length));
  resumed.close();
});

// What a page holds does not depend on who sends it.
if (isDeep) pages('node');
streams('node');

test('a server whose clock is an hour behind what was read goes on above it, and is read at once', async () => {
  const tenant = api.tenant();
  const before = await someChanges(tenant, 1);
  const { next_cursor: cursor } = await changesOf(tenant);
  const sql = new pg.Client({ connectionString: api.database.connectionString });
  await sql.connect();
  const { rows } = await sql.query(
    "update change_mark set stamps_from = now() + interval '1 hour' returning stamps_from",
  );
  await sql.end();
  await api.restart('SIGKILL');
  const mark = (rows[0].stamps_from as Date).toISOString();
  const stream = await openChanges(api, tenant.name, { lastEventId: String(cursor) });
  for (let count = 1; count < 4; count++) {
    const id = await tenant.run([step('a', 'noop')]);
    const created = (await tenant.instance(id)).created_at;
    assert.ok(created >= mark, `${created} is below ${mark}`);
    const news = (await auditOf(tenant)).slice(before.length);
    assert.equal(news.length, 2 * count);
    assertSame((await changesOf(tenant, `cursor=${cursor}`)).changes, news);
    await stream.until(({ events }) => events.length >= news.length);
    assertSame(told(stream), news);
  }
  stream.close();
});
