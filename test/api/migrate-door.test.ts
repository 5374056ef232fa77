/** Migration in one step, at everything that an instance can wait for, one by one and many at once. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { InstancesMigrated, MigratedInstance } from '../../schema/continuity.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { FailureGroups } from '../../schema/statistics.js';
import { type Json, newHandler, sleep, step, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { continuityOf } from '../helpers/continuity.js';
import { rollBack } from '../helpers/migrations.js';

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

type Versions = { readonly name: string; readonly from: string; readonly to: string };

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
  test('a migration keeps the wake-up time of a sleeping instance', async () => {
    const blocks = [step('a', 'noop'), sleep('s', WEEK_MS)];
    const { id, from, to } = await started('running', blocks, [...blocks, end]);
    const wake = async () => {
      const { rows } = await api.sql.query('select fire_at from timers where instance_id = $1', [
        id,
      ]);
      return rows[0]?.fire_at;
    };
    const due = await wake();
    const { migration_id, rollback_expires_at, ...told } = await migrate(id);
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

  test('a migration offers an unclaimed task again under the target', async () => {
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
    const seen = (await tenant.tasks(handler)).map(({ id: listed }) => listed);
    assert.deepEqual(seen, [task.id]);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'end']);
  });

  test('a migration leaves a claimed task to its worker, whose result counts in the target', async () => {
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

  test('a migration keeps a failed instance failed, and its retry runs the target', async () => {
    const [bad, good] = [newHandler(), newHandler()];
    const { id } = await started(
      'waiting',
      [noop('a'), step('b', bad)],
      [noop('a'), step('b', good)],
    );
    await tenant.fail(await tenant.task(bad), 'no');
    await tenant.until(id, 'failed');
    assert.equal((await migrate(id, { version: 2, approved: true })).state, 'failed');
    assert.ok((await tenant.deadLetters()).includes(id));
    const { groups } = (await tenant.get<FailureGroups>('/instances/failures')).body;
    assert.equal(groups.find((it) => it.example_instance_id === id)?.version, 2);
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(good));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  });

  test('a failed refund is dropped only with approval, and the queue keeps its time', async () => {
    const saga = (...compensation: Json[]) => {
      const charge = { id: 'pay', action: noop('charge'), compensation };
      return [{ type: 'saga', id: 'trip', steps: [charge, { id: 'send', action: fails('ship') }] }];
    };
    const fails = (id: string) => step(id, 'fail');
    const refund = newHandler();
    const { id, to } = await started('waiting', saga(step('refund', refund)), saga());
    await tenant.fail(await tenant.task(refund), 'no');
    await tenant.until(id, 'failed');
    const { next } = (await tenant.get<InstanceExplanation>(`/instances/${id}/explain`)).body;
    const resume = next.find(({ action }) => action === 'resume_from');
    assert.match(`${resume?.why}`, /gives up what is still to be cleaned up: trip\[0\]\/refund\.$/);
    const since = async () => {
      const of = 'select failed_at, sequence_id from dead_letters where instance_id = $1';
      return (await api.sql.query(of, [id])).rows[0];
    };
    const before = await since();
    const refused = await assertRefused(id, 'CLEANUP_REMOVED:trip');
    assert.equal(refused.verdict, 'approval_required');
    const finding = refused.findings?.find(({ block_id }) => block_id === 'trip');
    assert.match(
      `${finding?.summary}`,
      /compensate its step pay: the target would not run refund$/,
    );
    await migrate(id, { version: 2, approved: true });
    assert.deepEqual(await since(), { ...before, sequence_id: to });
  });

  test('a dry run says the verdict, whatever it is, and changes nothing', async () => {
    const blocks = [step('a', 'noop'), sleep('s', WEEK_MS)];
    const { id } = await started('running', blocks, [step('new', 'noop'), ...blocks]);
    const before = await tenant.instance(id);
    const reply = expectStatus(await ask(id, { version: 2, dry_run: true }), 200);
    const found = [reply.migrated, reply.dry_run, reply.verdict, reply.migration_id];
    assert.deepEqual(found, [false, true, 'pin', null]);
    assert.ok(reply.findings.some(({ code }) => code === 'REPLAY_DIFFERS'));
    assert.deepEqual(await tenant.instance(id), before);
    await assertRefused(id, 'REPLAY_DIFFERS');
    expectStatus(await tenant.get(`/continuity/executions/${id}`), 404);
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
        { version: 2, dryrun: true },
      ].map(async (body) => (await ask(id, body)).status),
    );
    assert.deepEqual(statuses, [400, 404, 404, 404, 400, 400]);
    assert.equal((await ask(UNKNOWN)).status, 404);
    assert.equal((await ask(id, { version: 2 }, api.tenant())).status, 404);
    const done = await started('completed', [noop('a')], [noop('a'), end]);
    assert.equal((await ask(done.id)).status, 409);
  });

  test('enrols by itself, and leaves the owner to whoever enrols it later', async () => {
    const blocks = [sleep('s', WEEK_MS)];
    const { id } = await started('running', blocks, [...blocks, end]);
    await migrate(id);
    assert.equal((await continuityOf(tenant).enrol(id)).epoch, 1);
    const body = { instance_id: id, runtime_id: randomUUID() };
    expectStatus(await tenant.post('/continuity/executions', body), 409);
    const chain = await continuityOf(tenant).provenance(id);
    assert.deepEqual(column(chain, 'kind'), ['execution_created', 'migration_applied']);
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
    const seen = [dry.count, dry.automatic, dry.migrations, dry.migrated, dry.dry_run, dry.done];
    assert.deepEqual(seen, [3, 3, [], 0, true, true]);
    // Without a cursor, or with an empty one, it begins at the start.
    const first = expectStatus(await askMany(from, { version: 2, limit: 2, cursor: '' }), 200);
    assert.deepEqual([first.count, first.migrated, first.done], [2, 2, false]);
    const more = { version: 2, limit: 2, cursor: first.next_cursor };
    const second = expectStatus(await askMany(from, more), 200);
    const found = [second.count, second.migrated, second.done, second.next_cursor];
    assert.deepEqual(found, [1, 1, true, null]);
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
    await tenant.create(from, { next_fire_at: '2099-01-01T00:00:00Z' });
    const body = { target_sequence_id: to, filter: { states: ['waiting', 'scheduled'] } };
    const { count, pinned, findings } = expectStatus(await askMany(from, body), 200);
    assert.equal(count, 2);
    assert.equal(pinned, 1);
    const claimed = findings.find(({ code }) => code === 'CLAIMED_CALL_CHANGED');
    assert.deepEqual([claimed?.count, claimed?.example_ids], [1, [held]]);
    const narrow = { target_sequence_id: to, filter: { states: ['paused'] } };
    assert.equal(expectStatus(await askMany(from, narrow), 200).count, 0);
  });

  test('what selects is checked: unknown members, other names, foreign sequences', async () => {
    const { from, to } = await versions([noop('a')], [noop('a')]);
    const other = await tenant.sequence([noop('a')]);
    const cases: readonly (readonly [number, Json])[] = [
      [400, { version: 2, filter: { stats: ['waiting'] } }],
      [400, { version: 2, filter: { sequence_id: to } }],
      [400, { version: 2, cursor: 'none' }],
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
