/**
 * The end of a server, and what its successor finds. After SIGTERM what was accepted is answered, parked
 * polls get [], streams end properly and the process exits in time. On the oldest supported Postgres.
 *
 * Cost: 20 s, since it ends its server in the midst of work.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import type { AuditEntry } from '../../schema/instance.js';
import type { Release } from '../../schema/release.js';
import type { Activity, SequenceSteps } from '../../schema/statistics.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, loop, newHandler, sleep, step, useApi } from '../helpers/api.js';
import { assertSame, auditOf, openChanges } from '../helpers/changes.js';
import { expectStatus, NoReplyError } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { closeStreams, type EventReader, openEvents } from '../helpers/event-stream.js';
import { act, decisionsOf, look } from '../helpers/releases.js';
import { killOnce, subject } from '../helpers/survival.js';

/** The promise is 3 s from the signal to the exit on a machine that has nothing else to do. */
const EXIT_MS_MAX = 30_000;

const envOf = (backend: string) => {
  return { ENGINE_SHARDS: '2', ENGINE_WRITER_LANES: '3', ENGINE_HTTP_BACKEND: backend };
};

let postgres: TestPostgres;
const api = useApi(async () => {
  postgres = await startPostgres({ major: 15 });
  return { database: await postgres.createDatabase({ isMigrated: false }), env: envOf('auto') };
});
after(() => postgres.stop());
after(closeStreams);

// ---------------------------------------------------------------- a validation under way

/** A release whose validation takes as long as it may, over and over. */
async function costlyRelease(tenant: Tenant): Promise<Release> {
  const name = `s-${randomUUID()}`;
  const a = step('a', 'noop');
  const endless = loop('l', 'true', [loop('m', 'true', [step('b', 'noop')], 100_000)], 100_000);
  const body = {
    baseline_sequence_id: await tenant.sequence([a], { name, version: 1 }),
    candidate_sequence_id: await tenant.sequence([a, endless], { name, version: 2 }),
  };
  const release = expectStatus(await tenant.post<Release>('/releases', body), 201);
  for (let runs = 0; runs < 10; runs += 1) {
    await tenant.until(await tenant.create(release.baseline_sequence_id), 'completed');
  }
  return release;
}

/** Resolves when the validation is under way. */
async function beginValidation(tenant: Tenant) {
  const release = await costlyRelease(tenant);
  const status = act(tenant, release, 'validate', { sample: 50 }).then(
    (reply) => reply.status,
    () => 'cut off' as const,
  );
  await eventually(async () => assert.equal((await look(tenant, release)).state, 'validating'));
  return { release, status };
}

// ---------------------------------------------------------------- SIGKILL

const work = subject();

work.survives('a validation under way holds nobody up, and is a draft again', async (tenant) => {
  const { release, status } = await beginValidation(tenant);
  await tenant.runUntil('completed', [step('a', 'noop'), sleep('b', 1)]);
  assert.equal((await look(tenant, release)).state, 'validating');
  return async () => {
    assert.equal(await status, 'cut off');
    await eventually(async () => assert.equal((await look(tenant, release)).state, 'draft'));
    const { from_state, to_state, actor, reason } = (await decisionsOf(tenant, release)).at(-1)!;
    assert.deepEqual([from_state, to_state, actor], ['validating', 'draft', 'validation']);
    assert.ok(reason);
    const skipped = await act<Json>(tenant, release, 'validate', { skip: true });
    assert.equal(expectStatus(skipped, 200).release_state, 'ready');
  };
});

killOnce(api, { work });

// ---------------------------------------------------------------- SIGTERM

interface Streams {
  readonly tenant: Tenant;
  readonly id: string;
  readonly handler: string;
  readonly ofInstance: readonly EventReader[];
  readonly ofChanges: EventReader;
}

function openInstance(tenant: Tenant, id: string, pollMs = 100): Promise<EventReader> {
  return openEvents({
    url: `${api.url}/api/v1/instances/${id}/stream?poll_ms=${pollMs}`,
    headers: { 'x-api-key': DEFAULT_API_KEY, 'x-tenant-id': tenant.name },
  });
}

