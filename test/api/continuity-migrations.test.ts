/** Live migration: plans, applying and the way back; and what is read of executions. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type {
  Boundary,
  BoundaryDetail,
  MigrationRecord,
  ProvenanceVerdict,
} from '../../schema/continuity.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Json, Tenant } from '../helpers/api.js';
import { newHandler, step, transform, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { type Continuity, continuityOf } from '../helpers/continuity.js';
import {
  apply,
  askApply,
  askPlan,
  askRollback,
  GATED,
  gate,
  MIGRATIONS,
  type Moving,
  moving,
  plan,
  rollBack,
  save,
} from '../helpers/migrations.js';
import { pausedAtStart } from '../helpers/standing.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const HEX_64 = /^[0-9a-f]{64}$/;
const PASS = 'HISTORICAL_REPLAY_PASS';
const FAIL = 'HISTORICAL_REPLAY_FAIL';

const api = useSharedApi();
const tenant = api.tenant();
const continuity = continuityOf(tenant);

const COPY = { transform: 'copy', from_path: 'context_snapshot.n', to_path: 'context_snapshot.m' };
const kinds = async (id: string) => (await continuity.provenance(id)).map(({ kind }) => kind);
const epochs = async (id: string) => (await continuity.locations(id)).map(({ epoch }) => epoch);

/** As if the retention had passed. */
const expire = (migration: string) =>
  api.sql.query(
    "update migrations set record = jsonb_set(record::jsonb, '{rollback_expires_at}', " +
      '\'"2020-01-01T00:00:00.000Z"\')::json where id = $1',
    [migration],
  );

/**
 * An execution that is paused behind its first step, and the next version of its sequence, which
 * has a step more. All steps of a worker are of this handler.
 */
async function between(handler: string, source: readonly Json[]) {
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence(source, { name });
  const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
  const id = await tenant.create(from);
  const task = await tenant.task(handler);
  await tenant.signal(id, 'pause');
  await tenant.until(id, 'paused');
  await tenant.complete(task);
  return { id, execution: await continuity.enrol(id), to };
}

