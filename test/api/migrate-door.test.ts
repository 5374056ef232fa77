/** Migration in one step, at everything that an instance can wait for, one by one and many at once. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { InstancesMigrated, MigratedInstance } from '../../schema/continuity.js';
import type { FailureGroups } from '../../schema/statistics.js';
import {
  eventually,
  forEach,
  type Json,
  newHandler,
  parallel,
  sleep,
  step,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { askRollback, rollBack } from '../helpers/migrations.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const WEEK_MS = 7 * 86_400_000;

const api = useSharedApi();
const tenant = api.tenant();

interface Refused {
  readonly error: string;
  readonly verdict?: string;
  readonly findings?: { code: string; block_id: string | null; summary: string; remedy: string }[];
}

const ask = (id: string, body: Json = { version: 2 }, as = tenant) =>
  as.post<MigratedInstance & Refused>(`/instances/${id}/migrate`, body);

async function migrate(id: string, body?: Json): Promise<MigratedInstance> {
  const reply = expectStatus(await ask(id, body), 200);
  assert.equal(reply.migrated, true);
  return reply;
}

interface Versions {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** Versions 1 and 2 of one name. */
async function versions(source: readonly Json[], target: readonly Json[]): Promise<Versions> {
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence(source, { name });
  return { name, from, to: await tenant.sequence(target, { name, version: 2 }) };
}

async function started(
  state: string,
  source: readonly Json[],
  target: readonly Json[],
  more: Json = {},
): Promise<Versions & { readonly id: string }> {
  const two = await versions(source, target);
  const id = await tenant.create(two.from, more);
  await tenant.until(id, state);
  return { ...two, id };
}

async function assertRefused(id: string, code: string, body?: Json): Promise<Refused> {
  const before = await tenant.instance(id);
  const reply: Reply<Refused> = await ask(id, body);
  assert.equal(reply.status, 409, reply.text);
  const finding = reply.body.findings?.find((one) => one.code === code);
  assert.ok(finding !== undefined, reply.text);
  assert.ok(finding.summary.length > 0 && finding.remedy.length > 0);
  assert.deepEqual(await tenant.instance(id), before);
  return reply.body;
}

const noop = (id: string) => step(id, 'noop');
const end = noop('end');