const has = (event: string) => (reader: EventReader) =>
  reader.events.some((it) => it.event === event);

/** Streams that have shown something, of an instance that waits for a worker. */
async function openStreams(): Promise<Streams> {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', 'noop'), step('b', handler)]);
  await tenant.until(id, 'waiting');
  const ofChanges = await openChanges(api, tenant.name);
  await ofChanges.until(({ lastEventId }) => lastEventId !== '');
  await tenant.signal(id, 'pause');
  await tenant.signal(id, 'resume');
  await tenant.until(id, 'waiting');
  await ofChanges.until(({ events }) => events.length > 0);
  const ofInstance = [await openInstance(tenant, id), await openInstance(tenant, id, 5_000)];
  for (const stream of ofInstance) await stream.until(has('output'));
  return { tenant, id, handler, ofInstance, ofChanges };
}

/** The streams ended properly, and those of the next server go on. */
async function assertGoOn({ tenant, id, handler, ofInstance, ofChanges }: Streams): Promise<void> {
  for (const stream of ofInstance) {
    assert.equal(await stream.ended, 2);
    assert.ok(!has('done')(stream));
  }
  const count = await ofChanges.ended;
  const { lastEventId } = ofChanges;
  const [again, resumed] = [
    await openInstance(tenant, id),
    await openChanges(api, tenant.name, { lastEventId }),
  ];
  await again.until(has('output'));
  await tenant.complete(await tenant.task(handler));
  await again.ended;
  assert.equal(again.events.at(-1)?.event, 'done');
  const outputs = again.events.filter(({ event }) => event === 'output');
  assert.deepEqual(column(outputs, 'data'), await tenant.outputs(id));
  const last = (await auditOf(tenant)).at(-1);
  await resumed.until(({ events }) => events.at(-1)?.data.id === last?.id);
  const told = [...ofChanges.events.slice(0, count), ...resumed.events].map(
    ({ data }) => data as unknown as AuditEntry,
  );
  assertSame(told, (await auditOf(tenant)).slice(-told.length));
  resumed.close();
}

/** Ends the server; resolves when it has exited, as it should. */
async function terminate(): Promise<void> {
  const began = performance.now();
  const exit = await api.engine.kill('SIGTERM');
  const took = performance.now() - began;
  assert.deepEqual(exit, { code: 0, signal: null }, api.engine.output());
  assert.ok(took < EXIT_MS_MAX, `${took} ms`);
}

test('under load every request is answered or was never accepted, what was acknowledged is there, and streams end properly', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const streams = await openStreams();
  const acknowledged: string[] = [];
  const unanswered: NoReplyError[] = [];
  const refused: number[] = [];
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      try {
        const reply = await tenant.post<{ id: string }>('/instances', tenant.creation(sequence));
        if (reply.status === 201) acknowledged.push(reply.body.id);
        else refused.push(reply.status);
      } catch (error) {
        if (!(error instanceof NoReplyError)) throw error;
        unanswered.push(error);
        return;
      }
    }
  };
  const clients = Array.from({ length: 32 }, client);
  await eventually(() => assert.ok(acknowledged.length > 200));
  await terminate();
  isOver = true;
  await Promise.all(clients);
  assert.ok(
    refused.every((status) => status === 503),
    String(new Set(refused)),
  );
  // The next request after the last answer meets a closed connection or port.
  const cut = unanswered.filter(
    (error) => error.isSent && !/other side closed|ECONNRESET|socket/i.test(error.message),
  );
  assert.deepEqual(cut.map(String), []);
  await api.restart('SIGTERM', { env: envOf('node') });
  await assertGoOn(streams);
  const ids = new Set<string>();
  for (let offset = 0; ; offset += 1_000) {
    const page = await tenant.get<{ id: string }[]>(`/instances?limit=1000&offset=${offset}`);
    for (const { id } of page.body) ids.add(id);
    if (page.body.length < 1_000) break;
  }
  const lost = acknowledged.filter((id) => !ids.has(id));
  assert.deepEqual([lost, ids.size], [[], acknowledged.length]);
});