describe('a plan', () => {
  test('A migration plan is 409 for a completed instance or one without checkpoint, and 404 for a foreign target, wrong version or unknown execution', async () => {
    const subject = await moving(tenant);
    const done = await tenant.runUntil('completed', [step('a', 'noop')]);
    const execution = await continuity.enrol(done);
    await save(tenant, done, {});
    expectStatus(await askPlan(tenant, { ...subject, execution }), 409);
    const bare = await moving(tenant, GATED, GATED, { checkpoint: null });
    expectStatus(await askPlan(tenant, bare), 409);
    const foreign = await api.tenant().sequence(GATED, { version: 2 });
    expectStatus(await askPlan(tenant, { ...subject, to: foreign }), 404);
    expectStatus(await askPlan(tenant, { ...subject, to: UNKNOWN }), 404);
    expectStatus(await askPlan(tenant, subject, { to_version: 3 }), 404);
    const other = await tenant.sequence(GATED, { version: 2 });
    expectStatus(await askPlan(tenant, { ...subject, to: other }), 400);
    expectStatus(await askPlan(tenant, { ...subject, to: subject.from }, { to_version: 1 }), 400);
    expectStatus(await askPlan(tenant, subject, { continuity_id: UNKNOWN }), 404);
    expectStatus(await askPlan(api.tenant(), subject), 404);
  });

  test('captures a checkpoint of the live state when it is asked to', async () => {
    const subject = await moving(tenant, GATED, GATED, { checkpoint: null });
    const made = await plan(tenant, subject, { capture_checkpoint: true, transforms: [COPY] });
    assert.equal(made.disposition, 'approval_required');
    const path = `/instances/${subject.id}/checkpoints`;
    const list = expectStatus(await tenant.get<Json[]>(path), 200);
    const captured = { safe_boundary: 'b', context_snapshot: { n: 1 }, completed_blocks: ['a'] };
    assert.deepEqual(column(list, 'checkpoint_data'), [captured]);
    await apply(tenant, made.id, { approved: true });
    assert.deepEqual((await tenant.instance(subject.id)).context.data, { n: 1, m: 1 });
  });

  test('A migration plan reports its verdict and CHECKPOINT_OUTPUT_REMOVED, clamps retention to 60 s and 30 days, and is 400 for a duplicate destination or missing source path', async () => {
    const renamed = [step('other', 'noop'), gate('b')];
    const removed = await plan(tenant, await moving(tenant, GATED, renamed));
    assert.ok(removed.finding_codes.includes('CHECKPOINT_OUTPUT_REMOVED:a'));
    const subject = await moving(tenant);
    for (const [asked, seconds] of [
      [1, 60],
      [2_592_001, 2_592_000],
    ] as const) {
      const made = await plan(tenant, subject, { rollback_retention_seconds: asked });
      const path = `${MIGRATIONS}/${made.id}`;
      const record = expectStatus(await tenant.get<MigrationRecord>(path), 200);
      const expires = Date.parse(record.rollback_expires_at) - Date.parse(made.created_at);
      assert.equal(expires, seconds * 1_000);
    }
    expectStatus(await askPlan(tenant, subject, { transforms: [COPY, COPY] }), 400);
    const missing = { ...COPY, from_path: 'context_snapshot.none' };
    expectStatus(await askPlan(tenant, subject, { transforms: [missing] }), 400);
    expectStatus(await askPlan(tenant, subject, { transforms: [{ ...COPY, version: 2 }] }), 400);
  });

  test('is refused during a handoff, and possible again when that was revoked', async () => {
    const subject = await moving(tenant, GATED, GATED, { state: 'paused' });
    const { runtime_id } = await continuity.runtime();
    const handoff = await continuity.handoff(subject.execution.continuity_id, runtime_id);
    expectStatus(await continuity.act(handoff.id, 'export'), 200);
    expectStatus(await askPlan(tenant, subject), 409);
    expectStatus(await continuity.act(handoff.id, 'revoke'), 200);
    assert.equal((await apply(tenant, (await plan(tenant, subject)).id)).applied_epoch, 1);
  });

  test('A migration plan is read with state planned; a foreign or unknown one is 404', async () => {
    const made = await plan(tenant, await moving(tenant));
    const path = `${MIGRATIONS}/${made.id}`;
    const record = expectStatus(await tenant.get<MigrationRecord>(path), 200);
    assert.deepEqual(
      [record.state, record.expected_epoch, record.source_state, record.rollback_capsule],
      ['planned', 0, 'waiting', null],
    );
    assert.deepEqual(record.plan, made);
    assert.deepEqual(record.source_checkpoint.checkpoint_data, { context_snapshot: { n: 1 } });
    assert.deepEqual((record.source_context as Json).data, { n: 1 });
    expectStatus(await api.tenant().get(path), 404);
    expectStatus(await tenant.get(`${MIGRATIONS}/${UNKNOWN}`), 404);
  });
});

// `unit/continuity-migration-plan` has every verdict.
describe('a verdict', () => {
  test('says whether the target comes to where the instance stands', async () => {
    const reads = [...GATED, transform('c', { n: '{{ outputs.a.n }}' })];
    const added = [...GATED, step('c', newHandler())];
    const before = [GATED[0]!, step('new', 'noop'), GATED[1]!];
    const gone = [step('z', 'noop'), ...reads.slice(1)];
    const cases: readonly [string, string, readonly Json[], readonly Json[], Json?][] = [
      ['automatic', PASS, GATED, [...GATED, transform('c', { n: 2 })]],
      ['approval_required', PASS, GATED, GATED, { transforms: [COPY] }],
      ['approval_required', 'SIDE_EFFECT_RISK:BLOCK_ADDED', GATED, added],
      ['pin', FAIL, GATED, before],
      ['incompatible', FAIL, reads, gone],
    ];
    for (const [disposition, code, source, target, more] of cases) {
      const made = await plan(tenant, await moving(tenant, source, target), more);
      assert.deepEqual([made.disposition, made.verdict], [disposition, disposition]);
      assert.ok(made.finding_codes.includes(code), `${code}, not ${made.finding_codes}`);
      if (disposition !== 'pin' && disposition !== 'incompatible') continue;
      expectStatus(await askApply(tenant, made.id, { approved: true }), 409);
    }
  });

  test('is automatic between steps of a paused instance, which goes on in the target', async () => {
    const handler = newHandler();
    const subject = await between(handler, [step('a', handler), step('b', handler)]);
    const made = await plan(tenant, subject, { capture_checkpoint: true });
    assert.equal(made.disposition, 'automatic', made.finding_codes.join());
    assert.deepEqual(((await apply(tenant, made.id)).source_context as Json).data, {});
    await tenant.move(subject.id, 'scheduled');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(subject.id, 'completed');
    assert.deepEqual(await tenant.rowsOf(subject.id), ['a', 'b', 'c']);
  });

  test('is automatic while a worker has the step, and pin once what it did is in doubt, or was resolved', async () => {
    const handler = newHandler();
    const blocks = [step('a', handler)];
    const target = [...blocks, step('b', 'noop')];
    const subject = await moving(tenant, blocks, target, { waitsFor: 'waiting' });
    assert.equal((await plan(tenant, subject)).disposition, 'automatic');
    await tenant.task(handler);
    assert.equal((await plan(tenant, subject)).disposition, 'automatic');
    const reply = await tenant.get<{ id: string }[]>(`/instances/${subject.id}/effects`);
    const [receipt] = expectStatus(reply, 200);
    for (const state of ['unknown', 'compensated']) {
      expectStatus(await tenant.post(`/continuity/effects/${receipt?.id}/resolve`, { state }), 200);
      const made = await plan(tenant, subject);
      assert.equal(made.disposition, 'pin');
      assert.ok(
        made.findings.some(({ code, block_id }) => code === 'EFFECT_IN_DOUBT' && block_id === 'a'),
      );
      expectStatus(await askApply(tenant, made.id, { approved: true }), 409);
    }
  });
});