describe('the simple door', () => {
  test('takes a sleeping instance along: it sleeps on, to the same moment', async () => {
    const blocks = [step('a', 'noop'), sleep('s', WEEK_MS)];
    const { id, from, to } = await started('running', blocks, [...blocks, end]);
    const wake = async () => {
      const { rows } = await api.sql.query('select fire_at from timers where instance_id = $1', [
        id,
      ]);
      return rows[0]?.fire_at;
    };
    const due = await wake();
    const reply = await migrate(id);
    const { migration_id, rollback_expires_at, ...told } = reply;
    assert.deepEqual(told, {
      migrated: true,
      instance_id: id,
      from: { sequence_id: from, version: 1 },
      to: { sequence_id: to, version: 2 },
      verdict: 'automatic',
      finding_codes: ['BLOCK_ADDED', 'HISTORICAL_REPLAY_PASS'],
      findings: [],
      state: 'running',
    });
    assert.ok(migration_id !== null && rollback_expires_at !== null);
    const after = await tenant.instance(id);
    assert.deepEqual([after.state, after.sequence_id], ['running', to]);
    assert.equal((await tenant.nodeStates(id)).s, 'running');
    assert.deepEqual(await wake(), due);
  });

  test('another duration in the target counts from when the sleep began', async () => {
    const { id } = await started('running', [sleep('s', WEEK_MS)], [sleep('s', 1), end]);
    await migrate(id, { version: 2, approved: true });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.outputsOf(id).then(({ s }) => s), { slept_ms: 1 });
  });

  test('offers a task that nobody has claimed again, under the target', async () => {
    const handler = newHandler();
    const params = (n: number) => ({ params: { n }, ...(n === 2 && { queue_name: 'other' }) });
    const { id } = await started(
      'waiting',
      [step('a', handler, params(1))],
      [step('a', handler, params(2)), end],
    );
    const [old] = await tenant.tasks(handler);
    const { state } = await migrate(id, { version: 2, approved: true });
    assert.equal(state, 'waiting');
    const task = await tenant.task(handler, { queue_name: 'other' });
    assert.notEqual(task.id, old?.id);
    assert.deepEqual(task.params, { n: 2 });
    assert.equal(task.attempt, 0);
    assert.deepEqual(
      (await tenant.tasks(handler)).map(({ id: listed }) => listed),
      [task.id],
    );
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'end']);
  });

  test('leaves a claimed task to its worker, whose answer counts in the target', async () => {
    const handler = newHandler();
    const blocks = [step('a', handler, { params: { n: '{{ data.n }}' } })];
    const { id } = await started('waiting', blocks, [...blocks, end], {
      context: { data: { n: 1 } },
    });
    const task = await tenant.task(handler);
    await migrate(id);
    assert.equal(await tenant.call('heartbeat', task), 200);
    await tenant.complete(task, { got: 1 });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'end']);
    assert.deepEqual(await tenant.attempts(task.id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  });

  test('keeps a claimed task where the call is another one, and says until when', async () => {
    const handler = newHandler();
    const { id, to } = await started(
      'waiting',
      [step('a', handler, { params: { n: 1 } })],
      [step('a', handler, { params: { n: 2 } })],
    );
    const task = await tenant.task(handler);
    const { verdict } = await assertRefused(id, 'CLAIMED_CALL_CHANGED', {
      version: 2,
      approved: true,
    });
    assert.equal(verdict, 'pin');
    await tenant.fail(task, 'not this time', true);
    await tenant.until(id, 'waiting');
    await eventually(async () => {
      assert.equal((await ask(id, { version: 2, approved: true })).body.migrated, true);
    });
    assert.equal((await tenant.instance(id)).sequence_id, to);
    const next = await tenant.task(handler);
    assert.deepEqual([next.params, next.attempt], [{ n: 2 }, 1]);
  });

  test('goes over in a delay and in a back-off, whose deadlines stay', async () => {
    const delayed = [step('a', 'noop', { delay: { duration: WEEK_MS } })];
    const one = await started('scheduled', delayed, [...delayed, end]);
    const due = (await tenant.instance(one.id)).next_fire_at;
    assert.equal((await migrate(one.id)).state, 'scheduled');
    assert.equal((await tenant.instance(one.id)).next_fire_at, due);

    const handler = newHandler();
    const tried = [
      step('a', handler, {
        retry: { max_attempts: 5, initial_backoff: WEEK_MS, max_backoff: WEEK_MS },
      }),
    ];
    const two = await started('waiting', tried, [...tried, end]);
    await tenant.fail(await tenant.task(handler), 'once', true);
    const { next_fire_at } = await tenant.until(two.id, 'scheduled');
    await migrate(two.id);
    assert.equal((await tenant.instance(two.id)).next_fire_at, next_fire_at);
    await tenant.move(two.id, 'running');
    const again = await tenant.task(handler);
    assert.equal(again.attempt, 1);
    await tenant.complete(again);
    await tenant.until(two.id, 'completed');
  });

  test('a delay that the target has longer or shorter counts from its beginning', async () => {
    const delayed = (duration: number) => [step('a', 'noop', { delay: { duration } })];
    const { id } = await started('scheduled', delayed(WEEK_MS), [...delayed(WEEK_MS / 2), end]);
    const { next_fire_at: before } = await tenant.instance(id);
    await migrate(id, { version: 2, approved: true });
    const { next_fire_at: after } = await tenant.instance(id);
    assert.equal(Date.parse(String(before)) - Date.parse(String(after)), WEEK_MS / 2);
  });

  test('takes a failed instance along as failed, and its retry runs the target', async () => {
    const [bad, good] = [newHandler(), newHandler()];
    const { id } = await started(
      'waiting',
      [noop('a'), step('b', bad)],
      [noop('a'), step('b', good)],
    );
    await tenant.fail(await tenant.task(bad), 'no');
    await tenant.until(id, 'failed');
    const reply = await migrate(id, { version: 2, approved: true });
    assert.equal(reply.state, 'failed');
    assert.ok((await tenant.deadLetters()).includes(id));
    const { groups } = (await tenant.get<FailureGroups>('/instances/failures')).body;
    const group = groups.find((it) => it.example_instance_id === id);
    assert.equal(group?.version, 2);
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(good));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  });

  test('takes an instance along whose call is known to have failed, not one whose answer was lost', async () => {
    const verdictAfter = async (answer: (response: ServerResponse) => void) => {
      const server = createServer((_, response) => answer(response));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const params = { url: `http://127.0.0.1:${port}` };
      const blocks = [noop('a'), step('b', 'http_request', { params, retry: { max_attempts: 1 } })];
      const { id } = await started('failed', blocks, [...blocks, end]);
      server.close();
      return expectStatus(await ask(id, { version: 2, dry_run: true }), 200).verdict;
    };
    assert.equal(await verdictAfter((response) => response.writeHead(404).end()), 'automatic');
    assert.equal(await verdictAfter(({ socket }) => socket?.destroy()), 'pin');
  });

  test('keeps a paused instance paused, and an instance that has not begun scheduled', async () => {
    const handler = newHandler();
    const paused = await started('waiting', [step('a', handler)], [step('a', handler), end]);
    await tenant.signal(paused.id, 'pause');
    await tenant.until(paused.id, 'paused');
    assert.equal((await migrate(paused.id)).state, 'paused');
    await tenant.signal(paused.id, 'resume');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(paused.id, 'completed');

    const later = { next_fire_at: '2099-01-01T00:00:00Z' };
    const fresh = await started('scheduled', [noop('a')], [noop('b')], later);
    assert.equal((await migrate(fresh.id)).state, 'scheduled');
    await tenant.move(fresh.id, 'running');
    await tenant.until(fresh.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(fresh.id), ['b']);
  });

  test('waits for a slot of its concurrency key in the target', async () => {
    const handler = newHandler();
    const key = { concurrency_key: `k-${randomUUID()}`, max_concurrency: 1 };
    const two = await versions([step('a', handler)], [step('a', handler), end]);
    const first = await tenant.create(two.from, key);
    await tenant.until(first, 'waiting');
    const second = await tenant.create(two.from, key);
    await tenant.until(second, 'scheduled');
    await migrate(second);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(first, 'completed');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(second, 'completed');
    assert.deepEqual(await tenant.rowsOf(second), ['a', 'end']);
  });

  test('carries several waits at once, within loops and branches', async () => {
    const [held, free] = [newHandler(), newHandler()];
    const body = parallel(
      'p',
      [forEach('f', 'items', [step('a', held)])],
      [sleep('s', WEEK_MS)],
      [step('b', free)],
    );
    const { id } = await started('running', [body], [body, end], {
      context: { data: { items: ['x', 'y'] } },
    });
    await tenant.complete(await tenant.task(held));
    const second = await tenant.task(held);
    await migrate(id);
    assert.equal((await tenant.nodeStates(id)).s, 'running');
    await tenant.complete(second);
    await tenant.complete(await tenant.task(free));
    await eventually(async () => assert.equal((await tenant.nodeStates(id)).f, 'completed'));
    assert.equal((await tenant.tasks(held)).length, 2);
    assert.equal((await tenant.tasks(free)).length, 1);
  });

  test('a dry run says the verdict, whatever it is, and changes nothing', async () => {
    const blocks = [step('a', 'noop'), sleep('s', WEEK_MS)];
    const { id } = await started('running', blocks, [step('new', 'noop'), ...blocks]);
    const before = await tenant.instance(id);
    const reply = expectStatus(await ask(id, { version: 2, dry_run: true }), 200);
    assert.deepEqual(
      [reply.migrated, reply.dry_run, reply.verdict, reply.migration_id],
      [false, true, 'pin', null],
    );
    assert.ok(reply.findings.some(({ code }) => code === 'REPLAY_DIFFERS'));
    assert.deepEqual(await tenant.instance(id), before);
    await assertRefused(id, 'REPLAY_DIFFERS');
    expectStatus(await tenant.get(`/continuity/executions/${id}`), 404);
  });

  test('a step whose work would be lost at another place pins, and is named', async () => {
    const { id } = await started(
      'running',
      [sleep('s', WEEK_MS)],
      [tryCatch('t', [sleep('s', WEEK_MS)], [end])],
    );
    const { findings } = await assertRefused(id, 'WAIT_MOVED', { version: 2, approved: true });
    assert.equal(findings?.find(({ code }) => code === 'WAIT_MOVED')?.block_id, 's');
  });

  test('transforms and risks need approval, which one member gives', async () => {
    const blocks = [sleep('s', WEEK_MS)];
    const { id } = await started('running', blocks, [...blocks, end], {
      context: { data: { n: 1 } },
    });
    const transforms = [
      { transform: 'move', from_path: 'context_snapshot.n', to_path: 'context_snapshot.m' },
    ];
    await assertRefused(id, 'TRANSFORMS', { version: 2, transforms });
    await migrate(id, { version: 2, transforms, approved: true });
    assert.deepEqual((await tenant.instance(id)).context.data, { m: 1 });
  });

  test('asked twice it is there already; versions and ids that do not exist are told apart', async () => {
    const blocks = [sleep('s', WEEK_MS)];
    const { id, to } = await started('running', blocks, [...blocks, end]);
    await migrate(id, { sequence_id: to });
    const again = expectStatus(await ask(id, { to_sequence_id: to, version: 2 }), 200);
    assert.deepEqual([again.migrated, again.from, again.findings], [false, again.to, []]);
    const other = await tenant.sequence(blocks);
    const statuses = await Promise.all(
      [
        {},
        { version: 9 },
        { sequence_id: UNKNOWN },
        { sequence_id: to, version: 1 },
        { sequence_id: other },
        { sequence_id: to, target_sequence_id: other },
        { version: 2, dryrun: true },
      ].map(async (body) => (await ask(id, body)).status),
    );
    assert.deepEqual(statuses, [400, 404, 404, 404, 400, 400, 400]);
    assert.equal((await ask(UNKNOWN)).status, 404);
    assert.equal((await ask(id, { version: 2 }, api.tenant())).status, 404);
    const done = await started('completed', [noop('a')], [noop('a'), end]);
    assert.equal((await ask(done.id)).status, 409);
  });

  test('is undone like any migration, as long as nothing was sent', async () => {
    const blocks = [step('a', 'noop'), sleep('s', WEEK_MS)];
    const { id, from } = await started('running', blocks, [...blocks, end]);
    const { migration_id } = await migrate(id);
    await rollBack(tenant, String(migration_id));
    const { state, sequence_id } = await tenant.instance(id);
    assert.deepEqual([state, sequence_id], ['running', from]);
    assert.equal((await askRollback(tenant, String(migration_id))).status, 409);
    const epochs = (await continuityOf(tenant).locations(id)).map(({ epoch }) => epoch);
    assert.deepEqual(epochs, [0, 1, 2]);
  });

  test('a task that a worker holds survives both ways', async () => {
    const handler = newHandler();
    const { id } = await started('waiting', [step('a', handler)], [step('a', handler), end]);
    const task = await tenant.task(handler);
    const { migration_id } = await migrate(id);
    await rollBack(tenant, String(migration_id));
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a']);
  });

  test('enrols by itself, and leaves the owner to whoever enrols it later', async () => {
    const blocks = [sleep('s', WEEK_MS)];
    const { id } = await started('running', blocks, [...blocks, end]);
    await migrate(id);
    const execution = await continuityOf(tenant).enrol(id);
    assert.equal(execution.epoch, 1);
    const body = { instance_id: id, runtime_id: randomUUID() };
    expectStatus(await tenant.post('/continuity/executions', body), 409);
    const chain = await continuityOf(tenant).provenance(id);
    assert.deepEqual(
      chain.map(({ kind }) => kind),
      ['execution_created', 'migration_applied'],
    );
    const verified = await tenant.get<{ valid: boolean }>(
      `/continuity/executions/${id}/provenance/verify`,
    );
    assert.equal(verified.body.valid, true);
  });
});

