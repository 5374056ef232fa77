/** Live migration: plans and their verdicts, applying, and the way back. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import pg from 'pg';
import type { MigrationRecord, ProvenanceVerdict } from '../../schema/continuity.js';
import {
  beforeWith,
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  sleep,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { type Continuity, continuityOf } from '../helpers/continuity.js';
import {
  apply,
  askApply,
  askPlan,
  askRollback,
  GATED,
  gate,
  MIGRATIONS,
  moving,
  plan,
  rollBack,
  save,
} from '../helpers/migrations.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const HEX_64 = /^[0-9a-f]{64}$/;
const PASS = 'HISTORICAL_REPLAY_PASS';
const FAIL = 'HISTORICAL_REPLAY_FAIL';

let continuity: Continuity;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  continuity = continuityOf(tenant);
});

const COPY = { transform: 'copy', from_path: 'context_snapshot.n', to_path: 'context_snapshot.m' };
const kinds = async (id: string) => (await continuity.provenance(id)).map(({ kind }) => kind);
const epochs = async (id: string) => (await continuity.locations(id)).map(({ epoch }) => epoch);

/** Straight from the database. */
async function sql<Row extends pg.QueryResultRow>(
  text: string,
  ...values: unknown[]
): Promise<Row[]> {
  const client = new pg.Client(api.database.connectionString);
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** As if the retention had passed. */
const expire = (migration: string) =>
  sql(
    "update migrations set record = jsonb_set(record::jsonb, '{rollback_expires_at}', " +
      '\'"2020-01-01T00:00:00.000Z"\')::json where id = $1',
    migration,
  );

describe('a plan', () => {
  test('migration plan: completed instance 409, no checkpoint 409, foreign target 404, wrong version 404, unknown continuity 404', async () => {
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
    expectStatus(await askPlan(tenant, subject, { continuity_id: UNKNOWN }), 404);
    expectStatus(await askPlan(api.tenant(), subject), 404);
  });

  test('is refused for what is no other version of the same sequence', async () => {
    const subject = await moving(tenant);
    const other = await tenant.sequence(GATED, { version: 2 });
    expectStatus(await askPlan(tenant, { ...subject, to: other }), 400);
    expectStatus(await askPlan(tenant, { ...subject, to: subject.from }, { to_version: 1 }), 400);
  });

  test('captures a checkpoint of the live state when it is asked to', async () => {
    const subject = await moving(tenant, GATED, GATED, { checkpoint: null });
    const made = await plan(tenant, subject, { capture_checkpoint: true, transforms: [COPY] });
    assert.equal(made.disposition, 'approval_required');
    const path = `/instances/${subject.id}/checkpoints`;
    const list = expectStatus(await tenant.get<Json[]>(path), 200);
    assert.deepEqual(
      list.map(({ checkpoint_data }) => checkpoint_data),
      [{ safe_boundary: 'b', context_snapshot: { n: 1 }, completed_blocks: ['a'] }],
    );
    await apply(tenant, made.id, { approved: true });
    assert.deepEqual((await tenant.instance(subject.id)).context.data, { n: 1, m: 1 });
  });

  test('verdicts as documented; CHECKPOINT_OUTPUT_REMOVED reported; retention clamped to 60 s and 30 days; duplicate destination 400; missing source path 400 at plan time', async () => {
    const renamed = [step('other', 'noop'), gate('b')];
    const removed = await plan(tenant, await moving(tenant, GATED, renamed));
    assert.ok(removed.finding_codes.includes('CHECKPOINT_OUTPUT_REMOVED:a'));
    const subject = await moving(tenant);
    for (const [asked, seconds] of [
      [1, 60],
      [-5, 60],
      [undefined, 86_400],
      [2_592_001, 2_592_000],
    ]) {
      const made = await plan(tenant, subject, { rollback_retention_seconds: asked });
      const path = `${MIGRATIONS}/${made.id}`;
      const record = expectStatus(await tenant.get<MigrationRecord>(path), 200);
      const expires = Date.parse(record.rollback_expires_at) - Date.parse(made.created_at);
      assert.equal(expires, (seconds ?? 0) * 1_000);
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
    const made = await plan(tenant, subject);
    assert.equal((await apply(tenant, made.id)).applied_epoch, 1);
  });

  test('get: state planned; foreign/unknown 404', async () => {
    const subject = await moving(tenant);
    const made = await plan(tenant, subject);
    const path = `${MIGRATIONS}/${made.id}`;
    const record = expectStatus(await tenant.get<MigrationRecord>(path), 200);
    assert.equal(record.state, 'planned');
    assert.deepEqual(record.plan, made);
    assert.equal(record.expected_epoch, 0);
    assert.equal(record.source_state, 'waiting');
    assert.equal(record.rollback_capsule, null);
    assert.deepEqual(record.source_checkpoint.checkpoint_data, { context_snapshot: { n: 1 } });
    assert.deepEqual((record.source_context as Json).data, { n: 1 });
    expectStatus(await api.tenant().get(path), 404);
    expectStatus(await tenant.get(`${MIGRATIONS}/${UNKNOWN}`), 404);
  });
});

describe('a verdict', () => {
  const verdict = async (
    source: readonly Json[],
    target: readonly Json[],
    more: Json = {},
    options: Json = {},
  ) => {
    const {
      disposition,
      verdict: same,
      finding_codes,
    } = await plan(tenant, await moving(tenant, source, target, options), more);
    assert.equal(same, disposition);
    return [disposition, finding_codes.includes(PASS), finding_codes.includes(FAIL)];
  };

  test('is automatic for the same shape at a gate', async () => {
    assert.deepEqual(await verdict(GATED, GATED), ['automatic', true, false]);
    assert.deepEqual(await verdict(GATED, GATED, {}, { state: 'paused' }), [
      'automatic',
      true,
      false,
    ]);
  });

  test('is approval_required with a transform', async () => {
    const more = { transforms: [COPY] };
    assert.deepEqual(await verdict(GATED, GATED, more), ['approval_required', true, false]);
  });

  test('is pin when a step that nobody recorded stands before the boundary', async () => {
    const target = [step('a', 'noop'), step('new', 'noop'), gate('b')];
    assert.deepEqual(await verdict(GATED, target), ['pin', false, true]);
    const first = [step('new', 'noop'), ...GATED];
    assert.deepEqual(await verdict(GATED, first), ['pin', false, true]);
  });

  test('does not look at steps behind the boundary', async () => {
    const target = [...GATED, transform('c', { n: 2 })];
    assert.deepEqual(await verdict(GATED, target), ['automatic', true, false]);
  });

  test('is automatic between steps of a paused instance', async () => {
    const source = [step('a', newHandler()), step('b', newHandler())];
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(source, { name });
    const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
    const id = await tenant.create(from);
    const task = await tenant.task(source[0]?.handler as string);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    await tenant.complete(task);
    const execution = await continuity.enrol(id);
    const made = await plan(tenant, { execution, to }, { capture_checkpoint: true });
    assert.equal(made.disposition, 'automatic', made.finding_codes.join());
    const record = await apply(tenant, made.id);
    assert.deepEqual((record.source_context as Json).data, {});
    await tenant.move(id, 'scheduled');
    await tenant.complete(await tenant.task(source[1]?.handler as string));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
  });

  test('needs approval when a step with effects is added behind the boundary', async () => {
    const target = [...GATED, step('c', newHandler())];
    const made = await plan(tenant, await moving(tenant, GATED, target));
    assert.equal(made.disposition, 'approval_required');
    assert.ok(made.finding_codes.includes('SIDE_EFFECT_RISK:BLOCK_ADDED'), `${made.finding_codes}`);
  });

  test('is incompatible when an output that is read is gone', async () => {
    const source = [...GATED, transform('c', { n: '{{ outputs.a.n }}' })];
    const target = [step('z', 'noop'), ...source.slice(1)];
    const made = await plan(tenant, await moving(tenant, source, target));
    assert.equal(made.disposition, 'incompatible');
    expectStatus(await askApply(tenant, made.id, { approved: true }), 409);
  });

  test('is automatic within a loop, whose former passes are done', async () => {
    const handler = newHandler();
    const blocks = [loop('l', 'data.n < 3', [step('a', handler)]), step('b', 'noop')];
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(blocks, { name });
    const to = await tenant.sequence([...blocks, step('c', 'noop')], { name, version: 2 });
    const id = await tenant.create(from, { context: { data: { n: 0 } } });
    await tenant.complete(await tenant.task(handler), { n: 1 });
    const second = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    await tenant.complete(second, { n: 2 });
    const execution = await continuity.enrol(id);
    const made = await plan(tenant, { execution, to }, { capture_checkpoint: true });
    assert.equal(made.disposition, 'automatic', made.finding_codes.join());
    await apply(tenant, made.id);
    await tenant.move(id, 'scheduled');
    await tenant.complete(await tenant.task(handler), { n: 3 });
    await tenant.until(id, 'completed');
    assert.deepEqual(
      (await tenant.rowsOf(id)).filter((block) => block !== 'l'),
      ['a', 'a', 'a', 'b', 'c'],
    );
  });

  /** The verdict on an instance that stands at a step of a worker, behind what `lead` did to it. */
  async function judged(
    source: readonly Json[],
    target: readonly Json[],
    lead: (id: string) => Promise<unknown>,
    data: Json = {},
  ): Promise<string> {
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(source, { name });
    const to = await tenant.sequence(target, { name, version: 2 });
    const id = await tenant.create(from, { context: { data } });
    await lead(id);
    await tenant.until(id, 'waiting');
    const execution = await continuityOf(tenant).enrol(id);
    return (await plan(tenant, { execution, to }, { capture_checkpoint: true })).disposition;
  }

  test('is not pin for a try that failed, whether or not one has followed that succeeded', async () => {
    const [handler, stands] = [newHandler(), newHandler()];
    const retry = { max_attempts: 2, initial_backoff: 1 };
    const blocks = [step('a', handler, { retry }), step('gate', stands, { retry })];
    const lead = async () => {
      await tenant.fail(await tenant.task(handler), 'later', true);
      await tenant.complete(await tenant.task(handler));
      await tenant.fail(await tenant.task(stands), 'later', true);
      await eventually(async () => assert.equal((await tenant.tasks(stands)).length, 1));
    };
    assert.equal(await judged(blocks, [...blocks, step('b', 'noop')], lead), 'automatic');
  });

  test('is pin when a step on the way asked for something else', async () => {
    const handler = newHandler();
    const gate = step('gate', newHandler());
    const blocks = (text: string) => [step('a', handler, { params: { n: text } }), gate];
    const lead = async (id: string) => {
      await tenant.complete(await tenant.task(handler));
      await eventually(async () => assert.deepEqual(await tenant.rowsOf(id), ['a']));
    };
    const data = { n: 1, m: 1 };
    const same = await judged(blocks('{{data.n}}'), blocks('{{data.m}}'), lead, data);
    assert.equal(same, 'approval_required');
    assert.equal(await judged(blocks('{{data.n}}'), blocks('{{data.m}}0'), lead, data), 'pin');
  });

  test('is automatic while a worker has the step, and pin once what it did is in doubt, or was resolved', async () => {
    const handler = newHandler();
    const blocks = [step('a', handler)];
    const target = [...blocks, step('b', 'noop')];
    const subject = await moving(tenant, blocks, target, { waitsFor: 'waiting' });
    assert.equal((await plan(tenant, subject)).disposition, 'automatic');
    await tenant.task(handler);
    assert.equal((await plan(tenant, subject)).disposition, 'automatic');
    const [receipt] = expectStatus(
      await tenant.get<{ id: string }[]>(`/instances/${subject.id}/effects`),
      200,
    );
    for (const state of ['unknown', 'compensated']) {
      const path = `/continuity/effects/${receipt?.id}/resolve`;
      expectStatus(await tenant.post(path, { state }), 200);
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
  test('apply: applied, epoch +1, rollback capsule present (64-hex hashes), instance paused on the target, provenance entry; twice 409; unapproved 409; approved works; pin/incompatible 409 even approved; stale epoch 409; unknown 404', async () => {
    const subject = await moving(tenant);
    const { continuity_id } = subject.execution;
    const [made, stale] = [await plan(tenant, subject), await plan(tenant, subject)];
    const record = await apply(tenant, made.id);
    assert.equal(record.state, 'applied');
    assert.equal(record.applied_epoch, 1);
    assert.ok(record.applied_at !== null);
    const capsule = record.rollback_capsule;
    assert.match(capsule?.manifest_sha256 ?? '', HEX_64);
    assert.match(capsule?.payload_artifact.sha256 ?? '', HEX_64);
    assert.deepEqual((await tenant.get(`${MIGRATIONS}/${made.id}`)).body, record);
    const { state, sequence_id, next_fire_at } = await tenant.instance(subject.id);
    assert.deepEqual(
      { state, sequence_id, next_fire_at },
      {
        state: 'paused',
        sequence_id: subject.to,
        next_fire_at: null,
      },
    );
    assert.equal((await continuity.execution(continuity_id)).epoch, 1);
    assert.deepEqual(await epochs(continuity_id), [0, 1]);
    assert.deepEqual(await kinds(continuity_id), ['execution_created', 'migration_applied']);
    expectStatus(await askApply(tenant, made.id), 409);
    expectStatus(await askApply(tenant, stale.id), 409);
    expectStatus(await askApply(tenant, UNKNOWN), 404);
    expectStatus(await askApply(api.tenant(), made.id), 404);
    const open = await moving(tenant);
    const unapproved = await plan(tenant, open, { transforms: [COPY] });
    expectStatus(await askApply(tenant, unapproved.id), 409);
    assert.equal((await apply(tenant, unapproved.id, { approved: true })).state, 'applied');
  });

  test('the instance goes on in the target, and what is done is not done again', async () => {
    const target = [...GATED, transform('c', { n: '{{ context.data.n }}' })];
    const subject = await moving(tenant, GATED, target);
    await apply(tenant, (await plan(tenant, subject)).id);
    await tenant.move(subject.id, 'scheduled');
    await tenant.until(subject.id, 'running');
    assert.deepEqual(await tenant.rowsOf(subject.id), ['a']);
  });

  test('goes on in another place of the target, too', async () => {
    const handler = newHandler();
    const source = [step('a', handler), step('b', handler)];
    const caught = [step('a', handler), tryCatch('t', [step('b', handler)], [step('r', 'noop')])];
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(source, { name });
    const to = await tenant.sequence(caught, { name, version: 2 });
    const id = await tenant.create(from);
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    await tenant.complete(task);
    const execution = await continuity.enrol(id);
    const made = await plan(tenant, { execution, to }, { capture_checkpoint: true });
    await apply(tenant, made.id, { approved: true });
    await tenant.move(id, 'scheduled');
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
    assert.deepEqual(
      (await tenant.rowsOf(id)).filter((block) => block !== 't'),
      ['a', 'b'],
    );
    assert.equal((await tenant.tasks(handler)).length, 2);
  });

  test('copy keeps the source, move removes it, drop removes only that field', async () => {
    const data = { profile: { name: 'Ada', age: 3 }, n: 1 };
    const at = (path: string) => `context_snapshot.${path}`;
    const cases = [
      [
        { transform: 'copy', from_path: at('profile.name'), to_path: at('name') },
        { ...data, name: 'Ada' },
      ],
      [
        { transform: 'move', from_path: at('profile.name'), to_path: at('name') },
        { profile: { age: 3 }, n: 1, name: 'Ada' },
      ],
      [
        { transform: 'drop', from_path: at('profile.name') },
        { profile: { age: 3 }, n: 1 },
      ],
    ] as const;
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

  test('is refused when a newer checkpoint was saved or the context changed since', async () => {
    const newer = await moving(tenant);
    const first = await plan(tenant, newer);
    await save(tenant, newer.id, { context_snapshot: { n: 2 } });
    expectStatus(await askApply(tenant, first.id), 409);
    const changed = await moving(tenant);
    const second = await plan(tenant, changed);
    const patch = { context: { data: { n: 2 } } };
    expectStatus(await tenant.patch(`/instances/${changed.id}/context`, patch), 200);
    expectStatus(await askApply(tenant, second.id), 409);
    assert.equal((await tenant.instance(changed.id)).sequence_id, changed.from);
  });

  test('is refused when the target has gone, or the plan is older than its retention', async () => {
    const gone = await moving(tenant);
    const first = await plan(tenant, gone);
    expectStatus(await tenant.delete(`/sequences/${gone.to}`), 204);
    expectStatus(await askApply(tenant, first.id), 404);
    const old = await moving(tenant);
    const second = await plan(tenant, old);
    await expire(second.id);
    expectStatus(await askApply(tenant, second.id), 409);
  });

  test('is refused when the instance has gone on, or is in another state', async () => {
    const subject = await moving(tenant);
    const made = await plan(tenant, subject);
    await tenant.signal(subject.id, 'pause');
    await tenant.until(subject.id, 'paused');
    expectStatus(await askApply(tenant, made.id), 409);
  });
});

describe('at the same time', () => {
  test('of two applications one happens', async () => {
    const subject = await moving(tenant);
    const plans = [await plan(tenant, subject), await plan(tenant, subject)];
    const replies = await Promise.all(plans.map(({ id }) => askApply(tenant, id)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409]);
    assert.deepEqual(await epochs(subject.execution.continuity_id), [0, 1]);
  });

  test('of an application and a change of the context, one sees the other', async () => {
    for (let round = 0; round < 5; round += 1) {
      const subject = await moving(tenant);
      const made = await plan(tenant, subject);
      const patch = { context: { data: { n: 2 } } };
      const [applied, patched] = await Promise.all([
        askApply(tenant, made.id),
        tenant.patch(`/instances/${subject.id}/context`, patch),
      ]);
      assert.equal(patched.status, 200);
      const { sequence_id, context } = await tenant.instance(subject.id);
      // Whoever comes second: what was patched is there.
      assert.deepEqual(context.data, { n: 2 });
      assert.equal(sequence_id, applied.status === 200 ? subject.to : subject.from);
      assert.ok(applied.status === 200 || applied.status === 409, applied.text);
    }
  });

  test('of a move and what makes the instance go on, one sees the other', async () => {
    for (let round = 0; round < 5; round += 1) {
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
      if (!isApplied) continue;
      const [back] = await Promise.all([
        askRollback(tenant, made.id),
        tenant.patch(`/instances/${id}/state`, { state: 'scheduled' }),
      ]);
      const isBack = back.status === 200;
      assert.ok(isBack || back.status === 409, back.text);
      assert.equal((await tenant.instance(id)).sequence_id, isBack ? from : to);
      assert.deepEqual(await epochs(execution.continuity_id), isBack ? [0, 1, 2] : [0, 1]);
    }
  });

  test('of an application and the worker that has a step, only the worker comes through', async () => {
    const handler = newHandler();
    const source = [parallel('p', [step('a', 'noop'), gate('g')], [step('b', handler)])];
    for (let round = 0; round < 5; round += 1) {
      const subject = await moving(tenant, source, [...source, step('c', 'noop')]);
      const task = await tenant.task(handler);
      const made = await plan(tenant, subject);
      const [applied] = await Promise.all([askApply(tenant, made.id), tenant.complete(task)]);
      assert.equal(applied.status, 409);
      assert.deepEqual((await tenant.rowsOf(subject.id)).sort(), ['a', 'b']);
      assert.equal((await tenant.instance(subject.id)).sequence_id, subject.from);
    }
  });
});

describe('the way back', () => {
  test('rollback: rolled_back, source sequence and waiting state back, context restored, epoch +1 again (locations 0,1,2), provenance entry; not applied / twice / resumed target → 409; unknown or foreign → 404', async () => {
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
    const source = [step('a', handler), transform('b', { n: '{{ context.data.n }}' }), gate('g')];
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(source, { name });
    const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
    const id = await tenant.create(from, { context: { data: { n: 1 } } });
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    await tenant.complete(task);
    const execution = await continuity.enrol(id);
    const made = await plan(tenant, { execution, to }, { capture_checkpoint: true });
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

  test('a loop that the target has ended goes on where it was in the source', async () => {
    const each = forEach('l', 'items', [sleep('s', 2_000)], { item_var: 'item' });
    const source = [each, gate('g')];
    const data = { items: [1, 2] };
    const subject = await moving(tenant, source, [...source, step('c', 'noop')], {
      state: 'paused',
      data,
    });
    const before = await tenant.outputs(subject.id);
    const made = await plan(tenant, subject);
    assert.equal(made.disposition, 'automatic', made.finding_codes.join());
    await apply(tenant, made.id);
    const ended = () =>
      eventually(async () => {
        const rows = (await tenant.rowsOf(subject.id)).filter((block) => block === 's');
        assert.equal(rows.length, 2);
        assert.equal((await tenant.nodeStates(subject.id)).l, 'completed');
      });
    await tenant.move(subject.id, 'scheduled');
    await ended();
    await tenant.signal(subject.id, 'pause');
    await tenant.until(subject.id, 'paused');
    await rollBack(tenant, made.id);
    const shown = (rows: readonly { block_id: string; output: Json }[]) =>
      rows.map(({ block_id, output }) => ({ block_id, output }));
    assert.deepEqual(shown(await tenant.outputs(subject.id)), shown(before));
    await tenant.move(subject.id, 'scheduled');
    await ended();
  });

  test('needs the capsule, whole and within its time', async () => {
    const subject = await moving(tenant);
    const made = await plan(tenant, subject);
    const { rollback_capsule } = await apply(tenant, made.id);
    const key = rollback_capsule?.payload_artifact.key;
    assert.ok(key !== undefined);
    const [kept] = await sql<{ content: Buffer }>(
      'select content from artifacts where key = $1',
      key,
    );
    const change = 'update artifacts set content = $2 where key = $1';
    const tampered = Buffer.from(kept?.content ?? []);
    tampered.writeUInt8(tampered.readUInt8(20) ^ 1, 20);
    await sql(change, key, tampered);
    expectStatus(await askRollback(tenant, made.id), 409);
    await sql(change, key, kept?.content);
    const [{ record } = { record: '' }] = await sql<{ record: string }>(
      'select record::text as record from migrations where id = $1',
      made.id,
    );
    const forged = record.replace(
      `"source_runtime_id":"${subject.execution.owner_runtime_id}"`,
      `"source_runtime_id":"${UNKNOWN}"`,
    );
    assert.notEqual(forged, record);
    await sql('update migrations set record = $2 where id = $1', made.id, forged);
    expectStatus(await askRollback(tenant, made.id), 409);
    await sql('update migrations set record = $2 where id = $1', made.id, record);
    await expire(made.id);
    expectStatus(await askRollback(tenant, made.id), 409);
    await sql('update migrations set record = $2 where id = $1', made.id, record);
    assert.equal((await rollBack(tenant, made.id)).state, 'rolled_back');
  });

  test('is closed once the target has sent something, and open while it has not', async () => {
    const handler = newHandler();
    const source = [step('a', handler), step('b', handler)];
    const name = `s-${randomUUID()}`;
    const from = await tenant.sequence(source, { name });
    const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
    const id = await tenant.create(from);
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    await tenant.complete(task);
    const execution = await continuity.enrol(id);
    const first = await plan(tenant, { execution, to }, { capture_checkpoint: true });
    await apply(tenant, first.id);
    assert.equal((await rollBack(tenant, first.id)).state, 'rolled_back');
    assert.equal((await tenant.instance(id)).state, 'paused');
    const second = await plan(tenant, { execution, to });
    await apply(tenant, second.id);
    await tenant.move(id, 'scheduled');
    const sent = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.until(id, 'paused');
    expectStatus(await askRollback(tenant, second.id), 409);
    await tenant.complete(sent);
    expectStatus(await askRollback(tenant, second.id), 409);
    await tenant.move(id, 'scheduled');
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
  });
});

describe('the simple rebind', () => {
  test('migrate-instance on an enrolled instance → 409', async () => {
    const subject = await moving(tenant);
    const body = { instance_id: subject.id, target_sequence_id: subject.to };
    expectStatus(await tenant.post('/sequences/migrate-instance', body), 409);
  });
});