describe('applying', () => {
  test('Applying a migration pauses the instance on the target, raises the epoch and keeps a rollback capsule; twice, without approval, incompatible or with a stale epoch is 409', async () => {
    const subject = await moving(tenant);
    const { continuity_id } = subject.execution;
    const [made, stale] = [await plan(tenant, subject), await plan(tenant, subject)];
    const record = await apply(tenant, made.id);
    assert.deepEqual([record.state, record.applied_epoch], ['applied', 1]);
    assert.ok(record.applied_at !== null);
    const capsule = record.rollback_capsule;
    assert.match(capsule?.manifest_sha256 ?? '', HEX_64);
    assert.match(capsule?.payload_artifact.sha256 ?? '', HEX_64);
    assert.deepEqual((await tenant.get(`${MIGRATIONS}/${made.id}`)).body, record);
    const { state, sequence_id, next_fire_at } = await tenant.instance(subject.id);
    assert.deepEqual([state, sequence_id, next_fire_at], ['paused', subject.to, null]);
    assert.equal((await continuity.execution(continuity_id)).epoch, 1);
    assert.deepEqual(await epochs(continuity_id), [0, 1]);
    assert.deepEqual(await kinds(continuity_id), ['execution_created', 'migration_applied']);
    expectStatus(await askApply(tenant, made.id), 409);
    expectStatus(await askApply(tenant, stale.id), 409);
    expectStatus(await askApply(tenant, UNKNOWN), 404);
    expectStatus(await askApply(api.tenant(), made.id), 404);
    const unapproved = await plan(tenant, await moving(tenant), { transforms: [COPY] });
    expectStatus(await askApply(tenant, unapproved.id), 409);
    assert.equal((await apply(tenant, unapproved.id, { approved: true })).state, 'applied');
  });

  test('copy keeps the source field, move removes it, and drop removes only the field', async () => {
    const data = { profile: { name: 'Ada', age: 3 }, n: 1 };
    const at = (path: string) => `context_snapshot.${path}`;
    const profile = { from_path: at('profile.name') };
    const named = { ...profile, to_path: at('name') };
    const cases: readonly [Json, Json][] = [
      [
        { transform: 'copy', ...named },
        { ...data, name: 'Ada' },
      ],
      [
        { transform: 'move', ...named },
        { profile: { age: 3 }, n: 1, name: 'Ada' },
      ],
      [
        { transform: 'drop', ...profile },
        { profile: { age: 3 }, n: 1 },
      ],
    ];
    for (const [change, expected] of cases) {
      const subject = await moving(tenant, GATED, GATED, { data });
      const made = await plan(tenant, subject, { transforms: [change] });
      await apply(tenant, made.id, { approved: true });
      assert.deepEqual((await tenant.instance(subject.id)).context.data, expected);
      const latest = `/instances/${subject.id}/checkpoints/latest`;
      const { body } = await tenant.get<{ checkpoint_data: Json }>(latest);
      assert.deepEqual(body.checkpoint_data, { context_snapshot: expected });
    }
  });

  test('is refused when what it was planned on has changed since, or its time is over', async () => {
    const changes: readonly [number, (subject: Moving, migration: string) => Promise<unknown>][] = [
      [409, ({ id }) => save(tenant, id, { context_snapshot: { n: 2 } })],
      [409, ({ id }) => tenant.patch(`/instances/${id}/context`, { context: { data: { n: 2 } } })],
      [409, ({ id }) => tenant.signal(id, 'pause')],
      [409, (_, migration) => expire(migration)],
      [404, ({ to }) => tenant.delete(`/sequences/${to}`)],
    ];
    for (const [status, change] of changes) {
      const subject = await moving(tenant);
      const { id } = await plan(tenant, subject);
      await change(subject, id);
      expectStatus(await askApply(tenant, id), status);
      assert.equal((await tenant.instance(subject.id)).sequence_id, subject.from);
    }
  });
});