describe('with node:http', () => {
  test('SIGKILL cuts streams off, and SIGTERM ends them properly, too', async () => {
    const { tenant, id } = await openStreams();
    const cut = await openInstance(tenant, id);
    await api.restart('SIGKILL');
    await assert.rejects(cut.ended);
    const streams = await openStreams();
    await terminate();
    await api.restart('SIGTERM', { env: envOf('auto') });
    await assertGoOn(streams);
  });
});

/** Resolves with what checks that all of it is counted. */
async function leaveActivity(tenant: Tenant): Promise<() => Promise<void>> {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  await tenant.until(await tenant.create(sequence), 'completed');
  for (let n = 0; n < 2; n++) await tenant.runUntil('failed', [step('a', 'fail')]);
  const cancelled = await tenant.run([step('a', newHandler())]);
  await tenant.signal(cancelled, 'cancel');
  await tenant.until(cancelled, 'cancelled');
  const waiting = await tenant.sequence([step('a', newHandler())]);
  const keyed = (key: string) => tenant.creation(waiting, { idempotency_key: key });
  for (const keys of [
    ['a', 'b', 'b'],
    ['b', 'c'],
  ]) {
    expectStatus(await tenant.post('/instances/batch', { instances: keys.map(keyed) }), 201);
  }
  return async () => {
    const { intervals, complete } = expectStatus(await tenant.get<Activity>('/activity'), 200);
    assert.equal(complete, true);
    assert.ok(intervals.length >= 60);
    const sums = (['created', 'completed', 'failed', 'cancelled'] as const).map((of) =>
      intervals.reduce((all, it) => all + it[of], 0),
    );
    assert.deepEqual(sums, [7, 1, 2, 1]);
    assert.ok(intervals.some((it) => it.duration_p95_ms !== null));
    const { body } = await tenant.get<SequenceSteps>(`/sequences/${sequence}/steps`);
    const counts = columns(body.steps, 'block_id', 'runs', 'failures', 'here_now');
    assert.deepEqual([counts, body.complete], [[['a', 1, 0, 0]], true]);
    const other = (await api.tenant().get<Activity>('/activity')).body;
    assert.ok(other.intervals.every((it) => it.created === 0));
    assert.equal((await tenant.get('/activity?step=90')).status, 400);
  };
}

test('a SIGTERM that is sent again and again cuts nothing short: parked polls get [], nothing else holds the process, steps in flight run again, and the activity is kept', async () => {
  const PARKED = 20;
  const tenant = api.tenant();
  const assertActivity = await leaveActivity(api.tenant());
  const { status } = await beginValidation(api.tenant());
  const parked = Array.from({ length: PARKED }, () =>
    tenant.poll(newHandler(), { wait_ms: 30_000 }),
  );
  // Answered after the polls were received: they came first on their own connections.
  await eventually(async () => {
    assert.equal((await tenant.get<unknown[]>('/workers')).body.length, 1);
  });
  // These connections stay open.
  await Promise.all(Array.from({ length: 30 }, () => tenant.get('/sequences')));
  const sleeping = await tenant.run([sleep('a', 5_000)]);
  const began = performance.now();
  // Signals that come before the first is handled count as one.
  await eventually(() => {
    api.engine.signal('SIGTERM');
    assert.ok(!api.engine.isRunning());
  });
  const took = performance.now() - began;
  assert.deepEqual(await api.engine.exited, { code: 0, signal: null });
  assert.ok(took < EXIT_MS_MAX, `${took} ms`);
  assert.deepEqual(await Promise.all(parked), Array(PARKED).fill([]));
  assert.ok(['cut off', 503].includes(await status));
  await api.restart();
  await assertActivity();
  await tenant.until(sleeping, 'completed');
});