describe('many instances', () => {
  const askMany = (sequence: string, body: Json) =>
    tenant.post<InstancesMigrated & { error: string }>(
      `/sequences/${sequence}/migrate-instances`,
      body,
    );

  test('those that can go over do, the others are counted by what keeps them', async () => {
    const handler = newHandler();
    const source = [step('a', handler, { params: { n: 1 } })];
    const { from, to } = await versions(source, [step('a', handler, { params: { n: 1 } }), end]);
    const ids = await Promise.all([1, 2, 3].map(() => tenant.create(from)));
    for (const id of ids) await tenant.until(id, 'waiting');
    const dry = expectStatus(await askMany(from, { version: 2, dry_run: true }), 200);
    assert.deepEqual(
      [dry.count, dry.automatic, dry.migrations, dry.migrated, dry.dry_run, dry.done],
      [3, 3, [], 0, true, true],
    );
    // Without a cursor, or with an empty one, it begins at the start.
    const first = expectStatus(await askMany(from, { version: 2, limit: 2, cursor: '' }), 200);
    assert.deepEqual([first.count, first.migrated, first.done], [2, 2, false]);
    const more = { version: 2, limit: 2, cursor: first.next_cursor };
    const second = expectStatus(await askMany(from, more), 200);
    assert.deepEqual(
      [second.count, second.migrated, second.done, second.next_cursor],
      [1, 1, true, null],
    );
    for (const id of ids) assert.equal((await tenant.instance(id)).sequence_id, to);
    const told = [...first.migrations, ...second.migrations];
    assert.deepEqual(told.map(({ instance_id }) => instance_id).sort(), [...ids].sort());
    for (const { migration_id } of told) await rollBack(tenant, migration_id);
    for (const id of ids) assert.equal((await tenant.instance(id)).sequence_id, from);
  });

  test('a refusal stops nobody else, and names examples', async () => {
    const handler = newHandler();
    const { from, to } = await versions(
      [step('a', handler, { params: { n: 1 } })],
      [step('a', handler, { params: { n: '{{ data.n }}' } })],
    );
    const held = await tenant.create(from, { context: { data: { n: 2 } } });
    await tenant.until(held, 'waiting');
    await tenant.task(handler);
    const asleep = await tenant.create(from, { next_fire_at: '2099-01-01T00:00:00Z' });
    const body = { target_sequence_id: to, filter: { states: ['waiting', 'scheduled'] } };
    const { count, pinned, approval_required, findings } = expectStatus(
      await askMany(from, body),
      200,
    );
    assert.equal(count, 2);
    assert.equal(pinned, 1);
    assert.equal(approval_required + pinned <= 2, true);
    const claimed = findings.find(({ code }) => code === 'CLAIMED_CALL_CHANGED');
    assert.deepEqual([claimed?.count, claimed?.example_ids], [1, [held]]);
    const narrow = { target_sequence_id: to, filter: { states: ['paused'] } };
    assert.equal(expectStatus(await askMany(from, narrow), 200).count, 0);
    assert.ok(asleep !== held);
  });

  test('what selects is checked: unknown members, other names, foreign sequences', async () => {
    const { from, to } = await versions([noop('a')], [noop('a')]);
    const other = await tenant.sequence([noop('a')]);
    const cases: readonly (readonly [number, Json])[] = [
      [400, { version: 2, filters: {} }],
      [400, { version: 2, filter: { stats: ['waiting'] } }],
      [400, { version: 2, filter: { sequence_id: to } }],
      [400, { version: 2, cursor: 'none' }],
      [400, {}],
      [400, { target_sequence_id: other }],
      [404, { version: 7 }],
      [403, { version: 2, filter: { tenant_id: 'somebody' } }],
    ];
    for (const [status, body] of cases) {
      const reply = await askMany(from, body);
      assert.equal(reply.status, status, `${JSON.stringify(body)}: ${reply.text}`);
    }
    const foreign = await api.tenant().sequence([noop('a')]);
    assert.equal((await askMany(foreign, { version: 2 })).status, 404);
  });
});