test('of a move and what makes the instance go on at the same time, one sees the other', async () => {
  for (let round = 0; round < 3; round += 1) {
    const subject = await moving(tenant, GATED, GATED, { state: 'paused' });
    const { id, execution, from, to } = subject;
    const made = await plan(tenant, subject);
    const [applied] = await Promise.all([
      askApply(tenant, made.id),
      tenant.patch(`/instances/${id}/state`, { state: 'scheduled' }),
    ]);
    const isApplied = applied.status === 200;
    assert.ok(isApplied || applied.status === 409, applied.text);
    assert.equal((await tenant.instance(id)).sequence_id, isApplied ? to : from);
    assert.deepEqual(await epochs(execution.continuity_id), isApplied ? [0, 1] : [0]);
  }
});

describe('the way back', () => {
  test('A rollback of a migration restores sequence, state and context at the next epoch; twice, unapplied or after the target resumed is 409; an unknown or foreign one is 404', async () => {
    const subject = await moving(tenant);
    const { continuity_id } = subject.execution;
    const before = await tenant.instance(subject.id);
    const made = await plan(tenant, subject, { transforms: [COPY] });
    expectStatus(await askRollback(tenant, made.id), 409);
    await apply(tenant, made.id, { approved: true });
    expectStatus(await askRollback(api.tenant(), made.id), 404);
    expectStatus(await askRollback(tenant, UNKNOWN), 404);
    const record = await rollBack(tenant, made.id);
    assert.equal(record.state, 'rolled_back');
    assert.ok(record.rolled_back_at !== null);
    const back = await tenant.instance(subject.id);
    assert.deepEqual({ ...back, updated_at: '' }, { ...before, updated_at: '' });
    assert.equal((await continuity.execution(continuity_id)).epoch, 2);
    assert.deepEqual(await epochs(continuity_id), [0, 1, 2]);
    assert.deepEqual(await kinds(continuity_id), [
      'execution_created',
      'migration_applied',
      'migration_rolled_back',
    ]);
    const verified = await tenant.get<ProvenanceVerdict>(
      `/continuity/executions/${continuity_id}/provenance/verify`,
    );
    assert.equal(verified.body.valid, true);
    expectStatus(await askRollback(tenant, made.id), 409);
    const resumed = await moving(tenant);
    const applied = await plan(tenant, resumed);
    await apply(tenant, applied.id);
    await tenant.move(resumed.id, 'scheduled');
    await tenant.until(resumed.id, 'running');
    expectStatus(await askRollback(tenant, applied.id), 409);
  });

  test('steps without effects that ran in the target run again in the source', async () => {
    const handler = newHandler();
    const subject = await between(handler, [step('a', handler), transform('b', {}), gate('g')]);
    const { id } = subject;
    const made = await plan(tenant, subject, { capture_checkpoint: true });
    await apply(tenant, made.id);
    await tenant.move(id, 'scheduled');
    await tenant.until(id, 'running');
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
    await rollBack(tenant, made.id);
    assert.deepEqual(await tenant.rowsOf(id), ['a']);
    await tenant.move(id, 'scheduled');
    await tenant.until(id, 'running');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
  });

  test('needs the capsule, whole and within its time', async () => {
    const subject = await moving(tenant);
    const made = await plan(tenant, subject);
    const { rollback_capsule } = await apply(tenant, made.id);
    const key = rollback_capsule?.payload_artifact.key;
    assert.ok(key !== undefined);
    const content = 'select content from artifacts where key = $1';
    const kept = (await api.sql.query(content, [key])).rows[0]?.content as Buffer;
    const change = 'update artifacts set content = $2 where key = $1';
    const tampered = Buffer.from(kept);
    tampered.writeUInt8(tampered.readUInt8(20) ^ 1, 20);
    await api.sql.query(change, [key, tampered]);
    expectStatus(await askRollback(tenant, made.id), 409);
    await api.sql.query(change, [key, kept]);
    const text = 'select record::text as record from migrations where id = $1';
    const { record } = (await api.sql.query(text, [made.id])).rows[0] as { record: string };
    const write = (value: string) =>
      api.sql.query('update migrations set record = $2 where id = $1', [made.id, value]);
    const forged = record.replace(
      `"source_runtime_id":"${subject.execution.owner_runtime_id}"`,
      `"source_runtime_id":"${UNKNOWN}"`,
    );
    assert.notEqual(forged, record);
    await write(forged);
    expectStatus(await askRollback(tenant, made.id), 409);
    await write(record);
    await expire(made.id);
    expectStatus(await askRollback(tenant, made.id), 409);
    await write(record);
    assert.equal((await rollBack(tenant, made.id)).state, 'rolled_back');
  });

  test('is closed once the target has sent something, and open while it has not', async () => {
    const handler = newHandler();
    const subject = await between(handler, [step('a', handler), step('b', handler)]);
    const { id } = subject;
    const first = await plan(tenant, subject, { capture_checkpoint: true });
    await apply(tenant, first.id);
    assert.equal((await rollBack(tenant, first.id)).state, 'rolled_back');
    assert.equal((await tenant.instance(id)).state, 'paused');
    const second = await plan(tenant, subject);
    await apply(tenant, second.id);
    await tenant.move(id, 'scheduled');
    const sent = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    expectStatus(await askRollback(tenant, second.id), 409);
    await tenant.complete(sent);
    expectStatus(await askRollback(tenant, second.id), 409);
  });
});

test('migrate-instance of an enrolled instance is 409', async () => {
  const subject = await moving(tenant);
  const body = { instance_id: subject.id, target_sequence_id: subject.to };
  expectStatus(await tenant.post('/sequences/migrate-instance', body), 409);
});

// ---------------------------------------------------------------- reads

const EXECUTIONS = '/continuity/executions';

interface World extends Continuity {
  readonly tenant: Tenant;
  /** The instance, which is also the id of its execution. */
  readonly id: string;
  /** The next version of its sequence. */
  readonly next: string;
}

/** An execution that is paused before its first step. */
async function world(): Promise<World> {
  const tenant = api.tenant();
  const continuity = continuityOf(tenant);
  const [name, blocks] = ['story', [step('a', 'noop'), step('b', 'noop')]];
  const sequence = await tenant.sequence(blocks, { name });
  const next = await tenant.sequence(blocks, { name, version: 2 });
  const id = await pausedAtStart(tenant, sequence);
  await continuity.enrol(id);
  return { ...continuity, tenant, id, next };
}

const list = async ({ tenant, id }: World, query = ''): Promise<Boundary[]> =>
  expectStatus(await tenant.get<Boundary[]>(`${EXECUTIONS}/${id}/checkpoints${query}`), 200);

async function detail({ tenant, id }: World, checkpoint: string): Promise<BoundaryDetail> {
  const path = `${EXECUTIONS}/${id}/checkpoints/${checkpoint}`;
  return expectStatus(await tenant.get<BoundaryDetail>(path), 200);
}

async function verdict({ tenant, id }: World, query = ''): Promise<ProvenanceVerdict> {
  const path = `${EXECUTIONS}/${id}/provenance/verify${query}`;
  return expectStatus(await tenant.get<ProvenanceVerdict>(path), 200);
}

describe('the checkpoints of an execution', () => {
  test('are those of more pieces than one, in one order', async () => {
    const it = await world();
    const saved: string[] = [];
    for (let count = 0; count < 20; count += 1) saved.push(await save(it.tenant, it.id, { count }));
    const all = await list(it);
    assert.deepEqual(column(all, 'checkpoint_id'), saved);
    assert.equal(new Set(column(all, 'checkpoint_sha256')).size, 20);
  });

  test('A new execution has no checkpoints; each checkpoint has its previous id, exact data, and a diff of paths with secrets redacted; an unknown one is 404', async () => {
    const it = await world();
    assert.deepEqual(await list(it), []);
    const path = `${EXECUTIONS}/${it.id}/checkpoints`;
    expectStatus(await it.tenant.get(`${path}/${UNKNOWN}`), 404);
    expectStatus(await api.tenant().get(path), 404);

    const before = { safe_boundary: 'a', context_snapshot: { n: 1, api_key: 'first' }, kept: [1] };
    const after = { safe_boundary: 'b', context_snapshot: { n: 2.5, api_key: 'other' }, kept: [1] };
    const [first, second] = [
      await save(it.tenant, it.id, before),
      await save(it.tenant, it.id, after),
    ];

    expectStatus(await api.tenant().get(`${path}/${first}`), 404);
    const start = await detail(it, first);
    assert.equal(start.previous_checkpoint_id, null);
    assert.deepEqual(start.checkpoint_data, before);
    assert.deepEqual(start.redacted_state_diff, [
      { path: 'context_snapshot', before: null, after: { n: 1, api_key: '[REDACTED]' } },
      { path: 'kept', before: null, after: [1] },
      { path: 'safe_boundary', before: null, after: 'a' },
    ]);

    const shown = await detail(it, second);
    assert.equal(shown.previous_checkpoint_id, first);
    assert.deepEqual(shown.checkpoint_data, after);
    assert.deepEqual(shown.redacted_state_diff, [
      { path: 'context_snapshot.n', before: 1, after: 2.5 },
      { path: 'safe_boundary', before: 'a', after: 'b' },
    ]);
    assert.deepEqual(await list(it), [start.boundary, shown.boundary]);
  });

  test('say where they were saved, and the hash of what was saved', async () => {
    const it = await world();
    const { sequence_id } = await it.tenant.instance(it.id);
    const data = { z: 1, block_id: 'b', a: { '\u{1f600}': 'é', '\uffff': null } };
    const id = await save(it.tenant, it.id, data);
    const [boundary] = await list(it);
    const created_at = boundary?.created_at ?? '';
    assert.deepEqual(boundary, {
      checkpoint_id: id,
      instance_id: it.id,
      continuity_id: it.id,
      epoch: 0,
      sequence_id,
      sequence_version: 1,
      block_id: 'b',
      checkpoint_sha256: canonicalSha256(data),
      provenance_head: null,
      created_at,
    });
    await save(it.tenant, it.id, null as unknown as Json);
    const [, second] = await list(it);
    assert.equal(second?.block_id, 'unknown_boundary');
    assert.equal((await detail(it, second?.checkpoint_id ?? '')).checkpoint_data, null);
  });

  test('stand once for each epoch of their instance, and as many as were asked for', async () => {
    const it = await world();
    const first = await save(it.tenant, it.id, { count: 1 });
    const { tenant, next: to } = it;
    const { id } = await plan(tenant, { execution: await it.execution(it.id), to });
    await apply(tenant, id);
    const all = await list(it);
    const second = all[1]?.checkpoint_id;
    assert.deepEqual(columns(all, 'checkpoint_id', 'epoch', 'sequence_version'), [
      [first, 0, 2],
      [second, 0, 2],
      [first, 1, 2],
      [second, 1, 2],
    ]);
    assert.equal((await detail(it, first)).boundary.epoch, 0);
    assert.deepEqual(await list(it, '?limit=3'), all.slice(0, 3));
    expectStatus(await it.tenant.get(`${EXECUTIONS}/${it.id}/checkpoints?limit=-1`), 400);
  });
});

const change = (it: World, seq: number, set: string) =>
  api.sql.query(
    `update provenance_entries set ${set} where continuity_id = '${it.id}' and seq = ${seq}`,
  );
const tell = (it: World) =>
  it.tenant.post<Json>(`${EXECUTIONS}/${it.id}/provenance`, {
    kind: 'model_selected',
    payload_sha256: '9c'.repeat(32),
  });
// `unit/continuity-provenance` has every fault.
test('provenance that was tampered with is found in the middle of a long chain, which callers cannot make longer without end', async () => {
  const it = await world();
  await Promise.all(Array.from({ length: 120 }, async () => expectStatus(await tell(it), 201)));
  const { valid, entries_checked } = await verdict(it);
  assert.deepEqual([valid, entries_checked], [true, 121]);
  for (const [seq, set, fault] of [
    [60, `payload_sha256 = '${'9d'.repeat(32)}'`, 'PROVENANCE_HASH_MISMATCH'],
    [20, "signing_key_id = 'nobody'", 'PROVENANCE_SIGNING_KEY_UNTRUSTED'],
    [0, 'signature = null', 'PROVENANCE_SIGNATURE_INCOMPLETE'],
  ] as const) {
    await change(it, seq, set);
    const { first_invalid_index, code } = await verdict(it);
    assert.deepEqual([first_invalid_index, code], [seq, fault]);
  }
  await change(it, 120, 'seq = 9999');
  assert.match(expectStatus(await tell(it), 409).error as string, /has 10000 entries/);
});
